//! `quipu repair`

use std::io::Write as _;

use quipu_formats::lines::Limits;
use quipu_record::Mended;

use crate::args::Repair;
use crate::error::{Exit, Result};
use crate::terminal::{clean, count, out};
use crate::{json, locate};

pub(crate) fn run(args: &Repair, place: &locate::Place) -> Result<Exit> {
    let mut out = out();
    let mut documents = Vec::new();
    for run in &args.runs {
        let path = place.transcript(run)?;
        let mended = quipu_record::repair(&path, Limits::default())?;
        let name = path.display().to_string();
        if args.json {
            documents.push(json::mended(&name, &mended));
            continue;
        }
        if mended.is_empty() {
            writeln!(out, "{}: nothing to mend", clean(&name))?;
        }
        for line in describe(&mended) {
            writeln!(out, "{}: {}", clean(&name), clean(&line))?;
        }
    }
    if args.json {
        writeln!(out, "{:#}", serde_json::Value::from(documents))?;
    }
    out.flush()?;
    Ok(Exit::Done)
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
