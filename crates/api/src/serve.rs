//! Documents that only the HTTP interface has: pages, one transcript with its relatives, the state of the server.

use serde_json::Value;

use crate::describe::document;
use crate::import::Import;
use crate::search::Hit;
use crate::stats::{Did, Spent};
use crate::transcript::Transcript;
use crate::{Time, Usd};

document! {
    /// Some transcripts, in the order that was asked for.
    pub struct Transcripts {
        /// The transcripts.
        pub transcripts: Vec<Transcript>,
        /// Where the next page begins: the value of `cursor` to ask for it with. Null on the last page.
        pub next: Option<String>,
    }
}

document! {
    /// Some transcripts, with only the fields that were asked for.
    pub struct TranscriptParts {
        /// The transcripts: those of the fields of a transcript and of what is worked out that `fields` names.
        pub transcripts: Vec<Value>,
        /// Where the next page begins: the value of `cursor` to ask for it with. Null on the last page.
        pub next: Option<String>,
    }
}

document! {
    /// What a list works out for each transcript, where `fields` names it.
    pub struct ListedTranscript {
        /// What it and its sub-agents cost. Null when no call is known, or nothing of it has a price.
        pub usd: Option<Usd>,
        /// What it and its sub-agents spent. Null when no call to a model is known.
        pub spent: Option<Spent>,
        /// What it and its sub-agents did.
        pub did: Did,
        /// How many sub-agents there are below it: transcripts of their own, and those that are told of within a log.
        pub subagents: u64,
        /// Labels that people gave it or its events, sorted.
        pub labels: Vec<String>,
    }
}

document! {
    /// One transcript: its header, lineage, cost and labels.
    pub struct TranscriptDetail {
        /// Its header, as in lists.
        pub transcript: Transcript,
        /// The transcripts that it is related to.
        pub lineage: Lineage,
        /// Tokens and dollars of its calls, without calls that are copies. `/cost` lists them one by one.
        pub spent: Spent,
        /// Whether a process is recording it now.
        pub live: bool,
        /// Labels that people gave it.
        pub labels: Vec<String>,
        /// How many notes people wrote on it and on its events.
        pub notes: u64,
    }
}

document! {
    /// The transcripts that a transcript is related to.
    pub struct Lineage {
        /// The transcript that started it as a sub-agent, or called it as a run. Null for one that started on its own.
        pub parent: Option<Relative>,
        /// Sub-agents and called runs, in the order in which they began.
        pub children: Vec<Relative>,
        /// The transcript that it was forked from. Null when it was not.
        pub forked_from: Option<Relative>,
        /// The transcript that it is a copy of. Null for an original.
        pub copy_of: Option<Relative>,
    }
}

document! {
    /// A related transcript.
    pub struct Relative {
        /// Its permanent id. Null when Quipu does not keep it.
        pub id: Option<String>,
        /// Its short name; the id that its agent gave it when Quipu does not keep it.
        pub run_id: String,
        /// Its title.
        pub title: Option<String>,
        /// The id of the tool call that started it.
        pub call: Option<String>,
    }
}

document! {
    /// Some events of a transcript.
    pub struct EventPage {
        /// The permanent id of the transcript.
        pub transcript: String,
        /// The events, as in the exchange format (docs/formats/exchange.md). There are more types than it has, such as `message.system` and `note`. With `form=normalized`: as in `events` of a normalized transcript (docs/formats/normalized.md).
        pub events: Vec<Value>,
        /// The `from` of the next page. On the last page it is the seq of the event that will come next.
        pub next: u64,
        /// Whether more events follow now. A page may have fewer events than its limit, and with filters none, and more may follow all the same.
        pub more: bool,
        /// How many events the transcript has now.
        pub total: u64,
        /// How many lines in this part of the file are not events. Only files of recorded runs have such lines.
        pub bad_lines: u64,
    }
}

