//! Why a trace was not kept, or not found.

use std::path::PathBuf;

use quipu_formats::agentlog::ContentId;

use crate::FileError;
use crate::blobs::BlobError;

/// What can go wrong with the traces of a directory.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// What is to be kept is no trace.
    #[error("no trace: {0}")]
    NotATrace(String),
    /// The first record does not have the id that its payload has.
    #[error("the root record says it is {said}, but its payload is {is}")]
    WrongRoot {
        /// The id that it says.
        said: ContentId,
        /// The id that its payload has.
        is: ContentId,
    },
    /// It is larger than allowed.
    #[error("the trace is larger than {0} bytes")]
    TooLarge(u64),
    /// What is to be kept could not be read.
    #[error("the trace could not be read: {0}")]
    Source(std::io::Error),
    /// The directory was opened to be read only.
    #[error("{} was opened to be read only", .0.display())]
    ReadOnly(PathBuf),
    /// There are no traces in this directory.
    #[error("no traces in {}", .0.display())]
    NoTraces(PathBuf),
    /// The index could not be used.
    #[error("the index of traces {path} cannot be used: {why}; it is derived, and made again when it is deleted", path = .path.display())]
    Index {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
        /// Whether the file itself is damaged.
        damaged: bool,
    },
    /// Blobs could not be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// No trace is meant.
    #[error("no trace begins with {0:?}")]
    None(String),
    /// Several traces are meant.
    #[error("{argument:?} names {} traces", .names.len())]
    Several {
        /// What was asked for.
        argument: String,
        /// The full names of those it may mean.
        names: Vec<String>,
    },
    /// No blob is meant.
    #[error("no blob begins with {0:?}")]
    NoBlob(String),
    /// Several blobs are meant.
    #[error("{argument:?} names {} blobs", .names.len())]
    SeveralBlobs {
        /// What was asked for.
        argument: String,
        /// Those it may mean.
        names: Vec<String>,
    },
}

pub(super) type Result<T, E = TraceError> = std::result::Result<T, E>;
