//! What checks found.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// A file that was checked.
    pub either enum Checked {
        /// A trace.
        Trace(Box<CheckedTrace>),
        /// A transcript in the exchange format.
        Transcript(Box<CheckedTranscript>),
        /// A file or directory of another format.
        Other(CheckedOther),
        /// A file that could not be checked.
        Failed(Failed),
    }
}

document! {
    /// A file that could not be read.
    pub struct Failed {
        /// The file, as it was named.
        pub file: String,
        /// Why.
        pub error: String,
    }
}

document! {
    /// What is wrong with a transcript in the exchange format.
    pub struct CheckedTranscript {
        /// The file.
        pub file: String,
        /// Whether it has no errors and no warnings.
        pub clean: bool,
        /// The run.
        pub run_id: Option<String>,
        /// The run that called it.
        pub parent_run_id: Option<String>,
        /// The runs that it calls.
        pub children: Vec<String>,
        /// Its events.
        pub events: u64,
        /// The highest seq; 0 when it has no events.
        pub last_seq: u64,
        /// The size of the file.
        pub bytes: u64,
        /// How many findings there are, by rule.
        pub counts: BTreeMap<String, u64>,
        /// The first of them.
        pub findings: Vec<Finding>,
    }
}

document! {
    /// Something that is wrong with a transcript.
    pub struct Finding {
        /// The rule.
        pub rule: String,
        /// `note`, `warning` or `error`.
        pub severity: String,
        /// The line.
        pub line: Option<u64>,
        /// Where the line begins.
        pub offset: Option<u64>,
        /// The seq of the event.
        pub seq: Option<u64>,
        /// What is wrong.
        pub message: String,
        /// What to do about it.
        pub hint: Option<String>,
    }
}

document! {
    /// What is wrong with a trace.
    pub struct CheckedTrace {
        /// The file.
        pub file: String,
        /// `agentlog`.
        pub format: String,
        /// Whether it has no errors and no warnings.
        pub clean: bool,
        /// Whether the strict rules were applied.
        pub strict: bool,
        /// The id of the first record.
        pub root: Option<String>,
        /// Its records.
        pub records: u64,
        /// The size of the file.
        pub bytes: u64,
        /// Its records, by kind.
        pub kinds: BTreeMap<String, u64>,
        /// Records of kinds that the format does not know.
        pub unknown_kinds: u64,
        /// Its sessions.
        pub sessions: u64,
        /// Ids that more than one record has.
        pub repeated_ids: u64,
        /// Blobs that it refers to.
        pub blobs: u64,
        /// Their size.
        pub blob_bytes: u64,
        /// What is in the file beside records.
        pub passed_over: PassedOver,
        /// Ids that do not match, by the other reading of the format that they do match.
        pub dialects: BTreeMap<String, u64>,
        /// How many findings there are, by rule.
        pub counts: BTreeMap<String, u64>,
        /// The first of them.
        pub findings: Vec<TraceFinding>,
    }
}

document! {
    /// What is in a trace beside records.
    pub struct PassedOver {
        /// Whether it begins with a byte order mark.
        pub byte_order_mark: bool,
        /// Lines that end in CR LF.
        pub cr_lf: u64,
        /// Blank lines.
        pub blank_lines: u64,
        /// Whether the last line has no end.
        pub unterminated: bool,
    }
}

document! {
    /// Something that is wrong with a trace.
    pub struct TraceFinding {
        /// The rule.
        pub rule: String,
        /// The section of the format's description.
        pub section: String,
        /// `note`, `warning` or `error`.
        pub severity: String,
        /// The line.
        pub line: Option<u64>,
        /// Where the line begins.
        pub offset: Option<u64>,
        /// The field.
        pub field: Option<String>,
        /// What is wrong.
        pub message: String,
        /// The other reading of the format that an id matches.
        pub dialect: Option<String>,
        /// What to do about it.
        pub hint: String,
    }
}

document! {
    /// What is wrong with a file or directory of another format.
    pub struct CheckedOther {
        /// The file, as it was named.
        pub file: String,
        /// What it is.
        pub format: String,
        /// Whether it has no errors and no warnings.
        pub clean: bool,
        /// What is wrong.
        pub findings: Vec<OtherFinding>,
    }
}

document! {
    /// Something that is wrong with a file or directory of another format.
    pub struct OtherFinding {
        /// The rule.
        pub rule: String,
        /// `note`, `warning` or `error`.
        pub severity: String,
        /// The file of a directory.
        pub file: Option<String>,
        /// The line.
        pub line: Option<u64>,
        /// The seq of the event.
        pub seq: Option<u64>,
        /// Where in the document it is.
        pub path: Option<String>,
        /// How often it was met.
        pub count: u64,
        /// What is wrong.
        pub message: String,
        /// What to do about it.
        pub hint: Option<String>,
    }
}
