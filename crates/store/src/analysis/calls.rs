//! Tool calls and their results.
//!
//! A result answers the first call with its id that has none yet. A recorded run may tell of one call twice: the agent says
//! that it made it, and Quipu saw it. That is one call.

use std::collections::{HashMap, VecDeque};

use quipu_api::timeline::Timing;
use quipu_model::{Event, Fidelity, Status};

use super::parts::{Call, Outcome};
use super::{Micros, between, time_of};

/// A tool call, in small.
#[derive(Debug, Clone)]
pub(super) struct ToolFact {
    /// The number of its name.
    pub(super) name: u32,
    pub(super) id: Box<str>,
    pub(super) seq_from: u64,
    /// The result's; `None` without one.
    pub(super) seq_to: Option<u64>,
    pub(super) start: Option<Micros>,
    pub(super) end: Option<Micros>,
    pub(super) stated: Option<u64>,
    pub(super) status: Option<Status>,
    /// The run or session that it began.
    pub(super) child: Option<Box<str>>,
    fidelity: Fidelity,
    in_message: bool,
}

impl ToolFact {
    /// How long it took, and how that is known.
    pub(super) fn duration(&self, recorded: bool) -> (Option<u64>, Timing) {
        let measured = self.start.zip(self.end).and_then(|(a, b)| between(a, b));
        duration(self.stated, measured, recorded)
    }

    /// Whether it has no result, and one could be told to be its own.
    pub(super) fn is_dangling(&self) -> bool {
        self.seq_to.is_none() && !self.id.is_empty()
    }
}

/// What the log states wins. Where an imported log states nothing, reading it puts down the difference of its times, so
/// what equals that difference is measured.
pub(super) fn duration(
    stated: Option<u64>,
    measured: Option<u64>,
    recorded: bool,
) -> (Option<u64>, Timing) {
    match (stated, measured) {
        (Some(stated), measured) if recorded || measured != Some(stated) => {
            (Some(stated), Timing::Stated)
        }
        (_, Some(measured)) => (Some(measured), Timing::Measured),
        _ => (None, Timing::Unknown),
    }
}

/// What became of a part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paired {
    /// A call that is new, by its place.
    Began(usize),
    /// A call has its result.
    Ended(usize),
    /// Told of before.
    Again(usize),
    /// A result without a call.
    Orphan,
}

/// All tool calls of a transcript.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    pub(super) all: Vec<ToolFact>,
    pub(super) orphans: u64,
    open: HashMap<u64, VecDeque<usize>>,
    /// The last call with each id that has its result, where another event may tell of it again.
    closed: HashMap<u64, usize>,
    recorded: bool,
}

impl ToolCalls {
    pub(super) fn new(recorded: bool) -> Self {
        Self {
            recorded,
            ..Self::default()
        }
    }

    pub(super) fn call(&mut self, event: &Event, call: &Call<'_>, name: u32) -> Paired {
        let key = quipu_agents::hash(call.id.as_bytes());
        if !call.id.is_empty()
            && let Some(at) = self.open.get(&key).and_then(|open| open.back())
        {
            let known = &self.all[*at];
            let other_teller =
                known.fidelity != call.fidelity || known.in_message != call.in_message;
            if self.recorded && other_teller {
                return Paired::Again(*at);
            }
        }
        self.closed.remove(&key);
        let at = self.all.len();
        self.all.push(ToolFact {
            name,
            id: call.id.into(),
            seq_from: event.seq,
            seq_to: None,
            start: time_of(event),
            end: None,
            stated: None,
            status: None,
            child: child(event),
            fidelity: call.fidelity,
            in_message: call.in_message,
        });
        // A call without an id has no result that could be told to be its own.
        if !call.id.is_empty() {
            self.open.entry(key).or_default().push_back(at);
        }
        Paired::Began(at)
    }

    pub(super) fn result(&mut self, event: &Event, outcome: &Outcome<'_>) -> Paired {
        let key = quipu_agents::hash(outcome.id.as_bytes());
        let answered = match self.open.get_mut(&key) {
            Some(open) => {
                let at = open.pop_front();
                if open.is_empty() {
                    self.open.remove(&key);
                }
                at
            }
            None => None,
        };
        let Some(at) = answered else {
            if self.recorded
                && let Some(at) = self.closed.get(&key)
            {
                return Paired::Again(*at);
            }
            self.orphans += 1;
            return Paired::Orphan;
        };
        if self.recorded && !outcome.id.is_empty() {
            self.closed.insert(key, at);
        }
        let fact = &mut self.all[at];
        fact.seq_to = Some(event.seq);
        fact.end = time_of(event);
        fact.status = outcome.status;
        if !outcome.in_message {
            fact.stated = event.annotations.duration_ms;
        }
        if fact.child.is_none() {
            fact.child = child(event);
        }
        Paired::Ended(at)
    }
}

fn child(event: &Event) -> Option<Box<str>> {
    let child = event.annotations.child.as_ref();
    child.map(|child| child.as_str().into())
}
