//! The step tree of a run, and of the runs it called, rebuilt from events alone.
//!
//! A [`TreeBuilder`] takes the events of one run in file order and gives a [`RunTree`]; a
//! [`Forest`] follows child links from run to run. Both are flat arenas rather than nested boxes,
//! because a hostile file may nest as deep as it is long.
//!
//! What a file does not say is not made up: a step whose place follows from its path is
//! [`Placed::ByPath`], one that could be placed by what was open at the time is
//! [`Placed::Inferred`], and one for which several places are possible is [`Placed::Ambiguous`] and
//! hangs from the step they share, or else from the run.

mod build;
mod forest;

pub use build::TreeBuilder;
pub use forest::{Forest, Link};

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::{Place, RunId, StepKind, ToolCallId};

/// The steps of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTree {
    /// The run, where at least one event names it.
    pub run_id: Option<RunId>,
    /// The run that called it.
    pub parent_run_id: Option<RunId>,
    /// The workflow's name.
    pub name: Option<String>,
    /// How the run ended. [`State::Unmarked`] when no `run.*` event is there to say.
    pub state: State,
    /// The earliest and latest time seen.
    pub span: Span,
    /// How many events the run has.
    pub events: u64,
    /// What happened outside any step.
    pub tally: Tally,
    /// All steps; the index of a step is its [`NodeId`].
    pub nodes: Vec<Node>,
    /// The steps that hang from the run itself, in order.
    pub roots: Vec<NodeId>,
}

/// The index of a step in [`RunTree::nodes`].
pub type NodeId = usize;

/// One execution of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its path and iteration.
    pub place: Place,
    /// The step's name.
    pub name: String,
    /// The step's kind.
    pub kind: StepKind,
    /// How it ended.
    pub state: State,
    /// The event that began it; `None` when only its end is recorded.
    pub started_seq: Option<u64>,
    /// The event that ended it.
    pub ended_seq: Option<u64>,
    /// When.
    pub span: Span,
    /// What happened in it, its sub-steps not included.
    pub tally: Tally,
    /// The child run it calls.
    pub calls: Option<RunId>,
    /// How its place was found.
    pub placed: Placed,
    /// The step it hangs from.
    pub parent: Option<NodeId>,
    /// The steps that hang from it, in order.
    pub children: Vec<NodeId>,
}

/// How a step or run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Begun and not ended: running, or cut off.
    Open,
    /// Ended without an error.
    Done,
    /// Ended with this error.
    Failed(String),
    /// Neither beginning nor end is recorded.
    Unmarked,
}

/// First and last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first time.
    pub from: Option<Timestamp>,
    /// The last time.
    pub to: Option<Timestamp>,
}

impl Span {
    /// How long it took, in milliseconds; `None` when an end is missing or time ran backwards.
    pub fn millis(&self) -> Option<u64> {
        let (from, to) = (self.from?, self.to?);
        u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
    }

    fn widen(&mut self, at: Timestamp) {
        self.from = Some(self.from.map_or(at, |t| t.min(at)));
        self.to = Some(self.to.map_or(at, |t| t.max(at)));
    }
}

/// Counts of what happened in a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Messages, of either side.
    pub messages: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results that carry an error.
    pub tool_failures: u64,
    /// Calls without a result: tool name and call id, in order.
    pub dangling: Vec<(String, ToolCallId)>,
    /// Results without a call: tool name and call id, in order.
    pub orphans: Vec<(String, ToolCallId)>,
    /// Events outside the vocabulary.
    pub foreign: u64,
    /// Events that were put here because this was the only agent at work.
    pub inferred: u64,
}

/// How a step's place in the tree was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placed {
    /// The path says so.
    ByPath,
    /// The path does not say; what was open at the time does.
    Inferred,
    /// Several places are possible.
    Ambiguous,
}
