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

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Zed;

/// The lines of a thread.
pub(crate) const ROWS: Dialect = Dialect::lines("zed", "zed");

impl Family for Zed {
    crate::family::known!("zed", [ROWS]);
    crate::family::placed!();
    crate::family::opened!(_dialect, origin => normalize::Thread::new(origin));

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Threads)
    }
}
