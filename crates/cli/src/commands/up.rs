//! `quipu up`: import what is here, and keep watching.

use std::io::Write;
use std::path::Path;

use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::facade::Listing;
use quipu_store::import::{Found, ImportOptions, Search};

use super::import::{report_drift, report_problems, watch, write_report};
use super::list::{self, ids_of};
use crate::args::Up;
use crate::error::Exit;
use crate::error::Result;
use crate::locate::HomePlace;
use crate::progress::with_bar;
use crate::redaction;
use crate::samples;
use crate::terminal::{BOLD, YELLOW, out, say};

/// How many sessions are shown at the end.
const SHOWN: usize = 10;

pub(crate) fn run(args: &Up, place: &HomePlace) -> Result<Exit> {
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
        show_samples(&home, "These are samples that come with Quipu")?;
        return Ok(Exit::Done);
    }
    let search = Search::of_places(&host, &[]);
    let nothing_here = !search.found.iter().any(|it| it.found != Found::Keep);
    if nothing_here && !keeps_anything(place)? {
        show_samples(
            &home,
            "No sessions of any agent were found on this machine. These are samples that come with Quipu",
        )?;
    } else {
        let store = Store::open(&home)?;
        let report = with_bar(|progress| store.import_found(search, &options, progress))?;
        let mut out = out();
        write_report(&mut out, &report, Some(store.census()?))?;
        writeln!(out)?;
        let rows = store.list(&Listing {
            limit: Some(SHOWN),
            ..Listing::default()
        })?;
        let ids = ids_of(Some(&store))?;
        list::write_rows(&mut out, &rows, Some(&store), &ids, |_| None)?;
        let first = rows.first().map(|row| ids.short(&row.run_id));
        next(&mut out, &place.flag(), first.as_deref().unwrap_or("ID"))?;
        out.flush()?;
        drop(out);
        report_problems(&report.problems);
        report_drift(&report);
    }
    if !args.once {
        watch(&Store::open(&home)?, &host, &[], &options)?;
    }
    Ok(Exit::Done)
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
