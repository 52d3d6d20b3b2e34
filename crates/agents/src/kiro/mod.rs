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

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Kiro;

/// A session of the command line.
pub(crate) const SESSION: Dialect = Dialect {
    name: "kiro",
    brand: "kiro",
    framing: Framing::Lines,
};
/// A conversation out of the database, turn by turn.
pub(crate) const ROWS: Dialect = Dialect {
    name: "kiro-rows",
    brand: "kiro",
    framing: Framing::Lines,
};
/// The same as a document, as it stands in the database.
pub(crate) const CONVERSATION: Dialect = Dialect {
    name: "kiro-conversation",
    brand: "kiro",
    framing: Framing::Document,
};
/// An execution in the editor.
pub(crate) const CHAT: Dialect = Dialect {
    name: "kiro-chat",
    brand: "kiro",
    framing: Framing::Document,
};

impl Family for Kiro {
    fn name(&self) -> &'static str {
        "kiro"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[SESSION, ROWS, CONVERSATION, CHAT]
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
            Some(saved) if is_session => Box::new(state::load::<normalize::Lines>(saved)?),
            Some(saved) => Box::new(state::load::<conversation::Conversation>(saved)?),
            None if is_session => Box::new(normalize::Lines::new(origin)),
            None => Box::<conversation::Conversation>::default(),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Conversations)
    }
}
