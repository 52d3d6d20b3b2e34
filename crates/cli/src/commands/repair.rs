//! `quipu repair`

mod trace;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use quipu_api::repair as api;
use quipu_exchange::lines::Limits;
use quipu_exchange::{Item, Reader};
use quipu_record::Mended;

use crate::args::Repair;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::terminal::{clean, count, out};
use crate::{json, locate};

pub(crate) fn run(args: &Repair, place: &locate::HomePlace) -> Result<Exit> {
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
                documents.push(api::Mended::Failed(super::failed(run, &error)));
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
                    documents.push(api::Mended::Trace(Box::new(outcome.document(run))));
                } else {
                    outcome.write(&mut out, run)?;
                }
            }
            What::Transcript(name, mended) if args.json => {
                documents.push(api::Mended::Transcript(json::mended(&name, &mended)));
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
        writeln!(out, "{}", json::document(&documents)?)?;
    }
    out.flush()?;
    failed.map_or(Ok(exit), Err)
}

enum What {
    Trace(Box<trace::Outcome>),
    Transcript(String, Mended),
}

fn mend(run: &str, args: &Repair, place: &locate::HomePlace) -> Result<What> {
    if let Some(source) = super::verify::trace::Source::of(run)? {
        return Ok(What::Trace(Box::new(trace::mend(source, args)?)));
    }
    if args.output.is_some() {
        let error =
            format!("{run} is no .agentlog trace; a transcript is mended in place, without -o");
        return Err(CommandError::usage(error));
    }
    let path = place.transcript(run)?;
    super::verify::other::refuse_what_is_no_recording(&path)?;
    refuse_to_empty(&path)?;
    let mended = quipu_record::repair(&path, Limits::default())?;
    Ok(What::Transcript(path.display().to_string(), mended))
}

/// A file in which nothing is an event, nor begins like one, is not mended by setting all of it aside.
fn refuse_to_empty(path: &Path) -> Result<()> {
    let about = || io_error(format!("could not read {}", path.display()));
    let mut reader = Reader::new(File::open(path).map_err(about())?);
    let mut begin = Vec::new();
    File::open(path)
        .and_then(|file| file.take(6).read_to_end(&mut begin))
        .map_err(about())?;
    if begin.is_empty() || b"{\"seq\"".starts_with(&begin[..]) {
        return Ok(());
    }
    while let Some(item) = reader.next().map_err(about())? {
        if let Item::Event(_) = item {
            return Ok(());
        }
    }
    let error = anyhow::anyhow!(
        "there is no event in {}; is it a transcript?",
        path.display()
    );
    Err(CommandError::new(Exit::Data, error))
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
