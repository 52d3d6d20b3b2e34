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

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Gemini;

/// A message a line, written again when it changes.
pub(crate) const JOURNAL: Dialect = Dialect {
    name: "gemini",
    brand: "gemini-cli",
    framing: Framing::Lines,
};
/// The messages as items of one document.
pub(crate) const DOCUMENT: Dialect = Dialect {
    name: "gemini-document",
    brand: "gemini-cli",
    framing: Framing::Document,
};
/// Standard output, event by event.
pub(crate) const STREAM: Dialect = Dialect {
    name: "gemini-stream",
    brand: "gemini-cli",
    framing: Framing::Lines,
};
/// Standard output as one object.
pub(crate) const ANSWER: Dialect = Dialect {
    name: "gemini-answer",
    brand: "gemini-cli",
    framing: Framing::Document,
};
/// The steps of a session of Antigravity.
pub(crate) const ANTIGRAVITY: Dialect = Dialect {
    name: "antigravity",
    brand: "antigravity",
    framing: Framing::Lines,
};

impl Family for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[JOURNAL, DOCUMENT, STREAM, ANSWER, ANTIGRAVITY]
    }

    fn places(&self, host: &Host) -> Vec<Place> {
        discover::places(host)
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn dialect_at(&self, brand: &str, path: &Path) -> Option<Dialect> {
        discover::dialect_at(brand, path)
    }

    fn open(
        &self,
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match (dialect.name, saved) {
            (name, Some(saved)) if name == STREAM.name || name == ANSWER.name => {
                Box::new(state::load::<stream::Stream>(saved)?)
            }
            (name, None) if name == STREAM.name || name == ANSWER.name => {
                Box::new(stream::Stream::default())
            }
            (name, Some(saved)) if name == ANTIGRAVITY.name => {
                Box::new(state::load::<antigravity::Transcript>(saved)?)
            }
            (name, None) if name == ANTIGRAVITY.name => {
                Box::new(antigravity::Transcript::new(origin))
            }
            (_, Some(saved)) => Box::new(state::load::<normalize::Journal>(saved)?),
            (_, None) => Box::new(normalize::Journal::new(origin)),
        })
    }

    fn resume(&self, brand: &str, session: &str) -> Option<Vec<String>> {
        (brand == "gemini-cli").then(|| ["gemini", "--resume", session].map(str::to_owned).to_vec())
    }
}
