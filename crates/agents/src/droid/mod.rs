//! Droid, the agent of Factory.
//!
//! A session is a file of JSON lines: its beginning, then messages of the Anthropic kind and lists of things
//! to do. It says nothing of tokens; a small document beside it does, for the session as a whole.
//! `droid exec -o stream-json` prints messages, calls and results one a line.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Droid;

pub(crate) const SESSION: Dialect = Dialect::lines("droid", "droid");
pub(crate) const STREAM: Dialect = Dialect::lines("droid-stream", "droid");

impl Family for Droid {
    crate::family::known!("droid", [SESSION, STREAM]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(SESSION)
    }

    crate::family::opened!(_dialect, _origin => normalize::Droid::default());

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        vec![log.with_extension("settings.json")]
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["droid", "--resume", session];
        (brand == "droid").then(|| command.map(str::to_owned).to_vec())
    }
}
