//! Omnigent: a program that has other agents do the work.
//!
//! Conversations are rows of a database, and each item of one is a row as well. The database also holds what
//! is none of our business, so only the columns that are known are taken out; the others are named, and count
//! as unknown. What it tells of tokens is not counted: the agents it runs count them in logs of their own.

mod discover;
mod gather;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Omnigent;

/// The lines of a conversation.
pub(crate) const ROWS: Dialect = Dialect {
    name: "omnigent",
    brand: "omnigent",
    framing: Framing::Lines,
};

impl Family for Omnigent {
    fn name(&self) -> &'static str {
        "omnigent"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[ROWS]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Conversation>(saved)?),
            None => Box::new(normalize::Conversation::new(origin)),
        })
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Conversations)
    }
}
