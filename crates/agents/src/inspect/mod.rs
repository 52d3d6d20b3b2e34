//! Logs of `inspect_ai`, which evaluates models and agents.
//!
//! A log is one document with what was evaluated and a list of samples, or an archive (`.eval`) with a file
//! for each. A sample is a session: its events say what the model was given and gave back, and what tools did; its
//! messages are the conversation as it was in the end, which says the same again. The events are read where they are there,
//! and of the messages only what no event told.
//!
//! Of an archive each sample is a session of its own. Of a document, which may be of any length, all are read as one: those
//! after the first are told apart as sub-agents are.

mod archive;
mod discover;
mod normalize;
mod said;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Gather};

/// See the module.
pub(crate) struct Inspect;

/// A log as one document.
pub(crate) const LOG: Dialect = Dialect::framed("inspect", "inspect", Framing::Parts);
/// A sample taken out of an archive: what the archive says of itself, then the sample.
pub(crate) const SAMPLE: Dialect = Dialect::lines("inspect-sample", "inspect");

impl Family for Inspect {
    crate::family::known!("inspect", [LOG, SAMPLE]);
    crate::family::placed!();
    crate::family::opened!(_dialect, _origin => normalize::Log::default());

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&archive::Archive)
    }
}
