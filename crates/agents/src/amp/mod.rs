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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Amp;

pub(crate) const THREAD: Dialect = Dialect {
    name: "amp",
    brand: "amp",
    framing: Framing::Document,
};

impl Family for Amp {
    fn name(&self) -> &'static str {
        "amp"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[THREAD]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(THREAD)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Amp>(saved)?),
            None => Box::<normalize::Amp>::default(),
        })
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["amp", "threads", "continue", session];
        (brand == "amp").then(|| command.map(str::to_owned).to_vec())
    }
}
