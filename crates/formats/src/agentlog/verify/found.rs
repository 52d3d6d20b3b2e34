//! Findings, as many as are kept, and where in a record they are.

use std::fmt::{self, Write as _};

use super::super::record::At;
use super::{Finding, Rule, excerpt};

/// Findings kept per rule; the rest are counted.
pub(super) const KEPT_PER_RULE: u64 = 100;

/// The longest field that is kept, in characters. Keys are as long as their author wants, and a finding should
/// be shorter than what it is about.
const LONGEST_FIELD: usize = 400;

/// What was found so far. Beyond the cap nothing is even put in words.
#[derive(Debug, Clone)]
pub(super) struct Found {
    strict: bool,
    pub(super) kept: Vec<Finding>,
    counts: [u64; Rule::ALL.len()],
    kept_counts: [u64; Rule::ALL.len()],
}

impl Found {
    pub(super) fn new(strict: bool) -> Self {
        Self {
            strict,
            kept: Vec::new(),
            counts: [0; Rule::ALL.len()],
            kept_counts: [0; Rule::ALL.len()],
        }
    }

    /// Adds a finding. Gives it back when it is kept, for more to be said.
    #[cold]
    pub(super) fn add(
        &mut self,
        rule: Rule,
        at: Option<At>,
        field: Option<&dyn fmt::Display>,
        message: fmt::Arguments<'_>,
    ) -> Option<&mut Finding> {
        self.counts[rule as usize] += 1;
        if self.kept_counts[rule as usize] >= KEPT_PER_RULE {
            return None;
        }
        self.kept_counts[rule as usize] += 1;
        self.kept.push(Finding {
            rule,
            severity: rule.severity(self.strict),
            at,
            field: field.map(shortened),
            message: message.to_string(),
            dialect: None,
        });
        self.kept.last_mut()
    }

    /// Adds what another found, and empties it.
    pub(super) fn take(&mut self, other: &mut Self) {
        for finding in other.kept.drain(..) {
            let kept = &mut self.kept_counts[finding.rule as usize];
            if *kept < KEPT_PER_RULE {
                *kept += 1;
                self.kept.push(finding);
            }
        }
        for (count, more) in self.counts.iter_mut().zip(&mut other.counts) {
            *count += std::mem::take(more);
        }
        other.kept_counts = [0; Rule::ALL.len()];
    }

    /// How often a rule was broken.
    pub(super) fn count(&self, rule: Rule) -> u64 {
        self.counts[rule as usize]
    }

    /// How often each rule was broken, where it was.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Rule, u64)> {
        let counts = Rule::ALL.iter().copied().zip(self.counts);
        counts.filter(|(_, count)| *count > 0)
    }
}

/// A field in words, or the beginning of it.
fn shortened(field: &dyn fmt::Display) -> String {
    let mut short = Short {
        text: String::new(),
        room: LONGEST_FIELD,
    };
    // It fails when it is full.
    if write!(short, "{field}").is_err() {
        short.text.push('…');
    }
    short.text
}

/// Takes so many characters and no more.
struct Short {
    text: String,
    room: usize,
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        for c in more.chars() {
            self.room = self.room.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

/// Where a value is: `payload.messages[2].content`. Put together on the stack, and in words only when
/// something is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'p> {
    before: Option<&'p Self>,
    step: Step<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(super) const fn root(key: &'p str) -> Self {
        Self {
            before: None,
            step: Step::Key(key),
        }
    }

    pub(super) const fn key(&'p self, key: &'p str) -> Self {
        Self {
            before: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) const fn index(&'p self, index: usize) -> Self {
        Self {
            before: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Key(key) if self.before.is_none() => f.write_str(key),
            Step::Key(key) => write_key(f, key),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A key behind others, or the beginning of it: with a dot when it is a plain name.
pub(super) fn write_key(f: &mut dyn fmt::Write, key: &str) -> fmt::Result {
    let key = excerpt(key);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_name) {
        write!(f, ".{key}")
    } else {
        write!(f, "[{key:?}]")
    }
}
