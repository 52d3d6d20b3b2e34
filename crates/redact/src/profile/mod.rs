//! What is removed for whom.
//!
//! ```toml
//! name = "research"                    # that of the file by default
//! description = "…"
//! extends = "team"                     # what is not set here is as there: a built-in one, or a file beside this one
//! kinds = ["secret", "pii", "path", "identity"]
//! rules-off = ["ipv4"]                 # ids or groups
//! reasoning = false                    # whether what a model thought is kept
//! file-contents = false                # whether contents of files are kept
//! tool-output = "truncated"            # full, truncated, metadata-only, none
//! tool-input = "full"                  # the same
//! text = "full"                        # the same, of messages
//! max-text = 4000                      # characters of one field, where it is truncated; 0 is no limit
//! max-events = 100000                  # 0 is no limit
//! max-bytes = 67108864                 # 0 is no limit
//! environment = "pseudonym"            # cwd, repository, branch, user, host: keep, pseudonym, drop
//! times = "shift"                      # keep, shift (all by the same, keyed), relative (to the beginning)
//! numbers = "rounded"                  # counts of tokens, costs, durations, sizes: keep, rounded (to two digits)
//! pseudonyms = "transcript"            # one name for the same thing in: person (all they share), transcript (this one)
//! identity-linked = false
//! ```
//!
//! A file that extends nothing extends `public`: what it does not speak of is not shared. A key that is not known is an
//! error, because it may be a switch that somebody relies on.

mod load;
#[cfg(test)]
mod tests;

use quipu_formats::normalized::{ContentPolicy, ToolOutput};

pub use load::ProfileError;

use crate::rule::{Kind, Rule};

/// What is removed for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The kinds of rules that are applied.
    pub kinds: Vec<Kind>,
    /// Ids and groups of rules that are not.
    pub rules_off: Vec<String>,
    /// Whether what a model thought is kept.
    pub reasoning: bool,
    /// Whether contents of files are kept.
    pub file_contents: bool,
    /// How much of what tools gave back.
    pub tool_output: ToolOutput,
    /// How much of what tools were given.
    pub tool_input: ToolOutput,
    /// How much of what was said.
    pub text: ToolOutput,
    /// Characters of one field, where it is truncated.
    pub max_text: usize,
    /// Events at most.
    pub max_events: u64,
    /// Bytes of content at most, of the whole.
    pub max_bytes: u64,
    /// Directory, repository, branch, user and host.
    pub environment: Environment,
    /// When it was.
    pub times: Times,
    /// Counts of tokens, costs, durations and sizes.
    pub numbers: Numbers,
    /// Where the same thing has the same pseudonym.
    pub pseudonyms: Pseudonyms,
    /// Whether the person who shares it wants to be known.
    pub identity_linked: bool,
}

impl Profile {
    /// Whether it applies a rule.
    pub fn wants(&self, rule: &Rule) -> bool {
        self.kinds.contains(&rule.kind)
            && !self
                .rules_off
                .iter()
                .any(|off| *off == rule.id || *off == rule.group)
    }

    /// What of the content is there at all, as a transcript says it.
    pub fn policy(&self) -> ContentPolicy {
        ContentPolicy {
            include_file_contents: Some(self.file_contents),
            tool_output: Some(self.tool_output.clone()),
        }
    }

    /// Whether all content is there: nothing is left out because of what it is.
    pub fn keeps_content(&self) -> bool {
        self.reasoning
            && self.file_contents
            && [&self.tool_output, &self.tool_input, &self.text]
                .into_iter()
                .all(|part| *part == ToolOutput::Full)
    }

    /// Whether ids are replaced: they tell when things were, and can be looked up.
    pub fn replaces_ids(&self) -> bool {
        self.environment != Environment::Keep || self.times != Times::Keep
    }

    /// Whether it leaves everything as it is.
    pub fn changes_nothing(&self) -> bool {
        self.kinds.is_empty()
            && self.keeps_content()
            && self.environment == Environment::Keep
            && self.times == Times::Keep
            && self.numbers == Numbers::Keep
            && (self.max_events, self.max_bytes) == (u64::MAX, u64::MAX)
    }
}

/// What becomes of directory, repository, branch, user and host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Environment {
    /// They stay.
    Keep,
    /// They are given other names, the same for the same key.
    Pseudonym,
    /// They go.
    Drop,
}

/// What becomes of counts of tokens, costs, durations and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// They stay.
    Keep,
    /// Two digits stay.
    Rounded,
}

/// Where the same thing has the same pseudonym.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pseudonyms {
    /// In all that one person shares: it can be grouped.
    Person,
    /// In one transcript: nobody can tell that another is of the same person.
    Transcript,
}

/// What becomes of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Times {
    /// They stay.
    Keep,
    /// All are moved by the same, which depends on the key.
    Shift,
    /// They are counted from the beginning of the session, which is at the epoch.
    Relative,
}
