//! Steps of Flow Studio: the transcript of one step, with its receipt beside it.
//!
//! A step's transcript is a file of lines in one of several shapes, which `quipu_formats::flow` knows; what it
//! took is in a receipt in a directory next to it. Transcripts that are the raw streams of Claude or Gemini are
//! read by those families. A whole run as one session is `quipu_formats::flow::read`.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Flow;

/// The transcript of one step.
pub(crate) const TRANSCRIPT: Dialect = Dialect {
    name: "flow",
    brand: "flow-studio",
    framing: Framing::Lines,
};

impl Family for Flow {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRANSCRIPT]
    }

    /// Runs lie in the repositories they are about, so there is no place to look.
    fn places(&self, _host: &Host) -> Vec<Place> {
        Vec::new()
    }

    fn sniff(&self, head: &Head<'_>) -> Option<Match> {
        discover::sniff(head)
    }

    fn open(
        &self,
        _dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Step>(saved)?),
            None => Box::new(normalize::Step::new(origin)),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }
}
