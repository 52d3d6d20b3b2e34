//! What can be odd about a line, as types.

use std::fmt;

use quipu_model::json::{SyntaxError, SyntaxProblem};

/// Something about an event that a consumer may want to know. The event is there all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The event type is not in the vocabulary.
    #[error("unknown event type {0:?}")]
    UnknownEventType(String),
    /// The event type is one that `quipu show --jsonl` writes. In a file, a line of another type carries it.
    #[error("event type {0:?} does not belong in a file")]
    OpenType(&'static str),
    /// A block's type is not in the vocabulary.
    #[error("unknown block type {block_type:?} in block {index}")]
    UnknownBlockType {
        /// Which block, from 0.
        index: usize,
        /// The type as written; empty when there is none.
        block_type: String,
    },
    /// A block of a known type does not fit it.
    #[error("block {index} does not fit its type: {why}")]
    BlockShape {
        /// Which block, from 0.
        index: usize,
        /// What does not fit.
        why: String,
    },
    /// The payload does not fit the event type.
    #[error("the payload does not fit {event_type}: {why}")]
    PayloadShape {
        /// The event type.
        event_type: &'static str,
        /// What does not fit.
        why: String,
    },
    /// A field that the format does not have. It is in the line, not in the decoded event.
    #[error("unknown field {0:?}")]
    UnknownField(String),
    /// A field that Quipu adds holds something else. It is in the line, not in the decoded event.
    #[error("field {name:?} is not understood: {why}")]
    Annotation {
        /// The field.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Who saw a block or a tool call is not said in a word that is known; the word that claims less stands for it.
    #[error("fidelity {0:?} is not known, read as agent_emitted")]
    Fidelity(String),
    /// A text holds half of a surrogate pair; U+FFFD stands for it.
    #[error("half of a surrogate pair, replaced by U+FFFD")]
    HalfSurrogate,
    /// A field that the format requires; the usual value stands for it.
    #[error("missing field {0:?}")]
    MissingField(&'static str),
    /// The line held bytes that are not UTF-8; U+FFFD stands for them.
    #[error("invalid UTF-8, replaced by U+FFFD")]
    InvalidUtf8,
    /// The line held raw NUL bytes; they were read as `\u0000`.
    #[error("raw NUL bytes, read as \\u0000")]
    RawNul,
    /// The line holds more than one event.
    #[error("more than one object on the line")]
    SharedLine,
    /// The last line has no line end, but is complete.
    #[error("no line end after the last event")]
    Unterminated,
    /// The line ends in CR LF.
    #[error("the line ends in CR LF")]
    CarriageReturn,
    /// The file begins with a byte order mark.
    #[error("the file begins with a byte order mark")]
    ByteOrderMark,
}

/// Why a file of the exchange format cannot hold an event: its vocabulary is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The type is outside the vocabulary, and the payload was not understood.
    #[error("a transcript cannot hold an event of the unknown type {0:?}")]
    EventType(String),
    /// A block of a message is outside the vocabulary.
    #[error("a transcript cannot hold a block of an unknown type")]
    Block,
}

/// Why bytes could not be read as an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file ends in the middle of a line.
    #[error("cut off: the file ends in the middle of this line")]
    Torn,
    /// A line was cut off and the next event was written right behind it.
    #[error("cut off: the next event follows on the same line")]
    Glued,
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Syntax(SyntaxError),
    /// An object, but not an event.
    #[error("not an event: {0}")]
    NotAnEvent(String),
    /// A field that makes an event is missing or holds something else.
    #[error("bad field {name:?}: {why}")]
    Field {
        /// The field.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The line is longer than allowed.
    #[error("{len} bytes long, more than the {limit} allowed")]
    TooLong {
        /// How long it is.
        len: u64,
        /// How long it may be.
        limit: usize,
    },
    /// A value nests deeper than allowed.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// Nothing but NUL bytes, as after a power loss.
    #[error("nothing but NUL bytes")]
    Zeros,
}

impl Fault {
    pub(super) fn syntax(error: &SyntaxError, max_depth: usize) -> Self {
        match error.what {
            SyntaxProblem::Depth => Self::TooDeep { limit: max_depth },
            _ => Self::Syntax(error.clone()),
        }
    }
}

/// Where in a file something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The first byte, from the start of the file.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} (byte {})", self.line, self.offset)
    }
}
