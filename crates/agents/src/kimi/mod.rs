//! Kimi CLI, and Kimi Code, which took its place.
//!
//! Both keep what goes over the wire between the agent and its face, a JSON line each. Kimi CLI names the
//! messages after classes (`TurnBegin`, `ContentPart`, `ToolCall`, …) and keeps the context beside them;
//! Kimi Code writes records from which the state of one agent can be built again (`turn.prompt`,
//! `context.append_loop_event`, …), with a file for each agent of a session.

mod context;
mod discover;
mod legacy;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Kimi;

/// The records of one agent of Kimi Code.
pub(crate) const RECORDS: Dialect = Dialect {
    name: "kimi",
    brand: "kimi-code",
    framing: Framing::Lines,
};
/// The wire of Kimi CLI.
pub(crate) const WIRE: Dialect = Dialect {
    name: "kimi-wire",
    brand: "kimi-cli",
    framing: Framing::Lines,
};
/// The context of Kimi CLI, which is all there is of sessions from before there was a wire.
pub(crate) const CONTEXT: Dialect = Dialect {
    name: "kimi-context",
    brand: "kimi-cli",
    framing: Framing::Lines,
};

impl Family for Kimi {
    fn name(&self) -> &'static str {
        "kimi"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[RECORDS, WIRE, CONTEXT]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, brand: &str, _path: &Path) -> Option<Dialect> {
        Some(discover::dialect_at(brand))
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match (dialect.name, saved) {
            (name, Some(saved)) if name == WIRE.name => {
                Box::new(state::load::<legacy::Wire>(saved)?)
            }
            (name, None) if name == WIRE.name => Box::new(legacy::Wire::new(origin)),
            (name, Some(saved)) if name == CONTEXT.name => {
                Box::new(state::load::<context::Context>(saved)?)
            }
            (name, None) if name == CONTEXT.name => Box::new(context::Context::new(origin)),
            (_, Some(saved)) => Box::new(state::load::<normalize::Records>(saved)?),
            (_, None) => Box::new(normalize::Records::new(origin)),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        Some(["kimi", "--session", session].map(str::to_owned).to_vec())
    }
}
