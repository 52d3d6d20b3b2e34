//! How long a call took, as far as that is known.
//!
//! The format asks for a number in every case. Where there is none it is 0, and `meta.quipu.latency` says that it
//! is not known, so that nobody takes it for one.

use super::lane::When;
use super::text::Object;
use crate::loss::Loss;

/// How long a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Latency {
    /// The log says so.
    Told(u64),
    /// From two times that the log has.
    Derived(u64),
    Unknown,
}

impl Latency {
    /// Of a call that began and ended then.
    pub(super) fn of(told: Option<u64>, began: When, ended: When) -> Self {
        let derived = || ended.since(began).map_or(Self::Unknown, Self::Derived);
        told.map_or_else(derived, Self::Told)
    }

    /// What is written.
    pub(super) fn millis(self) -> u64 {
        match self {
            Self::Told(millis) | Self::Derived(millis) => millis,
            Self::Unknown => 0,
        }
    }

    /// What is written beside it.
    pub(super) fn mark(self) -> Object {
        Object::new().text_if("latency", self.word())
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::Told(_) => None,
            Self::Derived(_) => Some("derived"),
            Self::Unknown => Some("unknown"),
        }
    }

    /// Counts what was filled in.
    pub(super) fn count(self, kind: &str, seq: u64, loss: &mut Loss) {
        match self {
            Self::Told(_) => {}
            Self::Derived(_) => loss.inferred(format!("{kind}.latency_ms, from times"), seq),
            Self::Unknown => loss.inferred(format!("{kind}.latency_ms, which is not known"), seq),
        }
    }
}
