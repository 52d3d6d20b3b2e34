//! Why a document cannot be read.

use std::io;

use quipu_model::json::PartsError;

/// Why a document cannot be read. Each case says where, and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum NormalizedError {
    /// It could not be brought here.
    #[error("cannot be read")]
    Io(#[source] io::Error),
    /// It is no JSON object, or not a whole one.
    #[error("line {line}: {problem}; is it a normalized transcript, and is it whole?")]
    NotADocument {
        /// Where reading stopped.
        line: u64,
        /// What is wrong.
        problem: PartsError,
    },
    /// A part is longer than is held.
    #[error("{0}; large content belongs outside of a transcript")]
    TooLong(PartsError),
    /// A part is no JSON.
    #[error("line {line}, byte {offset}: {what} is not JSON: {why}")]
    NotJson {
        /// The line the part begins on.
        line: u64,
        /// Its first byte.
        offset: u64,
        /// The part: `session`, `events[3]`.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// It is a version of the format that is not known.
    #[error("schemaVersion is {0:?}; versions 0.x are read. Is there a newer Quipu?")]
    Version(String),
    /// It has neither a version nor events.
    #[error("there is no schemaVersion and no events: this is not a normalized transcript")]
    NotATranscript,
    /// A page holds no transcript.
    #[error(
        "the page holds no transcript: there is no <script type=\"application/json\" id=\"quipu-transcript\"> in it"
    )]
    NoTranscript,
    /// A page ends before its transcript does.
    #[error("the page ends inside the transcript; it was cut off")]
    PageCut,
    /// A page is sealed.
    #[error(
        "the transcript in this page is sealed with a passphrase; open the page in a browser and save the transcript from there"
    )]
    Sealed,
}

impl From<io::Error> for NormalizedError {
    fn from(error: io::Error) -> Self {
        // What a page says of itself comes through a reader of bytes.
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::Io(error),
        }
    }
}
