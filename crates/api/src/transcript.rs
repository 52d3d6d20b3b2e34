//! What the catalogue says of a transcript.

use crate::Time;
use crate::describe::document;

document! {
    /// What the catalogue says of a transcript: a session of an agent, or a run that was recorded (its agent is `quipu`).
    pub struct Transcript {
        /// Its id for good: given once, to this log of this home, and never to another. Null for what is not kept.
        pub id: Option<String>,
        /// A name for it. The best of several copies has the id of the session, so the name may become another's.
        pub run_id: String,
        /// The id that the agent gave it; copies share it.
        pub native: String,
        /// The agent.
        pub agent: String,
        /// The agent's version.
        pub agent_version: Option<String>,
        /// What it is about.
        pub title: Option<String>,
        /// The directory in which the agent worked.
        pub cwd: Option<String>,
        /// The git branch.
        pub branch: Option<String>,
        /// The git repository.
        pub repository: Option<String>,
        /// The git commit.
        pub commit: Option<String>,
        /// The session that started this one as a sub-agent, by its native id.
        pub parent: Option<String>,
        /// The tool call that started it.
        pub parent_call: Option<String>,
        /// The session that it went on from, by its native id.
        pub forked_from: Option<String>,
        /// The transcript that it is a copy of, by its `run_id`.
        pub copy_of: Option<String>,
        /// The same, by its `id`.
        pub original: Option<String>,
        /// How many of its events are in another session already.
        pub copied_events: u64,
        /// Whether all of it is in another session.
        pub duplicate: bool,
        /// Whether the log was made again from something else, so that details may be missing.
        pub reconstructed: bool,
        /// When it began.
        pub started_at: Option<Time>,
        /// When the last thing in it happened.
        pub ended_at: Option<Time>,
        /// Events, without notes.
        pub events: u64,
        /// Notes.
        pub notes: u64,
        /// What people asked.
        pub prompts: u64,
        /// What the agent answered.
        pub replies: u64,
        /// Tool calls.
        pub tool_calls: u64,
        /// Tool calls that failed.
        pub failures: u64,
        /// Tool calls that were not allowed.
        pub denials: u64,
        /// Errors.
        pub errors: u64,
        /// How often the context was compacted.
        pub compactions: u64,
        /// Files that were attached.
        pub attachments: u64,
        /// Tool calls without a result.
        pub dangling: u64,
        /// Results without a tool call.
        pub orphans: u64,
        /// Calls of models.
        pub calls: u64,
        /// The models that were called.
        pub models: Vec<String>,
        /// Tokens of its calls.
        pub usage: Usage,
        /// Tokens as the vendor summed them up.
        pub vendor_usage: Usage,
        /// The cost as the vendor wrote it.
        pub vendor_cost: Option<String>,
        /// The log that it was read from.
        pub path: String,
        /// Which part of that, where a file holds many.
        pub part: Option<String>,
        /// The format of the log.
        pub dialect: Option<String>,
        /// Its key in the archive.
        pub key: String,
        /// The size of the log.
        pub size: u64,
        /// When the log was last written to.
        pub modified: Option<Time>,
        /// Who submitted it, by pseudonym; null for what is one's own, empty where it is not known any more.
        pub received_from: Option<String>,
        /// The key that it was submitted with.
        pub received_key: Option<String>,
    }
}

document! {
    /// Tokens: `input`, `cache_read`, `cache_write` and `output` do not overlap. Null is what is not known.
    pub struct Usage {
        /// Input that was not in a cache.
        pub input: Option<u64>,
        /// Input that was read from a cache.
        pub cache_read: Option<u64>,
        /// Input that was written to a cache.
        pub cache_write: Option<u64>,
        /// All output, reasoning included.
        pub output: Option<u64>,
        /// How much of `output` is reasoning.
        pub reasoning: Option<u64>,
    }
}
