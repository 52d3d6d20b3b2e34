//! `quipu list`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::catalogue::{Filter, Order, TranscriptRow};
use quipu_store::import::RECORDED;

use crate::args::{List, Only, Sort};
use crate::error::{Exit, Result};
use crate::filter::{Naming, Project, check_agents};
use crate::locate::Place;
use crate::table::{Give, Table};
use crate::terminal::{DIM, RED, YELLOW, columns, count, out, say, tokens};
use crate::{json, when};

/// The shortest beginning of an id that is shown.
const SHORT_ID: usize = 8;

/// How wide the column of ids becomes at most.
const ID_WIDTH: usize = 14;

/// An id that needs more than this is shown whole.
const LONG_ID: usize = 24;

/// How wide the column of projects becomes at most.
const PROJECT_WIDTH: usize = 16;

/// Which transcripts are asked for, and how.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    filter: Filter,
    project: Option<Project>,
    order: Order,
    limit: Option<usize>,
}

pub(crate) fn run(args: &List, place: &Place) -> Result<Exit> {
    let order = match args.sort {
        Sort::Newest => Order::Newest,
        Sort::Oldest => Order::Oldest,
        Sort::Tokens => Order::Tokens,
        Sort::Size => Order::Size,
        Sort::Events => Order::Events,
    };
    let mut wanted = Wanted::of(&args.only, order)?;
    wanted.filter.subagents = args.all;
    wanted.filter.duplicates = args.all;
    let store = place.store()?;
    check(&args.only, store.as_ref())?;
    // One more than is shown tells whether there are more.
    wanted.limit = (args.limit > 0).then_some(args.limit.saturating_add(1));
    let mut rows = match &store {
        Some(store) => rows(store, &wanted)?,
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
        let ids = Ids::of(store.as_ref())?;
        write_rows(&mut out, &rows, store.as_ref(), &ids, |_| None)?;
    }
    out.flush()?;
    drop(out);
    if args.json || args.jsonl {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        let empty = store.is_none() && wanted.filter_is_empty();
        say(&if empty {
            let flag = place.flag();
            format!("nothing is kept yet; `quipu {flag}up --once` imports what is on this machine")
        } else {
            "nothing that is kept is like that".to_owned()
        });
    }
    if is_cut {
        wanted.limit = None;
        let all = match &store {
            Some(store) => how_many(store, &wanted)?,
            None => 0,
        };
        say(&format!("the first {limit} of {all}; --limit 0 shows all"));
    }
    Ok(Exit::Done)
}

/// What an export asks for: in the order in which it began. All of it has sub-agents as well, and no copies.
pub(super) fn wanted(only: &Only, all: bool, store: Option<&Store>) -> Result<Vec<TranscriptRow>> {
    let mut wanted = Wanted::of(only, Order::Oldest)?;
    wanted.filter.subagents = all;
    check(only, store)?;
    match store {
        Some(store) => rows(store, &wanted),
        None => Ok(Vec::new()),
    }
}

/// Whether the agents that are asked for are known.
fn check(only: &Only, store: Option<&Store>) -> Result<()> {
    let mut known = agents_of(store)?;
    known.push(RECORDED.to_owned());
    check_agents(&only.agents, &Place::host()?, &known, Naming::Beginning)
}

/// The agents that something is kept of.
pub(super) fn agents_of(store: Option<&Store>) -> Result<Vec<String>> {
    let all = Filter {
        subagents: true,
        duplicates: true,
        ..Filter::default()
    };
    let Some(store) = store else {
        return Ok(Vec::new());
    };
    let sums = store.catalogue().by_agent(&all)?;
    Ok(sums.into_iter().map(|sum| sum.name).collect())
}

/// How many transcripts there are of each kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Census {
    pub(super) sessions: u64,
    pub(super) subagents: u64,
    pub(super) copies: u64,
}

impl Census {
    /// Of everything that is imported.
    pub(super) fn of(store: &Store) -> Result<Self> {
        let sum = |filter: Filter| -> Result<(u64, u64)> {
            let sums = store.catalogue().by_agent(&filter)?;
            let all = sums.iter().map(|sum| sum.transcripts).sum();
            Ok((all, sums.iter().map(|sum| sum.subagents).sum()))
        };
        let originals = Filter {
            subagents: true,
            imported: true,
            ..Filter::default()
        };
        let with_copies = Filter {
            duplicates: true,
            ..originals.clone()
        };
        let (originals, subagents) = sum(originals)?;
        let (all, _) = sum(with_copies)?;
        Ok(Self {
            sessions: originals.saturating_sub(subagents),
            subagents,
            copies: all.saturating_sub(originals),
        })
    }

    pub(super) fn of_rows(rows: &[TranscriptRow]) -> Self {
        let mut census = Self::default();
        for row in rows {
            match (row.duplicate, &row.parent) {
                (true, _) => census.copies += 1,
                (false, Some(_)) => census.subagents += 1,
                (false, None) => census.sessions += 1,
            }
        }
        census
    }
}

/// `3 sessions, 1 sub-agent, 2 copies`.
impl std::fmt::Display for Census {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if self.sessions > 0 || self.subagents + self.copies == 0 {
            parts.push(count(self.sessions, "session"));
        }
        if self.subagents > 0 {
            parts.push(count(self.subagents, "sub-agent"));
        }
        match self.copies {
            0 => {}
            1 => parts.push("1 copy".to_owned()),
            n => parts.push(format!("{n} copies")),
        }
        f.write_str(&parts.join(", "))
    }
}

