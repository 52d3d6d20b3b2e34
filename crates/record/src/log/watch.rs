//! Tells when a file of another process has changed.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A file that somebody waits for, by its path.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    seen: Seen,
    waker: Option<Waker>,
}

/// What a file looked like: which one it is and how long; `None` when there is none.
pub(super) type Seen = Option<((u64, u64), u64)>;

impl Watched {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whom to wake once the file does not look like this any more.
    pub(super) fn wait_for_change(&self, seen: Seen, waker: &Waker) {
        *self.lock() = State {
            seen,
            waker: Some(waker.clone()),
        };
    }

    /// Whether the file looks different.
    pub(crate) fn has_changed(&self) -> bool {
        let now = std::fs::metadata(&self.path).ok().as_ref().map(seen);
        now != self.lock().seen
    }

    pub(crate) fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

pub(super) fn seen(metadata: &Metadata) -> ((u64, u64), u64) {
    (super::identity(metadata), metadata.len())
}
