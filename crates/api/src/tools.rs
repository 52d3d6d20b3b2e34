//! How tools were used.

use crate::describe::document;

document! {
    /// How tools were used, in one transcript or over many.
    pub struct ToolLedger {
        /// The id of the transcript; null over many.
        pub transcript: Option<String>,
        /// How many transcripts were looked at that used tools.
        pub transcripts: u64,
        /// Whether all events were read. Otherwise the sums of the catalogue were, and what they do not have is null.
        pub from_events: bool,
        /// The tools, the most calls first.
        pub tools: Vec<ToolRow>,
        /// Tools that are not in that list, because it is too long.
        pub other_tools: u64,
        /// All tools together.
        pub total: ToolRow,
        /// Results without a tool call.
        pub orphans: Option<u64>,
        /// Logs that an earlier version read, so that figures may be missing; null for one transcript.
        pub outdated_logs: Option<u64>,
    }
}

document! {
    /// How a tool was used.
    pub struct ToolRow {
        /// The tool; null for all tools together, empty where the log does not name it.
        pub tool: Option<String>,
        /// How often it was called.
        pub calls: u64,
        /// Calls that failed, those that took too long included.
        pub failures: u64,
        /// Calls that were not allowed.
        pub denials: Option<u64>,
        /// Calls without a result.
        pub dangling: Option<u64>,
        /// How long the calls took of which that is known.
        pub time: Option<ToolTime>,
        /// Calls of which nothing says how long they took.
        pub untimed: Option<u64>,
        /// Bytes of arguments.
        pub bytes_in: Option<u64>,
        /// Bytes of results.
        pub bytes_out: Option<u64>,
        /// The first calls that failed, at most 5.
        pub first_failures: Vec<EventLink>,
        /// How many files its arguments name; null when events were not read.
        pub files_total: Option<u64>,
        /// The files, in the order in which they were first named, at most 100. Secrets in them are masked.
        pub files: Vec<ToolFile>,
    }
}

document! {
    /// How long calls of a tool took.
    pub struct ToolTime {
        /// Of how many calls that is known.
        pub calls: u64,
        /// All of them together.
        pub total_ms: u64,
        /// Half of them took no longer.
        pub median_ms: u64,
        /// 19 of 20 took no longer.
        pub p95_ms: u64,
        /// The slowest took as long.
        pub slowest_ms: u64,
        /// The slowest.
        pub slowest: EventLink,
    }
}

document! {
    /// An event of a transcript. It stays valid while the transcript grows.
    pub struct EventLink {
        /// The id of the transcript; null for what is not kept.
        pub transcript: Option<String>,
        /// The seq of the event.
        pub seq: u64,
    }
}

document! {
    /// A file that arguments of a tool name.
    pub struct ToolFile {
        /// Its path, as it is written there.
        pub path: String,
        /// How many calls name it.
        pub calls: u64,
        /// The seq of the first of them.
        pub seq: u64,
    }
}
