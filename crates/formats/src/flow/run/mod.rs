//! A run directory as one session.
//!
//! Steps come in the order in which they began: as receipts say, or the first line of the transcript, or the
//! run's own events. Each is `step.started`, what its transcript says, and `step.completed`, which has what
//! the receipt says of model, tokens, cost and duration, once.

mod emit;
mod journal;
mod meta;
mod unit;

use std::collections::BTreeMap;
use std::path::Path;

use quipu_model::{
    Annotations, Body, Event, Flags, Header, LogBody, Notes, Origin, Place, RunId, Step, StepEnd,
    Timestamp,
};
use sha2::Digest as _;

use self::emit::Emit;
use self::journal::Journal;
use self::meta::Meta;
pub(super) use self::unit::NO_TRANSCRIPT;
use super::FlowError;
use super::receipt::Receipt;
use super::scan::{self, Scan, Unit};
use super::shape::Shape;
use super::verify::{Finding, Rule, check_costs};
use crate::lines::Limits;

/// What reading a run directory found, beside the events.
#[derive(Debug, Clone)]
pub struct Run {
    /// The run, as its files name it.
    pub run_id: String,
    /// What is known of it as a whole.
    pub header: Header,
    /// The executions of steps, in the order in which they were read.
    pub steps: Vec<StepRun>,
    /// Their receipts, in the same order.
    pub receipts: Vec<Receipt>,
    /// How many lines of each kind the run's own events have. They are read for what they say of the run and
    /// of the order of steps, and are no part of the session.
    pub journal: BTreeMap<String, u64>,
    /// What is wrong with the directory.
    pub issues: Vec<Finding>,
}

/// One execution of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRun {
    /// The flow.
    pub flow: String,
    /// The step.
    pub step: String,
    /// The agent.
    pub agent: String,
    /// The engine, as the transcript's name says.
    pub engine: Option<String>,
    /// Which iteration, from 0.
    pub iteration: u64,
    /// Whether step and agent are a guess.
    pub ambiguous: bool,
    /// The transcript, relative to the run.
    pub transcript: Option<String>,
    /// The receipt, relative to the run.
    pub receipt: Option<String>,
    /// The shapes of its lines.
    pub shapes: Vec<Shape>,
    /// How many lines it has.
    pub lines: u64,
    /// Whether nothing was done, only pretended.
    pub stub: bool,
}

/// Reads a run directory. Events are handed to `sink` as they are read.
///
/// # Errors
///
/// When it cannot be read at all, or is no run. What is wrong inside of it is in [`Run::issues`].
pub fn read(dir: &Path, sink: &mut dyn FnMut(Event<LogBody>)) -> Result<Run, FlowError> {
    read_with(dir, &Limits::default(), sink)
}

/// Reads a run directory, within limits.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(
    dir: &Path,
    limits: &Limits,
    sink: &mut dyn FnMut(Event<LogBody>),
) -> Result<Run, FlowError> {
    let Scan {
        root,
        mut units,
        mut findings,
    } = scan::scan(dir)?;
    let meta = Meta::read(&root, &mut findings);
    let journal = Journal::read(&root, limits, &mut findings)?;
    if units.is_empty() && !meta.is_there && !journal.is_there {
        return Err(FlowError::NotARun(dir.to_owned()));
    }
    let run_id = identity(&units, &meta, &journal, &root);
    for unit in &units {
        if let Some((file, receipt)) = &unit.receipt
            && let Some(other) = receipt.run_id.as_ref().filter(|other| **other != run_id)
        {
            findings.add(Rule::RunIdMismatch, &file.rel, None, || {
                format!("it belongs to {other:?}, the others to {run_id:?}")
            });
        }
    }
    for (name, other) in [("meta.json", &meta.id), ("events.jsonl", &journal.run_id)] {
        if let Some(other) = other.as_ref().filter(|other| **other != run_id) {
            findings.add(Rule::RunIdMismatch, name, None, || {
                format!("it belongs to {other:?}, receipts to {run_id:?}")
            });
        }
    }
    if root.name().is_some_and(|name| name != run_id) {
        findings.add(Rule::DirectoryName, "", None, || {
            format!(
                "the run is {run_id:?}, its directory {:?}",
                root.name().unwrap_or_default()
            )
        });
    }
    order(&mut units, &journal, limits);
    let header = header(&run_id, &units, &meta, &root);
    let mut emit = Emit::new(header, sink);
    started(&mut emit, &meta, &journal, &units);
    let mut steps = Vec::with_capacity(units.len());
    for unit in &units {
        let outcome = journal.end_of(unit);
        steps.push(unit::read(&mut emit, unit, outcome, limits, &mut findings)?);
    }
    completed(&mut emit, &meta, &journal);
    by_completion(&units, &mut findings);
    let receipts = units.into_iter().filter_map(|unit| unit.receipt);
    Ok(Run {
        run_id,
        header: emit.finish(),
        steps,
        receipts: receipts.map(|(_, receipt)| *receipt).collect(),
        journal: journal.kinds,
        issues: findings.finish(),
    })
}

/// What the run is called: as most receipts say, or else one of the other files, or the directory.
fn identity(units: &[Unit], meta: &Meta, journal: &Journal, root: &scan::Root) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let receipts = units.iter().filter_map(|unit| unit.receipt.as_ref());
    for id in receipts.filter_map(|(_, receipt)| receipt.run_id.as_deref()) {
        *counts.entry(id).or_default() += 1;
    }
    let most = counts.iter().rev().max_by_key(|(_, count)| **count);
    let of_receipts = most.map(|(id, _)| (*id).to_owned());
    of_receipts
        .or_else(|| meta.id.clone())
        .or_else(|| journal.run_id.clone())
        .or_else(|| root.name())
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| "run".to_owned())
}

