//! Amp.
//!
//! Threads live on a server. `amp threads export` gives one as a document, and older versions kept the same
//! documents on disk. What `amp -x --stream-json` prints is what Claude Code prints, and is read as that.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Amp;

pub(crate) const THREAD: Dialect = Dialect::document("amp", "amp");

impl Family for Amp {
    crate::family::known!("amp", [THREAD]);
    crate::family::placed!();

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(THREAD)
    }

    crate::family::opened!(_dialect, _origin => normalize::Amp::default());

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["amp", "threads", "continue", session];
        (brand == "amp").then(|| command.map(str::to_owned).to_vec())
    }
}
