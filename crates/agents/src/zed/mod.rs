//! Zed: the threads of its agent.
//!
//! Threads are rows of a database, each with a document that holds all of it, compressed. A thread is taken
//! out as lines: what never changes, each message, and at last what the thread says of itself as a whole. Only
//! the time of the last change is known, and tokens are one sum.

mod discover;
mod gather;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Zed;

/// The lines of a thread.
pub(crate) const ROWS: Dialect = Dialect {
    name: "zed",
    brand: "zed",
    framing: Framing::Lines,
};

impl Family for Zed {
    fn name(&self) -> &'static str {
        "zed"
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
            Some(saved) => Box::new(state::load::<normalize::Thread>(saved)?),
            None => Box::new(normalize::Thread::new(origin)),
        })
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Threads)
    }
}
