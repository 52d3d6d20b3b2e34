//! Kiro, the agent of Amazon.
//!
//! Its command line writes a session as JSON lines, in two forms, the older with a small document beside it,
//! and also keeps conversations in a database. The editor writes a document for each execution.

mod conversation;
mod discover;
mod gather;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Kiro;

/// A session of the command line.
pub(crate) const SESSION: Dialect = Dialect::lines("kiro", "kiro");
/// A conversation out of the database, turn by turn.
pub(crate) const ROWS: Dialect = Dialect::lines("kiro-rows", "kiro");
/// The same as a document, as it stands in the database.
pub(crate) const CONVERSATION: Dialect = Dialect::document("kiro-conversation", "kiro");
/// An execution in the editor.
pub(crate) const CHAT: Dialect = Dialect::document("kiro-chat", "kiro");

impl Family for Kiro {
    crate::family::known!("kiro", [SESSION, ROWS, CONVERSATION, CHAT]);
    crate::family::placed!();
    crate::family::dialect_by_path!();
    crate::family::opened!(dialect, origin => match {
        SESSION => normalize::Lines::new(origin),
        _ => conversation::Conversation::default(),
    });

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Conversations)
    }
}
