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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Droid;

pub(crate) const SESSION: Dialect = Dialect {
    name: "droid",
    brand: "droid",
    framing: Framing::Lines,
};
pub(crate) const STREAM: Dialect = Dialect {
    name: "droid-stream",
    brand: "droid",
    framing: Framing::Lines,
};

impl Family for Droid {
    fn name(&self) -> &'static str {
        "droid"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SESSION, STREAM]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, _path: &Path) -> Option<Dialect> {
        Some(SESSION)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Droid>(saved)?),
            None => Box::<normalize::Droid>::default(),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        vec![log.with_extension("settings.json")]
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["droid", "--resume", session];
        (brand == "droid").then(|| command.map(str::to_owned).to_vec())
    }
}
