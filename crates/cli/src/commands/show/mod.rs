//! `quipu show`

mod diff;
mod recorded;
mod session;
mod tool;

use std::io::{BufWriter, Write as _};

use quipu_formats::exchange::encode_log;
use quipu_model::{Event, EventType};
use quipu_store::catalogue::TranscriptRow;

use super::render::{Days, Renderer, write_day};
use crate::args::Show;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::locate::{self, Meant};
use crate::terminal::{columns, count, out, say};
use crate::{foreign, json, when};

pub(crate) fn run(args: &Show, place: &locate::Place) -> Result<Exit> {
    let meant = place.meant(&args.run)?;
    for word in &args.types {
        if EventType::from_word(word).is_none() {
            say(&format!("note: {word:?} is not a known event type"));
        }
    }
    match meant {
        Meant::Run(path) => {
            if locate::is_database(&path) {
                let error = anyhow::anyhow!("{} is a database", path.display());
                return Err(CommandError::new(Exit::Data, error)
                    .hint("import it with `quipu import`, then show one of its sessions"));
            }
            recorded::run(args, &path)
        }
        Meant::Log(path) => {
            let read = foreign::read(&path);
            let log = read.map_err(io_error(format!("could not read {}", path.display())))?;
            let log = log.ok_or_else(|| locate::no_log(&path))?;
            if let Some(doubt) = &log.doubt {
                say(&format!("{}: {doubt}", path.display()));
            }
            let problem = log.problem.as_ref().map(ToString::to_string);
            show(args, &log.row(&path), 0, &log.events, problem)
        }
        Meant::Session(found) => {
            let (store, row) = *found;
            let children = store.catalogue().children(&row.native)?.len() as u64;
            let transcript = store.read_part(row, args.from..=args.to)?;
            show(
                args,
                &transcript.row,
                children,
                &transcript.events,
                transcript.problem,
            )
        }
    }
}

impl Show {
    fn wants(&self, seq: u64, event_type: &str) -> bool {
        (self.from..=self.to).contains(&seq)
            && (self.types.is_empty() || self.types.iter().any(|wanted| wanted == event_type))
    }
}

/// Shows a session as was asked.
fn show(
    args: &Show,
    row: &TranscriptRow,
    children: u64,
    events: &[Event],
    problem: Option<String>,
) -> Result<Exit> {
    let wanted = events
        .iter()
        .filter(|event| args.wants(event.seq, event.body.type_word()));
    if args.output.jsonl || args.json {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut line = Vec::new();
        let mut before = "";
        if args.json {
            write!(
                out,
                "{{\"session\":{},\n\"events\":[",
                json::line(&json::transcript(row))?
            )?;
        }
        for event in wanted {
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
        if args.json {
            let problem = json::line(&problem)?;
            writeln!(out, "\n],\"problem\":{problem}}}")?;
        }
        out.flush()?;
    } else {
        let mut out = out();
        let view = session::View::new(args, columns());
        view.header(&mut out, row, children)?;
        if args.events {
            let renderer = Renderer { full: args.full };
            let mut days = Days::since(row.started_at.and_then(when::of_millis));
            for event in wanted {
                if let Some(day) = days.changed(event) {
                    write_day(&mut out, day)?;
                }
                renderer.event(&mut out, event)?;
            }
        } else {
            view.conversation(&mut out, row, events)?;
        }
        out.flush()?;
        if events.is_empty() && args.from <= 1 {
            say("nothing of it could be read as a session");
        }
    }
    if let Some(problem) = problem {
        say(&format!("not all of it could be read: {problem}"));
    }
    if row.figures.dangling > 0 && args.full {
        say(&count(row.figures.dangling, "tool call without a result"));
    }
    Ok(Exit::Done)
}
