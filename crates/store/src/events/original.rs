//! The log that events were made of, and that their lines refer to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::FileError;
use crate::archive::{ArchiveError, SliceReader, Slices};

/// Where the bytes of a log are.
#[derive(Debug)]
pub(crate) enum Original {
    /// In the archive.
    Archived(Slices),
    /// In a file of its own, to which bytes are only ever added.
    InPlace {
        /// Open, so that it can be read after another took its place.
        file: File,
        /// Where it is.
        path: PathBuf,
        /// How much of it is meant.
        len: u64,
    },
}

impl Original {
    /// The first `len` bytes of a file.
    pub(crate) fn in_place(path: &Path, len: u64) -> io::Result<Self> {
        Ok(Self::InPlace {
            file: File::open(path)?,
            path: path.to_owned(),
            len,
        })
    }

    /// Reads pieces of it.
    pub(crate) fn reader(&self) -> OriginalReader<'_> {
        match self {
            Self::Archived(slices) => OriginalReader::Archived(Box::new(slices.reader())),
            Self::InPlace { file, path, len } => OriginalReader::InPlace(file, path, *len),
        }
    }
}

/// Reads pieces of a log.
pub(crate) enum OriginalReader<'o> {
    Archived(Box<SliceReader<'o>>),
    InPlace(&'o File, &'o Path, u64),
}

impl OriginalReader<'_> {
    /// Appends a piece of the log.
    pub(crate) fn append(
        &mut self,
        offset: u64,
        len: usize,
        into: &mut Vec<u8>,
    ) -> Result<(), ArchiveError> {
        match self {
            Self::Archived(slices) => slices.append(offset, len, into),
            Self::InPlace(file, path, whole) => {
                // Before anything is put into memory: a length may be made up.
                let end = offset.checked_add(len as u64);
                let begin = into.len();
                if end.is_none_or(|end| end > *whole) {
                    let of = path.to_path_buf();
                    return Err(ArchiveError::Beyond { of });
                }
                into.resize(begin + len, 0);
                let read = file.read_exact_at(&mut into[begin..], offset);
                Ok(read.map_err(FileError::at("read", *path))?)
            }
        }
    }
}
