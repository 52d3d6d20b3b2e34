//! What is in a corpus, as its writer knows it.

use serde::{Deserialize, Serialize};

use super::planted::Counts;

/// Tokens in disjoint buckets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
}

impl Tokens {
    pub(super) fn add(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
    }

    /// The buckets, with their names.
    pub(crate) fn buckets(self) -> [(&'static str, u64); 4] {
        [
            ("input", self.input),
            ("cache read", self.cache_read),
            ("cache write", self.cache_write),
            ("output", self.output),
        ]
    }
}

/// The tokens of an agent's calls, rightly counted and otherwise. What a session has from another is counted only
/// where that is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) calls: u64,
    /// Each call once, as it was told last. No bucket is told lower later.
    pub(crate) right: Tokens,
    /// Each call once, as it was told first.
    pub(crate) first_told: Tokens,
    /// Each line.
    pub(crate) every_line: Tokens,
    /// Each call once, but those that do not name their request by each line, also in sessions that have it from
    /// another.
    pub(crate) unnamed_apart: Tokens,
}

impl Usage {
    /// A call, as its lines tell it one after the other. The lines of one that is not named are to be put down as well,
    /// wherever they stand.
    pub(super) fn call(&mut self, told: &[Tokens], named: bool) {
        self.calls += 1;
        for tokens in told {
            self.every_line.add(*tokens);
        }
        if let (Some(first), Some(last)) = (told.first(), told.last()) {
            self.first_told.add(*first);
            self.right.add(*last);
            if named {
                self.unnamed_apart.add(*last);
            }
        }
    }
}

/// What is in a corpus.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Truth {
    pub(crate) logs: u64,
    pub(crate) bytes: u64,
    pub(crate) claude: Usage,
    pub(crate) codex: Usage,
    pub(crate) planted: Counts,
}
