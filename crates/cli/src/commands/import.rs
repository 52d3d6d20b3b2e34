//! `quipu import`

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use quipu_agents::{FAMILIES, Host};
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::import::watch::{Changed, Watch};
use quipu_store::import::{ImportError, Options, Problem, Progress, Report, Search};

use crate::args::Import;
use crate::error::{CommandError, Exit, Result};
use crate::locate::Place;
use crate::progress::with_bar;
use crate::table::Table;
use crate::terminal::{bytes, columns, count, fit, out, say};
use crate::{json, when};

pub(crate) fn run(args: &Import, place: &Place) -> Result<Exit> {
    let home = place.home()?;
    let host = Place::host()?;
    let options = Options {
        now: SystemClock.now(),
        agents: args.agents.clone(),
        dry_run: args.dry_run,
        threads: args.threads,
    };
    check_agents(&args.agents, &host)?;
    let missing: Vec<&PathBuf> = args.paths.iter().filter(|path| !path.exists()).collect();
    let report = if args.rebuild {
        let store = Store::open(&home)?;
        with_bar(|progress| store.rebuild(&options, progress))?
    } else if args.dry_run {
        // Where nothing is kept yet, nothing is made.
        let existing = Store::open_existing(&home)?;
        let temporary = tempfile::tempdir()?;
        let store = match existing {
            Some(store) => store,
            None => Store::open(temporary.path())?,
        };
        store.import_found(search(args, &host), &options, &Progress::default())?
    } else {
        let store = Store::open(&home)?;
        with_bar(|progress| store.import_found(search(args, &host), &options, progress))?
    };
    let mut out = out();
    if args.json {
        writeln!(out, "{:#}", json::import(&report))?;
    } else {
        write_report(&mut out, &report, args.dry_run)?;
    }
    out.flush()?;
    drop(out);
    report_problems(&report.problems);
    report_drift(&report);
    let nothing = report.read + report.unchanged + report.kept == 0;
    if let Some(path) = missing.first() {
        let error = anyhow::anyhow!("there is no {}", path.display());
        return Err(CommandError::new(Exit::Data, error));
    }
    if !args.paths.is_empty() && nothing {
        let error = anyhow::anyhow!("nothing that was given is a log of an agent that is known");
        let error = CommandError::new(Exit::Data, error);
        return Err(match report.unknown_examples.first() {
            Some(path) => error.hint(format!("{} is not known, for one", path.display())),
            None => error,
        });
    }
    if args.watch {
        watch(&Store::open(&home)?, &host, &args.paths, &options)?;
    }
    Ok(Exit::Done)
}

fn search(args: &Import, host: &Host) -> Search {
    if args.paths.is_empty() {
        Search::of_places(host, &args.agents)
    } else {
        Search::of_paths(host, &args.paths, &args.agents)
    }
}

/// A name that no agent has would import nothing, silently.
fn check_agents(agents: &[String], host: &Host) -> Result<()> {
    let mut known: Vec<&str> = FAMILIES
        .iter()
        .flat_map(|family| {
            let places = family.places(host).into_iter().map(|place| place.brand);
            let dialects = family.dialects().iter().map(|dialect| dialect.brand);
            places.chain(dialects).collect::<Vec<_>>()
        })
        .collect();
    known.sort_unstable();
    known.dedup();
    match agents
        .iter()
        .find(|agent| !known.iter().any(|name| name.starts_with(agent.as_str())))
    {
        None => Ok(()),
        Some(agent) => Err(CommandError::usage(format!("no agent is called {agent:?}"))
            .hint(format!("known are {}", known.join(", ")))),
    }
}

