//! `quipu import`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use quipu_agents::Host;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::facade::Census;
use quipu_store::import::{ImportOptions, Problem, Progress, Report, Search};

use super::watch::watch;
use crate::args::Import;
use crate::error::{CommandError, Exit, Result};
use crate::filter::{Naming, check_agents};
use crate::json;
use crate::locate::HomePlace;
use crate::progress::with_bar;
use crate::redaction;
use crate::table::Table;
use crate::terminal::{DIM, bytes, clean, columns, count, out, say};

pub(crate) fn run(args: &Import, place: &HomePlace) -> Result<Exit> {
    let home = place.home()?;
    let host = HomePlace::host_of(&home)?;
    let options = ImportOptions {
        now: SystemClock.now(),
        agents: args.agents.clone(),
        dry_run: args.dry_run,
        threads: args.threads,
        redact: redaction::of_import(args.redact.as_deref(), place)?,
    };
    check_agents(&args.agents, &host, &[], Naming::Beginning)?;
    let missing: Vec<&PathBuf> = args.paths.iter().filter(|path| !path.exists()).collect();
    let (store, report) = if args.dry_run {
        // Where nothing is kept yet, nothing is made.
        let existing = Store::open_existing(&home)?;
        let temporary = tempfile::tempdir()?;
        let store = match existing {
            Some(store) => store,
            None => Store::open(temporary.path())?,
        };
        let report = store.import_found(search(args, &host), &options, &Progress::default())?;
        (None, report)
    } else {
        let (store, report);
        if args.rebuild {
            (store, report) =
                with_bar(|progress| Store::rebuild(&home, &host, &options, progress))?;
        } else {
            store = Store::open(&home)?;
            let search = || search(args, &host);
            report = with_bar(|progress| store.import_found(search(), &options, progress))?;
        }
        (Some(store), report)
    };
    let mut out = out();
    if args.json {
        writeln!(out, "{}", json::document(&json::import(&report))?)?;
    } else {
        let census = match &store {
            Some(store) => Some(store.census()?),
            None => None,
        };
        write_report(&mut out, &report, census)?;
    }
    out.flush()?;
    drop(out);
    report_problems(&report.problems);
    if let Some(why) = &report.index_anew {
        say(&format!(
            "the search index was made again from the archive: {why}"
        ));
    }
    if report.kept_again > 0 {
        say(&format!(
            "the archive had lost {} or damaged them, and they were kept again",
            count(report.kept_again, "log")
        ));
    }
    report_drift(&report);
    let nothing = report.read + report.unchanged + report.kept == 0;
    if let Some(path) = missing.first() {
        let error = anyhow::anyhow!("there is no {}", path.display());
        return Err(CommandError::new(Exit::Data, error));
    }
    if !args.paths.is_empty() && nothing {
        let error = anyhow::anyhow!("nothing that was given is {KNOWN_LOG}");
        let error = CommandError::new(Exit::Data, error);
        return Err(match report.unknown_examples.first() {
            Some(path) => error.hint(format!("{} is not known, for one", path.display())),
            None => error,
        });
    }
    if args.watch {
        watch(&Store::open(&home)?, &host, &args.paths, &options, None)?;
    }
    if report.lost > 0 {
        return Ok(Exit::Found);
    }
    Ok(Exit::Done)
}

/// What can be imported and shown.
pub(crate) const KNOWN_LOG: &str = "a log of an agent that is known";

fn search(args: &Import, host: &Host) -> Search {
    if args.paths.is_empty() {
        Search::of_places(host, &args.agents)
    } else {
        Search::of_paths(host, &args.paths, &args.agents)
    }
}

/// What was done, for people. `census` is what is kept now.
pub(super) fn write_report(
    out: &mut impl Write,
    report: &Report,
    census: Option<Census>,
) -> Result<()> {
    let Some(census) = census else {
        return write_dry(out, report);
    };
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    if !report.agents.is_empty() {
        let mut table = Table::new(&[
            "AGENT", ">LOGS", ">NEW", ">RECORDS", ">EVENTS", ">NOTES", ">REPEATS", ">SKIPPED",
        ]);
        let mut sums = [0; 7];
        for (name, agent) in &report.agents {
            let (mut repeats, mut skipped) = (0, 0);
            for (reason, n) in &agent.dropped {
                *reasons.entry(reason).or_default() += n;
                if is_repeat(reason) {
                    repeats += n;
                } else {
                    skipped += n;
                }
            }
            let row = [
                agent.files,
                agent.sessions,
                agent.records,
                agent.events,
                agent.notes,
                repeats,
                skipped,
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
    if !reasons.is_empty() {
        let parts = reasons.iter().map(|(reason, n)| explain(reason, *n));
        let parts = parts.collect::<Vec<_>>().join(", ");
        writeln!(
            out,
            "{DIM}Records that became no event, kept all the same: {parts}.{DIM:#}"
        )?;
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
    if !report.unknown_examples.is_empty() {
        let shown = report.unknown_examples.iter().take(UNKNOWN_SHOWN);
        let names: Vec<String> = shown.map(|path| path.display().to_string()).collect();
        let more = match report.unknown.saturating_sub(names.len() as u64) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let names = clean(&names.join(", ")).replace(['\n', '\t'], " ");
        writeln!(out, "{DIM}Not known: {names}{more}.{DIM:#}")?;
    }
    if census != Census::default() {
        writeln!(out, "Kept now: {census}.")?;
    }
    Ok(())
}

/// What would be done.
fn write_dry(out: &mut impl Write, report: &Report) -> Result<()> {
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
    Ok(())
}

/// How many files that are not known are named.
const UNKNOWN_SHOWN: usize = 3;

/// Whether a record was left out because it was read before.
fn is_repeat(reason: &str) -> bool {
    matches!(
        reason,
        "duplicate_record" | "repeated_channel" | "repeated_usage" | "stream_delta"
    )
}

/// Why so many records became nothing, in words.
pub(super) fn explain(reason: &str, n: u64) -> String {
    let what = match reason {
        "duplicate_record" => "read before",
        "repeated_channel" => "said elsewhere in the same log",
        "repeated_usage" => "token counts that were counted before",
        "stream_delta" => "parts of messages that also come whole",
        "keep_alive" => "signs of life",
        "empty" => "empty",
        "too_long" => "too long to be read",
        "torn_tail" => "cut off at the end of the log",
        "padding" => "zeros, as a crash leaves them",
        other => return format!("{n} {}", other.replace('_', " ")),
    };
    format!("{n} {what}")
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
        let (what, were) = if unknown == 1 {
            ("record or field", "was kept as it is")
        } else {
            ("records or fields", "were kept as they are")
        };
        say(&format!(
            "{unknown} {what} that Quipu does not know {were}; see `quipu doctor --drift`"
        ));
    }
    let left_out: u64 = report.agents.values().map(|agent| agent.left_out).sum();
    if left_out > 0 {
        let were = if left_out == 1 {
            "field reaches"
        } else {
            "fields reach"
        };
        say(&format!(
            "{left_out} {were} no event; the log is kept whole, and `quipu doctor --drift` names them"
        ));
    }
}
