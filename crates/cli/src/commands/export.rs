//! `quipu export`

use quipu_convert::source::Transcript;
use quipu_convert::{Format, Reading, Source};

use super::convert::{Sessions, Work, open, reading, redacted};
use super::list;
use crate::args::Export;
use crate::error::{CommandError, Exit, Result};
use crate::locate::{HomePlace, Resolved};

pub(crate) fn run(args: &Export, place: &HomePlace) -> Result<Exit> {
    if args.keep && args.target.to != Format::Agentlog {
        return Err(CommandError::usage(
            "only traces are kept: --keep goes with --to agentlog",
        ));
    }
    let filters = args.all || !args.only.is_empty();
    if args.ids.is_empty() && !filters {
        let error = CommandError::usage("which sessions?");
        return Err(error.hint("name ids, or say --all, --project, --since, …"));
    }
    if !args.ids.is_empty() && filters {
        return Err(CommandError::usage(
            "name ids, or say which by filters, not both",
        ));
    }
    let reading = reading(&args.target, place)?;
    let mut failed = None;
    let mut sources = Vec::new();
    for id in &args.ids {
        match place.meant(id).and_then(|meant| of(meant, &reading)) {
            Ok(mut found) => sources.append(&mut found),
            Err(error) => super::keep_first(&mut failed, error),
        }
    }
    if args.ids.is_empty() {
        sources = filtered(args, place, &reading)?;
    }
    if sources.is_empty() {
        let nothing = || {
            let error = anyhow::anyhow!("nothing that is kept is like that");
            CommandError::new(Exit::Data, error)
        };
        return Err(failed.unwrap_or_else(nothing));
    }
    let traces = if args.keep { Some(place.home()?) } else { None };
    let sessions = match args.ids.len() {
        // Those that a filter leaves may be any number.
        0 => Sessions::Many,
        _ => Sessions::of(sources.len()),
    };
    let sources = redacted(sources, &args.target, place)?;
    Work::new(&args.target, place, sessions, (traces, &reading))?.all(sources, failed)
}

pub(super) fn of(meant: Resolved, reading: &Reading) -> Result<Vec<Box<dyn Source>>> {
    match meant {
        Resolved::Run(path) => Ok(vec![Box::new(Transcript::new(&path))]),
        Resolved::Log(path) => open(&path, reading),
        Resolved::Session(found) => {
            let (store, row) = *found;
            Ok(vec![store.export(&row, &reading.prices)?])
        }
    }
}

fn filtered(args: &Export, place: &HomePlace, reading: &Reading) -> Result<Vec<Box<dyn Source>>> {
    let store = place.store()?;
    let rows = list::wanted(&args.only, args.all, store.as_ref())?;
    let Some(store) = store else {
        return Ok(Vec::new());
    };
    rows.iter()
        .map(|row| Ok(store.export(row, &reading.prices)?))
        .collect()
}
