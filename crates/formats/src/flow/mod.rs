//! Run directories: transcripts and receipts of workflow steps.
//!
//! A run is a directory. Each step that an agent executed leaves a transcript
//! (`<flow>/llm/<step>-<agent>-<engine>.jsonl`) and a receipt (`<flow>/receipts/<step>-<agent>.json`).
//! The format is documented in one way and was written in many; so everything that was ever written is
//! read ([`read`]), only what is documented is written ([`writer`]), and what is wrong with a directory is
//! said ([`verify()`]). `docs/formats/flow.md` has the tables.
//!
//! | module | |
//! |---|---|
//! | [`time`] | times: read leniently, written strictly |
//! | [`names`] | file names, and what they can be taken for |
//! | [`shape`] | lines of transcripts, in nine shapes |
//! | [`receipt`] | receipts of every generation |
//! | `detect` | which directory is a run, and which run a file belongs to |
//! | [`record`] | a directory as a stream of records, which can be kept |
//! | [`run`] | a directory as one session |
//! | `originals` | the files of a run out of its records, byte for byte |
//! | [`mod@write`] | a session as a directory |
//! | [`stub`] | what an engine writes that only pretends to work |
//! | [`mod@verify`] | the rules, and what breaks them |

mod detect;
pub mod names;
mod originals;
pub mod receipt;
pub mod record;
pub mod run;
mod scan;
pub mod shape;
pub mod stub;
pub mod time;
pub mod verify;
pub mod write;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use detect::{is_flow, is_run, run_around, run_of};
pub use originals::{Files, Originals};
pub use run::{Became, Counts, Run, StepRun, Teller, Told, Walked, read, read_with, walk};
pub use verify::{Finding, Report, Rule, verify};
pub use write::{CARRIES, FlowOptions, StepFiles, writer};

/// Why a directory could not be read at all. What is wrong inside of it is a [`Finding`].
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// A file or directory could not be opened or read.
    #[error("cannot read {path}", path = path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has neither transcripts nor receipts, nor a file that says that it is a run.
    #[error("{path} is not a run: it has no flow with `llm` or `receipts`, and no meta.json, spec.json or events.jsonl", path = .0.display())]
    NotARun(PathBuf),
    /// It has more files than are looked at.
    #[error("{path} has more than {most} files", path = path.display(), most = scan::MAX_FILES)]
    TooMany {
        /// The directory.
        path: PathBuf,
    },
}

impl FlowError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// The program whose runs these are, where a run names no other.
const PROGRAM: &str = "flow-studio";

/// The version of the receipts that are written. One that names none is 1.0.0.
pub const SCHEMA_VERSION: &str = "1.1.0";
