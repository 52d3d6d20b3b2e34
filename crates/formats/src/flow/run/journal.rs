//! The run's own events, `events.jsonl`: what they say of the run, and which executions of steps they tell of.
//!
//! The journal is read twice. The first reading, here, finds out when steps began and ended, so that their files can
//! be told where the journal says that they ended. The second one ([`super::walk()`]) gives its lines.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

use quipu_model::json::{Node, Tape};
use quipu_model::{NoteKind, Timestamp};

use crate::flow::FlowError;
use crate::flow::record::Outcome;
use crate::flow::scan::{DEPTH, Root, Unit};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule, check_time_at};
use quipu_exchange::lines::{Limits, Lines};

pub(in crate::flow) const NAME: &str = "events.jsonl";

/// How many numbers, kinds and steps are kept.
const MOST: usize = 1 << 20;

/// How many executions the journal can tell of. Its further lines are read, but begin and end no steps.
const MOST_EXECUTIONS: usize = 100_000;

/// What the journal says.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) is_there: bool,
    pub(super) run_id: Option<String>,
    pub(super) first_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    /// The last one: a run of several flows is completed several times.
    pub(super) completed_at: Option<Timestamp>,
    pub(super) counts: Counts,
    /// Executions, in the order in which the journal first tells of them.
    pub(super) executions: Vec<Told>,
    steps: HashMap<Key, Vec<usize>>,
    by_step: HashMap<(String, String), Vec<usize>>,
    seen: HashSet<u64>,
    last: Option<u64>,
}

/// How many lines of the journal there are of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines by the kind that they name.
    pub kinds: BTreeMap<String, u64>,
    /// Lines that another program wrote: they have `event` where this one writes `kind`.
    pub foreign: u64,
    /// Lines that are not events at all.
    pub malformed: u64,
}

/// Which step, and by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) flow: String,
    pub(super) step: String,
    pub(super) agent: String,
}

/// An execution that the journal tells of.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) key: Key,
    /// The line where it began, and where it ended; 0 where that is not told.
    pub(super) begins: u64,
    pub(super) ends: u64,
    pub(super) started_at: Option<Timestamp>,
    pub(super) outcome: Outcome,
    /// Known by its timing only, which is told when it is over.
    timed: bool,
}

/// What a line of the journal is.
pub(in crate::flow) fn kind_of(node: Node<'_>) -> Option<(Cow<'_, str>, bool)> {
    let own = node.text("kind").map(|kind| (kind, false));
    own.or_else(|| node.text("event").map(|kind| (kind, true)))
}

/// The time of a line.
pub(in crate::flow) fn time_of(node: Node<'_>) -> Option<Timestamp> {
    let at = node.text("ts").or(node.text("timestamp"))?;
    time::parse(&at).map(|time| time.at)
}

