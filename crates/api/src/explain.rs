//! A figure, call by call.

use std::collections::BTreeMap;

use crate::describe::document;
use crate::stats::{Spent, Tokens};
use crate::{Time, Usd};

document! {
    /// A line of `stats explain`: a session, and last of all the sum.
    pub either enum ExplainLine {
        /// A session.
        Session(Box<ExplainedSession>),
        /// The sum of all of them.
        Sum(ExplainedSum),
    }
}

document! {
    /// What a session cost, call by call.
    pub struct ExplainedSession {
        /// The `id` of its transcript; null for a log that is not kept.
        pub id: Option<String>,
        /// The `run_id` of its transcript.
        pub session: String,
        /// The agent.
        pub agent: String,
        /// Its title.
        pub title: Option<String>,
        /// The calls that are counted.
        pub calls: Vec<ExplainedCall>,
        /// What is not counted, and why.
        pub left_out: Vec<LeftOut>,
        /// The sum of the calls.
        pub spent: Spent,
        /// All tokens in the log, counted or not.
        pub log_tokens: Tokens,
        /// Tokens as the vendor summed them up.
        pub vendor_tokens: Option<Tokens>,
        /// The cost as the vendor wrote it.
        pub vendor_usd: Option<String>,
        /// Why the vendor's sums differ.
        pub differs: Vec<String>,
        /// The cost, for people.
        pub cost: String,
    }
}

document! {
    /// A call of a model, and what it cost.
    pub struct ExplainedCall {
        /// The seq of the event.
        pub seq: u64,
        /// The line of the log.
        pub line: u64,
        /// When it was made.
        pub at: Option<Time>,
        /// The model.
        pub model: String,
        /// The sub-agent that made it; empty for the session itself.
        pub subagent: String,
        /// How it was served.
        pub service: String,
        /// Its tokens.
        pub tokens: Tokens,
        /// Its searches of the web.
        pub searches: u64,
        /// What it cost.
        pub usd: Option<Usd>,
        /// Where that sum is from.
        pub priced_by: Option<PricedBy>,
        /// The cost that the log tells.
        pub told_usd: Option<Usd>,
        /// The price.
        pub price: Option<Price>,
        /// Why it has no price.
        pub no_price: Option<String>,
    }
}

document! {
    /// Where a sum is from.
    pub words enum PricedBy {
        /// The table of prices.
        Table,
        /// The log.
        Log,
    }
}

document! {
    /// The price of a call.
    pub struct Price {
        /// Who sells it.
        pub provider: String,
        /// The model, as the table has it.
        pub model: String,
        /// The day from which it holds.
        pub from: Option<String>,
        /// How a call is served at this price.
        pub service: String,
        /// It holds for prompts of more tokens than this.
        pub above: u64,
        /// Where it is from.
        pub source: String,
        /// When it was looked up there.
        pub source_date: Option<String>,
        /// How the model of the log was found in the table.
        pub rule: String,
        /// Dollars per million tokens, by kind of tokens.
        pub per_million: BTreeMap<String, Rate>,
        /// Dollars per thousand searches.
        pub per_thousand_searches: Option<Usd>,
    }
}

document! {
    /// The price of a million tokens.
    pub struct Rate {
        /// Dollars.
        pub usd: Usd,
        /// Whether the table does not have it, so that it was taken from another kind of tokens.
        pub assumed: bool,
    }
}

document! {
    /// Tokens of a log that are not counted.
    pub struct LeftOut {
        /// Why: `repeated`, `copied`, `retold`, `not_asked`, `total` or `no_usage`.
        pub why: String,
        /// The session in which they are counted.
        pub of: Option<String>,
        /// How often.
        pub times: u64,
        /// The tokens.
        pub tokens: Tokens,
    }
}

document! {
    /// The sum of all sessions.
    pub struct ExplainedSum {
        /// The sum.
        pub sum: Spent,
    }
}
