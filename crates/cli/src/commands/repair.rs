//! `quipu repair`

mod trace;

use std::io::Write as _;

use quipu_formats::lines::Limits;
use quipu_record::Mended;

use crate::args::Repair;
use crate::error::{CommandError, Exit, Result};
use crate::terminal::{clean, count, out};
use crate::{json, locate};

pub(crate) fn run(args: &Repair, place: &locate::Place) -> Result<Exit> {
    if args.output.is_some() && args.runs.len() > 1 {
        return Err(CommandError::usage("-o takes one trace at a time"));
    }
    let mut out = out();
    let (mut documents, mut failed, mut exit) = (Vec::new(), None, Exit::Done);
    for run in &args.runs {
        let mended = match mend(run, args, place) {
            Ok(mended) => mended,
            Err(error) => {
                // The others are still worth mending.
                documents.push(serde_json::json!({ "file": run, "error": error.to_string() }));
                super::keep_first(&mut failed, error);
                continue;
            }
        };
        match mended {
            What::Trace(outcome) => {
                if outcome.exit() == Exit::Found {
                    exit = Exit::Found;
                }
                if args.json {
                    documents.push(outcome.json(run));
                } else {
                    outcome.write(&mut out, run)?;
                }
            }
            What::Transcript(name, mended) if args.json => {
                documents.push(json::mended(&name, &mended));
            }
            What::Transcript(name, mended) => {
                if mended.is_empty() {
                    writeln!(out, "{}: nothing to mend", clean(&name))?;
                }
                for line in describe(&mended) {
                    writeln!(out, "{}: {}", clean(&name), clean(&line))?;
                }
            }
        }
    }
    if args.json {
        writeln!(out, "{}", json::document(&documents.into()))?;
    }
    out.flush()?;
    failed.map_or(Ok(exit), Err)
}

enum What {
    Trace(Box<trace::Outcome>),
    Transcript(String, Mended),
}

fn mend(run: &str, args: &Repair, place: &locate::Place) -> Result<What> {
    if let Some(source) = super::verify::trace::Source::of(run)? {
        return Ok(What::Trace(Box::new(trace::mend(source, args)?)));
    }
    if args.output.is_some() {
        let error =
            format!("{run} is no .agentlog trace; a transcript is mended in place, without -o");
        return Err(CommandError::usage(error));
    }
    let path = place.transcript(run)?;
    let mended = quipu_record::repair(&path, Limits::default())?;
    Ok(What::Transcript(path.display().to_string(), mended))
}

/// What was mended, in words.
pub(crate) fn describe(mended: &Mended) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(torn) = &mended.set_aside {
        lines.push(format!(
            "cut {} off at byte {}; kept in {}",
            count(torn.bytes, "torn byte"),
            torn.offset,
            torn.path.display(),
        ));
    }
    if mended.ended_line {
        lines.push("ended the last line".to_owned());
    }
    if let Some(mode) = mended.made_private {
        lines.push(format!("made it private (it was {mode:o})"));
    }
    lines
}
