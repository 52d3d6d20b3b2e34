//! The live bus: whoever changes what is kept says so, and whoever wants to know hears of it.
//!
//! What is said is small: which log, and what became of it. It is a hint to look, not the news itself: a follower that is
//! too slow is told that it missed something, and one that begins later hears only what is said from then on. So whoever
//! follows looks once by itself, and then whenever it hears of something. `testkit::bus` tries any implementation.

mod file;

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use file::BusFile;

/// What became of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It was read: there may be new events.
    Read,
    /// It was forgotten, with its events.
    Forgotten,
}

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key of the log, or of the run.
    pub key: String,
    /// What became of it.
    pub what: What,
}

/// What a follower hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Something changed.
    Change(Change),
    /// More was said than could be kept for this follower: it has to look at everything.
    Missed,
    /// Nothing was said for as long as it waited.
    Nothing,
}

/// Where changes are said. Every method may be called from any thread at any time.
pub trait Bus: fmt::Debug + Send + Sync {
    /// Says what changed, to everybody who follows now. Does not wait for them.
    ///
    /// # Errors
    ///
    /// When it cannot be said.
    fn publish(&self, changes: &[Change]) -> io::Result<()>;

    /// Follows what is said from now on.
    ///
    /// # Errors
    ///
    /// When it cannot be heard.
    fn follow(&self) -> io::Result<Box<dyn Changes>>;
}

/// A follower.
pub trait Changes: fmt::Debug + Send {
    /// What was said next, in the order in which one publisher said it. Waits for it at most so long.
    ///
    /// # Errors
    ///
    /// When it cannot be heard.
    fn next(&mut self, wait: Duration) -> io::Result<Heard>;
}
