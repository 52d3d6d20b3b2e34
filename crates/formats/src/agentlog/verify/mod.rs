//! Checks a trace against the specification: every line, every field, every id, and the order of it all.
//!
//! What a record shows by itself (its form, its fields, its id) is looked at in batches of whole lines, by as
//! many threads as wanted; what has to do with the records before it is looked at in order, by one. Of a
//! record that has passed, no more is kept than a hash of its id, its kind, and a hash of the call it makes:
//! about 20 bytes. Findings are capped per rule, and counted beyond.
//!
//! | module | what it owns |
//! |---|---|
//! | `rules` | the rules: name, section, severity, how to mend it |
//! | `batch` | bytes to whole lines, many at a time |
//! | `parallel` | who looks at which batch, and that they come back in order |
//! | `examine` | one record: its envelope and its id |
//! | `schema`, `parts` | what each kind of payload holds |
//! | `sequence` | what a record has to do with those before it |
//! | `diagnose` | what an id that does not match was made by |

mod batch;
mod diagnose;
mod examine;
mod found;
mod look;
mod parallel;
mod parts;
mod rules;
mod schema;
mod sequence;
mod time;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};

use quipu_exchange::lines::Limits;

use super::reader::Passed;
use super::record::At;
use super::{ContentId, Kind, LIMITS};

pub(super) use examine::{is_field, is_payload};
pub use rules::{Rule, Severity};
pub(super) use schema::{CATEGORIES, ERROR_SOURCES};

/// How to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyOptions {
    /// What is read at most.
    pub limits: Limits,
    /// Whether what only a newer version of the format may hold (kinds, versions, words) is an error. Otherwise
    /// it is a note.
    pub strict: bool,
    /// How many threads look at records at most. With one, or none, the caller's does it all; so it does where
    /// none can be started.
    pub threads: usize,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self {
            limits: LIMITS,
            strict: true,
            threads: 1,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// How much it matters, as it was checked.
    pub severity: Severity,
    /// The line, and where it begins; `None` for what is about the whole file.
    pub at: Option<At>,
    /// Where in the record: `parent`, `payload.messages[2].content`.
    pub field: Option<String>,
    /// What is the matter, in words.
    pub message: String,
    /// For an id that does not match: what it was made by, where that is known.
    pub dialect: Option<String>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How many records the file has.
    pub records: u64,
    /// How long it is.
    pub bytes: u64,
    /// How many records there are of each kind that is known.
    pub kinds: BTreeMap<Kind, u64>,
    /// How many records are of other kinds.
    pub unknown_kinds: u64,
    /// The id of the first record, which is that of the trace.
    pub root: Option<ContentId>,
    /// Metadata records: the root, and where sessions begin.
    pub sessions: u64,
    /// Records with the id of a record before them.
    pub repeated_ids: u64,
    /// Blobs that are referred to, one that is named twice counted twice, and how long they are together.
    pub blobs: u64,
    /// How long those blobs are together.
    pub blob_bytes: u128,
    /// What was passed over.
    pub passed: Passed,
    /// The findings that were kept, in the order of the file.
    pub findings: Vec<Finding>,
    /// How often each rule was broken, kept or not.
    pub counts: BTreeMap<Rule, u64>,
    /// How many of the ids that do not match were made by what.
    pub dialects: BTreeMap<String, u64>,
    /// Whether what is new was an error.
    pub strict: bool,
}

impl Report {
    /// The worst severity found.
    pub fn worst(&self) -> Option<Severity> {
        let rules = self.counts.keys();
        rules.map(|rule| rule.severity(self.strict)).max()
    }

    /// Whether nothing was found that is more than a note.
    pub fn is_clean(&self) -> bool {
        self.worst().is_none_or(|worst| worst == Severity::Note)
    }
}

/// Checks a trace.
///
/// # Errors
///
/// When the source fails, or is larger than allowed ([`io::ErrorKind::FileTooLarge`]).
///
/// # Panics
///
/// When a thread that looks at records is lost.
pub fn verify(source: impl Read, options: &VerifyOptions) -> io::Result<Report> {
    let mut cutter = batch::Cutter::new(source, options.limits);
    let mut sequence = sequence::Sequence::new(options);
    if options.threads <= 1 {
        parallel::alone(&mut cutter, options, &mut sequence)?;
    } else {
        parallel::together(&mut cutter, options, &mut sequence)?;
    }
    Ok(sequence.finish(cutter.position()))
}

/// The beginning of a text, for a message.
fn excerpt(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

#[cfg(test)]
pub(crate) mod tests;
