//! `quipu show`

mod ahead;
mod diff;
mod recorded;
mod session;
mod tool;

use std::io::{BufWriter, Write};

use quipu_exchange::encode_log;
use quipu_model::{Event, EventType};
use quipu_store::catalogue::TranscriptRow;

use self::ahead::{Ahead, Events};
use super::render::{Days, Renderer, write_day};
use crate::args::Show;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::{self, Resolved};
use crate::terminal::{columns, count, out, say};
use crate::{foreign, json, when};

pub(crate) fn run(args: &Show, place: &locate::HomePlace) -> Result<Exit> {
    let meant = place.meant(&args.run)?;
    for word in &args.types {
        if EventType::from_word(word).is_none() {
            say(&format!("note: {word:?} is not a known event type"));
        }
    }
    match meant {
        Resolved::Run(path) => {
            if locate::is_database(&path) {
                let error = anyhow::anyhow!("{} is a database", path.display());
                return Err(CommandError::new(Exit::Data, error)
                    .hint("import it with `quipu import`, then show one of its sessions"));
            }
            recorded::run(args, &path)
        }
        Resolved::Log(path) => {
            let read = foreign::read(&path);
            let log = read.map_err(io_error(format!("could not read {}", path.display())))?;
            let mut log = log.ok_or_else(|| locate::no_log(&path))?;
            if let Some(doubt) = &log.doubt {
                say(&format!("{}: {doubt}", path.display()));
            }
            let row = log.row(&path);
            show(args, &row, 0, &mut log)
        }
        Resolved::Session(found) => {
            let (store, row) = *found;
            let children = store.children(&row.native)?.len() as u64;
            let mut events = store.batches(&row, &(args.from..=args.to))?;
            show(args, &row, children, &mut events)
        }
    }
}

impl Show {
    fn wants(&self, seq: u64, event_type: &str) -> bool {
        (self.from..=self.to).contains(&seq)
            && (self.types.is_empty() || self.types.iter().any(|wanted| wanted == event_type))
    }

    fn wants_event(&self, event: &Event) -> bool {
        self.wants(event.seq, event.body.type_word())
    }
}

/// Shows a session as was asked.
fn show(args: &Show, row: &TranscriptRow, children: u64, events: &mut dyn Events) -> Result<Exit> {
    if args.output.jsonl || args.json {
        data(args, row, events)?;
    } else {
        let mut out = out();
        let view = session::View::new(args, columns());
        view.header(&mut out, row, children)?;
        let read = if args.events {
            each(args, row, events, &mut out)?
        } else {
            let mut ahead = Ahead::new(args, events);
            view.conversation(&mut out, row, &mut ahead)?;
            ahead.passed()
        };
        out.flush()?;
        if read == 0 && args.from <= 1 {
            say("nothing of it could be read as a session");
        }
    }
    if let Some(problem) = events.problem()? {
        say(&format!("not all of it could be read: {problem}"));
    }
    if row.figures.dangling > 0 && args.full {
        say(&count(row.figures.dangling, "tool call without a result"));
    }
    Ok(Exit::Done)
}

/// Writes events as JSON: one document, or one line each.
fn data(args: &Show, row: &TranscriptRow, events: &mut dyn Events) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut line = Vec::new();
    let mut before = "";
    if args.json {
        let session = json::line(&json::transcript(row))?;
        write!(out, "{{\"session\":{session},\n\"events\":[")?;
    }
    while let Some(batch) = events.more() {
        for event in batch?.iter().filter(|event| args.wants_event(event)) {
            line.clear();
            encode_log(event, &mut line);
            let text = String::from_utf8_lossy(&line);
            let text = json::escape(text.trim_end());
            if args.json {
                write!(out, "{before}\n{text}")?;
                before = ",";
            } else {
                writeln!(out, "{text}")?;
            }
        }
    }
    if args.json {
        let problem = json::line(&events.problem()?)?;
        writeln!(out, "\n],\"problem\":{problem}}}")?;
    }
    Ok(out.flush()?)
}

/// Shows a session event by event. Says how many were read.
fn each(
    args: &Show,
    row: &TranscriptRow,
    events: &mut dyn Events,
    out: &mut impl Write,
) -> Result<usize> {
    let renderer = Renderer { full: args.full };
    let mut days = Days::since(row.started_at.and_then(when::of_millis));
    let mut read = 0;
    while let Some(batch) = events.more() {
        let batch = batch?;
        read += batch.len();
        for event in batch.iter().filter(|event| args.wants_event(event)) {
            if let Some(day) = days.changed(event) {
                write_day(out, day)?;
            }
            renderer.event(out, event)?;
        }
    }
    Ok(read)
}
