//! `quipu up`: import what is here, keep watching, serve it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::facade::Listing;
use quipu_store::import::{Found, ImportError, ImportOptions, Progress, Report, Search};

use super::import::{report_drift, report_problems, write_report};
use super::list::{self, ids_of};
use super::serve::{Ended, Manner, Server, service};
use super::watch::{until_there, watch};
use crate::args::Up;
use crate::error::{CommandError, Exit, Result};
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
        return service::install(&args.serve, place);
    }
    let home = place.home()?;
    let host = HomePlace::host_of(&home)?;
    let options = ImportOptions {
        now: SystemClock.now(),
        agents: Vec::new(),
        dry_run: false,
        threads: 0,
        redact: redaction::of_import(None, place)?,
    };
    if args.demo {
        samples(args, &home, DEMO, false)?;
        return Ok(Exit::Done);
    }
    let search = || Search::of_places(&host, &[]);
    let shows_samples = |found: &Search| -> Result<bool> {
        Ok(!args.no_samples && is_empty(found) && !keeps_anything(place)?)
    };
    if args.once {
        let search = search();
        if shows_samples(&search)? {
            samples(args, &home, NOTHING, false)?;
            return Ok(Exit::Done);
        }
        let store = Store::open(&home)?;
        let report = with_bar(|progress| store.import_found(search, &options, progress))?;
        show(&store, &report, place)?;
        return Ok(Exit::Done);
    }
    // The first server of the home answers while it imports. A second one only says where the first is.
    let mut found = search();
    let mut serve = args.serve.clone();
    let mut before = None;
    if shows_samples(&found)? {
        let Some((ended, addresses)) = samples(args, &home, NOTHING, true)? else {
            return Ok(Exit::Done);
        };
        writeln!(
            out(),
            "\nSomething is there now. Going over from the samples to {}.\n",
            home.display()
        )?;
        // Whoever looks at the samples finds the sessions in the same place.
        serve.listen = addresses;
        before = Some(ended);
        found = search();
    }
    let server = Server::start(&serve, &home, &MANNER)?;
    drop(before);
    let Some(server) = server else {
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
        // Whatever it is may pass. What is kept is served meanwhile, and the watch begins with another import.
        Err(error) => CommandError::from(error).report(),
    }
    let app = server.app.clone();
    std::thread::spawn(move || {
        let why = match watch(&store, &host, &[], &options, Some(&app)) {
            Ok(()) => "the system does not say any more what changes".to_owned(),
            Err(error) => {
                error.report();
                error.to_string()
            }
        };
        app.importer().ended(SystemClock.now(), Err(why), false);
        say("new sessions are not imported any more; what is kept is still served");
    });
    server.wait()
}

/// Something else speaks to the person.
const MANNER: Manner = Manner {
    samples: false,
    quiet: true,
};

const DEMO: &str = "These are samples that come with Quipu";
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

/// Loads the samples into a home of their own, and serves that home unless only a look was asked for. With `until_there`,
/// until there is something else to serve: then it gives where the samples were served.
fn samples(
    args: &Up,
    home: &Path,
    why: &str,
    until_there: bool,
) -> Result<Option<(Ended, Vec<String>)>> {
    show_samples(home, why)?;
    if args.once {
        return Ok(None);
    }
    let manner = Manner {
        samples: true,
        ..MANNER
    };
    let Some(server) = Server::start(&args.serve, &samples::home(home), &manner)? else {
        return Ok(None);
    };
    let mut out = out();
    writeln!(out)?;
    server.greet(&mut out)?;
    if until_there {
        writeln!(
            out,
            "As soon as an agent leaves a session here, your own sessions take their place."
        )?;
    }
    out.flush()?;
    drop(out);
    if until_there {
        end_when_there(&server, home)?;
    }
    let addresses = server.addresses();
    let ended = server.ended()?;
    Ok((!ended.asked && until_there).then_some((ended, addresses)))
}

/// Ends the server of the samples once there is something else to serve.
fn end_when_there(server: &Server, home: &Path) -> Result<()> {
    let (app, home) = (server.app.clone(), home.to_owned());
    let host = HomePlace::host_of(&home)?;
    std::thread::spawn(move || {
        let is_there = || {
            let found = Search::of_places(&host, &[]);
            Ok(!is_empty(&found) || keeps_anything(&HomePlace::new(Some(home.clone())))?)
        };
        match until_there(&host, &home, is_there) {
            Ok(()) => app.ending().cancel(),
            Err(error) => {
                error.report();
                say("sessions that appear are not noticed; start `quipu up` again then");
            }
        }
    });
    Ok(())
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
