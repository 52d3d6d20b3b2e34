//! `quipu up`: import what is here, keep watching, serve it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::facade::Listing;
use quipu_store::import::{Found, ImportError, ImportOptions, Progress, Report, Search};

use super::import::{report_drift, report_problems, watch, write_report};
use super::list::{self, ids_of};
use super::serve::{Manner, Server, service};
use crate::args::Up;
use crate::error::Exit;
use crate::error::Result;
use crate::locate::HomePlace;
use crate::progress::{with_bar, with_bar_of};
use crate::redaction;
use crate::samples;
use crate::terminal::{BOLD, YELLOW, out, say};

/// How long the first import waits for another one to end.
const BUSY: Duration = Duration::from_secs(5);

/// How many sessions are shown at the end.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Up, place: &HomePlace) -> Result<Exit> {
    if args.install_service {
        return service::install(place);
    }
    let home = place.home()?;
    let host = HomePlace::host()?;
    let options = ImportOptions {
        now: SystemClock.now(),
        agents: Vec::new(),
        dry_run: false,
        threads: 0,
        redact: redaction::of_import(None, place)?,
    };
    if args.demo {
        return samples(args, &home, "These are samples that come with Quipu");
    }
    let search = || Search::of_places(&host, &[]);
    if args.once {
        let search = search();
        if is_empty(&search) && !keeps_anything(place)? {
            return samples(args, &home, NOTHING);
        }
        let store = Store::open(&home)?;
        let report = with_bar(|progress| store.import_found(search, &options, progress))?;
        show(&store, &report, place)?;
        return Ok(Exit::Done);
    }
    // The first server of the home answers while it imports. A second one only says where the first is.
    let found = search();
    if is_empty(&found) && !keeps_anything(place)? {
        return samples(args, &home, NOTHING);
    }
    let Some(server) = Server::start(&args.serve, &home, &MANNER)? else {
        return Ok(Exit::Done);
    };
    server.greet(&mut out())?;
    // Requests read with other connections, so that they do not wait for this one.
    let store = Store::open(&home)?;
    let progress = Arc::new(Progress::default());
    server.app.importer().begins(Arc::clone(&progress));
    let done = with_bar_of(&progress, |progress| {
        // The server itself may be catching up with what was handed over, which takes a moment.
        let begun = Instant::now();
        let mut found = Some(found);
        loop {
            let found = found.take().unwrap_or_else(search);
            match store.import_found(found, &options, progress) {
                Err(ImportError::Busy(_)) if begun.elapsed() < BUSY && !server.is_ending() => {
                    std::thread::sleep(BUSY / 100);
                }
                done => return done,
            }
        }
    });
    let now = SystemClock.now();
    match &done {
        Ok(report) => server.app.importer().ended(now, Ok(report), true),
        Err(error) => server
            .app
            .importer()
            .ended(now, Err(error.to_string()), true),
    }
    server.app.freshness().bump();
    match done {
        Ok(report) if !server.is_ending() => show(&store, &report, place)?,
        Ok(_) => {}
        // Somebody else imports: what they find is served all the same.
        Err(error @ ImportError::Busy(_)) => say(&error.to_string()),
        Err(error) => return Err(error.into()),
    }
    let app = server.app.clone();
    std::thread::spawn(move || {
        if let Err(error) = watch(&store, &host, &[], &options, Some(&app)) {
            error.report();
            say("new sessions are not imported any more; what is kept is still served");
        }
    });
    server.wait()
}

/// Something else speaks to the person.
const MANNER: Manner = Manner {
    samples: false,
    quiet: true,
};

const NOTHING: &str =
    "No sessions of any agent were found on this machine. These are samples that come with Quipu";

/// Whether no agent left a session here.
fn is_empty(search: &Search) -> bool {
    !search.found.iter().any(|it| it.found != Found::Keep)
}

/// Says what was imported, and what is there.
fn show(store: &Store, report: &Report, place: &HomePlace) -> Result<()> {
    let mut out = out();
    write_report(&mut out, report, Some(store.census()?))?;
    writeln!(out)?;
    let rows = store.list(&Listing {
        limit: Some(SHOWN),
        ..Listing::default()
    })?;
    let ids = ids_of(Some(store))?;
    list::write_rows(&mut out, &rows, Some(store), &ids, |_| None)?;
    let first = rows.first().map(|row| ids.short(&row.run_id));
    next(&mut out, &place.flag(), first.as_deref().unwrap_or("ID"))?;
    out.flush()?;
    drop(out);
    report_problems(&report.problems);
    report_drift(report);
    Ok(())
}

/// Loads the samples into a home of their own, and serves that home unless only a look was asked for.
fn samples(args: &Up, home: &Path, why: &str) -> Result<Exit> {
    show_samples(home, why)?;
    if args.once {
        return Ok(Exit::Done);
    }
    let manner = Manner {
        samples: true,
        ..MANNER
    };
    let Some(server) = Server::start(&args.serve, &samples::home(home), &manner)? else {
        return Ok(Exit::Done);
    };
    let mut out = out();
    writeln!(out)?;
    server.greet(&mut out)?;
    drop(out);
    server.wait()
}

fn keeps_anything(place: &HomePlace) -> Result<bool> {
    let Some(store) = place.store()? else {
        return Ok(false);
    };
    let mut any = Listing {
        limit: Some(1),
        ..Listing::default()
    };
    any.filter.subagents = true;
    Ok(!store.list(&any)?.is_empty())
}

/// Loads the samples into a home of their own, and shows what is there.
fn show_samples(home: &Path, why: &str) -> Result<()> {
    let samples = samples::home(home);
    let report = samples::load(&samples)?;
    let mut out = out();
    writeln!(out, "{YELLOW}{why},{YELLOW:#}")?;
    writeln!(
        out,
        "{YELLOW}in a home of their own: {}{YELLOW:#}\n",
        samples.display()
    )?;
    let store = Store::open(&samples)?;
    write_report(&mut out, &report, Some(store.census()?))?;
    writeln!(out)?;
    let rows = store.list(&Listing::default())?;
    let ids = ids_of(Some(&store))?;
    list::write_rows(&mut out, &rows, Some(&store), &ids, |_| None)?;
    let flag = HomePlace::new(Some(samples)).flag();
    let claude = rows.iter().find(|row| row.agent == "claude-code");
    let claude = claude.map(|row| ids.short(&row.run_id));
    next(&mut out, &flag, claude.as_deref().unwrap_or("ID"))?;
    writeln!(out, "  {BOLD}quipu {flag}tree {}{BOLD:#}", samples::RUN)?;
    out.flush()?;
    drop(out);
    report_problems(&report.problems);
    if !report.problems.is_empty() {
        say("the samples should have none of these; this is a bug in Quipu");
    }
    Ok(())
}

/// What can be done now.
fn next(out: &mut impl Write, flag: &str, id: &str) -> std::io::Result<()> {
    writeln!(out, "\nNext:")?;
    writeln!(out, "  {BOLD}quipu {flag}list{BOLD:#}")?;
    writeln!(out, "  {BOLD}quipu {flag}show {id}{BOLD:#}")
}