impl Journal {
    pub(super) fn read(
        root: &Root,
        limits: &Limits,
        findings: &mut Findings,
    ) -> Result<Self, FlowError> {
        let mut journal = Self::default();
        let path = root.path().join(NAME);
        if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) {
            return Ok(journal);
        }
        journal.is_there = true;
        let file = fs::File::open(&path).map_err(FlowError::io(&path))?;
        let mut lines = Lines::new(file, *limits);
        let mut tape = Tape::new();
        while let Some(info) = lines.advance().map_err(FlowError::io(&path))? {
            let text = String::from_utf8_lossy(lines.current());
            if text.trim().is_empty() && !info.too_long {
                continue;
            }
            match tape.read(&text, DEPTH) {
                Ok(node) if kind_of(node).is_some() => journal.take(node, info.number, findings),
                _ => {
                    journal.counts.malformed += 1;
                    findings.add(Rule::EventUnreadable, NAME, Some(info.number), || {
                        "not an event".to_owned()
                    });
                }
            }
        }
        journal.settle();
        Ok(journal)
    }

    fn take(&mut self, node: Node<'_>, line: u64, findings: &mut Findings) {
        check_time_at(node, "ts", NAME, line, findings);
        let at = time_of(node);
        self.first_at = self.first_at.or(at);
        if self.run_id.is_none() {
            self.run_id = node.text("run_id").map(Into::into);
        }
        self.number(node, line, findings);
        let Some((kind, foreign)) = kind_of(node) else {
            return;
        };
        self.counts.foreign += u64::from(foreign);
        let kinds = &mut self.counts.kinds;
        if kinds.len() < MOST || kinds.contains_key(&*kind) {
            *kinds.entry(kind.clone().into_owned()).or_default() += 1;
        }
        match &*kind {
            "run_started" | "run_start" => self.started_at = self.started_at.or(at),
            "run_completed" | "run_end" | "run_failed" | "run_cancelled" | "run_canceled"
            | "run_stopped" => self.completed_at = at.or(self.completed_at),
            _ => self.step(node, &kind, at, line),
        }
    }

    /// Checks the number of an event.
    fn number(&mut self, node: Node<'_>, line: u64, findings: &mut Findings) {
        let Some(seq) = node.get("seq").and_then(|n| n.as_u64()) else {
            return;
        };
        if self.seen.contains(&seq) {
            findings.add(Rule::EventDuplicate, NAME, Some(line), || {
                format!("seq {seq} was there before")
            });
            return;
        }
        if self.seen.len() < MOST {
            self.seen.insert(seq);
        }
        let expected = self.last.map_or(1, |last| last.saturating_add(1));
        if seq != expected {
            findings.add(Rule::EventGap, NAME, Some(line), || {
                format!("seq {seq} where {expected} is next")
            });
        }
        self.last = Some(seq);
    }

    /// Takes in that a step began or ended.
    fn step(&mut self, node: Node<'_>, kind: &str, at: Option<Timestamp>, line: u64) {
        let begins = kind == "step_start";
        let ends = matches!(kind, "step_end" | "step_complete" | "step_error");
        let timed = kind == "step_timing";
        let Some(key) = Key::of(node).filter(|_| begins || ends || timed) else {
            return;
        };
        let payload = node.get("payload");
        let text = |key: &str| payload?.text(key);
        let duration_ms = payload.and_then(|payload| payload.get("duration_ms")?.as_u64());
        let mut told = Told {
            key,
            timed,
            ..Told::default()
        };
        if begins {
            (told.begins, told.started_at) = (line, at);
            return self.add(told);
        }
        let failed = kind == "step_error" || text("status").as_deref() == Some("failed");
        let error = text("error").map(Into::into);
        told.ends = line;
        told.outcome = Outcome {
            at,
            error: error.or_else(|| failed.then(|| "failed".to_owned())),
            duration_ms,
        };
        if timed {
            let started = text("started_at").and_then(|text| time::parse(&text));
            told.started_at = started.map(|time| time.at);
            return self.add(told);
        }
        match self.open(&told.key) {
            Some(open) => {
                let execution = &mut self.executions[open];
                (execution.ends, execution.outcome) = (told.ends, told.outcome);
            }
            None => self.add(told),
        }
    }

    /// The execution of a step that has begun and not ended. An end that names no agent is that of whoever began.
    fn open(&self, key: &Key) -> Option<usize> {
        let all = self.by_step.get(&key.step_of())?;
        let is_open = |at: &&usize| {
            let told = &self.executions[**at];
            let agent = &told.key.agent;
            let same = *agent == key.agent || agent.is_empty() || key.agent.is_empty();
            same && told.begins > 0 && told.ends == 0
        };
        // The latest: one that began before and never ended was cut off.
        all.iter().rev().take(64).find(is_open).copied()
    }

    fn add(&mut self, told: Told) {
        if self.executions.len() < MOST_EXECUTIONS {
            let at = self.executions.len();
            let step = told.key.step_of();
            self.by_step.entry(step).or_default().push(at);
            self.steps.entry(told.key.clone()).or_default().push(at);
            self.executions.push(told);
        }
    }

    /// Timings tell of executions only where nothing else does.
    fn settle(&mut self) {
        let begun: HashSet<(String, String)> = self
            .executions
            .iter()
            .filter(|told| !told.timed)
            .map(|told| told.key.step_of())
            .collect();
        let executions = std::mem::take(&mut self.executions);
        self.steps.clear();
        self.by_step.clear();
        for told in executions {
            if !told.timed || !begun.contains(&told.key.step_of()) {
                self.add(told);
            }
        }
    }

    /// The executions of a step, in order: those of this agent, or those that name none.
    pub(super) fn of(&self, unit: &Unit) -> &[usize] {
        let mut key = Key {
            flow: unit.flow.clone(),
            step: unit.name.step.clone(),
            agent: unit.name.agent.clone(),
        };
        let own = self.steps.get(&key);
        key.agent.clear();
        own.or_else(|| self.steps.get(&key))
            .map_or(&[], Vec::as_slice)
    }

    /// Which iteration of its step an execution is, from 0, and whether it is the last.
    pub(super) fn iteration(&self, at: usize) -> (u64, bool) {
        let all = self.steps.get(&self.executions[at].key);
        let all = all.map_or(&[][..], Vec::as_slice);
        let index = all.binary_search(&at).unwrap_or(0);
        (index as u64, index + 1 == all.len())
    }
}

