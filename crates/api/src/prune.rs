//! What was removed.

use crate::Time;
use crate::describe::document;

document! {
    /// What `prune` removed, or would remove.
    pub struct Pruned {
        /// The receipt.
        #[serde(flatten)]
        pub removal: Removal,
        /// Whether it was removed.
        pub removed_from_disk: bool,
        /// How many have no other copy.
        pub only_here: u64,
        /// The file with the receipt.
        pub receipt: Option<String>,
    }
}

document! {
    /// The receipt: what was removed, when and why.
    pub struct Removal {
        /// The version of Quipu.
        pub quipu: String,
        /// When.
        pub time: Time,
        /// What was asked for.
        pub filters: PruneFilters,
        /// What was removed, with `--yes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub removed: Option<Vec<RemovedTranscript>>,
        /// What would be removed, without `--yes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub would_remove: Option<Vec<RemovedTranscript>>,
        /// What was freed; null as long as nothing was.
        pub swept: Option<Swept>,
    }
}

document! {
    /// What was asked for.
    pub struct PruneFilters {
        /// `--older-than`.
        pub older_than: Option<String>,
        /// `--larger-than`.
        pub larger_than: Option<String>,
        /// `--project`.
        pub project: Option<String>,
        /// `--agent`.
        pub agents: Vec<String>,
    }
}

document! {
    /// A transcript that was removed.
    pub struct RemovedTranscript {
        /// The `id` that it had.
        pub id: String,
        /// The `run_id` that it had.
        pub run_id: String,
        /// The agent.
        pub agent: String,
        /// Its title.
        pub title: Option<String>,
        /// The directory in which the agent worked.
        pub project: Option<String>,
        /// The log that it was read from.
        pub path: String,
        /// Which part of that, where a file holds many.
        pub part: Option<String>,
        /// The size of the log.
        pub size: u64,
        /// When something last happened in it.
        pub ended_at: Option<Time>,
        /// What the archive held of it.
        pub sources: Vec<RemovedSource>,
    }
}

document! {
    /// A log that was removed from the archive.
    pub struct RemovedSource {
        /// Where the log was.
        pub path: String,
        /// Which part of that, where a file holds many.
        pub part: Option<String>,
        /// Its manifest in the archive.
        pub manifest: String,
        /// How many versions of it there were.
        pub versions: u64,
        /// The size of the last one.
        pub size: Option<u64>,
        /// The chunks of the last one.
        pub chunks: Vec<String>,
    }
}

document! {
    /// What was freed.
    pub struct Swept {
        /// Chunks that nothing refers to.
        pub chunks: u64,
        /// Temporary files.
        pub temporary: u64,
        /// Their size.
        pub bytes: u64,
    }
}
