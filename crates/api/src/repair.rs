//! What was mended.

use std::collections::BTreeMap;

use crate::describe::document;
use crate::verify::{CheckedTrace, Failed};

document! {
    /// A file that was mended.
    pub either enum Mended {
        /// A trace.
        Trace(Box<MendedTrace>),
        /// A transcript in the exchange format.
        Transcript(MendedTranscript),
        /// A file that could not be mended.
        Failed(Failed),
    }
}

document! {
    /// What was mended in a transcript in the exchange format.
    pub struct MendedTranscript {
        /// The file.
        pub file: String,
        /// Whether there was something to mend.
        pub mended: bool,
        /// Whether the last line was whole but for its end, which it got.
        pub ended_line: bool,
        /// The permissions that the file had, in octal, when others could read it.
        pub made_private_from: Option<String>,
        /// A torn line that was put into a file of its own.
        pub set_aside: Option<SetAside>,
    }
}

document! {
    /// A torn line that was put into a file of its own.
    pub struct SetAside {
        /// Where it was in the transcript.
        pub offset: u64,
        /// Its size.
        pub bytes: u64,
        /// The file in which it is now.
        pub file: String,
    }
}

document! {
    /// What was mended in a trace.
    pub struct MendedTrace {
        /// The file.
        pub file: String,
        /// `agentlog`.
        pub format: String,
        /// The new file; null when none was written.
        pub written: Option<String>,
        /// Its records.
        pub records: u64,
        /// How many changes there are, by what they are.
        pub counts: BTreeMap<String, u64>,
        /// The first of them.
        pub changes: Vec<Change>,
        /// What a check of the new file finds.
        pub left: Option<CheckedTrace>,
    }
}

document! {
    /// A change to a trace.
    pub struct Change {
        /// The line.
        pub line: u64,
        /// What it is.
        pub change: String,
        /// The field.
        pub field: String,
        /// What was there.
        pub from: Option<String>,
        /// What is there now.
        pub to: Option<String>,
    }
}
