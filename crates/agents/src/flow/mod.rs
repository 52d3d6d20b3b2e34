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

use crate::{Dialect, Family, Gather};

/// See the module.
pub(crate) struct Flow;

/// The transcript of one step.
pub(crate) const TRANSCRIPT: Dialect = Dialect::lines("flow", "flow-studio");

/// The records of a run directory.
pub(crate) const RUN: Dialect = Dialect::lines("flow-run", "flow-studio");

impl Family for Flow {
    // Runs lie in the repositories they are about, so no place is looked at.
    crate::family::known!("flow", [TRANSCRIPT, RUN]);
    crate::family::opened!(dialect, origin => match {
        RUN => run::Run::new(origin),
        _ => normalize::Step::new(origin),
    });

    fn gather(&self) -> Option<&dyn Gather> {
        Some(&gather::Runs)
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        discover::sidecars(log)
    }
}
