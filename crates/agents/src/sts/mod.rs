//! The session format of the Hugging Face Hub.
//!
//! The first line is about the session; each of the others is a message. Pi's own logs, which the Hub shows as
//! well, are read as Pi's.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Sts;

pub(crate) const LINES: Dialect = Dialect {
    name: "sts",
    brand: "sts",
    framing: Framing::Lines,
};

impl Family for Sts {
    fn name(&self) -> &'static str {
        "sts"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[LINES]
    }

    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        _origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Lines>(saved)?),
            None => Box::<normalize::Lines>::default(),
        })
    }
}
