//! Whether the files of an index are what was written, and reading them where nothing may be written.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::index::SegmentComponent;

use super::schema::PASS;
use super::{IndexError, Result, TantivyIndex};

/// The files that every part of the index has.
const COMPONENTS: [SegmentComponent; 6] = [
    SegmentComponent::Postings,
    SegmentComponent::Positions,
    SegmentComponent::FastFields,
    SegmentComponent::FieldNorms,
    SegmentComponent::Terms,
    SegmentComponent::Store,
];

impl TantivyIndex {
    /// What is wrong with the files of the index. With `all`, every one of them is read and compared with its sum.
    pub(super) fn look(&self, all: bool) -> Result<Vec<String>> {
        guarded(&self.path, || {
            let mut damages = Vec::new();
            let directory = self.engine.directory();
            for segment in self.engine.searchable_segment_metas()? {
                let deleted = segment.has_deletes().then_some(SegmentComponent::Delete);
                for component in COMPONENTS.into_iter().chain(deleted) {
                    let name = segment.relative_path(component);
                    let file = self.path.join(&name);
                    if !file.exists() {
                        damages.push(format!("{} is missing", file.display()));
                    } else if all && !directory.validate_checksum(&name).is_ok_and(|same| same) {
                        damages.push(format!("{} is not what was written", file.display()));
                    }
                }
            }
            if damages.is_empty() {
                for segment in self.searcher()?.segments() {
                    let there = segment.fast_fields().u64(PASS)?.num_docs();
                    if there != segment.max_doc() {
                        let meta = self.path.join("meta.json");
                        damages.push(format!("{} is not what was written", meta.display()));
                    }
                }
            }
            Ok(damages)
        })
    }
}

thread_local! {
    /// Whether a panic on this thread is caught, so that nobody need hear of it.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Does something with the files of an index. The engine trusts them: where one is damaged it may panic, which is an
/// error like any other here.
pub(super) fn guarded<T>(path: &Path, act: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                before(panic);
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(act));
    CAUGHT.set(outer);
    done.unwrap_or_else(|_| {
        Err(IndexError::Unusable {
            path: path.to_owned(),
            why: "its files are damaged".to_owned(),
        })
    })
}

/// A directory that may not be written to: a backup, somebody else's. Nobody changes what is in it, so nothing is
/// locked.
#[derive(Debug, Clone)]
pub(super) struct ReadOnly(MmapDirectory);

impl ReadOnly {
    /// A directory of which it is known that it may not be written to.
    #[cfg(test)]
    pub(super) fn new(directory: MmapDirectory) -> Self {
        Self(directory)
    }

    /// The directory, if it is one that may not be written to.
    pub(super) fn of(path: &Path, directory: &MmapDirectory) -> Option<Self> {
        let lock = path.join(".tantivy-meta.lock");
        let mut options = std::fs::OpenOptions::new();
        let refused = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(lock)
            .is_err_and(|error| {
                matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                )
            });
        refused.then(|| Self(directory.clone()))
    }
}

impl Directory for ReadOnly {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.0.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.0.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.0.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.0.watch(callback)
    }
}
