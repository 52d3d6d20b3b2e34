//! What an import did.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// What an import did.
    pub struct Import {
        /// Logs that were found.
        pub files: u64,
        /// Those that had not changed.
        pub unchanged: u64,
        /// Those that were read.
        pub read: u64,
        /// Those of which something new was kept.
        pub kept: u64,
        /// Files that no agent is known to write.
        pub unknown: u64,
        /// Empty files.
        pub empty: u64,
        /// Files that hold credentials, by their names; they are never opened.
        pub credentials: u64,
        /// The size of all logs.
        pub bytes: u64,
        /// How much of that was new.
        pub new_bytes: u64,
        /// Sessions that are copies of others.
        pub copies: u64,
        /// Why the search index was made again, or null.
        pub index_anew: Option<String>,
        /// Logs that were missing or damaged in the archive, and were kept again.
        pub kept_again: u64,
        /// Logs of which something is lost; each is among the problems.
        pub lost: u64,
        /// What was read, by agent.
        pub agents: BTreeMap<String, ImportedAgent>,
        /// What went wrong.
        pub problems: Vec<Problem>,
        /// Some of the files that no agent is known to write.
        pub unknown_files: Vec<String>,
    }
}

document! {
    /// What was read of one agent.
    pub struct ImportedAgent {
        /// Logs.
        pub files: u64,
        /// Sessions in them.
        pub sessions: u64,
        /// Records in them.
        pub records: u64,
        /// Records that became events.
        pub mapped: u64,
        /// Records that became notes.
        pub noted: u64,
        /// Events that came of them.
        pub events: u64,
        /// Notes that came of them.
        pub notes: u64,
        /// Records that were dropped, by reason.
        pub dropped: BTreeMap<String, u64>,
        /// What was mended in order to read it, by reason.
        pub mended: BTreeMap<String, u64>,
        /// Sightings of records and fields that are not known.
        pub unknown: u64,
        /// Sightings of fields that are known and reach no event.
        pub left_out: u64,
    }
}

document! {
    /// What went wrong with a file.
    pub struct Problem {
        /// The file or directory.
        pub path: String,
        /// What is wrong with it.
        pub what: String,
        /// How often that was met.
        pub count: u64,
    }
}
