//! Sessions below sessions, and steps below steps.

use crate::Time;
use crate::describe::document;
use crate::transcript::Transcript;

document! {
    /// A session with its sub-agents.
    pub struct SessionTree {
        /// The sessions; parents are before their children.
        pub sessions: Vec<TreeSession>,
    }
}

document! {
    /// A session in a tree.
    pub struct TreeSession {
        /// What the catalogue says of it.
        #[serde(flatten)]
        pub transcript: Transcript,
        /// How many sessions are above it.
        pub depth: u64,
    }
}

document! {
    /// A run with the runs that it called. Runs and steps are flat lists, because a tree may nest deeper than parsers of JSON go.
    pub struct Forest {
        /// Whether every run that was called is here.
        pub whole: bool,
        /// The runs; the first is the one that was asked for.
        pub runs: Vec<Run>,
    }
}

document! {
    /// A run.
    pub struct Run {
        /// Its place in the list of runs.
        pub run: u64,
        /// Its id.
        pub run_id: Option<String>,
        /// The run that called it.
        pub parent_run_id: Option<String>,
        /// The name of its workflow.
        pub name: Option<String>,
        /// How far it got.
        pub state: State,
        /// Why it failed.
        pub error: Option<String>,
        /// When it ran.
        pub span: Span,
        /// Its events.
        pub events: u64,
        /// What happened outside of steps.
        pub tally: Tally,
        /// The steps that are not below others: places in the list of steps.
        pub roots: Vec<u64>,
        /// Its steps.
        pub steps: Vec<Step>,
    }
}

document! {
    /// A step of a run.
    pub struct Step {
        /// Its place in the list of steps.
        pub step: u64,
        /// The step above it.
        pub parent: Option<u64>,
        /// The steps below it.
        pub children: Vec<u64>,
        /// The names of the steps down to it, with dots between them.
        pub path: String,
        /// Which turn of the innermost loop it belongs to; 0 is the first one, and a step outside of loops.
        pub iteration: u64,
        /// Its name.
        pub name: String,
        /// Its kind.
        pub kind: String,
        /// How far it got.
        pub state: State,
        /// Why it failed.
        pub error: Option<String>,
        /// The seq of the event with which it began.
        pub started_seq: Option<u64>,
        /// The seq of the event with which it ended.
        pub ended_seq: Option<u64>,
        /// When it ran.
        pub span: Span,
        /// What happened in it.
        pub tally: Tally,
        /// How its place in the tree is known.
        pub placed: Placed,
        /// The run that it calls.
        pub calls: Option<String>,
        /// Where that run is.
        pub link: Option<Link>,
    }
}

document! {
    /// Where a run is that a step calls: an object with one of these keys.
    pub keyed enum Link {
        /// Its place in the list of runs.
        Run(u64),
        /// Why it is not here.
        Missing(String),
        /// True when it is above this step already.
        Cycle(bool),
    }
}

document! {
    /// How far a run or a step got.
    pub words enum State {
        /// It has not ended yet.
        Open,
        /// It ended well.
        Done,
        /// It failed.
        Failed,
        /// No event says that it began or ended.
        Unmarked,
    }
}

document! {
    /// How the place of a step in the tree is known.
    pub words enum Placed {
        /// By the path of its events.
        ByPath,
        /// From the steps around it.
        Inferred,
        /// It may belong to more than one step.
        Ambiguous,
    }
}

document! {
    /// A stretch of time.
    pub struct Span {
        /// When it began.
        pub from: Option<Time>,
        /// When it ended.
        pub to: Option<Time>,
        /// How long it is, in milliseconds.
        pub millis: Option<u64>,
    }
}

document! {
    /// What happened in a step, or outside of all steps.
    pub struct Tally {
        /// Messages.
        pub messages: u64,
        /// Tool calls.
        pub tool_calls: u64,
        /// Tool calls that failed.
        pub tool_failures: u64,
        /// Tool calls without a result.
        pub dangling: Vec<NamedCall>,
        /// Results without a tool call.
        pub orphans: Vec<NamedCall>,
        /// Events of types that the format does not know.
        pub foreign: u64,
        /// Events whose place was inferred.
        pub inferred: u64,
    }
}

document! {
    /// A tool call.
    pub struct NamedCall {
        /// The tool.
        pub name: String,
        /// The id of the call.
        pub call_id: String,
    }
}
