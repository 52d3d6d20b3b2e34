//! The archive: original bytes of imported logs, compressed, for good.
//!
//! ```text
//! archive/chunks/ab/cdef….zst      zstd frames; the name is the SHA-256 of the bytes inside
//! archive/sources/ab/cdef….jsonl   one manifest per source; the name is SourceKey::id
//! archive/damaged/                 manifests that could not be used, as they were
//! archive/tmp/                     files being written, renamed into place
//! archive/lock                     held shared while something is kept, alone while sweeping
//! archive/README.txt               this, for whoever finds it without Quipu
//! ```
//!
//! A **source** is a log file, or one session inside a database ([`SourceKey`]). A **snapshot** is what
//! it held at one time; each is a line of the source's manifest. A log that only got longer keeps its
//! **version**; one that was rewritten, cut or replaced begins another, and the old stays.
//!
//! # Invariants
//!
//! * A chunk is never changed. It is replaced only when it does not hold what its name says.
//! * A manifest line is whole or not there, and names chunks that were written before it.
//! * No snapshot is built on another than the one it was compared with: a line is appended only to the
//!   manifest that its writer has seen ([`ArchiveError::Conflict`]).
//! * Only [`Archive::sweep`] removes chunks: those in no version's last state. Removing earlier would
//!   have to ask every manifest whether another log has the same bytes.
//!
//! # What a crash leaves
//!
//! A killed process leaves chunks that no manifest names, files in `tmp` and at most a torn manifest
//! line; all are harmless, and swept or cut later. When the power fails, what was written since the last
//! [`Archive::sync`] may be lost in any order: a manifest may then name chunks that are not there.
//! Reading says so by name ([`Archive::check`] does nothing else), and [`Archive::rewrite`] from a log
//! that still exists puts back what is missing.

mod chunk;
mod error;
mod manifest;
mod read;
mod repair;
mod seek;
mod slices;
mod snapshot;
mod sweep;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use chunk::ChunkRef;
pub use error::{ArchiveError, ChunkFault};
pub use read::SnapshotReader;
pub use repair::{Manifest, Salvaged};
pub(crate) use slices::{SliceReader, Slices};
pub use snapshot::{Meta, Prefix, Snapshot, Source, SourceKey};
pub use sweep::{Swept, Usage};
pub use write::SnapshotWriter;

use crate::address::Shelf;
use crate::durable::Unsynced;
use crate::objects::{Directory, Objects};
use crate::{FileError, files};

/// How many bytes of a log a chunk holds at most.
pub const CHUNK: usize = 4 << 20;

/// How many bytes a frame of a chunk holds: what has to be unpacked to read any of them.
pub const FRAME: usize = 512 << 10;

/// A chunk at the end of a log that is smaller than this is merged with what comes after it.
pub const SMALL: usize = 256 << 10;

/// A directory of original bytes. Cheap to clone and to share between threads: several may keep
/// different sources at once.
#[derive(Debug, Clone)]
pub struct Archive {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    chunks: Shelf,
    sources: Shelf,
    tmp: PathBuf,
    unsynced: Arc<Unsynced>,
    sizes: Sizes,
}

/// How chunks are cut. Fixed but in tests, which could not reach every case with megabytes.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    chunk: usize,
    small: usize,
    frame: usize,
}

const SIZES: Sizes = Sizes {
    chunk: CHUNK,
    small: SMALL,
    frame: FRAME,
};

/// Chunks in the directory of their archive. They are brought to disk with its manifests.
fn in_directory(root: &Path, unsynced: &Arc<Unsynced>) -> Arc<dyn Objects> {
    let (chunks, tmp) = (root.join("chunks"), root.join("tmp"));
    Arc::new(Directory::noting(chunks, tmp, unsynced.clone()))
}

impl Archive {
    /// The archive in this directory, which is made when something is first kept.
    ///
    /// # Errors
    ///
    /// When the directory's path is empty, or relative and there is no working directory.
    pub fn open(directory: &Path) -> Result<Self, ArchiveError> {
        Self::with(directory, SIZES, in_directory)
    }

    /// As [`Archive::open`], with chunks in objects that may be elsewhere. Manifests are in the directory.
    ///
    /// # Errors
    ///
    /// As [`Archive::open`].
    pub fn with_chunks(directory: &Path, objects: Arc<dyn Objects>) -> Result<Self, ArchiveError> {
        Self::with(directory, SIZES, |_, _| objects)
    }

    #[cfg(test)]
    fn with_sizes(directory: &Path, sizes: Sizes) -> Result<Self, ArchiveError> {
        Self::with(directory, sizes, in_directory)
    }

