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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct AgentLog;

pub(crate) const TRACE: Dialect = Dialect {
    name: "agentlog",
    brand: "shadow",
    framing: Framing::Lines,
};

impl Family for AgentLog {
    fn name(&self) -> &'static str {
        "agentlog"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRACE]
    }

    /// None: traces lie in the projects they are of, below `.shadow` or wherever they were written to.
    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Trace>(saved)?),
            None => Box::new(normalize::Trace::default()),
        })
    }
}
