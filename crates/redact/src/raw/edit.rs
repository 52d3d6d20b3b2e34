//! What is to be changed in a record, and what is told of it.

use std::ops::Range;

use crate::engine::Certainty;
use crate::rule::Kind;
use crate::sensitive::Exposes;
use crate::{Engine, Severity};

/// What something was found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// A rule, by its place in [`Engine::rules`].
    Rule(usize),
    /// All of it is of a secret file.
    File,
    /// It is a value of the environment.
    Environment,
}

impl What {
    /// The id that findings and receipts name.
    pub fn id(self, engine: &Engine) -> &str {
        match self {
            Self::Rule(rule) => &engine.rules().rules[rule].id,
            Self::File => "sensitive-file",
            Self::Environment => "environment",
        }
    }

    /// What stands in the placeholder.
    pub fn label(self, engine: &Engine) -> &str {
        match self {
            Self::Rule(rule) => &engine.rules().rules[rule].label,
            Self::File => "file",
            Self::Environment => "env",
        }
    }

    /// What is found, as far as people are concerned.
    pub fn kind(self, engine: &Engine) -> Kind {
        match self {
            Self::Rule(rule) => engine.rules().rules[rule].kind,
            Self::File | Self::Environment => Kind::Secret,
        }
    }

    /// How bad it is when it is not removed.
    pub fn severity(self, engine: &Engine) -> Severity {
        match self {
            Self::Rule(rule) => engine.rules().rules[rule].severity,
            Self::File => Severity::High,
            Self::Environment => Severity::Medium,
        }
    }
}

impl From<Exposes> for What {
    fn from(exposes: Exposes) -> Self {
        match exposes {
            Exposes::File | Exposes::Printed => Self::File,
            Exposes::Environment => Self::Environment,
        }
    }
}

/// Something that was found. The value itself is not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line of the input, from 1.
    pub line: u64,
    /// The byte of the line, from 1.
    pub column: u64,
    /// The byte of the input, from 0.
    pub offset: u64,
    /// How many bytes of the input it is.
    pub length: usize,
    /// Where in the record: `message.content[0].text`; empty in plain text.
    pub field: String,
    /// What it was found by.
    pub what: What,
    /// Whether it is one. What is only nearly one stays where it is.
    pub certainty: Certainty,
    /// What stands in its place; empty for what is only nearly one.
    pub placeholder: String,
    /// `sha256:` and the SHA-256 of the value in hex, which an allowlist takes. Only of secrets that are too long to be
    /// guessed from it.
    pub hash: Option<String>,
}

/// Something in a record.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The bytes of the record.
    pub(super) raw: Range<usize>,
    pub(super) what: What,
    pub(super) certainty: Certainty,
    /// What those bytes say.
    pub(super) value: String,
    pub(super) field: String,
    pub(super) form: Form,
}

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit")
            .field("raw", &self.raw)
            .field("what", &self.what)
            .field("field", &self.field)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// How what stands in place of something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As text that is in so many JSON strings, one in the other.
    Text(u8),
    /// As a JSON string in place of a number, in so many strings.
    Number(u8),
    /// Not at all: its placeholder stands in an earlier piece.
    Cut,
}

/// Puts edits among others. Those that overlap become one: that of `more`, which has seen more of the text.
pub(super) fn settle(edits: &mut Vec<Edit>, more: Vec<Edit>) {
    if more.is_empty() {
        return;
    }
    let mut all: Vec<(bool, Edit)> = std::mem::take(edits)
        .into_iter()
        .map(|edit| (false, edit))
        .chain(more.into_iter().map(|edit| (true, edit)))
        .collect();
    all.sort_by_key(|(_, edit)| (edit.raw.start, edit.raw.end));
    let mut wins_before = false;
    for (wins, mut edit) in all {
        match edits.last_mut() {
            Some(before) if edit.raw.start < before.raw.end => {
                let both = before.raw.start..before.raw.end.max(edit.raw.end);
                if wins && !wins_before || before.certainty != Certainty::Sure {
                    edit.raw = both;
                    *before = edit;
                    wins_before = wins;
                } else if edit.certainty == Certainty::Sure {
                    before.raw = both;
                }
            }
            _ => {
                edits.push(edit);
                wins_before = wins;
            }
        }
    }
}

/// The hash of a value that nobody can guess from it: one of at least 64 bits, by how many characters it has and how
/// they are spread.
pub(super) fn hash(kind: Kind, value: &str) -> Option<String> {
    let safe = kind == Kind::Secret && bits(value) >= 64.0;
    safe.then(|| {
        format!(
            "sha256:{}",
            Engine::hash(value).trim_start_matches("sha256:")
        )
    })
}

/// At most so many bits are in a value: by its length and its class of characters, and by how often each of them is
/// there.
fn bits(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    // Most characters of what is random are there once, and need no logarithm.
    let repeats: f64 = counts
        .iter()
        .filter(|count| **count > 1)
        .map(|count| f64::from(*count) * f64::from(*count).log2())
        .sum();
    let spread = length.max(1.0).log2() - repeats / length.max(1.0);
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    let mut class = 0.0;
    if value.bytes().all(|byte| byte.is_ascii_hexdigit()) && has(u8::is_ascii_digit) {
        class = 16.0;
    } else {
        for (test, size) in [
            (u8::is_ascii_digit as fn(&u8) -> bool, 10.0),
            (u8::is_ascii_lowercase, 26.0),
            (u8::is_ascii_uppercase, 26.0),
            (|byte: &u8| !byte.is_ascii_alphanumeric(), 16.0),
        ] {
            if has(test) {
                class += size;
            }
        }
    }
    length * spread.min(f64::log2(f64::max(class, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_guessed_has_a_hash() {
        let random = &crate::rule::expand("{alnum:24}", 1).unwrap().text;
        assert!(hash(Kind::Secret, random).is_some_and(|hash| hash.len() == 7 + 64));
        assert_eq!(hash(Kind::Pii, random), None);
        assert_eq!(hash(Kind::Secret, "4111111111111111"), None);
        assert_eq!(hash(Kind::Secret, "hunter2"), None);
        assert_eq!(hash(Kind::Secret, &"a".repeat(100)), None);
    }

    #[test]
    fn an_edit_takes_in_what_it_overlaps() {
        let edit = |raw: Range<usize>| Edit {
            raw,
            what: What::File,
            certainty: Certainty::Sure,
            value: String::new(),
            field: String::new(),
            form: Form::Text(1),
        };
        let mut edits = vec![edit(0..4), edit(6..9), edit(12..14)];
        settle(&mut edits, vec![edit(8..12)]);
        let ranges: Vec<_> = edits.iter().map(|edit| edit.raw.clone()).collect();
        assert_eq!(ranges, [0..4, 6..12, 12..14]);
    }
}
