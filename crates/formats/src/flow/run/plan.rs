//! Which files belong to which execution of a step.
//!
//! The journal tells of every execution; files are there for those that no later one wrote over. Files without an
//! execution in the journal are told where their time belongs, and executions without files are told by the journal
//! alone.

use std::collections::{HashMap, HashSet};

use quipu_model::Timestamp;

use super::journal::{Journal, NAME, Told};
use crate::flow::receipt::Receipt;
use crate::flow::record::{Execution, Outcome};
use crate::flow::scan::Unit;
use crate::flow::verify::{Findings, Rule};

/// The executions of a run.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Planned>,
    /// What begins and what ends at a line of the journal.
    pub(super) at: HashMap<u64, Vec<usize>>,
    /// What the journal does not tell of, in the order in which it began.
    pub(super) others: Vec<usize>,
}

/// An execution, and the files that it left.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) execution: Execution,
    pub(super) unit: Option<usize>,
    /// The lines of the journal where it begins and ends; 0 where it does not.
    pub(super) begins: u64,
    pub(super) ends: u64,
    pub(super) outcome: Outcome,
    /// Whether it is the last execution of its step.
    pub(super) is_last: bool,
}

impl Plan {
    /// Joins files with what the journal tells of. Units are in the order in which they began.
    pub(super) fn new(units: &mut [Unit], journal: &Journal, findings: &mut Findings) -> Self {
        let unit_of = assign(units, journal);
        let mut plan = Self::default();
        let mut with_files = HashSet::new();
        for (at, told) in journal.executions.iter().enumerate() {
            if unit_of.contains_key(&at) {
                with_files.insert(&told.key);
            }
        }
        for (at, told) in journal.executions.iter().enumerate() {
            let unit = unit_of.get(&at).copied();
            let (iteration, is_last) = journal.iteration(at);
            let mut execution = match unit {
                Some(unit) => execution(&units[unit]),
                None => alone(told, iteration),
            };
            execution.started_at = execution.started_at.or(told.started_at);
            if unit.is_none() && with_files.contains(&told.key) {
                execution.overwritten = true;
                let line = told.begins.max(told.ends);
                findings.add(Rule::ExecutionOverwritten, NAME, Some(line), || {
                    let (step, number) = (&told.key.step, iteration + 1);
                    format!("execution {number} of step {step:?} has no files")
                });
            }
            plan.add(Planned {
                execution,
                unit,
                begins: if told.begins > 0 {
                    told.begins
                } else {
                    told.ends
                },
                ends: told.ends,
                outcome: told.outcome.clone(),
                is_last,
            });
        }
        let taken: HashSet<usize> = unit_of.into_values().collect();
        for (at, unit) in units.iter().enumerate() {
            if !taken.contains(&at) {
                plan.others.push(plan.steps.len());
                plan.add(Planned {
                    execution: execution(unit),
                    unit: Some(at),
                    begins: 0,
                    ends: 0,
                    outcome: Outcome::default(),
                    is_last: true,
                });
            }
        }
        plan
    }

    fn add(&mut self, mut step: Planned) {
        let at = self.steps.len();
        step.execution.number = at as u64 + 1;
        for line in [step.begins, step.ends] {
            let here = self.at.entry(line).or_default();
            if line > 0 && here.last() != Some(&at) {
                here.push(at);
            }
        }
        self.steps.push(step);
    }

    /// When an execution began.
    pub(super) fn started(&self, at: usize) -> Option<Timestamp> {
        self.steps[at].execution.started_at
    }
}

/// Gives each unit its execution: by its number where it has one; the plain name is the latest.
fn assign(units: &mut [Unit], journal: &Journal) -> HashMap<usize, usize> {
    let mut unit_of = HashMap::new();
    let is_numbered = |unit: &Unit| {
        let of_receipt = unit.receipt.as_ref().and_then(|(_, it)| it.iteration);
        unit.name.iteration.is_some() || of_receipt.is_some()
    };
    for numbered in [true, false] {
        for (index, unit) in units.iter_mut().enumerate() {
            if is_numbered(unit) != numbered {
                continue;
            }
            let all = journal.of(unit);
            let which = if numbered {
                usize::try_from(unit.iteration.saturating_sub(1)).unwrap_or(usize::MAX)
            } else {
                all.len().saturating_sub(1)
            };
            let Some(at) = all.get(which).filter(|at| !unit_of.contains_key(*at)) else {
                continue;
            };
            unit_of.insert(*at, index);
            if !numbered {
                unit.iteration = which as u64 + 1;
            }
        }
    }
    unit_of
}

fn execution(unit: &Unit) -> Execution {
    let receipt = unit.receipt.as_ref().map(|(_, receipt)| &**receipt);
    let said = |field: fn(&Receipt) -> &Option<String>| receipt.and_then(|r| field(r).clone());
    let name = &unit.name;
    Execution {
        number: 0,
        flow: unit.flow.clone(),
        step: name.step.clone(),
        agent: name.agent.clone(),
        engine: name.engine.clone(),
        iteration: unit.iteration.saturating_sub(1),
        name: said(|r| &r.step_name).unwrap_or_else(|| name.step.clone()),
        kind: said(|r| &r.step_kind).unwrap_or_else(|| "agent".to_owned()),
        ambiguous: name.ambiguous,
        stub: receipt.is_some_and(Receipt::is_stub),
        transcript: unit.transcript.as_ref().map(|file| file.rel.clone()),
        receipt: unit.receipt.as_ref().map(|(file, _)| file.rel.clone()),
        started_at: unit.started,
        overwritten: false,
        path: receipt.and_then(|r| r.step_path.clone()),
        iterations: receipt.map(|r| r.iterations.clone()).unwrap_or_default(),
        attempt: receipt.and_then(|r| r.attempt),
    }
}

/// An execution of which nothing but the journal tells.
fn alone(told: &Told, iteration: u64) -> Execution {
    let key = &told.key;
    Execution {
        flow: key.flow.clone(),
        step: key.step.clone(),
        agent: key.agent.clone(),
        iteration,
        name: key.step.clone(),
        kind: "agent".to_owned(),
        started_at: told.started_at,
        ..Execution::default()
    }
}
