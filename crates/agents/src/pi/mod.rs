//! Pi, and the agents that are made of it: Oh-My-Pi, Prime Agent, `OpenClaw`.
//!
//! A session is a file of JSON lines: a header, then entries that form a tree. Each names the one it
//! follows; going back and saying something else begins a branch, and only the branch that was written to
//! last counts. The first version had no ids and no branches. Oh-My-Pi has a line before the header that
//! holds the title, of a fixed width so that it can be written anew in place, and its sub-agents have files
//! of their own in a directory that is named like the file of their parent. `pi --mode json` prints the same
//! messages, each of them several times.

mod discover;
mod normalize;
mod tree;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Pi;

pub(crate) const SESSION: Dialect = Dialect {
    name: "pi",
    brand: "pi",
    framing: Framing::Lines,
};
pub(crate) const OMP: Dialect = Dialect {
    name: "omp",
    brand: "omp",
    framing: Framing::Lines,
};
pub(crate) const STREAM: Dialect = Dialect {
    name: "pi-stream",
    brand: "pi",
    framing: Framing::Lines,
};

impl Family for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SESSION, OMP, STREAM]
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
        _dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Pi>(saved)?),
            None => Box::new(normalize::Pi::new(origin)),
        })
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = match brand {
            "pi" => ["pi", "--session", session],
            "omp" => ["omp", "--resume", session],
            _ => return None,
        };
        Some(command.map(str::to_owned).to_vec())
    }
}
