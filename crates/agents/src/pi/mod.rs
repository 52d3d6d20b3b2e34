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

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Pi;

pub(crate) const SESSION: Dialect = Dialect::lines("pi", "pi");
pub(crate) const OMP: Dialect = Dialect::lines("omp", "omp");
pub(crate) const STREAM: Dialect = Dialect::lines("pi-stream", "pi");

impl Family for Pi {
    crate::family::known!("pi", [SESSION, OMP, STREAM]);
    crate::family::placed!();

    fn dialect_at(&self, brand: &str, _path: &Path) -> Option<Dialect> {
        Some(discover::dialect_at(brand))
    }

    crate::family::opened!(_dialect, origin => normalize::Pi::new(origin));

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = match brand {
            "pi" => ["pi", "--session", session],
            "omp" => ["omp", "--resume", session],
            _ => return None,
        };
        Some(command.map(str::to_owned).to_vec())
    }
}
