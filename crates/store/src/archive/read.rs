//! Reading a snapshot back, one chunk at a time, each checked against its name.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::chunk::Loader;
use super::{Archive, ArchiveError, Snapshot};
use crate::FileError;

impl Archive {
    /// Reads a snapshot from its first byte.
    ///
    /// Every chunk is checked while it is read. When one is missing or damaged, reading fails there
    /// with an [`ArchiveError`] inside the [`io::Error`], and fails again when it is tried again.
    pub fn read(&self, snapshot: &Snapshot) -> SnapshotReader {
        self.read_from(snapshot, 0)
    }

    /// Reads a snapshot from an offset on. What lies in chunks before it is not touched. At or behind
    /// the end there is nothing to read.
    pub fn read_from(&self, snapshot: &Snapshot, offset: u64) -> SnapshotReader {
        let chunks = &snapshot.chunks;
        let next = chunks.partition_point(|chunk| chunk.end() <= offset);
        let skip = chunks.get(next).map_or(0, |chunk| offset - chunk.offset);
        SnapshotReader {
            archive: self.clone(),
            snapshot: snapshot.clone(),
            next,
            // It lies within a chunk.
            skip: usize::try_from(skip).unwrap_or(usize::MAX),
            loader: None,
            read: 0,
        }
    }

    /// Reads a snapshot to its end and says what is wrong with it.
    ///
    /// # Errors
    ///
    /// The first chunk that is missing or damaged.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), ArchiveError> {
        let mut reader = self.read(snapshot);
        while reader.load_next()? {}
        Ok(())
    }
}

/// Reads a snapshot. Also a [`BufRead`], so lines can be had from it.
pub struct SnapshotReader {
    archive: Archive,
    snapshot: Snapshot,
    /// Which chunk comes after the one in memory.
    next: usize,
    /// How many bytes of that chunk to pass over.
    skip: usize,
    /// Has the chunk in memory.
    loader: Option<Loader>,
    /// How much of the chunk in memory was read.
    read: usize,
}

impl fmt::Debug for SnapshotReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("key", &self.snapshot.key)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl SnapshotReader {
    fn unread(&self) -> &[u8] {
        let loaded = self.loader.as_ref().map_or(&[][..], Loader::bytes);
        loaded.get(self.read..).unwrap_or_default()
    }

    /// Loads the next chunk; false when there is none.
    fn load_next(&mut self) -> Result<bool, ArchiveError> {
        let Some(chunk) = self.snapshot.chunks.get(self.next) else {
            return Ok(false);
        };
        let of = &self.snapshot.key.path;
        let loader = match &mut self.loader {
            Some(loader) => loader,
            none => none.insert(Loader::new().map_err(FileError::at("set up zstd for", of))?),
        };
        loader.load_chunk(&self.archive.inner, chunk, of)?;
        self.read = std::mem::take(&mut self.skip);
        self.next += 1;
        Ok(true)
    }
}

impl BufRead for SnapshotReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.unread().is_empty() && self.load_next()? {}
        Ok(self.unread())
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

impl Read for SnapshotReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
