//! Cursor: the editor, and its agent on the command line.
//!
//! The editor keeps conversations in a database of keys and values, a value for each bubble. Its agent
//! writes transcripts as well, first as text and now as JSON lines, which have neither ids nor times nor
//! results. The agent on the command line keeps a database for each conversation, in which messages are
//! known by their hashes, and prints a stream that is much like that of Claude Code.

mod discover;
mod gather;
mod normalize;
mod rows;
mod stream;
mod transcript;
mod wire;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Cursor;

/// The rows of a conversation, of either database.
pub(crate) const ROWS: Dialect = Dialect {
    name: "cursor-rows",
    brand: "cursor",
    framing: Framing::Lines,
};
/// A transcript.
pub(crate) const TRANSCRIPT: Dialect = Dialect {
    name: "cursor",
    brand: "cursor",
    framing: Framing::Lines,
};
/// A transcript, as it was written before.
pub(crate) const TEXT: Dialect = Dialect {
    name: "cursor-text",
    brand: "cursor",
    framing: Framing::Text,
};
/// What `cursor-agent -p --output-format stream-json` prints.
pub(crate) const STREAM: Dialect = Dialect {
    name: "cursor-stream",
    brand: "cursor",
    framing: Framing::Lines,
};

impl Family for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[ROWS, TRANSCRIPT, TEXT, STREAM]
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
        Some(match (dialect.name, saved) {
            ("cursor-rows", None) => Box::new(rows::Rows::new(origin)),
            ("cursor-rows", Some(saved)) => Box::new(state::load::<rows::Rows>(saved)?),
            ("cursor-stream", None) => Box::new(stream::Stream::default()),
            ("cursor-stream", Some(saved)) => Box::new(state::load::<stream::Stream>(saved)?),
            (_, None) => Box::new(transcript::Transcript::new(origin)),
            (_, Some(saved)) => Box::new(state::load::<transcript::Transcript>(saved)?),
        })
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Conversations)
    }

    fn resume(&self, _brand: &str, session: &str) -> Option<Vec<String>> {
        Some(
            ["cursor-agent", "--resume", session]
                .map(str::to_owned)
                .to_vec(),
        )
    }
}
