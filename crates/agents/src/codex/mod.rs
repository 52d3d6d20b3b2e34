//! Codex, and the agents that write as it does.
//!
//! A session is a *rollout*: a file of JSON lines, each with a time, a type and a payload. What the model
//! was sent and what it answered are `response_item`s; what a person saw of it are `event_msg`s, so most
//! of the conversation stands there twice. Token counts are running totals that are told again and again.
//! A fork begins with a copy of what it was forked from. `codex exec --json` writes a simpler stream to
//! standard output.
//!
//! The same reader takes the files of the first generation, which have no envelope.

mod discover;
mod exec;
mod items;
mod meter;
mod normalize;
mod results;
mod twins;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Codex;

pub(crate) const ROLLOUT: Dialect = Dialect::lines("codex", "codex");
pub(crate) const EXEC: Dialect = Dialect::lines("codex-exec", "codex");

impl Family for Codex {
    crate::family::known!("codex", [ROLLOUT, EXEC]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(ROLLOUT)
    }

    crate::family::opened!(dialect, origin => match {
        EXEC => exec::Exec::default(),
        _ => normalize::Rollout::new(origin),
    });

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let resume = || ["codex", "resume", session].map(str::to_owned).to_vec();
        (brand == "codex").then(resume)
    }
}
