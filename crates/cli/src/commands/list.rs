//! `quipu list`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::catalogue::{Filter, Order, Received, TranscriptRow};
use quipu_store::facade::{Listing, ShortIds};
use quipu_store::import::RECORDED;

use crate::args::{List, Only, Sort};
use crate::error::{Exit, Result};
use crate::filter::{self, Naming, check_agents};
use crate::locate::HomePlace;
use crate::table::{Give, Table};
use crate::terminal::{DIM, RED, YELLOW, columns, count, out, say, tokens};
use crate::{json, when};

/// How wide the column of ids becomes at most.
const ID_WIDTH: usize = 14;

/// How wide the column of projects becomes at most.
const PROJECT_WIDTH: usize = 16;

pub(crate) fn run(args: &List, place: &HomePlace) -> Result<Exit> {
    let order = match args.sort {
        Sort::Newest => Order::Newest,
        Sort::Oldest => Order::Oldest,
        Sort::Tokens => Order::Tokens,
        Sort::Size => Order::Size,
        Sort::Events => Order::Events,
    };
    let mut wanted = listing(&args.only, order)?;
    wanted.filter.subagents = args.all;
    wanted.filter.duplicates = args.all;
    let store = place.store()?;
    check(&args.only, store.as_ref())?;
    // One more than is shown tells whether there are more.
    wanted.limit = (args.limit > 0).then_some(args.limit.saturating_add(1));
    let mut rows = match &store {
        Some(store) => store.list(&wanted)?,
        None => Vec::new(),
    };
    let limit = if args.limit > 0 {
        args.limit
    } else {
        usize::MAX
    };
    let is_cut = rows.len() > limit;
    rows.truncate(limit);
    let mut out = out();
    if args.jsonl {
        for row in &rows {
            writeln!(out, "{}", json::line(&json::transcript(row))?)?;
        }
    } else if args.json {
        let rows: Vec<_> = rows.iter().map(json::transcript).collect();
        writeln!(out, "{}", json::document(&rows)?)?;
    } else if !rows.is_empty() {
        let ids = ids_of(store.as_ref())?;
        write_rows(&mut out, &rows, store.as_ref(), &ids, |_| None)?;
    }
    out.flush()?;
    drop(out);
    if args.json || args.jsonl {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        let empty = store.is_none() && wanted.is_open();
        say(&if empty {
            let flag = place.flag();
            format!("nothing is kept yet; `quipu {flag}up --once` imports what is on this machine")
        } else {
            "No sessions match these filters.".to_owned()
        });
    }
    if is_cut {
        let all = match &store {
            Some(store) => store.count(&wanted)?,
            None => 0,
        };
        say(&format!("the first {limit} of {all}; --limit 0 shows all"));
    }
    Ok(Exit::Done)
}

/// What an export asks for: in the order in which it began. All of it has sub-agents as well, and no copies.
pub(super) fn wanted(only: &Only, all: bool, store: Option<&Store>) -> Result<Vec<TranscriptRow>> {
    let mut wanted = listing(only, Order::Oldest)?;
    wanted.filter.subagents = all;
    check(only, store)?;
    match store {
        Some(store) => Ok(store.list(&wanted)?),
        None => Ok(Vec::new()),
    }
}

/// Whether the agents that are asked for are known.
fn check(only: &Only, store: Option<&Store>) -> Result<()> {
    // To know them all, the whole catalogue is read.
    if only.agents.is_empty() {
        return Ok(());
    }
    let mut known = agents_of(store)?;
    known.push(RECORDED.to_owned());
    check_agents(&only.agents, &HomePlace::host()?, &known, Naming::Beginning)
}

/// The agents that something is kept of.
pub(super) fn agents_of(store: Option<&Store>) -> Result<Vec<String>> {
    Ok(store.map(Store::agents).transpose()?.unwrap_or_default())
}

/// What is asked for with these filters.
fn listing(only: &Only, order: Order) -> Result<Listing> {
    let now = SystemClock.now();
    Ok(Listing {
        filter: Filter {
            agents: only.agents.clone(),
            branch: only.branch.clone(),
            model: only.model.clone(),
            title: only.title.clone(),
            since: when::millis(only.since.as_deref(), |text| when::point(text, now))?,
            until: when::millis(only.until.as_deref(), |text| when::end(text, now))?,
            received: received(only),
            ..Filter::default()
        },
        project: only.project.as_deref().map(filter::project).transpose()?,
        label: only.label.clone(),
        order,
        limit: None,
    })
}

