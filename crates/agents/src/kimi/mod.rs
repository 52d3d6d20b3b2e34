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

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Kimi;

/// The records of one agent of Kimi Code.
pub(crate) const RECORDS: Dialect = Dialect::lines("kimi", "kimi-code");
/// The wire of Kimi CLI.
pub(crate) const WIRE: Dialect = Dialect::lines("kimi-wire", "kimi-cli");
/// The context of Kimi CLI, which is all there is of sessions from before there was a wire.
pub(crate) const CONTEXT: Dialect = Dialect::lines("kimi-context", "kimi-cli");

impl Family for Kimi {
    crate::family::known!("kimi", [RECORDS, WIRE, CONTEXT]);
    crate::family::placed!();

    fn dialect_at(&self, brand: &str, _path: &Path) -> Option<Dialect> {
        Some(discover::dialect_at(brand))
    }

    crate::family::opened!(dialect, origin => match {
        WIRE => legacy::Wire::new(origin),
        CONTEXT => context::Context::new(origin),
        _ => normalize::Records::new(origin),
    });

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        Some(["kimi", "--session", session].map(str::to_owned).to_vec())
    }
}
