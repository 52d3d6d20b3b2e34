//! Goose.
//!
//! Sessions are kept in a database: a row for each, a row for each message with its content as JSON, and
//! in newer versions a row for each call to a model with its tokens. Before that a session was a file of
//! JSON lines, of which the first is about the session. `goose session export` prints a document.

mod discover;
mod gather;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Goose;

/// The rows of a session.
pub(crate) const ROWS: Dialect = Dialect {
    name: "goose-rows",
    brand: "goose",
    framing: Framing::Lines,
};
/// A file of a session, as it was before there was a database.
pub(crate) const LINES: Dialect = Dialect {
    name: "goose",
    brand: "goose",
    framing: Framing::Lines,
};
/// What `goose session export --format json` prints.
pub(crate) const EXPORT: Dialect = Dialect {
    name: "goose-export",
    brand: "goose",
    framing: Framing::Document,
};

impl Family for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[ROWS, LINES, EXPORT]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, _brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(path)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Goose>(saved)?),
            None => Box::new(normalize::Goose::new(dialect, origin)),
        })
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Sessions)
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["goose", "session", "--resume", "--session-id", session];
        Some(command.map(str::to_owned).to_vec())
    }
}
