//! Removing what nothing names, and telling how much there is.

use std::collections::HashSet;
use std::fs::{OpenOptions, TryLockError};
use std::io;

use jiff::Timestamp;

use super::{Archive, ArchiveError};
use crate::address::Digest;
use crate::{FileError, files};

/// What a sweep removed, or would have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many chunks.
    pub chunks: u64,
    /// How many temporary files that were left behind.
    pub temporary: u64,
    /// How large all of them were on disk.
    pub bytes: u64,
}

/// How much an archive holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Logs.
    pub sources: u64,
    /// Versions of them.
    pub versions: u64,
    /// Manifests that are damaged, whose sources are not counted.
    pub damaged: u64,
    /// How long all versions are together.
    pub original_bytes: u64,
    /// Chunks, with those that a sweep would remove.
    pub chunks: u64,
    /// How large the chunks are on disk.
    pub compressed_bytes: u64,
}

impl Archive {
    /// Removes chunks that are in no version of any source, and temporary files last written more than
    /// an hour before `now`. With `dry_run`, only says what it would remove.
    ///
    /// Chunks become unneeded when a source is forgotten, when small ones are merged, and when a writer
    /// is dropped. Whatever makes them so is brought to disk first; then they are removed one by one, so
    /// it may fail or be killed anywhere.
    ///
    /// # Errors
    ///
    /// When something is being kept at the same time, when a manifest is damaged (nobody knows which
    /// chunks it needs, so nothing is removed), or when the system refuses.
    pub fn sweep(&self, now: Timestamp, dry_run: bool) -> Result<Swept, ArchiveError> {
        let inner = &self.inner;
        let mut swept = Swept::default();
        let path = inner.lock_path();
        let lock = match OpenOptions::new().write(true).open(&path) {
            // Nothing was ever kept.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(swept),
            opened => opened.map_err(FileError::at("open", &path))?,
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::Busy { lock: path }),
            Err(TryLockError::Error(e)) => return Err(FileError::at("lock", path)(e).into()),
        }
        let needed = self.needed()?;
        if !dry_run {
            self.sync()?;
        }
        let chunks = inner.chunks.objects();
        for id in inner.chunks.digests() {
            let id = id?;
            if needed.contains(&id) {
                continue;
            }
            let name = inner.chunks.name_of(&id);
            let Some(look) = chunks.look(&name)? else {
                continue;
            };
            if !dry_run {
                chunks.delete(&name)?;
            }
            swept.chunks += 1;
            swept.bytes += look.len;
        }
        let (files, bytes) = files::sweep_temporary(&inner.tmp, now, dry_run)?;
        swept.temporary = files;
        swept.bytes += bytes;
        Ok(swept)
    }

    /// The chunks of all versions of all sources.
    fn needed(&self) -> Result<HashSet<Digest>, ArchiveError> {
        let mut needed: HashSet<Digest> = self.named_aside()?.into_iter().collect();
        for source in self.sources() {
            for version in source?.versions {
                needed.extend(version.chunks.iter().map(|chunk| chunk.id));
            }
        }
        Ok(needed)
    }

    /// Tells how much the archive holds, by looking at every file.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn usage(&self) -> Result<Usage, ArchiveError> {
        let mut usage = Usage::default();
        for source in self.sources() {
            match source {
                Ok(source) => {
                    usage.sources += 1;
                    usage.versions += source.versions.len() as u64;
                    usage.original_bytes += source.versions.iter().map(|it| it.size).sum::<u64>();
                }
                Err(ArchiveError::File(e)) => return Err(e.into()),
                Err(_) => usage.damaged += 1,
            }
        }
        let chunks = &self.inner.chunks;
        for id in chunks.digests() {
            let look = chunks.objects().look(&chunks.name_of(&id?))?;
            usage.compressed_bytes += look.map_or(0, |look| look.len);
            usage.chunks += 1;
        }
        Ok(usage)
    }
}
