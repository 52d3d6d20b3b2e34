//! Bare `quipu`: what is on this machine, and what is kept of it. Nothing is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use quipu_agents::FAMILIES;
use quipu_api::home::{self, AgentPlace, FoundAgent, Home};
use quipu_api::{Time, Usd};
use quipu_model::{Money, Timestamp};
use quipu_prices::Prices;
use quipu_record::{Clock as _, SystemClock};
use quipu_store::Store;
use quipu_store::catalogue::{Filter, SourceRow};
use quipu_store::facade::{Expiry, LogState, unpacked};
use quipu_store::import::{Found, Search};
use quipu_store::stats::{Question, Spent};

use super::import::report_problems;
use super::stats::cost;
use crate::config::Config;
use crate::error::{Exit, Result};
use crate::locate::HomePlace;
use crate::table::Table;
use crate::terminal::{BOLD, YELLOW, bytes, clean, columns, count, out, tokens};
use crate::{json, when};

/// What was found of one agent.
#[derive(Debug, Default)]
struct Agent {
    logs: u64,
    bytes: u64,
    newest: Option<i64>,
    kept: u64,
    changed: u64,
    expiring: u64,
    /// Those of them that are not kept as they are.
    expiring_new: u64,
    oldest_expiring: Option<i64>,
}

pub(crate) fn run(as_json: bool, place: &HomePlace) -> Result<Exit> {
    let home = place.home()?;
    let host = HomePlace::host_of(&home)?;
    let search = Search::of_places(&host, &[]);
    let store = place.store()?;
    let now = SystemClock.now();
    let expiry = Expiry::of(&host);
    let sources = match &store {
        Some(store) => store.sources()?,
        None => Vec::new(),
    };
    let agents = found(&search, &sources, now, expiry);
    let prices = Config::load(&home)?.prices();
    let kept = match &store {
        Some(store) => Some(Kept::of(store, &prices, &sources, &search)?),
        None => None,
    };
    let mut out = out();
    if as_json {
        let places = FAMILIES.iter().flat_map(|family| family.places(&host));
        let agents = agents.iter();
        let document = Home {
            home: json::path(&home),
            agents: agents
                .map(|(name, agent)| agent.document(name, now, expiry))
                .collect(),
            kept: kept.as_ref().map(Kept::document),
            credentials: search.credentials,
            empty: search.empty,
            problems: search.problems.iter().map(json::problem).collect(),
            places: places
                .map(|place| AgentPlace {
                    path: json::path(&place.root),
                    exists: place.root.exists(),
                })
                .collect(),
        };
        writeln!(out, "{}", json::document(&document)?)?;
        out.flush()?;
        return Ok(Exit::Done);
    }

    if agents.is_empty() {
        let looked = FAMILIES.iter().flat_map(|family| family.places(&host));
        let mut brands: Vec<&str> = looked.map(|place| place.brand).collect();
        brands.sort_unstable();
        brands.dedup();
        writeln!(out, "No sessions of any agent were found on this machine.")?;
        writeln!(out, "Looked for {}.", brands.join(", "))?;
    } else {
        let mut table = Table::new(&["AGENT", ">LOGS", ">SIZE", "NEWEST", ">KEPT", ">NEW"]);
        for (name, agent) in &agents {
            let newest = agent.newest.and_then(when::of_nanos);
            table.row([
                name.clone(),
                agent.logs.to_string(),
                bytes(agent.bytes),
                newest.map(|at| when::ago(at, now)).unwrap_or_default(),
                agent.kept.to_string(),
                (agent.logs - agent.kept).to_string(),
            ]);
        }
        table.write(&mut out, columns(), None)?;
    }
    for agent in agents.values().filter(|agent| agent.expiring > 0) {
        let (name, days) = (Expiry::AGENT, expiry.days);
        let oldest = agent.oldest_expiring.and_then(when::of_nanos);
        let left = oldest.map_or(0, |at| expiry.days_left(at, now));
        let logs = count(agent.expiring, "log");
        let when = match left {
            0 => "the oldest about now".to_owned(),
            n => format!("the oldest in about {}", count(n.unsigned_abs(), "day")),
        };
        writeln!(
            out,
            "\n{YELLOW}{name} deletes logs after about {days} days: {logs} within a week, {when}. {}{YELLOW:#}",
            match agent.expiring_new {
                0 => "All of it is kept.".to_owned(),
                n if n == agent.expiring => "None of it is kept yet.".to_owned(),
                n => format!(
                    "Of these, {n} {} not kept yet.",
                    if n == 1 { "is" } else { "are" }
                ),
            }
        )?;
    }
    writeln!(out)?;
    match &kept {
        Some(kept) if kept.transcripts > 0 => kept.write(&mut out)?,
        _ => writeln!(out, "Nothing is kept yet.")?,
    }
    let is_new = agents.values().any(|agent| agent.kept < agent.logs);
    let is_kept = kept.as_ref().is_some_and(|kept| kept.transcripts > 0);
    write_next(&mut out, place, (agents.is_empty(), is_kept, is_new))?;
    out.flush()?;
    report_problems(&search.problems);
    Ok(Exit::Done)
}

