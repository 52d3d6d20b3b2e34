//! What a transcript comes to when its events are read: when what went on, what filled the model's window, how tools were
//! used. The same for sessions and for recorded runs, and the same for the command line and for a server.
//!
//! | method of [`Store`](crate::Store) | where |
//! |---|---|
//! | `timeline` | `timeline`: spans, lanes, gaps, the critical path |
//! | `context` | `context`: what fills the window, call by call |
//! | `cord` | `cord`: the kind of each event, in a letter |
//! | `tools`, `tools_over` | `tools`: per tool |
//! | `blocks` | `blocks`: the five-hour windows of subscriptions |
//!
//! Events are read through the event log, a batch at a time. What is held of each span is small and does not depend on
//! what its events say: names are held once, texts never. What a log does not say is unknown here as well: no time, no
//! duration and no token is guessed.

mod blocks;
mod calls;
mod context;
mod cord;
mod files;
mod names;
mod parts;
mod steps;
#[cfg(test)]
mod tests;
mod timeline;
mod tools;
mod turns;

pub use blocks::{BLOCK, SUBSCRIPTIONS};

use jiff::Timestamp;
use quipu_api::Time;

use crate::catalogue::TranscriptRow;

/// Which part of a long list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From the event with this seq on.
    pub from: u64,
    /// How many at most; at least one is given, and no more than [`MOST`].
    pub limit: usize,
}

/// So many spans or calls are given at once at most.
pub const MOST: usize = 5_000;

impl Default for Window {
    fn default() -> Self {
        Self {
            from: 1,
            limit: 1_000,
        }
    }
}

impl Window {
    /// How many at most, within bounds.
    fn most(&self) -> usize {
        self.limit.clamp(1, MOST)
    }
}

/// The id of a transcript in documents; `None` for what is not kept.
fn address(row: &TranscriptRow) -> Option<String> {
    Some(row.address.clone()).filter(|address| !address.is_empty())
}

/// A time in microseconds since 1970. Every time that an event can have fits.
type Micros = i64;

/// The time of an event; `None` where the log gives none.
fn time_of(event: &quipu_model::Event) -> Option<Micros> {
    let dated = !event.annotations.flags.undated;
    dated.then(|| event.timestamp.as_microsecond())
}

fn time(at: Micros) -> Option<Time> {
    Timestamp::from_microsecond(at).ok().map(Time::of)
}

/// A time of the catalogue.
fn millis(at: Option<i64>) -> Option<Time> {
    at.and_then(|at| Timestamp::from_millisecond(at).ok())
        .map(Time::of)
}

/// Whole milliseconds from one time to another; `None` when the second is before the first.
fn between(from: Micros, to: Micros) -> Option<u64> {
    u64::try_from(to.checked_sub(from)?)
        .ok()
        .map(|it| it / 1000)
}
