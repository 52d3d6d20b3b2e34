//! The same figures from logs, without a store.
//!
//! Logs are found, read and told from their copies as an import does it, so that the figures are those that an import
//! of the same logs would give. Nothing is kept; a log that is a copy of another in part is read twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use quipu_agents::{Entry, Host, Position, Sink, Summary, slot};
use quipu_model::{Timestamp, Usage};
use quipu_redact::Guard;

use super::cost::Spent;
use super::facts::{plain_address, slots};
use super::table::{GroupPlace, Of, Subject, Table, Tally};
use super::{By, Question};
use crate::catalogue::{Filter, Lineage, Slots, native_id};
use crate::import::link::{self, Shared};
use crate::import::loose::{self, Loose, LooseRead, Reading, Sums};
use crate::import::{Found, ImportError, Problem, Search};

/// What was found, beside the figures.
#[derive(Debug, Default)]
pub struct LogsRead {
    /// Logs that were read.
    pub logs: u64,
    /// Those that are copies of others, in whole or in part.
    pub copies: u64,
    /// Files that no adapter knows.
    pub unknown: u64,
    /// What went wrong.
    pub problems: Vec<Problem>,
}

/// The figures of what lies at these paths, or wherever agents keep logs when none is given. `is_meant` decides by the
/// directory that a session ran in. With `only_spent`, what was done is left out, and reading is faster: most lines of
/// most logs have nothing to do with calls to models.
///
/// # Errors
///
/// When there is no place for temporary files. What is wrong with a single log is told in [`LogsRead`].
pub fn from_logs(
    host: &Host,
    paths: &[PathBuf],
    question: &Question<'_>,
    is_meant: &dyn Fn(Option<&str>) -> bool,
    only_spent: bool,
) -> Result<(Table, LogsRead), ImportError> {
    let agents = &question.filter.agents;
    let search = match paths {
        [] => Search::of_places(host, agents),
        paths => Search::of_paths(host, paths, agents),
    };
    let temporary = tempfile::tempdir().map_err(|source| ImportError::Home {
        path: std::env::temp_dir(),
        source,
    })?;
    // Where only sums are asked for, nothing is shown that a log names.
    let guard = if question.by.is_empty() {
        None
    } else {
        Some(Arc::new(Guard::secrets()?))
    };
    let how = Reading {
        guard: guard.as_ref(),
        agents,
        // What was done is not asked for where it cannot be told.
        skim: only_spent || question.by.contains(&By::Model) || question.filter.model.is_some(),
        temporary: temporary.path(),
    };
    let (mut logs, mut read) = read_all(&search, how);
    read.problems.extend(search.problems);
    // Whoever is first must not depend on which thread was faster.
    logs.sort_by(|a, b| (&a.place.path, &a.place.part).cmp(&(&b.place.path, &b.place.part)));
    let natives: Vec<String> = logs.iter().map(native).collect();
    settle(&mut logs, &natives, how, &mut read);
    read.logs = logs.len() as u64;
    let mut tally = Tally::new(question);
    if only_spent {
        tally.without_did();
    }
    if question.check().is_ok() {
        let roots: HashMap<&str, Option<&String>> = natives
            .iter()
            .zip(&logs)
            .map(|(native, log)| (native.as_str(), log.session.parent.as_ref()))
            .collect();
        let undated = add_all(&mut tally, question, &logs, &natives, &roots, is_meant);
        return Ok((
            Table {
                undated,
                ..tally.finish()
            },
            read,
        ));
    }
    Ok((tally.finish(), read))
}

/// Reads what was found, on all processors.
fn read_all(search: &Search, how: Reading<'_>) -> (Vec<Loose>, LogsRead) {
    let mut jobs: Vec<_> = search
        .found
        .iter()
        .filter(|candidate| candidate.found != Found::Keep)
        .collect();
    // The longest first, so that no thread is left with one when the others are done.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.stamp.size));
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), LogsRead::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                let (mut logs, mut read) = (Vec::new(), LogsRead::default());
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    loose::read(job, how, &mut |found| match found {
                        LooseRead::Log(log) => logs.push(*log),
                        LooseRead::Unknown => read.unknown += 1,
                        LooseRead::Problem(problem) => read.problems.push(problem),
                    });
                }
                let mut done = done
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                done.0.extend(logs);
                done.1.unknown += read.unknown;
                done.1.problems.extend(read.problems);
            });
        }
    });
    let (mut logs, read) = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    // What says nothing is no session.
    logs.retain(|log| log.summary.events + log.summary.notes > 0);
    (logs, read)
}

