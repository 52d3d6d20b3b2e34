//! Transcripts of Entire: what its checkpoints keep of a session, in one form for all agents.
//!
//! A checkpoint is a directory of a git tree. For each session it has the agent's own log (`full.jsonl`, which
//! the agent's family reads) and the same in short (`transcript.jsonl`): a line for each message, with the
//! results of tools inside the calls. Reasoning is not in it.

mod discover;
mod normalize;
mod wire;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::{Dialect, Family, Framing, Head, Host, Match, Origin, Place, Reader, state};

/// See the module.
pub(crate) struct Entire;

/// A transcript of a checkpoint.
pub(crate) const TRANSCRIPT: Dialect = Dialect {
    name: "entire",
    brand: "entire",
    framing: Framing::Lines,
};

impl Family for Entire {
    fn name(&self) -> &'static str {
        "entire"
    }

    fn dialects(&self) -> &'static [Dialect] {
        &[TRANSCRIPT]
    }

    /// Checkpoints lie in the repositories they are of.
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
            Some(saved) => Box::new(state::load::<normalize::Transcript>(saved)?),
            None => Box::new(normalize::Transcript::default()),
        })
    }

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        vec![log.with_file_name("metadata.json")]
    }
}
