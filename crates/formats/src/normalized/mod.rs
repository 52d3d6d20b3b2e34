//! The normalized transcript: one JSON document per session, whichever agent it is of.
//!
//! Every agent has a log format of its own; this is the one that a person hands on, and that other programs
//! read. It has few types of events, and says what was removed from them before they were shared.
//!
//! ```text
//! {"schemaVersion": "0.1.0",
//!  "transcriptId": …, "source": {…}, "session": {…},      whose it is, when and where it was
//!  "submitter": {…}, "privacy": {…},                      who shares it, what was removed
//!  "metrics": {…},                                        what it comes to
//!  "events": [{"id": "ev_001", "seq": 1, "type": "user_message", …}, …]}
//! ```
//!
//! The published fields hold what they are meant to hold. What they have no place for stands in fields
//! beside them, which other readers pass over; so that what is written here reads back as it was
//! ([`CARRIES`] is every field there is). `docs/formats/normalized.md` has the table.
//!
//! [`writer`] streams. [`read()`] holds one event at a time, however long the document is, and reads the
//! document out of an HTML page as well ([`embedded`]). [`verify()`] checks a document by the published schema
//! ([`SCHEMA`]) and by what a schema cannot say.
//!
//! **Invariant:** what is written here reads back as the same header and the same events.
//! **Invariant:** what a reader does not know is kept, and written again as it was.

mod document;
mod error;
mod page;
pub mod path;
mod read;
mod schema;
mod verify;
mod write;

#[cfg(test)]
mod tests;

pub use document::{
    AsIs, Beyond, Commitment, ContentPolicy, Extra, NormalizedOptions, Privacy, Redaction, Section,
    Submitter, ToolOutput,
};
pub use error::NormalizedError;
pub use page::{Embedded, embedded};
pub use read::{
    Base, EVENT_FIELDS, Head, LISTS, MAX_PART, Mismatch, Read, decode, read, read_with,
};
pub use verify::{Finding, Report, Rule, Severity, verify};
pub(crate) use write::shared;
pub use write::{CARRIES, Writer, encode, output_field, transcript_id, writer};

/// What the `meta` of an event of another kind is about: the event itself.
const OTHER: &str = "event";

/// The version of the format that is written.
pub const SCHEMA_VERSION: &str = "0.1.0";

/// The JSON Schema (draft 2020-12) of the format.
pub const SCHEMA: &str = include_str!("../../../../docs/schema/transcript-0.1.0.schema.json");
