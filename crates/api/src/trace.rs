//! Traces in the `.agentlog` format, their records and blobs.

use std::collections::BTreeMap;

use crate::Time;
use crate::describe::document;

document! {
    /// The records of a trace.
    pub struct Log {
        /// The records.
        pub records: Vec<LogRecord>,
        /// What was not shown.
        #[serde(flatten)]
        pub end: LogEnd,
    }
}

document! {
    /// What was not shown of a trace.
    pub struct LogEnd {
        /// Lines that are not records.
        pub bad_lines: u64,
        /// Records that were not asked for.
        pub left_out: u64,
    }
}

document! {
    /// A record of a trace.
    pub struct LogRecord {
        /// Its number; the first is 1.
        pub record: u64,
        /// Its line.
        pub line: u64,
        /// Its id.
        pub id: Option<String>,
        /// Its kind.
        pub kind: Option<String>,
        /// Its time, as it is written there.
        pub ts: Option<String>,
        /// The id of its parent.
        pub parent: Option<String>,
        /// The number of its parent.
        pub parent_record: Option<u64>,
        /// Whether a record before it has the same id.
        pub repeated: bool,
        /// What it says, in short.
        pub summary: String,
        /// The model.
        pub model: Option<String>,
        /// The tool.
        pub tool: Option<String>,
        /// Why the model stopped.
        pub stop_reason: Option<String>,
        /// Tokens of the input.
        pub input_tokens: Option<u64>,
        /// Tokens of the output.
        pub output_tokens: Option<u64>,
    }
}

document! {
    /// A trace that is kept.
    pub struct Trace {
        /// The id of its first record.
        pub id: String,
        /// Its name: in full, and unique.
        pub name: String,
        /// The hash of its bytes.
        pub sha256: String,
        /// How many traces have the same id.
        pub same_id: u64,
        /// Its file in the home.
        pub path: String,
        /// Its size.
        pub size: u64,
        /// Its records.
        pub records: u64,
        /// Lines that are not records.
        pub bad_lines: u64,
        /// Records whose id is not that of their payload.
        pub wrong_ids: u64,
        /// The line of the first of those.
        pub first_wrong_line: Option<u64>,
        /// Whether the first record is the root.
        pub is_rooted: bool,
        /// When the file was kept.
        pub created_at: Option<Time>,
        /// The time of the first record.
        pub first_ts: Option<Time>,
        /// The time of the last record.
        pub last_ts: Option<Time>,
        /// The session tag of the root.
        pub session_tag: Option<String>,
        /// All session tags.
        pub session_tags: Vec<String>,
        /// All trace ids.
        pub trace_ids: Vec<String>,
        /// Tags.
        pub tags: BTreeMap<String, String>,
        /// Its records, by kind.
        pub kinds: BTreeMap<String, u64>,
        /// Its calls, by model.
        pub models: BTreeMap<String, u64>,
        /// Its tool calls, by tool.
        pub tools: BTreeMap<String, u64>,
        /// The traces that it replays.
        pub replay_of: Vec<String>,
        /// How many names are not in these lists, because there are too many.
        pub left_out: u64,
    }
}

document! {
    /// What became of a trace that was to be kept.
    pub struct KeptTrace {
        /// The file, as it was named.
        pub file: String,
        /// The id of its first record.
        pub id: String,
        /// The name under which it is kept.
        pub name: String,
        /// The hash of its bytes.
        pub sha256: String,
        /// Its file in the home.
        pub path: String,
        /// How it was kept.
        pub how: KeptHow,
        /// Its size.
        pub size: u64,
        /// Its records.
        pub records: u64,
        /// Lines that are not records.
        pub bad_lines: u64,
        /// Records whose id is not that of their payload.
        pub wrong_ids: u64,
        /// The line of the first of those.
        pub first_wrong_line: Option<u64>,
        /// Why it is not in the index yet, or null.
        pub unindexed: Option<String>,
    }
}

document! {
    /// How a trace was kept.
    pub words enum KeptHow {
        /// It was not here before.
        New,
        /// It was here already.
        Already,
        /// It was here already, and longer.
        AlreadyLonger,
        /// Its beginning was here; it took the place of that.
        Continued,
        /// Another with the same root was here; both are.
        Beside,
    }
}

document! {
    /// A blob that traces or sessions refer to.
    pub struct Blob {
        /// Its id.
        pub blob_id: String,
        /// How traces refer to it.
        pub uri: String,
        /// What kind of file it is.
        pub mime: String,
        /// Its size.
        pub size_bytes: u64,
        /// What it looks like, of a picture.
        pub phash: Option<Phash>,
        /// By how many bits that differs from what was asked for, with `--near`.
        pub distance: Option<u64>,
        /// Whether it is kept here.
        pub is_here: bool,
        /// Whether its bytes are not those of its id.
        pub is_damaged: bool,
        /// The traces that refer to it.
        pub traces: Vec<String>,
        /// Whether a session refers to it.
        pub in_session: bool,
    }
}

document! {
    /// What a picture looks like.
    pub struct Phash {
        /// The algorithm.
        pub algo: String,
        /// The hash.
        pub hex: String,
    }
}

document! {
    /// Blobs that nothing refers to.
    pub struct UnusedBlobs {
        /// Whether they were removed.
        pub removed: bool,
        /// The blobs.
        pub unused: Vec<UnusedBlob>,
        /// Their size.
        pub bytes: u64,
        /// Blobs that nothing refers to yet, and that are too young to remove.
        pub young: u64,
        /// Blobs that something refers to.
        pub used: u64,
    }
}

document! {
    /// A blob that nothing refers to.
    pub struct UnusedBlob {
        /// Its id.
        pub blob_id: String,
        /// Its size.
        pub size_bytes: u64,
    }
}