/// What was done, for people.
pub(super) fn write_report(out: &mut impl Write, report: &Report, dry: bool) -> Result<()> {
    if dry {
        let mut table = Table::new(&["AGENT", ">LOGS"]);
        for (name, agent) in &report.agents {
            table.row([name.clone(), agent.files.to_string()]);
        }
        if !report.agents.is_empty() {
            table.write(out, columns(), None)?;
        }
        writeln!(
            out,
            "{} to read, {}; {} unchanged. Nothing was kept.",
            count(report.read, "log"),
            bytes(report.bytes),
            report.unchanged
        )?;
        return Ok(());
    }
    if !report.agents.is_empty() {
        let mut table = Table::new(&[
            "AGENT",
            ">LOGS",
            ">SESSIONS",
            ">RECORDS",
            ">EVENTS",
            ">NOTES",
            ">DROPPED",
        ]);
        let mut sums = [0; 6];
        for (name, agent) in &report.agents {
            let row = [
                agent.files,
                agent.sessions,
                agent.records,
                agent.events,
                agent.notes,
                agent.dropped.values().sum(),
            ];
            for (sum, n) in sums.iter_mut().zip(row) {
                *sum += n;
            }
            let cells = std::iter::once(name.clone()).chain(row.map(|n| n.to_string()));
            table.row(cells);
        }
        if report.agents.len() > 1 {
            let cells = std::iter::once("total".to_owned()).chain(sums.map(|n| n.to_string()));
            table.row(cells);
        }
        table.write(out, columns(), None)?;
    }
    let mut parts = vec![match report.read {
        0 if report.unchanged > 0 => "nothing new".to_owned(),
        n => format!("{} read", count(n, "log")),
    }];
    for (n, what) in [
        (report.unchanged, "unchanged"),
        (report.kept, "kept beside them"),
        (report.copies, "copied from others"),
        (report.unknown, "not known"),
        (report.empty, "empty"),
        (report.credentials, "with credentials, not opened"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    if report.read > 0 {
        let new = bytes(report.new_bytes);
        parts.push(format!("{} read, {new} of it new", bytes(report.bytes)));
    }
    let mut line = parts.join(", ");
    if let Some(first) = line.get(..1).map(str::to_ascii_uppercase) {
        line.replace_range(..1, &first);
    }
    writeln!(out, "{line}.")?;
    Ok(())
}

/// What went wrong, each kind once.
pub(super) fn report_problems(problems: &[Problem]) {
    for problem in problems {
        let path = problem.path.display();
        let more = match problem.count {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        say(&format!("{path}{more}: {}", problem.what));
    }
}

/// One line when something was not known.
pub(super) fn report_drift(report: &Report) {
    let unknown: u64 = report.agents.values().map(|agent| agent.unknown).sum();
    if unknown > 0 {
        say(&format!(
            "{unknown} records or fields that Quipu does not know were kept as they are; see `quipu doctor --drift`"
        ));
    }
}

/// Imports what changes, as it changes, until it is ended.
pub(super) fn watch(
    store: &Store,
    host: &Host,
    paths: &[PathBuf],
    options: &Options,
) -> Result<()> {
    let fault = |error: notify::Error| {
        let limit = "the system's limit of watches may be reached (fs.inotify.max_user_watches)";
        CommandError::new(Exit::Environment, anyhow::Error::new(error)).hint(limit)
    };
    let new_watch = || match paths {
        [] => Watch::new(host, &options.agents),
        paths => Watch::of_paths(paths.iter().cloned()),
    };
    let roots = || -> Vec<bool> {
        let places = FAMILIES.iter().flat_map(|family| family.places(host));
        places.map(|place| place.root.exists()).collect()
    };
    let (mut watch, mut there) = (new_watch().map_err(fault)?, roots());
    let directories = match watch.watched().len() {
        1 => "1 directory".to_owned(),
        n => format!("{n} directories"),
    };
    say(&format!("watching {directories}; Ctrl-C ends it"));
    loop {
        let Some(changed) = watch.wait(None) else {
            return Ok(());
        };
        let mut everything = changed == Changed::Anything;
        // A place that was made since is watched from now on.
        let now_there = roots();
        if now_there != there {
            (watch, there) = (new_watch().map_err(fault)?, now_there);
            everything = true;
        }
        let search = match changed {
            Changed::Paths(mut paths) if !everything => {
                paths.retain(|path| path.is_file());
                Search::of_paths(host, &paths, &options.agents)
            }
            _ if paths.is_empty() => Search::of_places(host, &options.agents),
            _ => Search::of_paths(host, paths, &options.agents),
        };
        import_changes(store, search, options)?;
    }
}

/// Imports what changed, and says so: one line for each session.
fn import_changes(store: &Store, search: Search, options: &Options) -> Result<()> {
    const BUSY: Duration = Duration::from_secs(1);
    let mut before = Vec::new();
    for candidate in &search.found {
        for row in store.catalogue().transcripts_at(&candidate.path)? {
            before.push((row.run_id, row.figures.events));
        }
    }
    let paths: Vec<PathBuf> = search.found.iter().map(|it| it.path.clone()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let options = Options {
        now: SystemClock.now(),
        ..options.clone()
    };
    let report = match store.import_found(search, &options, &Progress::default()) {
        Ok(report) => report,
        Err(ImportError::Busy(_)) => {
            // The other import may be past these logs already, so they are looked at again.
            std::thread::sleep(BUSY);
            let again = Search::of_paths(&Place::host()?, &paths, &options.agents);
            store.import_found(again, &options, &Progress::default())?
        }
        Err(error) => return Err(error.into()),
    };
    report_problems(&report.problems);
    if report.read == 0 {
        return Ok(());
    }
    let mut out = out();
    let time = when::local_time(options.now);
    for path in &paths {
        for row in store.catalogue().transcripts_at(path)? {
            let known = before.iter().find(|(id, _)| *id == row.run_id);
            let events =
                row.figures.events - known.map_or(0, |known| known.1.min(row.figures.events));
            if events == 0 && known.is_some() {
                continue;
            }
            let title = row.title.as_deref().unwrap_or_default();
            writeln!(
                out,
                "{time}  {}  {}  +{}  {}",
                row.agent,
                row.run_id,
                count(events, "event"),
                fit(title, 60)
            )?;
        }
    }
    out.flush()?;
    Ok(())
}
