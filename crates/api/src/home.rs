//! What is on this machine, and what is kept of it.

use crate::describe::document;
use crate::import::Problem;
use crate::{Time, Usd};

document! {
    /// What is on this machine, and what is kept of it.
    pub struct Home {
        /// The directory in which everything is kept.
        pub home: String,
        /// The agents whose logs were found.
        pub agents: Vec<FoundAgent>,
        /// What is kept; null when nothing is.
        pub kept: Option<Kept>,
        /// Files that hold credentials, by their names; they are never opened.
        pub credentials: u64,
        /// Empty files.
        pub empty: u64,
        /// What could not be looked at.
        pub problems: Vec<Problem>,
        /// The places where agents keep their logs.
        pub places: Vec<AgentPlace>,
    }
}

document! {
    /// The logs of one agent on this machine.
    pub struct FoundAgent {
        /// The agent.
        pub agent: String,
        /// How many logs there are.
        pub logs: u64,
        /// Their size.
        pub bytes: u64,
        /// When one of them was last written to.
        pub newest: Option<Time>,
        /// How many of them are kept as they are now.
        pub kept: u64,
        /// How many of them have changed since they were kept.
        pub changed: u64,
        /// How many of them the agent deletes soon.
        pub expiring: u64,
        /// How many of those are not kept yet.
        pub expiring_new: u64,
        /// Days until the agent deletes the first of them.
        pub days_left: Option<i64>,
    }
}

document! {
    /// What is kept, in figures.
    pub struct Kept {
        /// Sessions, without their sub-agents.
        pub sessions: u64,
        /// Sub-agents.
        pub subagents: u64,
        /// Events of all of them.
        pub events: u64,
        /// The size of the logs, as agents wrote them.
        pub bytes: u64,
        /// All tokens.
        pub tokens: u64,
        /// What they cost; null when nothing of it has a price.
        pub usd: Option<Usd>,
        /// Tokens that have no price.
        pub unpriced_tokens: u64,
        /// Logs that are only here, because the agent deleted its own.
        pub gone: u64,
        /// When the first session began.
        pub first: Option<Time>,
    }
}

document! {
    /// A place where an agent keeps its logs.
    pub struct AgentPlace {
        /// The file or directory.
        pub path: String,
        /// Whether it exists.
        pub exists: bool,
    }
}