/// What can be done now.
fn write_next(
    out: &mut impl std::io::Write,
    place: &HomePlace,
    (is_empty, is_kept, is_new): (bool, bool, bool),
) -> std::io::Result<()> {
    let next: [(&str, &str); 3] = match (is_empty, is_kept) {
        (true, false) => [
            ("up --demo", "look around in samples"),
            ("import PATH", "import sessions that lie elsewhere"),
            ("--help", "everything else"),
        ],
        (_, true) if !is_new => [
            ("list", "what is kept"),
            ("show ID", "one session"),
            ("up", "keep watching"),
        ],
        _ => [
            ("up --once", "import all of it"),
            ("import --dry-run", "only count"),
            ("list", "what is kept"),
        ],
    };
    writeln!(out, "\nNext:")?;
    let flag = place.flag();
    for (command, what) in next {
        let command = format!("quipu {flag}{command}");
        let gap = if flag.is_empty() { "" } else { "  " };
        writeln!(out, "  {BOLD}{command:<24}{BOLD:#}{gap}{what}")?;
    }
    Ok(())
}

/// What a search found, by agent.
fn found(
    search: &Search,
    sources: &[SourceRow],
    now: Timestamp,
    expiry: Expiry,
) -> BTreeMap<String, Agent> {
    let mut known: HashMap<&Path, Vec<&SourceRow>> = HashMap::new();
    for row in sources {
        known.entry(&row.path).or_default().push(row);
    }
    let mut agents: BTreeMap<String, Agent> = BTreeMap::new();
    for candidate in &search.found {
        if candidate.found == Found::Keep {
            continue;
        }
        let brand = candidate.place.map_or("unknown", |place| place.0);
        let agent = agents.entry(brand.to_owned()).or_default();
        let stamp = &candidate.stamp;
        agent.logs += 1;
        let is_directory = candidate.found == Found::Many && candidate.path.is_dir();
        agent.bytes += if is_directory { 0 } else { stamp.size };
        agent.newest = agent.newest.max(stamp.modified);
        let known = known.get(&*unpacked(&candidate.path));
        let state = LogState::of(candidate, known.into_iter().flatten().copied());
        agent.kept += u64::from(state == LogState::Kept);
        agent.changed += u64::from(state == LogState::Changed);
        if expiry.is_soon(candidate, now)
            && let Some(modified) = stamp.modified
        {
            agent.expiring += 1;
            agent.expiring_new += u64::from(state != LogState::Kept);
            let oldest = agent.oldest_expiring.unwrap_or(i64::MAX);
            agent.oldest_expiring = Some(oldest.min(modified));
        }
    }
    agents
}

