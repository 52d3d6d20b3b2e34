//! Keeping a snapshot: cutting bytes into chunks, then the line that names them.

use std::fmt;
use std::fs::File;
use std::path::Path;

use jiff::Timestamp;

use super::chunk::{ChunkRef, Storer};
use super::{Archive, ArchiveError, Inner, Meta, Snapshot, SourceKey, manifest};
use crate::FileError;
use crate::address::Digest;

/// Takes the bytes of a log. Nothing counts until [`SnapshotWriter::finish`]: a writer that is dropped
/// leaves the source as it was, and at most chunks that the next sweep removes.
///
/// Holds about three chunks in memory. Keeps sweeps out as long as it lives.
pub struct SnapshotWriter {
    archive: Archive,
    _lock: File,
    key: SourceKey,
    /// The snapshot that this one follows.
    base: Option<Snapshot>,
    origin: Origin,
    /// What was written, but for the buffer.
    chunks: Vec<ChunkRef>,
    /// How many of them, from the first, are those of the base.
    kept: usize,
    buffer: Vec<u8>,
    storer: Storer,
    failed: bool,
}

/// Where writing begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// At the first byte of a log that was never kept.
    New,
    /// Behind the base.
    End,
    /// At the first byte, and so far every chunk was that of the base.
    Shared,
    /// At the first byte, and the base was left.
    Diverged,
}

impl fmt::Debug for SnapshotWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotWriter")
            .field("key", &self.key)
            .field("origin", &self.origin)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

impl SnapshotWriter {
    pub(super) fn begin(archive: &Archive, key: &SourceKey) -> Result<Self, ArchiveError> {
        Self::new(archive, key, None, Origin::New)
    }

    pub(super) fn grow(archive: &Archive, base: &Snapshot) -> Result<Self, ArchiveError> {
        Self::new(archive, &base.key, Some(base), Origin::End)
    }

    pub(super) fn rewrite(archive: &Archive, base: &Snapshot) -> Result<Self, ArchiveError> {
        Self::new(archive, &base.key, Some(base), Origin::Shared)
    }

    fn new(
        archive: &Archive,
        key: &SourceKey,
        base: Option<&Snapshot>,
        origin: Origin,
    ) -> Result<Self, ArchiveError> {
        let lock = archive.inner.lock_shared()?;
        let chunks = match base {
            Some(base) if origin == Origin::End => base.chunks.clone(),
            _ => Vec::new(),
        };
        Ok(Self {
            storer: Storer::new().map_err(FileError::at("set up zstd for", &key.path))?,
            archive: archive.clone(),
            _lock: lock,
            key: key.clone(),
            base: base.cloned(),
            origin,
            kept: chunks.len(),
            chunks,
            buffer: Vec::new(),
            failed: false,
        })
    }

    /// How long the snapshot is so far, with what was kept before.
    pub fn size(&self) -> u64 {
        stored(&self.chunks) + self.buffer.len() as u64
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// When a chunk cannot be stored, or the small chunk before it cannot be read back. The writer is
    /// of no use then.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), ArchiveError> {
        self.attempt(|writer| {
            while !bytes.is_empty() {
                let room = writer.target().saturating_sub(writer.buffer.len());
                let (now, later) = bytes.split_at(room.min(bytes.len()));
                writer.buffer.extend_from_slice(now);
                bytes = later;
                if now.len() == room {
                    writer.cut()?;
                }
            }
            Ok(())
        })
    }

    /// Stores what is left and appends the line to the manifest. `taken` is when the log was read,
    /// `modified` when it was last written to, `meta` whatever else is to be remembered.
    ///
    /// # Errors
    ///
    /// When the system refuses, or when somebody else kept the same source in the meantime. Then the
    /// source is as it was.
    pub fn finish(
        mut self,
        taken: Timestamp,
        modified: Option<Timestamp>,
        meta: Option<Meta>,
    ) -> Result<Snapshot, ArchiveError> {
        self.attempt(|writer| {
            if writer.buffer.is_empty() {
                return Ok(());
            }
            writer.store()
        })?;
        let base = self.base.as_ref();
        let grown = match self.origin {
            Origin::New => false,
            Origin::End => true,
            // All of the base is here again, so nothing of it was changed.
            Origin::Shared | Origin::Diverged => {
                base.is_some_and(|base| base.chunks.len() == self.kept)
            }
        };
        let mut snapshot = Snapshot {
            version: base.map_or(1, |base| base.version + u32::from(!grown)),
            size: stored(&self.chunks),
            key: self.key,
            taken,
            modified,
            chunks: self.chunks,
            meta,
            manifest_end: base.map_or(0, |base| base.manifest_end),
        };
        let inner = &self.archive.inner;
        let path = &snapshot.key.path;
        let line = manifest::line_of(&snapshot, grown, self.kept)
            .map_err(FileError::at("describe", path))?;
        snapshot.manifest_end =
            manifest::append(inner, &snapshot.key, snapshot.manifest_end, &line)?;
        Ok(snapshot)
    }