    fn with(
        directory: &Path,
        sizes: Sizes,
        chunks: impl FnOnce(&Path, &Arc<Unsynced>) -> Arc<dyn Objects>,
    ) -> Result<Self, ArchiveError> {
        // The working directory may change.
        let root = std::path::absolute(directory).map_err(FileError::at("find", directory))?;
        let unsynced = Arc::default();
        let tmp = root.join("tmp");
        let inner = Inner {
            chunks: Shelf::new(chunks(&root, &unsynced), ".zst"),
            sources: Shelf::new(
                Arc::new(Directory::new(root.join("sources"), tmp.clone())),
                ".jsonl",
            ),
            tmp,
            unsynced,
            root,
            sizes,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The last snapshot of a source, if it was ever kept.
    ///
    /// # Errors
    ///
    /// When its manifest is damaged or cannot be read.
    pub fn latest(&self, key: &SourceKey) -> Result<Option<Snapshot>, ArchiveError> {
        Ok(self
            .source(key)?
            .and_then(|mut source| source.versions.pop()))
    }

    /// A source and all its versions, if it was ever kept.
    ///
    /// # Errors
    ///
    /// When its manifest is damaged or cannot be read.
    pub fn source(&self, key: &SourceKey) -> Result<Option<Source>, ArchiveError> {
        self.inner.read_manifest(&key.id())
    }

    /// A source by the id of its key, as text.
    pub fn source_by_id(&self, id: &str) -> Result<Option<Source>, ArchiveError> {
        match id.parse() {
            Ok(id) => self.inner.read_manifest(&id),
            Err(_) => Ok(None),
        }
    }

    /// All sources, in the order of their ids, each read when it is asked for. A manifest that is
    /// damaged is an error item that names it; the rest goes on.
    pub fn sources(&self) -> impl Iterator<Item = Result<Source, ArchiveError>> + use<> {
        let inner = self.inner.clone();
        let entries = self.inner.sources.digests();
        entries.filter_map(move |entry| match entry {
            Ok(id) => inner.read_manifest(&id).transpose(),
            Err(e) => Some(Err(e.into())),
        })
    }

    /// Begins to keep a source that was never kept.
    ///
    /// # Errors
    ///
    /// When the system refuses. As all writers, waits while the archive is swept.
    pub fn begin(&self, key: &SourceKey) -> Result<SnapshotWriter, ArchiveError> {
        SnapshotWriter::begin(self, key)
    }

    /// Goes on with a source that only got longer: what is written follows what the snapshot holds.
    ///
    /// # Errors
    ///
    /// As [`Archive::begin`].
    pub fn grow(&self, snapshot: &Snapshot) -> Result<SnapshotWriter, ArchiveError> {
        SnapshotWriter::grow(self, snapshot)
    }

    /// Keeps a source anew, from its first byte: it was rewritten, cut or replaced. The beginning that
    /// is still the same is not stored again. Should all of the snapshot be the beginning of what is
    /// written, then the log has only grown, and no new version begins.
    ///
    /// # Errors
    ///
    /// As [`Archive::begin`].
    pub fn rewrite(&self, snapshot: &Snapshot) -> Result<SnapshotWriter, ArchiveError> {
        SnapshotWriter::rewrite(self, snapshot)
    }

    /// Brings everything that was written to disk. Meant for once per batch: it syncs the whole file
    /// system where the system can.
    ///
    /// # Errors
    ///
    /// When the system refuses; then nothing since the last sync can be relied upon.
    pub fn sync(&self) -> Result<(), ArchiveError> {
        // A manifest names chunks, so they come first.
        self.inner.chunks.objects().sync()?;
        Ok(self.inner.unsynced.sync(&self.inner.root)?)
    }

    /// Forgets a source and all its versions, and says whether it was there. Its chunks stay until
    /// [`Archive::sweep`].
    ///
    /// # Errors
    ///
    /// When the system refuses. A damaged manifest can be forgotten.
    pub fn forget(&self, key: &SourceKey) -> Result<bool, ArchiveError> {
        manifest::remove(&self.inner, key)
    }
}

impl Inner {
    fn read_manifest(&self, id: &crate::address::Digest) -> Result<Option<Source>, ArchiveError> {
        let path = self.sources.path_of(id);
        let source = manifest::read(&path)?;
        match &source {
            // A copy under another name would make one log two.
            Some(source) if source.key.id() != *id => Err(ArchiveError::Manifest {
                path,
                line: 1,
                why: format!("it is about {}, not what its name says", source.key),
            }),
            _ => Ok(source),
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Opens the lock, making the archive if need be. Locked until it is dropped.
    fn lock_shared(&self) -> Result<File, FileError> {
        let path = self.lock_path();
        let open = || quipu_files::open_lock(&path);
        let file = files::with_directory_of(&path, "open", open)?;
        file.lock_shared().map_err(FileError::at("lock", &path))?;
        let readme = self.root.join("README.txt");
        if !readme.exists() {
            files::place(&readme, include_bytes!("README.txt"), &self.tmp)?;
        }
        Ok(file)
    }
}
