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

use crate::{Dialect, Family, Framing, Gather};

/// See the module.
pub(crate) struct Cursor;

/// The rows of a conversation, of either database.
pub(crate) const ROWS: Dialect = Dialect::lines("cursor-rows", "cursor");
/// A transcript.
pub(crate) const TRANSCRIPT: Dialect = Dialect::lines("cursor", "cursor");
/// A transcript, as it was written before.
pub(crate) const TEXT: Dialect = Dialect::framed("cursor-text", "cursor", Framing::Text);
/// What `cursor-agent -p --output-format stream-json` prints.
pub(crate) const STREAM: Dialect = Dialect::lines("cursor-stream", "cursor");

impl Family for Cursor {
    crate::family::known!("cursor", [ROWS, TRANSCRIPT, TEXT, STREAM]);
    crate::family::placed!();
    crate::family::dialect_by_path!();
    crate::family::opened!(dialect, origin => match {
        ROWS => rows::Rows::new(origin),
        STREAM => stream::Stream::default(),
        _ => transcript::Transcript::new(origin),
    });

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
