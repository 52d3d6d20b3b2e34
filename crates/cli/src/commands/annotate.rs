//! `quipu label` and `quipu note`

use std::io::{self, Write};

use quipu_api::annotations::{Annotations, LabelCount};
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::annotations::{Target, Who};
use quipu_store::catalogue::TranscriptRow;

use crate::args::{Label, LabelAction, Note};
use crate::error::{CommandError, Exit, Result};
use crate::json;
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{BOLD, DIM, clean, columns, count, out, say};

pub(crate) fn label(args: &Label, place: &HomePlace) -> Result<Exit> {
    let Some(id) = &args.id else {
        return all(args, place);
    };
    let (store, row) = place.session(id)?;
    let action = args.action.unwrap_or(LabelAction::List);
    if action == LabelAction::List {
        if !args.labels.is_empty() {
            let usage = "`list` takes no labels; `quipu list --label LABEL` lists what has one";
            return Err(CommandError::usage(usage));
        }
        return list(&store, &row, args.seq, args.json, true);
    }
    if args.labels.is_empty() {
        return Err(CommandError::usage(
            "which label? name one behind the action",
        ));
    }
    check_seq(&store, &row, args.seq)?;
    let (by, now) = (author(args.by.as_deref()), SystemClock.now());
    let who = Who { by: &by, now };
    let on = Target {
        transcript: &row.address,
        seq: args.seq,
    };
    for label in &args.labels {
        match action {
            LabelAction::Remove => store.annotations().remove_label(on, label, who)?,
            _ => drop(store.annotations().add_label(on, label, who)?),
        }
    }
    if args.json {
        return list(&store, &row, None, true, true);
    }
    let what = count(args.labels.len() as u64, "label");
    say(&match action {
        LabelAction::Remove => format!("took {what} away from {}", row.run_id),
        _ => format!("put {what} on {}", row.run_id),
    });
    Ok(Exit::Done)
}

pub(crate) fn note(args: &Note, place: &HomePlace) -> Result<Exit> {
    let (store, row) = place.session(&args.id)?;
    let (by, now) = (author(args.by.as_deref()), SystemClock.now());
    let who = Who { by: &by, now };
    let notes = store.annotations();
    let written = match (&args.text, &args.edit, &args.delete) {
        (None, None, None) => return list(&store, &row, args.seq, args.json, false),
        (_, _, Some(id)) => {
            notes.delete_note(&row.address, id, who)?;
            None
        }
        (Some(text), Some(id), _) => Some(notes.edit_note(&row.address, id, text, who)?),
        (text, _, _) => {
            check_seq(&store, &row, args.seq)?;
            let on = Target {
                transcript: &row.address,
                seq: args.seq,
            };
            let text = text.as_deref().unwrap_or_default();
            Some(notes.add_note(on, text, who)?)
        }
    };
    if args.json {
        return list(&store, &row, None, true, false);
    }
    if let Some(note) = written {
        let mut out = out();
        writeln!(out, "{}", clean(&note.id))?;
        out.flush()?;
    }
    Ok(Exit::Done)
}

/// All labels, with how often each is there.
fn all(args: &Label, place: &HomePlace) -> Result<Exit> {
    let labels = match place.store()? {
        Some(store) => store.annotations().labels()?,
        None => Vec::new(),
    };
    let mut out = out();
    if args.json {
        writeln!(out, "{}", json::document(&labels)?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    if labels.is_empty() {
        say("No labels yet; `quipu label ID add LABEL` puts one on a session.");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["LABEL", ">SESSIONS", ">EVENTS"]);
    for LabelCount {
        label,
        transcripts,
        events,
    } in &labels
    {
        table.row([
            clean(label).into_owned(),
            transcripts.to_string(),
            events.to_string(),
        ]);
    }
    table.write(&mut out, columns(), None)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// What people wrote on a transcript, or on one event of it.
fn list(
    store: &Store,
    row: &TranscriptRow,
    seq: Option<u64>,
    as_json: bool,
    with_labels: bool,
) -> Result<Exit> {
    let mut there = store.annotations().list(&row.address)?;
    if let Some(seq) = seq {
        there.labels.retain(|label| label.seq == Some(seq));
        there.notes.retain(|note| note.seq == Some(seq));
    }
    let mut out = out();
    if as_json {
        writeln!(out, "{}", json::document(&there)?)?;
    } else {
        write(&mut out, &there, with_labels)?;
    }
    out.flush()?;
    drop(out);
    let nothing = if with_labels {
        there.labels.is_empty()
    } else {
        there.notes.is_empty()
    };
    if nothing && !as_json {
        let what = if with_labels { "labels" } else { "notes" };
        say(&format!("No {what} on {}", row.run_id));
    }
    Ok(Exit::Done)
}

fn write(out: &mut dyn Write, there: &Annotations, with_labels: bool) -> io::Result<()> {
    let place = |seq: Option<u64>| seq.map_or_else(String::new, |seq| format!("#{seq}"));
    if with_labels {
        for label in &there.labels {
            let (name, by) = (clean(&label.label), clean(&label.by));
            let (seq, at) = (place(label.seq), &label.at.0);
            let on = if seq.is_empty() {
                String::new()
            } else {
                format!(" {seq}")
            };
            writeln!(out, "{BOLD}{name}{BOLD:#}{on}  {DIM}{by}, {at}{DIM:#}")?;
        }
        return Ok(());
    }
    for note in &there.notes {
        let (id, by) = (clean(&note.id), clean(&note.by));
        let (seq, at) = (place(note.seq), &note.at.0);
        let on = if seq.is_empty() {
            String::new()
        } else {
            format!(" {seq}")
        };
        let edited = if note.edited_at.is_some() {
            ", edited"
        } else {
            ""
        };
        writeln!(
            out,
            "{BOLD}{id}{BOLD:#}{on}  {DIM}{by}, {at}{edited}{DIM:#}"
        )?;
        for line in note.text.lines() {
            writeln!(out, "    {}", clean(line))?;
        }
    }
    Ok(())
}

/// Whether a transcript has this event.
fn check_seq(store: &Store, row: &TranscriptRow, seq: Option<u64>) -> Result<()> {
    let Some(seq) = seq else {
        return Ok(());
    };
    let log = store.events(row)?;
    let len = log
        .len()
        .map_err(|error| CommandError::new(Exit::Environment, error))?;
    if (1..=len).contains(&seq) {
        return Ok(());
    }
    let error = format!("--seq {seq}: {} has events 1 to {len}", row.run_id);
    Err(CommandError::usage(error))
}

/// Who is at the keyboard, as far as the environment tells.
fn author(given: Option<&str>) -> String {
    let names = ["USER", "LOGNAME"].map(|name| std::env::var(name).ok());
    let name = names
        .into_iter()
        .flatten()
        .find(|name| !name.trim().is_empty());
    let given = given.map(str::to_owned);
    given.or(name).unwrap_or_else(|| "unknown".to_owned())
}
