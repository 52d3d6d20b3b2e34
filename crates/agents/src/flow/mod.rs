//! Runs of Flow Studio: a run directory as one session, and the transcript of one step that lies in no run.
//!
//! A run is a directory of transcripts, receipts and a journal. All of its files are brought together into one log
//! (`gather`), whose records `quipu_formats::flow` makes and tells (`run`).
//!
//! A step's transcript by itself is a file of lines in one of several shapes; what it took is in a receipt in a
//! directory next to it. Those that are the raw streams of Claude or Gemini are read by those families.

mod discover;
mod gather;
mod normalize;
mod run;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Framing, Gather, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Flow;

/// The transcript of one step.
pub(crate) const TRANSCRIPT: Dialect = Dialect {
    name: "flow",
    brand: "flow-studio",
    framing: Framing::Lines,
};

/// The records of a run directory.
pub(crate) const RUN: Dialect = Dialect {
    name: "flow-run",
    brand: "flow-studio",
    framing: Framing::Lines,
};

impl Family for Flow {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRANSCRIPT, RUN]
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
        dialect: &Dialect,
        origin: &Origin<'_>,
        saved: Option<&[u8]>,
    ) -> Option<Box<dyn Reader>> {
        if *dialect == RUN {
            return Some(match saved {
                Some(saved) => Box::new(state::load::<run::Run>(saved)?),
                None => Box::new(run::Run::new(origin)),
            });
        }
        Some(match saved {
            Some(saved) => Box::new(state::load::<normalize::Step>(saved)?),
            None => Box::new(normalize::Step::new(origin)),
        })
    }

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Runs)
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }
}
