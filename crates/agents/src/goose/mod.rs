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

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Goose;

/// The rows of a session.
pub(crate) const ROWS: Dialect = Dialect::lines("goose-rows", "goose");
/// A file of a session, as it was before there was a database.
pub(crate) const LINES: Dialect = Dialect::lines("goose", "goose");
/// What `goose session export --format json` prints.
pub(crate) const EXPORT: Dialect = Dialect::document("goose-export", "goose");

impl Family for Goose {
    crate::family::known!("goose", [ROWS, LINES, EXPORT]);
    crate::family::placed!();
    crate::family::dialect_by_path!();
    crate::family::opened!(dialect, origin => normalize::Goose::new(dialect, origin));

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Sessions)
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        let command = ["goose", "session", "--resume", "--session-id", session];
        Some(command.map(str::to_owned).to_vec())
    }
}
