//! What a conversion did not carry.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// What became of a session on its way to another format.
    pub struct Conversion {
        /// What it was read from.
        pub source: String,
        /// The format of that.
        pub from: String,
        /// The format it was written in.
        pub to: String,
        /// The id of the transcript.
        pub run_id: String,
        /// What could not be read.
        pub reading: Reading,
        /// How many different secrets are in what was written, where that was counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secrets: Option<u64>,
        /// Its events.
        pub events: u64,
        /// How many of them are in what was written.
        pub carried: u64,
        /// What was not carried, by type of event or kind of note.
        pub dropped: BTreeMap<String, Places>,
        /// What is carried in a shape that the format has for something else.
        pub wrapped: BTreeMap<String, Places>,
        /// What the format asks for and the events do not say, by how it was filled in.
        pub inferred: BTreeMap<String, Places>,
    }
}

document! {
    /// What became of the records of a source.
    pub struct Reading {
        /// The records.
        pub records: u64,
        /// Those that became no event, by reason.
        pub dropped: BTreeMap<String, u64>,
        /// What was mended in order to read it.
        pub mended: BTreeMap<String, u64>,
        /// Why it could not be read wholly.
        pub problems: Vec<String>,
        /// What is not as it should be, though all of it was read.
        pub remarks: Vec<String>,
        /// Fields of records that are in no event, by name.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        pub unkept: BTreeMap<String, u64>,
        /// What was taken for something else, by what that is.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        pub read_as: BTreeMap<String, u64>,
    }
}

document! {
    /// How often, and where.
    pub struct Places {
        /// How often.
        pub count: u64,
        /// The seq of the first event; 0 for the session as a whole.
        pub first_seq: u64,
        /// The seqs of the first few events.
        pub examples: Vec<u64>,
    }
}
