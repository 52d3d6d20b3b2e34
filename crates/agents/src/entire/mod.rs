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

use crate::{Dialect, Family};

/// See the module.
pub(crate) struct Entire;

/// A transcript of a checkpoint.
pub(crate) const TRANSCRIPT: Dialect = Dialect::lines("entire", "entire");

impl Family for Entire {
    // Checkpoints lie in the repositories they are of.
    crate::family::known!("entire", [TRANSCRIPT]);
    crate::family::opened!(_dialect, _origin => normalize::Transcript::default());

    fn sidecars(&self, log: &Path) -> Vec<PathBuf> {
        vec![log.with_file_name("metadata.json")]
    }
}
