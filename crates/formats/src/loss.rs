//! What a format could not carry, had to guess, or carries in a shape of its own.
//!
//! Every projection of the model fills one of these in as it goes, so that whoever asked for another
//! format is told what it cost. Counted by what it was, with the first place of each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What became of the events that a format was given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Loss {
    /// How many events there were.
    pub events: u64,
    /// How many of them are in what was written, in one shape or another.
    pub carried: u64,
    /// What was not carried, by the type of event or kind of note.
    pub dropped: BTreeMap<Cow<'static, str>, Tally>,
    /// What is carried, but in a shape that the format has for something else.
    pub wrapped: BTreeMap<Cow<'static, str>, Tally>,
    /// What the format asks for and the events do not say, and how it was filled in.
    pub inferred: BTreeMap<Cow<'static, str>, Tally>,
}

/// How often, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The event where it was first met.
    pub first_seq: u64,
}

impl Loss {
    /// Whether nothing was left out.
    pub fn is_complete(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Notes that something was left out.
    pub fn dropped(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.dropped, what.into(), seq);
    }

    /// Notes that something was put into a shape that is not its own.
    pub fn wrapped(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.wrapped, what.into(), seq);
    }

    /// Notes that something was filled in.
    pub fn inferred(&mut self, what: impl Into<Cow<'static, str>>, seq: u64) {
        tally(&mut self.inferred, what.into(), seq);
    }
}

fn tally(of: &mut BTreeMap<Cow<'static, str>, Tally>, what: Cow<'static, str>, seq: u64) {
    of.entry(what)
        .and_modify(|tally| {
            tally.count += 1;
            tally.first_seq = tally.first_seq.min(seq);
        })
        .or_insert(Tally {
            count: 1,
            first_seq: seq,
        });
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} events carried", self.carried, self.events)?;
        for (name, of) in [
            ("not carried", &self.dropped),
            ("in another shape", &self.wrapped),
            ("filled in", &self.inferred),
        ] {
            for (n, (what, tally)) in of.iter().enumerate() {
                let lead = if n == 0 { "\n" } else { "; " };
                let name = if n == 0 { name } else { "" };
                let gap = if n == 0 { ": " } else { "" };
                write!(f, "{lead}{name}{gap}{} {what}", tally.count)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_what_it_was_and_keeps_the_first_place() {
        let mut loss = Loss {
            events: 4,
            carried: 2,
            ..Loss::default()
        };
        loss.dropped("note:todo", 9);
        loss.dropped("note:todo", 3);
        loss.dropped("note:title", 4);
        loss.inferred("stop_reason", 1);
        assert!(!loss.is_complete());
        let first = loss.dropped["note:todo"];
        assert_eq!((first.count, first.first_seq), (2, 3));
        assert_eq!(
            loss.to_string(),
            "2 of 4 events carried\nnot carried: 1 note:title; 2 note:todo\nfilled in: 1 stop_reason"
        );
    }
}
