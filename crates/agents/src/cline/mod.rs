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

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Cline;

/// A task that was brought together.
pub(crate) const TASK: Dialect = Dialect {
    name: "cline-task",
    brand: "cline",
    framing: Framing::Lines,
};
/// The conversation with the model, alone.
pub(crate) const HISTORY: Dialect = Dialect {
    name: "cline-history",
    brand: "cline",
    framing: Framing::Document,
};
/// What was shown to the person, alone.
pub(crate) const SHOWN: Dialect = Dialect {
    name: "cline-ui",
    brand: "cline",
    framing: Framing::Document,
};
/// A session of the newer kind.
pub(crate) const SESSION: Dialect = Dialect {
    name: "cline",
    brand: "cline",
    framing: Framing::Document,
};

impl Family for Cline {
    fn name(&self) -> &'static str {
        "cline"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SESSION, TASK, HISTORY, SHOWN]
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
        let is_session = *dialect == SESSION;
        Some(match saved {
            Some(saved) if is_session => Box::new(state::load::<sdk::Messages>(saved)?),
            Some(saved) => Box::new(state::load::<classic::Task>(saved)?),
            None if is_session => Box::new(sdk::Messages::new(origin)),
            None => Box::new(classic::Task::new(dialect, origin)),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Tasks)
    }
}
