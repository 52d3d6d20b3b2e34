//! The run's own events: `events.jsonl`. They are read for what they say of the run and its steps.
//!
//! They are not the session: what they tell of messages and tools is cut, and the transcripts have it whole.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use quipu_model::Timestamp;
use quipu_model::json::{Node, Tape};

use crate::flow::FlowError;
use crate::flow::scan::{DEPTH, Root, Unit};
use crate::flow::time;
use crate::flow::verify::{Findings, Rule, check_time_at};
use crate::lines::{Limits, Lines};

const NAME: &str = "events.jsonl";

/// How many numbers, steps and kinds are kept.
const MOST: usize = 1 << 20;

/// What the events say.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) is_there: bool,
    pub(super) run_id: Option<String>,
    pub(super) first_at: Option<Timestamp>,
    pub(super) started_at: Option<Timestamp>,
    /// The last one: a run of several flows is completed several times.
    pub(super) completed_at: Option<Timestamp>,
    pub(super) kinds: BTreeMap<String, u64>,
    steps: BTreeMap<(String, String), StepEvents>,
    seen: HashSet<u64>,
    last: Option<u64>,
}

#[derive(Debug, Default)]
struct StepEvents {
    /// Where the step is first met.
    place: u64,
    starts: Vec<Timestamp>,
    ends: Vec<Outcome>,
}

/// How a step ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) at: Option<Timestamp>,
    pub(super) error: Option<String>,
    pub(super) duration_ms: Option<u64>,
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
                Ok(node) if node.get("kind").is_some() || node.get("event").is_some() => {
                    journal.take(node, info.number, findings);
                }
                _ => findings.add(Rule::EventUnreadable, NAME, Some(info.number), || {
                    "it is no event".to_owned()
                }),
            }
        }
        Ok(journal)
    }

    fn take(&mut self, node: Node<'_>, line: u64, findings: &mut Findings) {
        check_time_at(node, "ts", NAME, line, findings);
        let at = node.text("ts").or(node.text("timestamp"));
        let at = at.and_then(|text| time::parse(&text)).map(|time| time.at);
        self.first_at = self.first_at.or(at);
        if self.run_id.is_none() {
            self.run_id = node.text("run_id").map(Into::into);
        }
        self.number(node, line, findings);
        let kind = node.text("kind").or(node.text("event")).unwrap_or_default();
        if self.kinds.len() < MOST || self.kinds.contains_key(&*kind) {
            *self.kinds.entry(kind.clone().into_owned()).or_default() += 1;
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

    fn step(&mut self, node: Node<'_>, kind: &str, at: Option<Timestamp>, line: u64) {
        let Some(step) = node.text("step_id").filter(|step| !step.is_empty()) else {
            return;
        };
        let flow = node.text("flow_key").unwrap_or_default();
        let key = (flow.into_owned(), step.into_owned());
        if self.steps.len() >= MOST && !self.steps.contains_key(&key) {
            return;
        }
        let step = self.steps.entry(key).or_insert_with(|| StepEvents {
            place: line,
            ..StepEvents::default()
        });
        match kind {
            "step_start" => step.starts.extend(at.filter(|_| step.starts.len() < MOST)),
            "step_end" | "step_complete" | "step_error" if step.ends.len() < MOST => {
                let payload = node.get("payload");
                let text = |key: &str| payload?.text(key);
                let failed = kind == "step_error" || text("status").as_deref() == Some("failed");
                let error = text("error").map(Into::into);
                step.ends.push(Outcome {
                    at,
                    error: error.or_else(|| failed.then(|| "failed".to_owned())),
                    duration_ms: payload.and_then(|p| p.get("duration_ms")?.as_u64()),
                });
            }
            _ => {}
        }
    }

    fn events_of(&self, unit: &Unit) -> Option<(&StepEvents, usize)> {
        let key = (unit.flow.clone(), unit.name.step.clone());
        let index = usize::try_from(unit.iteration.saturating_sub(1)).ok()?;
        Some((self.steps.get(&key)?, index))
    }

    /// When a step began.
    pub(super) fn start_of(&self, unit: &Unit) -> Option<Timestamp> {
        let (step, index) = self.events_of(unit)?;
        step.starts.get(index).or(step.starts.last()).copied()
    }

    /// How a step ended.
    pub(super) fn end_of(&self, unit: &Unit) -> Option<&Outcome> {
        let (step, index) = self.events_of(unit)?;
        step.ends.get(index).or(step.ends.last())
    }

    /// Where a step is first met; steps that are not come behind.
    pub(super) fn place_of(&self, unit: &Unit) -> u64 {
        self.events_of(unit)
            .map_or(u64::MAX, |(step, _)| step.place)
    }
}
