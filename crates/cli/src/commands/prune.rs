//! `quipu prune`: forgets sessions, with a receipt.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use quipu_api::Time;
use quipu_api::prune::{self, PruneFilters, Pruned, Removal, RemovedSource, RemovedTranscript};
use quipu_model::Timestamp;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::archive::Swept;
use quipu_store::catalogue::{Filter, Order, TranscriptRow};
use quipu_store::facade::{Census, Listing, Project};
use quipu_store::import::Holding;

use super::list::{agents_of, write_rows};
use super::scan::packed;
use crate::args::Prune;
use crate::error::{CommandError, Exit, Result, io_error};
use crate::filter::{self, Naming, check_agents};
use crate::locate::HomePlace;
use crate::redaction::masked;
use crate::terminal::{YELLOW, bytes, count, out, say};
use crate::{json, when};

/// Says how many logs agents still have of what was forgotten.
fn say_what_comes_back(there: u64) {
    if there > 0 {
        let logs = count(there, "log");
        say(&format!(
            "the agents still have {logs} of these; the next import brings them back"
        ));
    }
}

pub(crate) fn run(args: &Prune, place: &HomePlace) -> Result<Exit> {
    let Prune {
        older_than,
        larger_than,
        project,
        agents,
        ..
    } = args;
    let any = older_than.is_some() || larger_than.is_some() || project.is_some();
    if !any && agents.is_empty() {
        return Err(CommandError::usage("nothing says what may go")
            .hint("give at least one of --older-than, --larger-than, --project, --agent"));
    }
    let now = SystemClock.now();
    let store = place.store()?;
    let known = agents_of(store.as_ref())?;
    check_agents(agents, &HomePlace::host()?, &known, Naming::Whole)?;
    let wanted = Wanted::new(args, now)?;
    let Some(store) = store else {
        say("nothing is kept, so nothing can go");
        return Ok(Exit::Done);
    };
    let filter = Filter {
        agents: agents.clone(),
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    let mut rows = store.list(&Listing::of(filter, Order::Oldest))?;
    // Recorded runs are originals, and are not ours to forget.
    rows.retain(|row| row.is_archived() && wanted.has(row));
    let holdings = store.holdings(rows)?;
    let rows: Vec<TranscriptRow> = holdings.iter().map(|it| it.row.clone()).collect();
    let size: u64 = rows.iter().map(|row| row.size).sum();
    let gone = only_here(&holdings);
    let only = gone.len() as u64;
    let there = rows.len() as u64 - only;
    let only_here = format!(
        "{only} of these {} only here; this cannot be undone",
        if only == 1 { "exists" } else { "exist" }
    );
    if args.yes && only > 0 && !args.last_copies {
        return Err(CommandError::usage(only_here)
            .hint("look at them without --yes; --yes --last-copies removes them as well"));
    }
    let mut out = out();
    let receipt = if args.yes && !rows.is_empty() {
        let path = new_receipt(store.home(), &receipt(args, now, &holdings, None)?, now)?;
        let swept = store.prune(&holdings, now)?;
        if args.annotations {
            let of = holdings.iter().map(|it| it.row.address.clone());
            store.annotations().forget(&of.collect())?;
        }
        write_private(&path, &receipt(args, now, &holdings, Some(swept))?, true)?;
        Some((path, swept))
    } else {
        None
    };
    if args.json {
        let swept = receipt.as_ref().map(|(_, swept)| *swept);
        let mut removal = removal(args, now, &holdings, swept);
        if !args.yes {
            removal.would_remove = removal.removed.take();
        }
        let document = Pruned {
            removal,
            removed_from_disk: receipt.is_some(),
            only_here: only,
            receipt: receipt.as_ref().map(|(file, _)| json::path(file)),
        };
        writeln!(out, "{}", json::document(&document)?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        say("nothing that is kept is like that");
        return Ok(Exit::Done);
    }
    let transcripts = format!("{} of {}", Census::of_rows(&rows), bytes(size));
    if let Some((path, swept)) = &receipt {
        let freed = bytes(swept.bytes);
        writeln!(out, "Forgot {transcripts}; {freed} freed.")?;
        writeln!(out, "{}", path.display())?;
    } else {
        let ids = store.short_ids()?;
        let mark = |row: &TranscriptRow| gone.contains(&row.id).then_some("only here");
        write_rows(&mut out, &rows, Some(&store), &ids, mark)?;
        let flags = match only {
            0 => "--yes",
            _ => "--yes --last-copies",
        };
        writeln!(out, "\n{transcripts} would go; {flags} does it.")?;
        if only > 0 {
            writeln!(out, "{YELLOW}{only_here}.{YELLOW:#}")?;
        }
    }
    out.flush()?;
    drop(out);
    say_what_comes_back(there);
    Ok(Exit::Done)
}

/// Which sessions may go. Of several conditions, all apply.
struct Wanted<'w> {
    before: Option<Timestamp>,
    larger: Option<u64>,
    project: Option<Project>,
    agents: &'w [String],
}

impl<'w> Wanted<'w> {
    fn new(args: &'w Prune, now: Timestamp) -> Result<Self> {
        let (older, larger) = (args.older_than.as_ref(), args.larger_than.as_ref());
        Ok(Self {
            before: older.map(|age| when::age(age, now)).transpose()?,
            larger: larger.map(|size| when::size(size)).transpose()?,
            project: args.project.as_deref().map(filter::project).transpose()?,
            agents: &args.agents,
        })
    }

    fn has(&self, row: &TranscriptRow) -> bool {
        let is_named = |agent: &String| agent.to_lowercase() == row.agent;
        let is_in = |project: &Project| {
            let cwd = row.cwd.as_deref();
            cwd.is_some_and(|cwd| project.has_exactly(cwd))
        };
        self.before
            .is_none_or(|before| last(row).is_some_and(|at| at < before))
            && self.larger.is_none_or(|larger| row.size > larger)
            && self.project.as_ref().is_none_or(is_in)
            && (self.agents.is_empty() || self.agents.iter().any(is_named))
    }
}

/// The transcripts whose logs the agents themselves have no more.
fn only_here(holdings: &[Holding]) -> HashSet<i64> {
    let is_gone = |holding: &&Holding| {
        // The archive knows where it was; the catalogue masks secrets in paths.
        let kept = holding.sources.first().map(|log| &log.key.path);
        let path = kept.unwrap_or(&holding.row.path);
        !path.exists() && !packed(path).exists()
    };
    let gone = holdings.iter().filter(is_gone);
    gone.map(|holding| holding.row.id).collect()
}

/// When something last happened in a session.
fn last(row: &TranscriptRow) -> Option<Timestamp> {
    let modified = row.modified.and_then(when::of_nanos);
    let said = row.ended_at.or(row.started_at).and_then(when::of_millis);
    said.or(modified)
}

/// What went, so that it can be told later what is not there any more, and why.
fn receipt(
    args: &Prune,
    now: Timestamp,
    holdings: &[Holding],
    swept: Option<Swept>,
) -> Result<String> {
    let document = json::document(&removal(args, now, holdings, swept))?;
    Ok(format!("{document}\n"))
}

fn removal(args: &Prune, now: Timestamp, holdings: &[Holding], swept: Option<Swept>) -> Removal {
    let removed = holdings.iter().map(|holding| {
        let row = &holding.row;
        let sources = holding.sources.iter().map(|source| {
            let last = source.versions.last();
            let chunks = last.into_iter().flat_map(|last| &last.chunks);
            RemovedSource {
                path: masked(&json::path(&source.key.path)),
                part: source.key.part.as_deref().map(masked),
                manifest: source.key.id().to_string(),
                versions: source.versions.len() as u64,
                size: last.map(|last| last.size),
                chunks: chunks.map(|chunk| chunk.id.to_string()).collect(),
            }
        });
        RemovedTranscript {
            id: row.address.clone(),
            run_id: row.run_id.clone(),
            agent: row.agent.clone(),
            title: row.title.clone(),
            project: row.cwd.clone(),
            path: json::path(&row.path),
            part: row.part.clone(),
            size: row.size,
            ended_at: last(row).map(Time::of),
            sources: sources.collect(),
        }
    });
    Removal {
        quipu: env!("CARGO_PKG_VERSION").to_owned(),
        time: Time::of(now),
        filters: PruneFilters {
            older_than: args.older_than.clone(),
            larger_than: args.larger_than.clone(),
            project: args.project.clone(),
            agents: args.agents.clone(),
        },
        removed: Some(removed.collect()),
        would_remove: None,
        swept: swept.map(|swept| prune::Swept {
            chunks: swept.chunks,
            temporary: swept.temporary,
            bytes: swept.bytes,
        }),
    }
}

/// Writes the receipt before anything goes; what was swept is added afterwards.
fn new_receipt(home: &Path, text: &str, now: Timestamp) -> Result<PathBuf> {
    let directory = home.join("receipts");
    quipu_files::create_directory(&directory)
        .map_err(io_error(format!("could not make {}", directory.display())))?;
    let path = directory.join(format!("prune-{}.json", now.strftime("%Y%m%dT%H%M%S%.fZ")));
    write_private(&path, text, false)?;
    Ok(path)
}

fn write_private(path: &Path, text: &str, again: bool) -> Result<()> {
    let mut options = quipu_files::options();
    options.write(true).truncate(again).create_new(!again);
    options
        .open(path)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .map_err(io_error(format!("could not write {}", path.display())))
}
