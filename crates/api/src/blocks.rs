//! The five-hour windows of subscriptions.

use crate::describe::document;
use crate::stats::Spent;
use crate::{Time, Usd};

document! {
    /// Usage by five-hour blocks, as subscriptions count it. Quarters of an hour are the finest that is known.
    pub struct Blocks {
        /// When this was worked out.
        pub now: Time,
        /// The agents with blocks, among those that were asked for.
        pub agents: Vec<String>,
        /// The blocks, by agent, the earliest first.
        pub blocks: Vec<UsageBlock>,
        /// Tokens of calls whose time is not known. They are in no block.
        pub undated_tokens: u64,
        /// Logs that an earlier version read, so that figures may be missing.
        pub outdated_logs: u64,
    }
}

document! {
    /// Five hours of usage. A block begins with the hour in UTC in which something is first done after the block before it.
    pub struct UsageBlock {
        /// The agent.
        pub agent: String,
        /// When it begins.
        pub start: Time,
        /// When it ends: five hours later.
        pub end: Time,
        /// The beginning of the first quarter of an hour in which something was done.
        pub first_activity: Time,
        /// The end of the last one.
        pub last_activity: Time,
        /// In how many quarters of an hour something was done.
        pub active_quarters: u64,
        /// What was spent.
        pub spent: Spent,
        /// The models that were called.
        pub models: Vec<String>,
        /// Whether it is the current block.
        pub active: bool,
        /// How long it still lasts; null when it is over.
        pub left_ms: Option<u64>,
        /// What it comes to if it goes on like this. Null when it is over, or when something was done in fewer than two quarters of an hour.
        pub projection: Option<BlockProjection>,
    }
}

document! {
    /// What a block would come to if it went on at the rate at which it went so far. This is a projection, not a figure.
    pub struct BlockProjection {
        /// Always true: nothing here was spent.
        pub is_projection: bool,
        /// Tokens a minute, since the first activity.
        pub tokens_per_minute: u64,
        /// All tokens at the end of the block.
        pub tokens: u64,
        /// All dollars at the end of the block; null when not all that was spent has a price.
        pub usd: Option<Usd>,
    }
}