fn native(log: &Loose) -> String {
    native_id(
        log.session.id.as_deref(),
        &log.place.path,
        log.place.part.as_deref(),
    )
}

/// Leaves in each log what is its own.
fn settle(logs: &mut [Loose], natives: &[String], how: Reading<'_>, read: &mut LogsRead) {
    let mut members: BTreeMap<usize, Vec<Lineage>> = BTreeMap::new();
    for (at, group) in groups(logs, natives).into_iter().enumerate() {
        let lineage = lineage(at, &logs[at], &natives[at]);
        members.entry(group).or_default().push(lineage);
    }
    for group in members.into_values().filter(|group| group.len() > 1) {
        let told = link::share(group, |own, shared| {
            if let Ok(at) = usize::try_from(own.id)
                && (shared.copy_of.is_some() || !shared.owners.is_empty())
            {
                read.copies += u64::from(shared.copy_of.is_some());
                logs[at].summary = match rest(&logs[at], &shared, how) {
                    Ok(rest) => rest,
                    Err(problem) => {
                        read.problems.push(problem);
                        Summary::default()
                    }
                };
            }
            Ok::<(), std::convert::Infallible>(())
        });
        match told {
            Ok(()) => {}
        }
    }
}

fn lineage(at: usize, log: &Loose, native: &str) -> Lineage {
    Lineage::of_log(
        i64::try_from(at).unwrap_or(i64::MAX),
        &log.units,
        native,
        &log.session,
        log.modified,
        &log.agent,
        log.place.dialect.name,
        &log.place.path,
        log.place.part.as_deref(),
    )
}

/// The first of the group that a log is in.
fn top(above: &mut [usize], mut at: usize) -> usize {
    while above[at] != at {
        above[at] = above[above[at]];
        at = above[at];
    }
    at
}

/// Which logs are related, by the number of the first of each group.
fn groups(logs: &[Loose], natives: &[String]) -> Vec<usize> {
    let mut above: Vec<usize> = (0..logs.len()).collect();
    let mut join = |a: usize, b: usize| {
        let (a, b) = (top(&mut above, a), top(&mut above, b));
        above[a.max(b)] = a.min(b);
    };
    let mut by_native: HashMap<&str, usize> = HashMap::new();
    let mut by_unit: HashMap<(&str, u64), usize> = HashMap::new();
    for (at, log) in logs.iter().enumerate() {
        join(at, *by_native.entry(&natives[at]).or_insert(at));
        if let Some(first) = log.units.first() {
            join(at, *by_unit.entry((&log.agent, *first)).or_insert(at));
        }
    }
    for (at, log) in logs.iter().enumerate() {
        // A session may tell of its sub-agents itself.
        if let Some(of) = &log.session.parent {
            let of = quipu_agents::run_id(of);
            if let Some(of) = by_native.get(of.as_str()) {
                join(at, *of);
            }
        }
        if let Some(from) = &log.session.forked_from {
            let from = quipu_agents::run_id(from);
            if let Some(of) = by_native.get(from.as_str()) {
                join(at, *of);
            }
        }
    }
    (0..logs.len()).map(|at| top(&mut above, at)).collect()
}

/// What of a log is not a copy.
fn rest(log: &Loose, shared: &Shared, how: Reading<'_>) -> Result<Summary, Problem> {
    struct Own<'o>(&'o HashMap<u64, i64>, Sums);
    impl Sink for Own<'_> {
        fn entry(&mut self, _seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
            if entry.unit.is_none_or(|unit| !self.0.contains_key(&unit)) {
                self.1.observe(entry);
            }
        }
    }
    if log.units.is_empty() {
        return Ok(Summary::default());
    }
    let mut own = Own(&shared.owners, Sums::new(how.guard));
    log.place.again(how.temporary, &mut own)?;
    Ok(own.1.summary)
}

