//! What a person is shown before a session is shared, and what they decide.

use std::fmt;

use quipu_model::hex;
use rustc_hash::FxHashSet;

use super::mask::Cut;
use crate::{Certainty, Key, Severity};

/// A keyed hash of a value, by which a decision about it is remembered without the value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueHash([u8; 16]);

impl ValueHash {
    /// That of a value.
    pub fn of(key: &Key, value: &str) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&key.hash("decision", &[value.as_bytes()])[..16]);
        Self(short)
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode_array(text).map(Self)
    }
}

impl fmt::Display for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a person decided about a session.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    /// What rules found, and is to stay.
    pub keep: FxHashSet<ValueHash>,
    /// What rules nearly found, and is to go.
    pub remove: FxHashSet<ValueHash>,
    /// Names that the session itself does not say, to be replaced as the profile says: those of the person and of the
    /// machine.
    pub names: Vec<Name>,
}

/// What somebody or something is called.
#[derive(Clone, PartialEq, Eq)]
pub struct Name {
    /// What it is a name of.
    pub of: NameOf,
    /// The name.
    pub text: String,
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Name")
            .field("of", &self.of)
            .finish_non_exhaustive()
    }
}

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameOf {
    /// The session's directory.
    Directory,
    /// The repository.
    Repository,
    /// The branch.
    Branch,
    /// A person.
    User,
    /// A machine.
    Host,
}

impl NameOf {
    /// What a pseudonym begins with, and a placeholder says.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Directory => "dir",
            Self::Repository => "repo",
            Self::Branch => "branch",
            Self::User => "user",
            Self::Host => "host",
        }
    }

    /// The rule that receipts name.
    pub(super) const fn rule(self) -> &'static str {
        match self {
            Self::Directory => "environment-dir",
            Self::Repository => "environment-repo",
            Self::Branch => "environment-branch",
            Self::User => "environment-user",
            Self::Host => "environment-host",
        }
    }
}

/// Something that is taken out, or nearly was, for the eyes of the session's owner.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// The event; 0 for what is said of the session as a whole.
    pub seq: u64,
    /// The field, as receipts name it.
    pub field: &'a str,
    /// The rule, as receipts name it.
    pub rule: &'a str,
    /// What kind of thing it is: that of the rule, or `policy` for what the profile leaves out whatever it says.
    pub kind: &'a str,
    /// How much harm it could do, where a rule says so.
    pub severity: Option<Severity>,
    /// How sure it is.
    pub certainty: Certainty,
    /// What stands there now; `None` when it stays.
    pub placeholder: Option<&'a str>,
    /// What to remember a decision by.
    pub hash: ValueHash,
    /// What was found, and what is around it.
    pub excerpt: Excerpt<'a>,
}

/// What was found, and what is around it. It is not shown by `Debug`.
#[derive(Clone, Copy)]
pub struct Excerpt<'a> {
    /// What is before it.
    pub before: &'a str,
    /// The value itself.
    pub value: &'a str,
    /// What is behind it.
    pub behind: &'a str,
}

impl<'a> Excerpt<'a> {
    /// Bytes on each side.
    const AROUND: usize = 60;

    pub(super) fn of(text: &'a str, span: &std::ops::Range<usize>) -> Self {
        let from = super::floor(text, span.start.saturating_sub(Self::AROUND));
        let to = super::ceil(text, (span.end + Self::AROUND).min(text.len()));
        Self {
            before: &text[from..span.start],
            value: &text[span.clone()],
            behind: &text[span.end..to],
        }
    }
}

impl fmt::Debug for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Excerpt(…)")
    }
}

/// What was taken out of an event, until it is known that the event is shared.
pub(super) struct Shown {
    seq: u64,
    field: String,
    rule: String,
    kind: &'static str,
    severity: Option<Severity>,
    placeholder: String,
    hash: ValueHash,
    /// What was before it, the value, and what was behind it.
    texts: [String; 3],
}

impl Shown {
    /// Bytes of a value that are kept at most.
    const LONGEST: usize = 400;

    pub(super) fn new(
        seq: u64,
        field: &str,
        text: &str,
        cut: &Cut,
        hash: ValueHash,
        severity: Option<Severity>,
    ) -> Self {
        let Excerpt {
            before,
            value,
            behind,
        } = Excerpt::of(text, &cut.span);
        let value = &value[..super::floor(value, Self::LONGEST)];
        Self {
            seq,
            field: field.to_owned(),
            rule: cut.rule.clone(),
            kind: cut.kind,
            severity,
            placeholder: cut.placeholder.clone(),
            hash,
            texts: [before, value, behind].map(str::to_owned),
        }
    }

    pub(super) fn finding(&self) -> Finding<'_> {
        let [before, value, behind] = &self.texts;
        Finding {
            seq: self.seq,
            field: &self.field,
            rule: &self.rule,
            kind: self.kind,
            severity: self.severity,
            certainty: Certainty::Sure,
            placeholder: Some(&self.placeholder),
            hash: self.hash,
            excerpt: Excerpt {
                before,
                value,
                behind,
            },
        }
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown(…)")
    }
}

/// What is called with every finding.
pub type Review<'a> = dyn FnMut(&Finding<'_>) + 'a;