/// Whether what others submitted is asked for.
fn received(only: &Only) -> Received {
    match &only.submitter {
        Some(submitter) => Received::From(submitter.clone()),
        None if only.received => Received::Only,
        None => Received::With,
    }
}

/// The ids of everything that is kept.
pub(crate) fn ids_of(store: Option<&Store>) -> Result<ShortIds> {
    Ok(store.map(Store::short_ids).transpose()?.unwrap_or_default())
}

/// What a transcript is shown as. Who names a run means the name to be read.
pub(crate) fn shown_id(ids: &ShortIds, row: &TranscriptRow) -> String {
    let short = ids.short(&row.run_id);
    if !row.recorded || short.len() >= ID_WIDTH {
        return short;
    }
    row.run_id.get(..ID_WIDTH).unwrap_or(&row.run_id).to_owned()
}

/// A table of transcripts, for people. `mark` may add to what is special about each.
pub(super) fn write_rows(
    out: &mut impl Write,
    rows: &[TranscriptRow],
    store: Option<&Store>,
    ids: &ShortIds,
    mark: impl Fn(&TranscriptRow) -> Option<&'static str>,
) -> Result<()> {
    const GIVING: [Give; 8] = [
        Give::Drop(5),
        Give::Drop(6),
        Give::Shrink(8, 13),
        Give::Shrink(3, 10),
        Give::Drop(7),
        Give::Drop(3),
        Give::Drop(8),
        Give::Drop(2),
    ];
    let children = match store {
        Some(store) => store.child_counts()?,
        None => BTreeMap::new(),
    };
    let mut table = Table::new(&[
        "ID", "WHEN", "AGENT", "PROJECT", "TITLE", ">ASKED", ">TOOLS", ">TOKENS", "",
    ]);
    table.overflow(0, ID_WIDTH);
    table.cut(3, PROJECT_WIDTH);
    let plain = anstyle::Style::new();
    for row in rows {
        let at = row.ended_at.or(row.started_at).and_then(when::of_millis);
        let total = if row.usage.is_empty() {
            String::new()
        } else {
            tokens(row.usage.total())
        };
        let (mut marks, style) = marks(row, children.get(&row.native).copied().unwrap_or(0));
        if let Some(mark) = mark(row) {
            marks.insert(0, mark.to_owned());
        }
        table.styled([
            (shown_id(ids, row), plain),
            (at.map(when::local).unwrap_or_default(), DIM),
            (row.agent.clone(), plain),
            (row.cwd.as_deref().map(project).unwrap_or_default(), plain),
            (row.title.clone().unwrap_or_default(), plain),
            (row.figures.prompts.to_string(), plain),
            (row.figures.tool_calls.to_string(), plain),
            (total, plain),
            (marks.join(", "), style),
        ]);
    }
    table.write_giving(out, columns(), Some(4), &GIVING)?;
    Ok(())
}

/// What is special about a transcript.
fn marks(row: &TranscriptRow, children: u64) -> (Vec<String>, anstyle::Style) {
    let mut marks = Vec::new();
    let mut style = DIM;
    // What went wrong comes first, because the rest may be cut.
    if row.figures.errors > 0 {
        marks.push(count(row.figures.errors, "error"));
        style = RED;
    }
    marks.extend(submitted(row));
    if row.duplicate {
        marks.push("copy".to_owned());
    }
    if row.forked_from.is_some() {
        marks.push("forked".to_owned());
    }
    if row.parent.is_some() {
        marks.push("sub-agent".to_owned());
    }
    if children > 0 {
        marks.push(count(children, "sub-agent"));
    }
    if row.reconstructed {
        marks.push("reconstructed".to_owned());
        if row.figures.errors == 0 {
            style = YELLOW;
        }
    }
    (marks, style)
}

/// Who sent a transcript that somebody else submitted.
pub(crate) fn submitted(row: &TranscriptRow) -> Option<String> {
    match row.received_from.as_deref()? {
        "" => Some("received".to_owned()),
        from => Some(format!("received from {from}")),
    }
}

/// The last part of the directory a session ran in.
pub(super) fn project(cwd: &str) -> String {
    let is_home = etcetera::home_dir().is_ok_and(|home| home == Path::new(cwd));
    if is_home {
        return "~".to_owned();
    }
    let name = cwd.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    name.filter(|name| !name.is_empty())
        .unwrap_or(cwd)
        .to_owned()
}
