//! The events of a transcript.

use serde_json::Value;

use crate::describe::document;
use crate::transcript::Transcript;

document! {
    /// A session and its events.
    pub struct ShownSession {
        /// The session.
        pub session: Transcript,
        /// Its events: lines of the exchange format, with `message.system` and `note` beside its types.
        pub events: Vec<Value>,
        /// Why not all of it could be read, or null.
        pub problem: Option<String>,
    }
}

document! {
    /// The events of a run that was recorded.
    pub struct ShownRun {
        /// Its events: lines of the exchange format.
        pub events: Vec<Value>,
        /// How many lines are not events.
        pub bad_line_count: u64,
        /// The first of them.
        pub bad_lines: Vec<BadLine>,
    }
}

document! {
    /// A line that is not an event.
    pub struct BadLine {
        /// Its number.
        pub line: u64,
        /// Where it begins in the file.
        pub offset: u64,
        /// What is wrong with it.
        pub fault: String,
        /// How it begins.
        pub text: String,
    }
}
