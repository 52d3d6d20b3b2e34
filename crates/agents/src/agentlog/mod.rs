//! `.agentlog` traces: the format of Shadow, which other programs write as well, and into which Quipu exports.
//!
//! A trace is a file of JSON lines. Each line is a record: an envelope (`version`, `id`, `kind`, `ts`, `parent`,
//! `meta`) around a payload. The id is a hash of the payload and of nothing else, so equal payloads have equal
//! ids, within a trace and between traces: an id tells *what* was said, never *which time*. Here a record is
//! known by its id and its place in the file.
//!
//! A request holds the whole conversation up to it, or the newest part; only what was not said before becomes
//! events ([`said`]). A tool call and its result stand in up to three places (the response, a record of their
//! own, the next request) and are told once.

mod discover;
mod normalize;
mod said;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct AgentLog;

pub(crate) const TRACE: Dialect = Dialect::lines("agentlog", "shadow");

impl Family for AgentLog {
    // It has no places: traces lie in the projects they are of, below `.shadow` or wherever they were written to.
    crate::family::known!("agentlog", [TRACE]);
    crate::family::opened!(_dialect, _origin => normalize::Trace::default());
}
