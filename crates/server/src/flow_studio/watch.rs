//! The system says when something in a directory changed. One watcher serves everybody: the system has few of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Who wants to know of which directory.
type Directories = Mutex<HashMap<PathBuf, Entry>>;

#[derive(Debug)]
struct Entry {
    changed: watch::Sender<u64>,
    followers: usize,
}

/// Watches directories while somebody wants to know.
#[derive(Default, Clone)]
pub(super) struct Watch(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Made when first needed. Never locked by the watcher's own thread, which has to answer while this is held.
    watcher: Mutex<Option<notify::RecommendedWatcher>>,
    directories: Arc<Directories>,
}

/// Somebody wants to know of a directory. Dropping it ends that.
pub(super) struct Watched {
    shared: Arc<Shared>,
    directory: PathBuf,
    pub(super) changed: watch::Receiver<u64>,
}

impl Watch {
    /// Begins to watch a directory; `None` where the system does not notify.
    pub(super) fn directory(&self, directory: &Path) -> Option<Watched> {
        let mut watcher = self.0.watcher.lock();
        if watcher.is_none() {
            *watcher = made(&self.0.directories);
        }
        let watcher = watcher.as_mut()?;
        let known = {
            let mut directories = self.0.directories.lock();
            directories.get_mut(directory).map(|entry| {
                entry.followers += 1;
                entry.changed.subscribe()
            })
        };
        let changed = if let Some(changed) = known {
            changed
        } else {
            let (changed, receiver) = watch::channel(0);
            let entry = Entry {
                changed,
                followers: 1,
            };
            let mut directories = self.0.directories.lock();
            directories.insert(directory.to_owned(), entry);
            drop(directories);
            if watcher
                .watch(directory, RecursiveMode::NonRecursive)
                .is_err()
            {
                self.0.directories.lock().remove(directory);
                return None;
            }
            receiver
        };
        Some(Watched {
            shared: Arc::clone(&self.0),
            directory: directory.to_owned(),
            changed,
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watcher = self.shared.watcher.lock();
        let mut directories = self.shared.directories.lock();
        let Some(entry) = directories.get_mut(&self.directory) else {
            return;
        };
        entry.followers -= 1;
        if entry.followers > 0 {
            return;
        }
        directories.remove(&self.directory);
        drop(directories);
        if let Some(watcher) = watcher.as_mut() {
            // It may be gone, and is not watched then either.
            drop(watcher.unwatch(&self.directory));
        }
    }
}

fn made(directories: &Arc<Directories>) -> Option<notify::RecommendedWatcher> {
    let told = Arc::clone(directories);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let directories = told.lock();
        let bump = |entry: &Entry| entry.changed.send_modify(|number| *number += 1);
        match event {
            Ok(event) if event.kind.is_access() => {}
            Ok(event) if !event.need_rescan() => {
                for path in &event.paths {
                    let above = path.parent().and_then(|above| directories.get(above));
                    above
                        .into_iter()
                        .chain(directories.get(path))
                        .for_each(bump);
                }
            }
            // Something was missed.
            Ok(_) | Err(_) => directories.values().for_each(bump),
        }
    });
    watcher.ok()
}