/// The run id of the model for an id of the run's files: the same where it can be.
fn run_id_of(id: &str) -> RunId {
    if let Ok(id) = RunId::new(id) {
        return id;
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain: String = id
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .take(80)
        .collect();
    let hash = super::hex(&sha2::Sha256::digest(id.as_bytes())[..8]);
    let plain = plain.trim_start_matches(['.', '-']);
    RunId::new(&format!(
        "{plain}{}{hash}",
        if plain.is_empty() { "" } else { "-" }
    ))
    .unwrap_or_else(|_| unreachable!("made of permitted characters, at most 97 of them"))
}

/// Brings steps into the order in which they began.
fn order(units: &mut [Unit], journal: &Journal, limits: &Limits) {
    for unit in units.iter_mut().filter(|unit| unit.started.is_none()) {
        let first = unit
            .transcript
            .as_ref()
            .and_then(|file| unit::first_time(file, limits));
        unit.started = first.or_else(|| journal.start_of(unit));
    }
    units.sort_by_cached_key(|unit| {
        (
            // What nobody knows the time of comes last.
            unit.started.unwrap_or(Timestamp::MAX),
            journal.place_of(unit),
            unit.flow.clone(),
            unit.name.step.clone(),
            unit.name.agent.clone(),
            unit.iteration,
        )
    });
}

fn header(run_id: &str, units: &[Unit], meta: &Meta, root: &scan::Root) -> Header {
    let mut header = Header::new(run_id_of(run_id));
    header.title.clone_from(&meta.title);
    header.origin = Some(Origin {
        agent: meta
            .agent
            .clone()
            .unwrap_or_else(|| "flow-studio".to_owned()),
        agent_version: meta.agent_version.clone(),
        adapter: Some("flow".to_owned()),
        session_id: Some(run_id.to_owned()),
        path: Some(root.path().to_string_lossy().into_owned()),
    });
    let parent = meta.parent_run_id.clone();
    let receipts = || units.iter().filter_map(|unit| unit.receipt.as_ref());
    let said = |field: fn(&Receipt) -> &Option<String>| {
        receipts().find_map(|(_, receipt)| field(receipt).clone())
    };
    let parent = parent.or_else(|| said(|receipt| &receipt.parent_run_id));
    header.parent_run_id = parent.map(|id| run_id_of(&id));
    if let Some(session) = said(|receipt| &receipt.session_id)
        && let Some(origin) = &mut header.origin
    {
        origin.session_id = Some(session);
    }
    header.environment.cwd = said(|receipt| &receipt.workspace_root);
    header.environment.git_branch = said(|receipt| &receipt.git_branch);
    header.environment.commit = said(|receipt| &receipt.git_sha);
    header
}

fn started(emit: &mut Emit<'_>, meta: &Meta, journal: &Journal, units: &[Unit]) {
    let first = units.iter().find_map(|unit| unit.started);
    let told = meta.started_at.or(journal.started_at);
    let at = told.or(meta.created_at).or(journal.first_at).or(first);
    let body = Body::RunStarted(meta.step.clone());
    emit.at(
        Place::run(),
        at,
        LogBody::Exchange(body),
        marks(at.is_none(), all_stubs(units)),
    );
    for (kind, raw) in meta.notes() {
        emit.at(
            Place::run(),
            at,
            emit::note(kind, None, Some(raw)),
            Annotations::default(),
        );
    }
}

fn completed(emit: &mut Emit<'_>, meta: &Meta, journal: &Journal) {
    // A run that goes on has not ended. One of which nothing is known is taken for ended.
    if meta.goes_on() && journal.completed_at.is_none() {
        return;
    }
    let at = meta.completed_at.or(journal.completed_at);
    let error = meta.error.clone();
    let error = error.or_else(|| meta.ended_badly().map(str::to_owned));
    let step = meta.ended.as_ref().or(meta.step.as_ref()).cloned();
    let end = (step.is_some() || error.is_some() || meta.result.is_some()).then(|| StepEnd {
        step: step.unwrap_or_else(|| Step::new("", "workflow")),
        error,
        result: meta.result.clone(),
    });
    let body = LogBody::Exchange(Body::RunCompleted(end));
    emit.at(Place::run(), at, body, marks(at.is_none(), false));
}

fn all_stubs(units: &[Unit]) -> bool {
    let stub = |unit: &Unit| {
        unit.receipt
            .as_ref()
            .is_some_and(|(_, receipt)| receipt.is_stub())
    };
    !units.is_empty() && units.iter().all(stub)
}

fn marks(undated: bool, synthetic: bool) -> Annotations {
    Annotations::from(Notes {
        flags: Flags {
            undated,
            synthetic,
            ..Flags::default()
        },
        ..Notes::default()
    })
}

/// Checks what depends on the order in which steps were completed.
fn by_completion(units: &[Unit], findings: &mut super::verify::Findings) {
    let mut receipts: Vec<_> = units
        .iter()
        .filter_map(|unit| unit.receipt.as_ref())
        .collect();
    receipts.sort_by_key(|(_, receipt)| {
        let completed = receipt.completed_at.map(|time| time.at);
        // Of those that were completed at once, the sum tells which was written first.
        (completed, receipt.cumulative_run_usd)
    });
    let receipts = receipts
        .iter()
        .map(|(file, receipt)| (file.rel.as_str(), &**receipt));
    check_costs(receipts, findings);
}