document! {
    /// What a search found.
    pub struct SearchAnswer {
        /// The events, in the order that was asked for.
        pub hits: Vec<Hit>,
        /// Whether more events match than `limit` allows.
        pub more: bool,
        /// How many transcripts are not indexed yet, and so cannot be found.
        pub not_indexed: u64,
        /// What is wrong with the query, where `lenient` asks for that in place of a refusal. Then nothing was looked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub problem: Option<QueryProblem>,
    }
}

document! {
    /// What is wrong with a query.
    pub struct QueryProblem {
        /// What is wrong.
        pub detail: String,
        /// What to do about it.
        pub hint: Option<String>,
        /// The place in `q`, in bytes: from, and up to. Both are the same where something is missing. Null where it is no single place.
        pub at: Option<[u64; 2]>,
    }
}

document! {
    /// The state of the server.
    pub struct Status {
        /// The version of Quipu.
        pub version: String,
        /// When the server started.
        pub started_at: Time,
        /// The directory that is served.
        pub home: String,
        /// Whether it holds the samples that come with Quipu, instead of sessions of this machine.
        pub samples: bool,
        /// The state of the import.
        pub import: ImportState,
        /// How many transcripts there are.
        pub transcripts: Census,
    }
}

document! {
    /// How many transcripts there are, by kind.
    pub struct Census {
        /// Sessions of agents.
        pub sessions: u64,
        /// Sub-agents of those sessions.
        pub subagents: u64,
        /// Copies of sessions, which figures leave out.
        pub copies: u64,
        /// Runs that Quipu recorded.
        pub runs: u64,
    }
}

document! {
    /// The state of the import.
    pub struct ImportState {
        /// What it does now.
        pub doing: Doing,
        /// How many logs the current import has to read.
        pub files: u64,
        /// How many of them it has read.
        pub files_done: u64,
        /// How many bytes the current import has to read.
        pub bytes: u64,
        /// How many of them it has read.
        pub bytes_done: u64,
        /// When the last import ended. Null when none has ended since the server started.
        pub last_at: Option<Time>,
        /// What the last import found. Null when none has ended since the server started.
        pub last: Option<Import>,
        /// Why the last import failed. Null when it did not.
        pub error: Option<String>,
    }
}

document! {
    /// What an import does.
    pub words enum Doing {
        /// This server does not import.
        Nothing,
        /// It reads logs.
        Importing,
        /// It waits for logs to change.
        Watching,
    }
}

document! {
    /// What a profile would remove from a transcript. It never shows the values themselves.
    pub struct RedactionPreview {
        /// The profile.
        pub profile: String,
        /// How many places it would remove something from.
        pub removed: u64,
        /// How many places look like findings, but not enough to be removed.
        pub nearly: u64,
        /// The same figures for each rule.
        pub rules: Vec<PreviewedRule>,
        /// The events that would change, at most 1,000 of them.
        pub events: Vec<PreviewedEvent>,
        /// How many more events would change.
        pub more_events: u64,
    }
}

document! {
    /// What one rule would remove.
    pub struct PreviewedRule {
        /// The rule.
        pub rule: String,
        /// What it finds: `secret`, `pii`, ….
        pub kind: String,
        /// How many places it would remove something from.
        pub removed: u64,
        /// How many different values it would remove.
        pub values: u64,
        /// How many places look like findings, but not enough to be removed.
        pub nearly: u64,
    }
}

document! {
    /// An event that would change.
    pub struct PreviewedEvent {
        /// Its seq. 0 means the header of the transcript.
        pub seq: u64,
        /// How many places something would be removed from.
        pub removed: u64,
        /// The fields that would change.
        pub fields: Vec<String>,
    }
}

document! {
    /// A format that transcripts can be exported in.
    pub struct ExportFormat {
        /// Its name.
        pub name: String,
        /// The ending of its files, such as `.md`.
        pub ending: String,
        /// What it is good for, in a line.
        pub about: String,
        /// Whether an export has several files, and comes as a ZIP archive.
        pub archive: bool,
    }
}
