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
    let (mut documents, mut failed) = (Vec::new(), None);
    for run in &args.runs {
        let mended = place.transcript(run).and_then(|path| {
            let mended = quipu_record::repair(&path, Limits::default())?;
            Ok((path.display().to_string(), mended))
        });
        let (name, mended) = match mended {
            Ok(mended) => mended,
            Err(error) => {
                // The others are still worth mending.
                documents.push(serde_json::json!({ "file": run, "error": error.to_string() }));
                super::keep_first(&mut failed, error);
                continue;
            }
        };
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
        writeln!(out, "{}", json::document(&documents.into()))?;
    }
    out.flush()?;
    failed.map_or(Ok(Exit::Done), Err)
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
