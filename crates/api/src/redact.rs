//! Secrets that were found, and the rules that find them.

use std::collections::BTreeMap;

use crate::describe::document;

document! {
    /// What `redact` found, without the values.
    pub struct Redacted {
        /// Files that were looked at.
        pub files: u64,
        /// Files that are not text.
        pub binary: u64,
        /// How much was found.
        pub total: u64,
        /// How much of that is in `findings`.
        pub told: u64,
        /// How much was found, by rule.
        pub rules: BTreeMap<String, u64>,
        /// The version of the rules.
        pub rules_digest: String,
        /// What was found.
        pub findings: Vec<SecretFinding>,
    }
}

document! {
    /// A secret or a name that was found.
    pub struct SecretFinding {
        /// The file.
        pub file: String,
        /// The line.
        pub line: u64,
        /// Where it begins in the line.
        pub column: u64,
        /// Where it begins in the file.
        pub offset: u64,
        /// How long it is.
        pub length: u64,
        /// The field of a JSON value.
        pub field: String,
        /// The rule.
        pub rule: String,
        /// What kind of thing it is.
        pub r#type: String,
        /// How bad it is.
        pub severity: String,
        /// What is written in its place.
        pub placeholder: String,
        /// Its hash, by which a rule file can allow it.
        pub hash: Option<String>,
        /// Why it is only nearly a finding; null for one.
        pub nearly: Option<String>,
    }
}

document! {
    /// The rules.
    pub struct Rules {
        /// Their version.
        pub digest: String,
        /// The rules.
        pub rules: Vec<Rule>,
    }
}

document! {
    /// A rule.
    pub struct Rule {
        /// Its id.
        pub id: String,
        /// What it finds.
        pub description: String,
        /// Its group.
        pub group: String,
        /// What kind of thing it finds.
        pub r#type: String,
        /// How bad that is.
        pub severity: String,
        /// What is written in its place.
        pub placeholder: String,
    }
}