    /// Does something that leaves the writer useless when it fails: part of the bytes may be taken.
    fn attempt(
        &mut self,
        action: impl FnOnce(&mut Self) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        if self.failed {
            return Err(ArchiveError::Unfinished {
                of: self.key.path.clone(),
            });
        }
        action(self).inspect_err(|_| self.failed = true)
    }

    /// How full the buffer gets before something is done with it.
    fn target(&self) -> usize {
        let chunk = self.archive.inner.sizes.chunk;
        match self.shared() {
            Some(old) => old.len as usize,
            None if self.is_first_behind_base() => chunk - self.small_tail(),
            None => chunk,
        }
    }

    /// The chunk of the base that the buffer may turn out to be.
    fn shared(&self) -> Option<ChunkRef> {
        if self.origin != Origin::Shared {
            return None;
        }
        self.base.as_ref()?.chunks.get(self.kept).copied()
    }

    fn is_first_behind_base(&self) -> bool {
        self.origin == Origin::End && self.kept == self.chunks.len()
    }

    /// The buffer is as full as it gets: takes it for a chunk of the base, or stores it, or goes on
    /// filling it.
    fn cut(&mut self) -> Result<(), ArchiveError> {
        let Some(old) = self.shared() else {
            return self.store();
        };
        let id = Digest::of(&self.buffer);
        if id == old.id {
            self.store_as(id)?;
            self.kept += 1;
            return Ok(());
        }
        self.origin = Origin::Diverged;
        if self.buffer.len() >= self.archive.inner.sizes.chunk {
            self.store_as(id)?;
        }
        Ok(())
    }

    /// Stores the buffer as a chunk, with the small ones before it.
    fn store(&mut self) -> Result<(), ArchiveError> {
        if self.is_first_behind_base() {
            self.merge_small_tail()?;
        }
        self.store_as(Digest::of(&self.buffer))
    }

    /// Stores the buffer, whose digest is `id`, as a chunk.
    fn store_as(&mut self, id: Digest) -> Result<(), ArchiveError> {
        let inner = &self.archive.inner;
        self.storer.store(inner, &id, &self.buffer)?;
        let len = u32::try_from(self.buffer.len()).unwrap_or(u32::MAX);
        let offset = stored(&self.chunks);
        self.chunks.push(ChunkRef { id, len, offset });
        self.buffer.clear();
        Ok(())
    }

    /// How many bytes at the end of the base are in small chunks, and may be merged.
    fn small_tail(&self) -> usize {
        let sizes = self.archive.inner.sizes;
        let mut total = 0;
        for len in self.chunks.iter().rev().map(|chunk| chunk.len as usize) {
            if len >= sizes.small || total + len > sizes.chunk / 2 {
                break;
            }
            total += len;
        }
        total
    }

    /// Puts the small chunks at the end of the base before the new bytes, so that many small appends do
    /// not make many small files.
    ///
    /// A small chunk is merged once as many bytes have gathered behind it. Merging it each time would
    /// write its bytes again with every append; so each byte is written again only when its chunk
    /// doubles, and a log ends in a handful of small chunks at most, each smaller than the one before.
    fn merge_small_tail(&mut self) -> Result<(), ArchiveError> {
        let sizes = self.archive.inner.sizes;
        let mut gathered = self.buffer.len();
        let mut from = self.chunks.len();
        for chunk in self.chunks.iter().rev() {
            let len = chunk.len as usize;
            if len >= sizes.small || len > gathered || len + gathered > sizes.chunk {
                break;
            }
            gathered += len;
            from -= 1;
        }
        if from == self.chunks.len() {
            return Ok(());
        }
        let merged = read_back(
            &self.archive.inner,
            &mut self.storer,
            &self.chunks[from..],
            &self.key.path,
            gathered,
        )?;
        let new = std::mem::replace(&mut self.buffer, merged);
        self.buffer.extend_from_slice(&new);
        self.chunks.truncate(from);
        self.kept = from;
        Ok(())
    }
}

fn read_back(
    archive: &Inner,
    storer: &mut Storer,
    chunks: &[ChunkRef],
    of: &Path,
    capacity: usize,
) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::with_capacity(capacity);
    for chunk in chunks {
        bytes.extend_from_slice(storer.loader().load_chunk(archive, chunk, of)?);
    }
    Ok(bytes)
}

/// How many bytes these chunks hold, which begin at the first byte.
fn stored(chunks: &[ChunkRef]) -> u64 {
    chunks.last().map_or(0, ChunkRef::end)
}
