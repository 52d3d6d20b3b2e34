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

document! {
    /// Logs that agents delete soon and that are not kept yet.
    pub struct Expiring {
        /// When they were looked for. Null where this server does not import: then nothing is looked for.
        pub looked_at: Option<Time>,
        /// The agents that delete some soon, and how many.
        pub agents: Vec<ExpiringAgent>,
        /// Those that are not kept as they are now, the first to go first: at most 100.
        pub logs: Vec<ExpiringLog>,
        /// How many more of them there are.
        pub more: u64,
    }
}

document! {
    /// An agent that deletes logs.
    pub struct ExpiringAgent {
        /// The agent.
        pub agent: String,
        /// It deletes what it has not written to for about so many days.
        pub after_days: i64,
        /// How many logs it deletes soon: within a week.
        pub expiring: u64,
        /// How many of those are not kept as they are now.
        pub expiring_new: u64,
    }
}

document! {
    /// A log that is deleted soon.
    pub struct ExpiringLog {
        /// The agent.
        pub agent: String,
        /// The file.
        pub path: String,
        /// Its size.
        pub bytes: u64,
        /// When it was last written to.
        pub modified: Option<Time>,
        /// Days until it is deleted, about.
        pub days_left: Option<i64>,
        /// Whether an earlier state of it is kept.
        pub changed: bool,
    }
}