impl Wanted {
    fn of(only: &Only, order: Order) -> Result<Self> {
        let now = SystemClock.now();
        Ok(Self {
            filter: Filter {
                agents: only.agents.clone(),
                project: None,
                branch: only.branch.clone(),
                model: only.model.clone(),
                title: only.title.clone(),
                since: when::millis(only.since.as_deref(), |text| when::point(text, now))?,
                until: when::millis(only.until.as_deref(), |text| when::end(text, now))?,
                subagents: false,
                duplicates: false,
                imported: false,
            },
            project: only.project.as_deref().map(Project::new).transpose()?,
            order,
            limit: None,
        })
    }

    fn filter_is_empty(&self) -> bool {
        let Filter {
            agents,
            branch,
            model,
            title,
            since,
            until,
            ..
        } = &self.filter;
        let texts = [branch, model, title];
        agents.is_empty()
            && self.project.is_none()
            && texts.iter().all(|text| text.is_none())
            && since.is_none()
            && until.is_none()
    }
}

/// The transcripts that are asked for.
pub(super) fn rows(store: &Store, wanted: &Wanted) -> Result<Vec<TranscriptRow>> {
    // The catalogue does not know what a directory is.
    let limit = wanted.limit.filter(|_| wanted.project.is_none());
    let mut rows = store
        .catalogue()
        .list(&wanted.filter, wanted.order, limit)?;
    if let Some(project) = &wanted.project {
        rows.retain(|row| row.cwd.as_deref().is_some_and(|cwd| project.has(cwd)));
        rows.truncate(wanted.limit.unwrap_or(usize::MAX));
    }
    Ok(rows)
}

/// How many transcripts are asked for, whatever the limit.
fn how_many(store: &Store, wanted: &Wanted) -> Result<u64> {
    if wanted.project.is_some() {
        return Ok(rows(store, wanted)?.len() as u64);
    }
    let sums = store.catalogue().by_agent(&wanted.filter)?;
    Ok(sums.iter().map(|sum| sum.transcripts).sum())
}

/// The ids of everything that is kept, sorted.
#[derive(Debug, Default)]
pub(crate) struct Ids(Vec<String>);

impl Ids {
    pub(crate) fn of(store: Option<&Store>) -> Result<Self> {
        let mut ids = match store {
            Some(store) => store.catalogue().run_ids()?,
            None => Vec::new(),
        };
        ids.sort();
        ids.dedup();
        Ok(Self(ids))
    }

    /// The shortest beginning of an id that no other id has.
    pub(crate) fn short(&self, id: &str) -> String {
        short_id(&self.0, id)
    }

    /// What a transcript is shown as. Who names a run means the name to be read.
    pub(crate) fn shown(&self, row: &TranscriptRow) -> String {
        let short = self.short(&row.run_id);
        if !row.recorded || short.len() >= ID_WIDTH {
            return short;
        }
        row.run_id.get(..ID_WIDTH).unwrap_or(&row.run_id).to_owned()
    }
}

/// A table of transcripts, for people. `mark` may add to what is special about each.
pub(super) fn write_rows(
    out: &mut impl Write,
    rows: &[TranscriptRow],
    store: Option<&Store>,
    ids: &Ids,
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
        Some(store) => store.catalogue().child_counts()?,
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
            (ids.shown(row), plain),
            (at.map(when::local).unwrap_or_default(), DIM),
            (row.agent.clone(), plain),
            (project(row), plain),
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

/// The last part of the directory a session ran in.
pub(super) fn project(row: &TranscriptRow) -> String {
    let Some(cwd) = &row.cwd else {
        return String::new();
    };
    let is_home = etcetera::home_dir().is_ok_and(|home| home == Path::new(cwd));
    if is_home {
        return "~".to_owned();
    }
    let name = cwd.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    name.filter(|name| !name.is_empty())
        .unwrap_or(cwd)
        .to_owned()
}

/// The shortest beginning of an id that no other id has. Ids that go on behind the whole id with a dot
/// are its sub-agents and copies, which do not count.
fn short_id(sorted: &[String], id: &str) -> String {
    let Ok(at) = sorted.binary_search_by(|other| other.as_str().cmp(id)) else {
        return id.to_owned();
    };
    let belongs = |other: &String| {
        other
            .strip_prefix(id)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    let common = |other: &String| {
        let same = id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        same.count()
    };
    let before = at.checked_sub(1).map(|at| &sorted[at]);
    let after = sorted[at + 1..].iter().find(|other| !belongs(other));
    let needed = before.into_iter().chain(after).map(common).max();
    let needed = needed.map_or(SHORT_ID, |common| (common + 1).max(SHORT_ID));
    // Of what begins with all of another id, the rest is what matters.
    let ends_in_dot = id.as_bytes().get(needed - 1) == Some(&b'.');
    let needed = if needed > LONG_ID || ends_in_dot {
        id.len()
    } else {
        needed
    };
    id.get(..needed).unwrap_or(id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_beginning_that_is_unique() {
        let ids = [
            "0199aaaa-1111-7000-8000-000000000001",
            "0199aaaa-1111-7000-8000-000000000001.agent-a",
            "0199aaaa-2222-7000-8000-000000000002",
            "5d2cf00d-0000-4000-8000-000000000003",
            "run-number-1",
            "run-number-1.5a50f392",
            "run-number-2",
        ]
        .map(str::to_owned);
        let short: Vec<String> = ids.iter().map(|id| short_id(&ids, id)).collect();
        assert_eq!(
            short,
            [
                "0199aaaa-1",
                "0199aaaa-1111-7000-8000-000000000001.agent-a",
                "0199aaaa-2",
                "5d2cf00d",
                "run-number-1",
                "run-number-1.5a50f392",
                "run-number-2"
            ]
        );
    }
}