impl Key {
    fn step_of(&self) -> (String, String) {
        (self.flow.clone(), self.step.clone())
    }

    fn of(node: Node<'_>) -> Option<Self> {
        let text = |key: &str| node.text(key).filter(|text| !text.is_empty());
        let first = || {
            let agents = node.get("payload")?.get("agents")?;
            agents.items().next()?.as_str()
        };
        Some(Self {
            step: text("step_id")?.into_owned(),
            flow: text("flow_key").unwrap_or_default().into_owned(),
            agent: text("agent_key")
                .or_else(first)
                .unwrap_or_default()
                .into_owned(),
        })
    }
}

/// What kind of note a line of the journal is, and what it says to a person.
pub(super) fn note(kind: &str, foreign: bool, node: Node<'_>) -> (NoteKind, String) {
    let payload = node.get("payload");
    let text = |keys: &[&str]| {
        let of = |from: Option<Node<'_>>, key: &&str| {
            let text = from?.text(key).filter(|text| !text.is_empty())?;
            Some(text.into_owned())
        };
        keys.iter()
            .find_map(|key| of(payload, key).or_else(|| of(Some(node), key)))
    };
    let note = match kind {
        _ if foreign => NoteKind::UnknownRecord,
        "route_decision" | "macro_route" | "navigation_decision" => {
            return (NoteKind::Context, route(&text));
        }
        "run_failed" | "step_error" | "flow_error" | "flow_failed" | "error" => NoteKind::Error,
        "step_start" | "step_end" | "step_complete" | "step_timing" => NoteKind::Turn,
        "file_changes" => NoteKind::FileSnapshot,
        "log"
        | "tool_start"
        | "tool_end"
        | "assistant_message"
        | "user_message"
        | "backend_init"
        | "preflight_completed"
        | "lifecycle_phases_completed" => NoteKind::Progress,
        _ if kind.starts_with("run_") || kind.starts_with("flow_") => NoteKind::Session,
        _ if kind.ends_with("_phase_complete") => NoteKind::Progress,
        _ if OTHERS.iter().any(|known| kind.starts_with(known)) => NoteKind::Context,
        _ => NoteKind::UnknownRecord,
    };
    let said = text(&["message", "error", "reason", "status"]);
    let said = said.map_or_else(|| kind.to_owned(), |said| format!("{kind}: {said}"));
    (note, said)
}

/// How other kinds begin that the program is known to write.
const OTHERS: &[&str] = &["autopilot_", "utility_flow_", "graph_patch_", "evolution_"];

/// Which way a run went, and why.
fn route(text: &dyn Fn(&[&str]) -> Option<String>) -> String {
    let from = text(&["from_step", "from_flow", "step_id", "flow_key"]);
    let to = text(&["to_step", "next_step_id", "to_flow", "target_flow"]);
    let from = from.as_deref().unwrap_or("?");
    let to = to.as_deref().unwrap_or("the end");
    let decision = text(&["decision"]).map(|decision| format!(" ({decision})"));
    let reason = text(&["reason"]).map(|reason| format!(": {reason}"));
    let (decision, reason) = (decision.unwrap_or_default(), reason.unwrap_or_default());
    format!("route: {from} → {to}{decision}{reason}")
}
