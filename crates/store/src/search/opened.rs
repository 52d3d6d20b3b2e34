//! The search index, opened once and again when it changes.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use quipu_search::index::{Index as _, TantivyIndex, View};

use super::index_path;
use super::lookup::SearchError;

/// The index of a home as it was when somebody looked last. Opening it takes longer than most searches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opened(Arc<Mutex<Option<(Commit, Arc<dyn View>)>>>);

/// Which commit an index is at. Every commit puts another file in the place of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Commit {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Commit {
    fn of(index: &Path) -> Option<Self> {
        let file = index.join("meta.json").metadata().ok()?;
        Some(Self {
            inode: file.ino(),
            size: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

impl Opened {
    /// The index as it is now.
    pub(super) fn view(&self, home: &Path) -> Result<Arc<dyn View>, SearchError> {
        let path = index_path(home);
        // Before it is opened: what is committed meanwhile is opened the next time.
        let commit = Commit::of(&path);
        if let (Some(commit), Some((known, view))) = (commit, &*self.0.lock())
            && commit == *known
        {
            return Ok(view.clone());
        }
        let index = TantivyIndex::open(&path)?.ok_or(SearchError::NoIndex)?;
        let view = index.view()?;
        *self.0.lock() = commit.map(|commit| (commit, view.clone()));
        Ok(view)
    }
}
