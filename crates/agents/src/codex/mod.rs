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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Codex;

pub(crate) const ROLLOUT: Dialect = Dialect {
    name: "codex",
    brand: "codex",
    framing: Framing::Lines,
};
pub(crate) const EXEC: Dialect = Dialect {
    name: "codex-exec",
    brand: "codex",
    framing: Framing::Lines,
};

impl Family for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[ROLLOUT, EXEC]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(ROLLOUT)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        if *dialect == EXEC {
            return Some(match saved {
                Some(saved) => Box::new(state::load::<exec::Exec>(saved)?),
                None => Box::new(exec::Exec::default()),
            });
        }
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Rollout>(saved)?),
            None => Box::new(normalize::Rollout::new(origin)),
        })
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let resume = || ["codex", "resume", session].map(str::to_owned).to_vec();
        (brand == "codex").then(resume)
    }
}
