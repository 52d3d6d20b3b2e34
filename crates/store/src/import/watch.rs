//! Waiting for logs to change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use notify::{RecursiveMode, Watcher as _};
use quipu_agents::Host;

use super::find;

/// How long a log has to be quiet before it is read, and how long it may be busy at most.
const QUIET: Duration = Duration::from_millis(250);
const BUSY: Duration = Duration::from_secs(2);

/// Changes beyond this many are taken as "anything may have changed".
const MANY: usize = 1024;

/// Watches the places of agents with the notifications of the system. Nothing is polled.
pub struct Watch {
    _watcher: notify::RecommendedWatcher,
    changes: Receiver<Option<PathBuf>>,
    /// Whether there were more changes than the queue holds.
    overflowed: Arc<AtomicBool>,
    watched: Vec<PathBuf>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("watched", &self.watched)
            .finish_non_exhaustive()
    }
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// These files.
    Paths(Vec<PathBuf>),
    /// So much that everything is to be looked at again.
    Anything,
}

impl Watch {
    /// Watches the places of these agents that exist. A place that does not exist yet is noticed when it
    /// is made, as far as the directory above it exists.
    pub fn new(host: &Host, agents: &[String]) -> notify::Result<Self> {
        let roots = find::places(host, agents).map(|(_, place)| place.root);
        Self::of_paths(roots)
    }

    /// Watches these paths.
    pub fn of_paths(paths: impl IntoIterator<Item = PathBuf>) -> notify::Result<Self> {
        let (to, changes) = sync_channel(MANY);
        let overflowed = Arc::new(AtomicBool::new(false));
        let lost = overflowed.clone();
        let tell = move |change: Option<PathBuf>| {
            if to.try_send(change).is_err() {
                // Who waits is awake, as there is much to take; that some of it is missing it sees here.
                lost.store(true, Ordering::Release);
            }
        };
        let handler = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.kind.is_access() => {}
            Ok(event) if !event.need_rescan() => event.paths.into_iter().map(Some).for_each(&tell),
            _ => tell(None),
        };
        let mut watcher = notify::recommended_watcher(handler)?;
        let mut watched: BTreeSet<(PathBuf, bool)> = BTreeSet::new();
        for root in paths {
            if root.is_dir() {
                watched.insert((root, true));
            } else if let Some(above) = existing_above(&root) {
                watched.insert((above, false));
            }
        }
        let mut done = Vec::new();
        for (path, recursive) in watched {
            let below_another = done
                .iter()
                .any(|(other, deep): &(PathBuf, bool)| *deep && path.starts_with(other));
            if below_another {
                continue;
            }
            let mode = if recursive {
                RecursiveMode::Recursive
            } else {
                RecursiveMode::NonRecursive
            };
            watcher.watch(&path, mode)?;
            done.push((path, recursive));
        }
        Ok(Self {
            _watcher: watcher,
            changes,
            overflowed,
            watched: done.into_iter().map(|(path, _)| path).collect(),
        })
    }

    /// The directories that are watched.
    pub fn watched(&self) -> &[PathBuf] {
        &self.watched
    }

    /// Waits until something changed and is quiet again. `None` when `timeout` passed without a change.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Changed> {
        let first = match timeout {
            None => self.changes.recv().ok()?,
            Some(timeout) => self.changes.recv_timeout(timeout).ok()?,
        };
        let begun = Instant::now();
        let mut paths = BTreeSet::new();
        let mut anything = false;
        let mut take = |change: Option<PathBuf>| match change {
            Some(path) => {
                paths.insert(path);
            }
            None => anything = true,
        };
        take(first);
        while begun.elapsed() < BUSY {
            match self.changes.recv_timeout(QUIET) {
                Ok(change) => take(change),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let lost = self.overflowed.swap(false, Ordering::Acquire);
        if anything || lost || paths.len() >= MANY {
            return Some(Changed::Anything);
        }
        Some(Changed::Paths(paths.into_iter().collect()))
    }
}

/// The nearest directory above a path that exists, but not the root of the file system.
fn existing_above(path: &Path) -> Option<PathBuf> {
    let above = path.parent()?;
    (above.is_dir() && above.parent().is_some()).then(|| above.to_owned())
}
