//! Tells when a file of another process has changed.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::fanout::Parker;
use crate::hub::Hub;

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

/// Waits for changes of a file that other processes write. One thread looks at the files of all who wait in this
/// process.
pub struct FileWatch {
    hub: Arc<Hub>,
    watched: Arc<Watched>,
}

impl std::fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FileWatch")
            .field(&self.watched.path)
            .finish()
    }
}

/// What a file looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileLook(Seen);

impl FileWatch {
    /// Of the file at this path, whether it is there or not.
    pub fn of(path: &Path) -> Self {
        Self {
            hub: Hub::of_process(),
            watched: Arc::new(Watched::new(path)),
        }
    }

    /// What it looks like now.
    pub fn look(&self) -> FileLook {
        FileLook(self.watched.look())
    }

    /// Waits until it does not look like this any more, but not longer than `timeout`.
    pub fn wait(&self, look: &FileLook, timeout: Duration) {
        let parker = Arc::<Parker>::default();
        let can_wait = self.ask(look.0, &Waker::from(parker.clone()));
        parker.park(Some(if can_wait {
            timeout
        } else {
            timeout.min(LOOK_EVERY)
        }));
    }

    /// Wakes whoever asks once it does not look like this any more.
    pub fn wake(&self, look: &FileLook, waker: &Waker) {
        self.ask(look.0, waker);
    }

    /// The same; gives whether anybody looks at the file.
    pub(super) fn ask(&self, seen: Seen, waker: &Waker) -> bool {
        self.watched.wait_for_change(seen, waker);
        self.hub.wakes.watch(&self.watched)
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.hub.wakes.unwatch(&self.watched);
    }
}

/// How often a file is looked at where no thread can be started.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

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

    fn look(&self) -> Seen {
        std::fs::metadata(&self.path).ok().as_ref().map(seen)
    }

    /// Whether the file looks different.
    pub(crate) fn has_changed(&self) -> bool {
        self.look() != self.lock().seen
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
