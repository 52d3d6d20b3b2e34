//! Gemini CLI, and Antigravity, which took its place.
//!
//! A session of Gemini CLI was one JSON document that was written anew each turn; since 0.39 it is a
//! journal of lines in which a message is written again in full, under the same id, whenever it changes.
//! A call and its result are one item of the model's message. `gemini -o stream-json` writes events of
//! another kind to standard output, and `-o json` a single answer. Antigravity keeps its sessions in a
//! database of its own and a transcript of their steps beside it, which is what is read.

mod antigravity;
mod discover;
mod normalize;
pub(crate) mod parts;
mod stream;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Gemini;

/// A message a line, written again when it changes.
pub(crate) const JOURNAL: Dialect = Dialect::lines("gemini", "gemini-cli");
/// The messages as items of one document.
pub(crate) const DOCUMENT: Dialect = Dialect::document("gemini-document", "gemini-cli");
/// Standard output, event by event.
pub(crate) const STREAM: Dialect = Dialect::lines("gemini-stream", "gemini-cli");
/// Standard output as one object.
pub(crate) const ANSWER: Dialect = Dialect::document("gemini-answer", "gemini-cli");
/// The steps of a session of Antigravity.
pub(crate) const ANTIGRAVITY: Dialect = Dialect::lines("antigravity", "antigravity");

impl Family for Gemini {
    crate::family::known!("gemini", [JOURNAL, DOCUMENT, STREAM, ANSWER, ANTIGRAVITY]);
    crate::family::placed!();

    fn dialect_at(&self, brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(brand, path)
    }

    crate::family::opened!(dialect, origin => match {
        STREAM | ANSWER => stream::Stream::default(),
        ANTIGRAVITY => antigravity::Transcript::new(origin),
        _ => normalize::Journal::new(origin),
    });

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        (brand == "gemini-cli").then(|| ["gemini", "--resume", session].map(str::to_owned).to_vec())
    }
}
