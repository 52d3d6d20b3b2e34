//! Cline, and what was made of it: Roo Code, Kilo Code before its rewrite, Zoo Code.
//!
//! A task is a directory. One document in it is the conversation with the model, another what was shown to
//! the person: the first has the messages, the second the times and the tokens. They are brought together
//! line by line, each with the file it stood in. Newer versions of Cline keep a session in one document.

mod classic;
mod discover;
mod gather;
mod sdk;
mod shown;
mod wire;
mod xml;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Cline;

/// A task that was brought together.
pub(crate) const TASK: Dialect = Dialect::lines("cline-task", "cline");
/// The conversation with the model, alone.
pub(crate) const HISTORY: Dialect = Dialect::document("cline-history", "cline");
/// What was shown to the person, alone.
pub(crate) const SHOWN: Dialect = Dialect::document("cline-ui", "cline");
/// A session of the newer kind.
pub(crate) const SESSION: Dialect = Dialect::document("cline", "cline");

impl Family for Cline {
    crate::family::known!("cline", [SESSION, TASK, HISTORY, SHOWN]);
    crate::family::placed!();
    crate::family::dialect_by_path!();
    crate::family::opened!(dialect, origin => match {
        SESSION => sdk::Messages::new(origin),
        _ => classic::Task::new(dialect, origin),
    });

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Tasks)
    }
}
