//! What was spent and done.

use std::collections::BTreeMap;

use crate::Usd;
use crate::describe::document;

document! {
    /// What was spent and done, in groups.
    pub struct Stats {
        /// What the groups are by.
        pub by: Vec<String>,
        /// The groups.
        pub rows: Vec<StatsRow>,
        /// All of it.
        pub total: StatsRow,
        /// Models without a price.
        pub unpriced: Vec<UnpricedModel>,
        /// Tokens of calls whose time is not known.
        pub undated_tokens: u64,
        /// Logs that an earlier version read, so that figures may be missing.
        pub outdated_logs: u64,
    }
}

document! {
    /// A group of what was spent and done.
    pub struct StatsRow {
        /// The name of the group, under the word that it is grouped by: `day`, `model`, …. With `session` (the `run_id`) come `id` and `title`, which may be null.
        #[serde(flatten)]
        pub group: BTreeMap<String, Option<String>>,
        /// What was spent; null where logs do not say, as by tool.
        pub spent: Option<Spent>,
        /// What was done; null where logs do not say, as by model.
        pub did: Option<Did>,
    }
}

document! {
    /// What was spent.
    pub struct Spent {
        /// Calls of models.
        pub calls: u64,
        /// Their tokens.
        pub tokens: Tokens,
        /// Searches of the web.
        pub searches: u64,
        /// What they cost; null when nothing of it has a price.
        pub usd: Option<Usd>,
        /// Tokens that have no price.
        pub unpriced_tokens: u64,
        /// Searches that have no price.
        pub unpriced_searches: u64,
    }
}

document! {
    /// Tokens: `input`, `cache_read`, `cache_write` and `output` do not overlap, and `total` is their sum. Null is what is not known.
    pub struct Tokens {
        /// Input that was not in a cache.
        pub input: Option<u64>,
        /// Input that was read from a cache.
        pub cache_read: Option<u64>,
        /// Input that was written to a cache.
        pub cache_write: Option<u64>,
        /// How much of `cache_write` is kept for an hour.
        pub cache_write_1h: Option<u64>,
        /// All output, reasoning included.
        pub output: Option<u64>,
        /// How much of `output` is reasoning.
        pub reasoning: Option<u64>,
        /// The sum of those that are known.
        pub total: u64,
    }
}

document! {
    /// What was done.
    pub struct Did {
        /// Tool calls.
        pub tool_calls: u64,
        /// Tool calls that failed.
        pub failures: u64,
        /// What people asked; null where that belongs to no group.
        pub turns: Option<u64>,
        /// What the agent answered.
        pub replies: Option<u64>,
        /// Tool calls that were not allowed.
        pub denials: Option<u64>,
        /// How long somebody or something was at work, in milliseconds.
        pub active_ms: Option<u64>,
    }
}

document! {
    /// A model without a price.
    pub struct UnpricedModel {
        /// The model.
        pub model: String,
        /// Calls of it.
        pub calls: u64,
        /// Their tokens.
        pub tokens: u64,
        /// Their searches of the web.
        pub searches: u64,
    }
}

document! {
    /// What need not have been spent.
    pub struct WasteReport {
        /// By kind.
        pub waste: Vec<Waste>,
    }
}

document! {
    /// One kind of what need not have been spent.
    pub struct Waste {
        /// `cache_lost`, `resent`, `repeated` or `retried`.
        pub kind: String,
        /// Whether the figures are the most that it can be.
        pub at_most: bool,
        /// All of it.
        pub all: Wasted,
        /// The sessions with the most of it.
        pub sessions: Vec<WastedSession>,
    }
}

document! {
    /// How much need not have been spent.
    pub struct Wasted {
        /// How often.
        pub times: u64,
        /// Tokens.
        pub tokens: Tokens,
        /// What they cost.
        pub usd: Usd,
        /// Tokens that have no price.
        pub unpriced_tokens: u64,
    }
}

document! {
    /// What need not have been spent in a session.
    pub struct WastedSession {
        /// The id of the session.
        pub session: String,
        /// Its title.
        pub title: Option<String>,
        /// How much.
        pub wasted: Wasted,
    }
}

document! {
    /// Budgets, and what was spent of them.
    pub struct Budgets {
        /// The budgets.
        pub budgets: Vec<Budget>,
    }
}

document! {
    /// A budget, and what was spent of it.
    pub struct Budget {
        /// What kind it is: `day`, `week`, `month`, `session` or `project`.
        pub budget: String,
        /// Which one: the day, the id of the session, …
        pub of: String,
        /// How much may be spent.
        pub limit_usd: Usd,
        /// How much was.
        pub spent: Spent,
        /// Whether that is more.
        pub exceeded: bool,
    }
}
