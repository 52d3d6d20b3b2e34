//! A transcript in the exchange format, event by event.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use quipu_api::show::BadLine;
use quipu_exchange::{Bad, Item, Reader};
use quipu_model::Header;

use crate::args::Show;
use crate::commands::render::{Days, Renderer, write_day};
use crate::error::{CommandError, Exit, Result, io_error};
use crate::json::{self, escape};
use crate::terminal::{BOLD, DIM, count, duration, out, say};
use crate::when;

pub(super) fn run(args: &Show, path: &Path) -> Result<Exit> {
    let file = File::open(path).map_err(io_error(format!("could not open {}", path.display())))?;
    let reader = Reader::new(file);
    let shown = if args.json {
        document(args, reader)
    } else if args.output.jsonl {
        lines(args, reader)
    } else {
        human(args, path, reader)
    };
    match shown.map_err(|error| error.about(&path.display().to_string()))? {
        0 => Ok(Exit::Done),
        n => Err(CommandError::bad_lines(n, path)),
    }
}

/// Complaints that are written out; the rest are counted.
const SHOWN: u64 = 100;

/// Says what is wrong with the `n`th line that is no event.
fn complain(n: u64, bad: &Bad<'_>) {
    if n <= SHOWN {
        say(&format!("{}: {}", bad.at, bad.fault));
    }
    if n == SHOWN {
        say("… and those after it are only counted");
    }
}

fn human(args: &Show, path: &Path, mut reader: Reader<File>) -> Result<u64> {
    let mut out = out();
    let renderer = Renderer { full: args.full };
    let (mut header, mut bad, mut days) = (None::<Header>, 0, Days::default());
    while let Some(item) = reader.next_decoded()? {
        let decoded = match item {
            Ok(decoded) => decoded,
            Err(line) => {
                bad += 1;
                out.flush()?;
                complain(bad, &line);
                continue;
            }
        };
        let event = &decoded.event;
        let header = header.get_or_insert_with(|| Header::new(event.run_id.clone()));
        if header.totals.events == 0 {
            write!(out, "{BOLD}run {}{BOLD:#}", event.run_id)?;
            if let Some(parent) = &event.parent_run_id {
                write!(out, " {DIM}called by {parent}{DIM:#}")?;
            }
            writeln!(out, "  {DIM}{}{DIM:#}", when::local_day(event.timestamp))?;
        }
        if header.totals.events == 0 {
            days = Days::since(Some(event.timestamp));
        }
        header.observe(event);
        if args.wants(event.seq, event.body.type_word()) {
            if let Some(day) = days.changed(event) {
                write_day(&mut out, day)?;
            }
            renderer.event(&mut out, event)?;
        }
        if !decoded.warnings.is_empty() {
            out.flush()?;
            for warning in &decoded.warnings {
                say(&format!("{}, seq {}: {warning}", decoded.at, event.seq));
            }
        }
    }
    match &header {
        None => say(&format!("{} has no events", path.display())),
        Some(header) => {
            let mut parts = vec![count(header.totals.events, "event")];
            if !header.children.is_empty() {
                parts.push(count(header.children.len() as u64, "child run"));
            }
            if let (Some(from), Some(to)) = (header.started_at, header.ended_at) {
                let millis = to.as_millisecond() - from.as_millisecond();
                let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0);
                parts.extend(millis.map(duration));
            }
            writeln!(out, "{DIM}{}{DIM:#}", parts.join(", "))?;
        }
    }
    out.flush()?;
    Ok(bad)
}

/// Events as they are in the file, but for escapes.
fn lines(args: &Show, mut reader: Reader<File>) -> Result<u64> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut bad = 0;
    while let Some(item) = reader.next()? {
        match item {
            Item::Bad(line) => {
                bad += 1;
                complain(bad, &line);
            }
            Item::Event(found) if args.wants(found.scan.seq, &found.scan.kind()) => {
                out.write_all(escape(found.text).as_bytes())?;
                out.write_all(b"\n")?;
            }
            Item::Event(_) => {}
        }
    }
    out.flush()?;
    Ok(bad)
}

/// One document: `{"events":[…],"bad_line_count":n,"bad_lines":[…]}`, written as it is read.
fn document(args: &Show, mut reader: Reader<File>) -> Result<u64> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (mut bad, mut kept) = (0, Vec::new());
    let mut before = "{\"events\":[";
    while let Some(item) = reader.next()? {
        match item {
            Item::Bad(line) => {
                bad += 1;
                complain(bad, &line);
                if bad > SHOWN {
                    continue;
                }
                let head = &line.bytes[..line.bytes.len().min(1000)];
                kept.push(BadLine {
                    line: line.at.line,
                    offset: line.at.offset,
                    fault: line.fault.to_string(),
                    text: String::from_utf8_lossy(head).into_owned(),
                });
            }
            Item::Event(found) if args.wants(found.scan.seq, &found.scan.kind()) => {
                write!(out, "{before}\n{}", escape(found.text))?;
                before = ",";
            }
            Item::Event(_) => {}
        }
    }
    let before = if before == "," { "" } else { before };
    let kept = json::line(&kept)?;
    writeln!(
        out,
        "{before}\n],\"bad_line_count\":{bad},\"bad_lines\":{kept}}}"
    )?;
    out.flush()?;
    Ok(bad)
}