impl Agent {
    fn document(&self, name: &str, now: Timestamp, expiry: Expiry) -> FoundAgent {
        let oldest = self.oldest_expiring.and_then(when::of_nanos);
        FoundAgent {
            agent: name.to_owned(),
            logs: self.logs,
            bytes: self.bytes,
            newest: self.newest.and_then(when::of_nanos).map(Time::of),
            kept: self.kept,
            changed: self.changed,
            expiring: self.expiring,
            expiring_new: self.expiring_new,
            days_left: oldest.map(|at| expiry.days_left(at, now)),
        }
    }
}

/// What is kept, in figures.
struct Kept {
    transcripts: u64,
    subagents: u64,
    events: u64,
    bytes: u64,
    tokens: u64,
    spent: Spent,
    gone: u64,
    first: Option<i64>,
}

impl Kept {
    fn of(store: &Store, prices: &Prices, sources: &[SourceRow], search: &Search) -> Result<Self> {
        let all = Filter {
            subagents: true,
            ..Filter::default()
        };
        let mut kept = Self {
            transcripts: 0,
            subagents: 0,
            events: 0,
            bytes: 0,
            tokens: 0,
            spent: spent(store, prices)?,
            gone: 0,
            first: None,
        };
        for sum in store.by_agent(&all)? {
            kept.transcripts += sum.transcripts;
            kept.subagents += sum.subagents;
            kept.events = kept.events.saturating_add(sum.events);
            kept.bytes = kept.bytes.saturating_add(sum.bytes);
            kept.tokens = kept.tokens.saturating_add(sum.usage.total());
            kept.first = match (kept.first, sum.first) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        let mut there: HashMap<Cow<'_, Path>, bool> = search
            .found
            .iter()
            .map(|candidate| (unpacked(&candidate.path), true))
            .collect();
        for row in sources.iter().filter(|row| !row.is_in_place()) {
            let exists = there
                .entry(Cow::Borrowed(&row.path))
                .or_insert_with_key(|path| path.exists() || packed(path).exists());
            kept.gone += u64::from(!*exists);
        }
        Ok(kept)
    }

    fn write(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let sessions = count(self.transcripts - self.subagents, "session");
        let with = match self.subagents {
            0 => String::new(),
            n => format!(" with {}", count(n, "sub-agent")),
        };
        let since = self.first.and_then(when::of_millis);
        let since = since.map(|at| format!(" since {}", when::local_day(at)));
        let mut line = format!(
            "Kept: {sessions}{with}{}, {}, {} of logs",
            since.unwrap_or_default(),
            count(self.events, "event"),
            bytes(self.bytes),
        );
        if self.tokens > 0 {
            line = format!("{line}, {} tokens", tokens(self.tokens));
            if self.spent.cost > Money::ZERO {
                line = format!("{line}, {}", cost(&self.spent));
            }
        }
        writeln!(out, "{}.", clean(&line))?;
        if self.gone > 0 {
            let (of, is) = (
                count(self.gone, "log"),
                if self.gone == 1 { "is" } else { "are" },
            );
            writeln!(out, "{of} of them {is} only here: the agent's own is gone.")?;
        }
        Ok(())
    }

    fn document(&self) -> home::Kept {
        home::Kept {
            sessions: self.transcripts - self.subagents,
            subagents: self.subagents,
            events: self.events,
            bytes: self.bytes,
            tokens: self.tokens,
            usd: self.spent.dollars().map(Usd::of),
            unpriced_tokens: self.spent.unpriced,
            gone: self.gone,
            first: self.first.and_then(when::of_millis).map(Time::of),
        }
    }
}

/// What all of it cost.
fn spent(store: &Store, prices: &Prices) -> Result<Spent> {
    let table = store.stats(&Question {
        filter: &Filter::default(),
        directories: None,
        by: &[],
        zone: &TimeZone::UTC,
        prices,
    })?;
    Ok(table.total.spent.unwrap_or_default())
}

/// The path of a log once it is compressed.
pub(super) fn packed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".zst");
    name.into()
}