/// Adds what is meant. Gives the tokens that are left out for want of a time.
fn add_all(
    tally: &mut Tally<'_>,
    question: &Question<'_>,
    logs: &[Loose],
    natives: &[String],
    roots: &HashMap<&str, Option<&String>>,
    is_meant: &dyn Fn(Option<&str>) -> bool,
) -> u64 {
    let slots = slots(question.filter);
    let model = question.filter.model.as_deref().map(str::to_lowercase);
    let mut run_ids = HashSet::new();
    let mut undated: u64 = 0;
    for (log, native) in logs.iter().zip(natives) {
        let mut subject = subject(log, native, roots);
        // Copies of a session are told apart by what comes after.
        if !run_ids.insert(subject.run_id.clone()) {
            subject.run_id = format!("{native}.{}", run_ids.len());
            run_ids.insert(subject.run_id.clone());
        }
        if !meant(question.filter, &subject, log) || !is_meant(log.session.cwd.as_deref()) {
            continue;
        }
        let place = tally.place(&subject);
        let begin = begin(log);
        let of = |at: Option<i64>| at.or(begin);
        if question.by.contains(&By::Tool) {
            add_tools(tally, log, &place, &slots, &of);
            continue;
        }
        for (key, spend) in &log.summary.spend {
            let at = of(key.by.slot);
            let tokens = Usage::from(spend.tokens);
            let wanted = model
                .as_deref()
                .is_none_or(|part| key.model.to_lowercase().contains(part));
            if wanted && slots.contain(at) {
                let of = Of {
                    slot: at,
                    subagent: &key.by.subagent,
                    model: &key.model,
                    service: key.service,
                    context: key.context,
                    told: key.told.then(|| spend.told()),
                    tool: "",
                };
                let spent = Spent {
                    calls: spend.calls,
                    tokens,
                    searches: spend.searches,
                    ..Spent::default()
                };
                tally.spend(&place, &of, spent);
            } else if wanted && at.is_none() {
                undated = undated.saturating_add(tokens.total());
            }
        }
        for (by, did) in &log.summary.activity {
            let at = of(by.slot);
            if slots.contain(at) {
                let of = Of {
                    slot: at,
                    subagent: &by.subagent,
                    ..Of::default()
                };
                tally.activity(&place, &of, did);
            }
        }
    }
    undated
}

fn add_tools(
    tally: &mut Tally<'_>,
    log: &Loose,
    place: &GroupPlace,
    slots: &Slots,
    of: &dyn Fn(Option<i64>) -> Option<i64>,
) {
    for (key, used) in &log.summary.tools {
        let at = of(key.by.slot);
        if slots.contain(at) {
            let of = Of {
                slot: at,
                subagent: &key.by.subagent,
                tool: &key.tool,
                ..Of::default()
            };
            let did = quipu_agents::Activity {
                tool_calls: used.calls,
                failures: used.failures,
                ..Default::default()
            };
            tally.activity(place, &of, &did);
        }
    }
}

/// The slot in which a session began.
fn begin(log: &Loose) -> Option<i64> {
    let times = [log.session.started_at, log.summary.first_at];
    let first = times.into_iter().flatten().min()?;
    Timestamp::from_millisecond(first).ok().map(slot)
}

fn subject(log: &Loose, native: &str, roots: &HashMap<&str, Option<&String>>) -> Subject {
    let session = &log.session;
    let mut root = native.to_owned();
    for _ in 0..100 {
        let Some(Some(parent)) = roots.get(root.as_str()) else {
            break;
        };
        let parent = quipu_agents::run_id(parent);
        if !roots.contains_key(parent.as_str()) {
            break;
        }
        parent.as_str().clone_into(&mut root);
    }
    let repository = session.repository.as_deref().map(plain_address);
    Subject {
        run_id: native.to_owned(),
        address: None,
        session: root,
        title: session.title.clone().or_else(|| log.summary.title.clone()),
        agent: log.agent.clone(),
        project: session.cwd.clone().or(repository),
        branch: session.branch.clone(),
        is_subagent: session.parent.is_some(),
    }
}

fn meant(filter: &Filter, subject: &Subject, log: &Loose) -> bool {
    let has = |text: Option<&str>, part: &Option<String>| {
        part.as_deref().is_none_or(|part| {
            text.is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase()))
        })
    };
    let agents = &filter.agents;
    let is_agent = agents.is_empty()
        || agents
            .iter()
            .any(|agent| subject.agent.starts_with(&agent.to_lowercase()));
    is_agent
        && has(log.session.cwd.as_deref(), &filter.project)
        && has(subject.title.as_deref(), &filter.title)
        && (filter.branch.is_none() || filter.branch == subject.branch)
}
