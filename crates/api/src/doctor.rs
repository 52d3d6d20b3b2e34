//! Whether what is kept is sound.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// Whether what is kept is sound.
    pub struct Doctor {
        /// The directory in which everything is kept.
        pub home: String,
        /// Its permissions, in octal.
        pub mode: Option<String>,
        /// The version of the catalogue.
        pub catalogue_version: Option<i64>,
        /// Why the home cannot be used, or null.
        pub unreachable: Option<String>,
        /// All of `sessions`, `subagents` and `copies`.
        pub transcripts: u64,
        /// Sessions.
        pub sessions: u64,
        /// Sub-agents.
        pub subagents: u64,
        /// Copies of others.
        pub copies: u64,
        /// Logs that are kept but not in the catalogue.
        pub uncatalogued: u64,
        /// What is wrong with the catalogue.
        pub catalogue_damaged: Vec<String>,
        /// Logs that the catalogue knows and the archive has lost.
        pub lost: Vec<String>,
        /// What is wrong with blobs.
        pub blobs_damaged: Vec<String>,
        /// How many logs an earlier version read, which masked fewer secrets.
        pub outdated_logs: u64,
        /// What is wrong with the events of sessions.
        pub events_damaged: Vec<String>,
        /// How many sessions have no events yet.
        pub sessions_without_events: u64,
        /// What is wrong with the search index.
        pub search_index_damaged: Vec<String>,
        /// Logs and directories of agents that cannot be read.
        pub unreadable: Vec<Unreadable>,
        /// The archive.
        pub archive: ArchiveHealth,
        /// Where agents keep their logs, as far as that exists.
        pub agents: Vec<AgentPlaces>,
        /// What importing found wrong with logs.
        pub problems: Vec<LogProblem>,
        /// Records that were dropped, by reason.
        pub dropped: BTreeMap<String, u64>,
        /// What adapters do not know.
        pub drift: Vec<Drift>,
        /// What needs attention, and what to do about it.
        pub attention: Vec<String>,
    }
}

document! {
    /// What cannot be read.
    pub struct Unreadable {
        /// The file or directory.
        pub path: String,
        /// Why.
        pub what: String,
    }
}

document! {
    /// The archive.
    pub struct ArchiveHealth {
        /// Logs that are kept.
        pub sources: u64,
        /// Versions of them.
        pub versions: u64,
        /// Their size, as agents wrote them.
        pub original_bytes: u64,
        /// The chunks that hold them.
        pub chunks: u64,
        /// The size of the chunks.
        pub compressed_bytes: u64,
        /// How many chunks were read and compared, with `--check`.
        pub checked: Option<u64>,
        /// What is wrong with it.
        pub damaged: Vec<String>,
    }
}

document! {
    /// Where an agent keeps its logs.
    pub struct AgentPlaces {
        /// The agent.
        pub agent: String,
        /// The files and directories that exist.
        pub places: Vec<String>,
    }
}

document! {
    /// What importing found wrong with logs.
    pub struct LogProblem {
        /// What is wrong.
        pub what: String,
        /// With how many logs.
        pub logs: u64,
        /// One of them.
        pub path: String,
    }
}

document! {
    /// Something in logs that the adapter does not know.
    pub struct Drift {
        /// The agent.
        pub agent: String,
        /// The agent's version.
        pub version: String,
        /// What it is.
        pub name: String,
        /// How often it was met.
        pub sightings: u64,
        /// In how many logs.
        pub logs: u64,
        /// One of them.
        pub path: String,
        /// The line in it.
        pub line: u64,
        /// Where that line begins.
        pub offset: u64,
    }
}
