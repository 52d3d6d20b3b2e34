//! What a search found.

use crate::Time;
use crate::describe::document;

document! {
    /// An event that a search found.
    pub struct Hit {
        /// The `id` of its transcript. `show ID --from SEQ` shows the event, whatever is imported later.
        pub id: String,
        /// The `run_id` of its transcript.
        pub run_id: String,
        /// Its seq in the transcript; 0 is the title.
        pub seq: u64,
        /// The agent.
        pub agent: String,
        /// The directory in which the agent worked.
        pub project: Option<String>,
        /// The git branch.
        pub branch: Option<String>,
        /// The title of the transcript.
        pub title: Option<String>,
        /// When it happened.
        pub timestamp: Option<Time>,
        /// Who said it.
        pub role: String,
        /// The tool; null where the record alone does not say.
        pub tool: Option<String>,
        /// The path of the step that it happened in, for events of runs.
        pub path: Option<String>,
        /// The passes through the loops around that step, outermost first.
        pub iterations: Vec<u64>,
        /// The part of its text around what was found.
        pub snippet: Option<String>,
        /// Where the snippet begins in the text, in bytes of UTF-8.
        pub snippet_offset: u64,
        /// Where what was found begins and ends in the text, in bytes of UTF-8.
        pub matches: Vec<[u64; 2]>,
        /// The size of the text.
        pub text_bytes: u64,
        /// How well it fits; 0 unless sorted by relevance.
        pub score: f64,
        /// How many copies of it were found as well.
        pub copies: u64,
        /// The events before it, with `--context`.
        pub before: Vec<HitEvent>,
        /// The events after it, with `--context`.
        pub after: Vec<HitEvent>,
        /// Why the text could not be read, or null.
        pub problem: Option<String>,
    }
}

document! {
    /// An event beside one that was found.
    pub struct HitEvent {
        /// Its seq in the transcript.
        pub seq: u64,
        /// When it happened.
        pub timestamp: Option<Time>,
        /// Who said it.
        pub role: String,
        /// The tool.
        pub tool: Option<String>,
        /// What it says.
        pub text: String,
    }
}

document! {
    /// How many events match.
    pub struct Matches {
        /// How many.
        pub matches: u64,
    }
}
