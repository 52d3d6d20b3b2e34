//! What can go wrong with an archive, each case naming the file and what can be done.

use std::io;
use std::path::PathBuf;

use crate::FileError;

/// Why something was not kept, or cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A chunk cannot be used.
    #[error("chunk {} of {} {fault}; restore it from a copy, or run `quipu import --rebuild`: it keeps the log again if its agent still has it, and otherwise what is left of it", path.display(), of.display())]
    Chunk {
        /// The chunk's file.
        path: PathBuf,
        /// The log that it belongs to.
        of: PathBuf,
        /// What is wrong with it.
        fault: ChunkFault,
    },
    /// A manifest has a line that cannot be understood.
    #[error("line {line} of manifest {} is damaged: {why}; restore it from a copy, or run `quipu import --rebuild`: it sets the manifest aside and keeps the log again if its agent still has it", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A manifest was written by a later version of Quipu.
    #[error("manifest {} is of format {format}, which this version does not know; use a newer Quipu", path.display())]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        format: u64,
    },
    /// Somebody else kept the same log in the meantime.
    #[error("{} was archived by something else at the same time; look at its latest snapshot and try again", of.display())]
    Conflict {
        /// The log.
        of: PathBuf,
    },
    /// The writer failed before, so what it holds is not the whole log.
    #[error("keeping {} failed before it was finished; begin again", of.display())]
    Unfinished {
        /// The log.
        of: PathBuf,
    },
    /// Something is being kept right now, so it is not known what is needed.
    #[error("something is writing to the archive (it holds {}); sweep when it is done", lock.display())]
    Busy {
        /// The lock that it holds.
        lock: PathBuf,
    },
    /// Something refers to more of a log than there is.
    #[error("could not read what is kept of {}: its events refer to more than it has; `quipu import --rebuild` makes them again", of.display())]
    Beyond {
        /// The log.
        of: PathBuf,
    },
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkFault {
    /// It is not there.
    #[error("is missing")]
    Missing,
    /// Its file is larger than a chunk can be.
    #[error("is damaged: its file is larger than any chunk")]
    TooLarge,
    /// It is not a zstd frame, or holds more than the manifest says.
    #[error("is damaged: {0}")]
    Zstd(String),
    /// It holds something else.
    #[error("is damaged: its content is not what its name says")]
    Content,
}

/// For whoever reads from the archive as from a file. The error itself is inside.
impl From<ArchiveError> for io::Error {
    fn from(error: ArchiveError) -> Self {
        let kind = match &error {
            ArchiveError::File(error) => error.source.kind(),
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

impl ArchiveError {
    /// Whether it is the place where everything is kept that failed, so that the next log would fail as
    /// well: a full disk, a file system that may not be written to.
    pub fn is_ours(&self) -> bool {
        use std::io::ErrorKind::{
            FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        let Self::File(FileError { source, .. }) = self else {
            return false;
        };
        matches!(
            source.kind(),
            StorageFull | QuotaExceeded | FileTooLarge | ReadOnlyFilesystem | PermissionDenied
        )
    }
}
