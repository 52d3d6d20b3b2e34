//! What is removed before a session is shared.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// What is removed before a session is shared, without the values.
    pub struct Review {
        /// The profile.
        pub profile: String,
        /// How much is removed.
        pub redactions: u64,
        /// How much was removed already when it was read.
        pub redacted_before: u64,
        /// The values.
        pub values: Vec<ReviewedValue>,
        /// How many more there are.
        pub not_listed: u64,
    }
}

document! {
    /// A value that is removed, or nearly was.
    pub struct ReviewedValue {
        /// The name by which it can be kept or removed.
        pub mark: String,
        /// The rule.
        pub rule: String,
        /// What kind of thing it is.
        pub r#type: String,
        /// How bad it is.
        pub severity: Option<String>,
        /// Whether it is removed.
        pub removed: bool,
        /// Why it was only nearly.
        pub nearly: Option<String>,
        /// Whether to look at it closely.
        pub risky: bool,
        /// What is written in its place.
        pub placeholder: Option<String>,
        /// How often it is there.
        pub count: u64,
        /// The first places.
        pub places: Vec<ValuePlace>,
    }
}

document! {
    /// Where a value is.
    pub struct ValuePlace {
        /// The seq of the event; 0 for the session as a whole.
        pub seq: u64,
        /// The field.
        pub field: String,
    }
}

document! {
    /// `receipt.json` of a bundle: what is in it, and what was removed.
    pub struct Bundle {
        /// The hashes of its files.
        pub files: BTreeMap<String, String>,
        /// What was removed.
        pub privacy: Option<Privacy>,
        /// The command that checks it.
        pub check: String,
    }
}

document! {
    /// What was removed from a transcript.
    pub struct Privacy {
        /// The profile.
        pub profile: Option<String>,
        /// How much was removed.
        pub redaction_count: Option<u64>,
        /// The version of the rules.
        pub rules_digest: Option<String>,
        /// How much was removed, by rule.
        pub rules_matched: Option<BTreeMap<String, u64>>,
        /// What proves that nothing else was changed.
        pub commitment: Option<Commitment>,
    }
}

document! {
    /// A hash tree over a document.
    pub struct Commitment {
        /// The algorithm.
        pub algorithm: String,
        /// The hash of all of it.
        pub root: String,
        /// How many parts it has.
        pub leaves: u64,
    }
}
