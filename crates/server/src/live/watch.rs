//! Which of the files that somebody follows have changed. The system says so; nothing is polled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::{RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long the thread that is told of changes rests, at most half of the time. Whoever writes to a file wakes it if it does
/// not rest, which takes longer than to write an event; and the system puts equal changes together meanwhile.
const REST: Duration = Duration::from_millis(2);

type Waiting = HashMap<PathBuf, Vec<Arc<Notify>>>;

/// Watches files, each by its directory, so that one that is replaced or does not exist yet is noticed, too.
#[derive(Default)]
pub(crate) struct Files {
    waiting: Arc<Mutex<Waiting>>,
    watcher: Mutex<Option<Watching>>,
}

struct Watching {
    watcher: notify::RecommendedWatcher,
    /// How many files are watched in each directory.
    directories: HashMap<PathBuf, usize>,
}

/// A file that is watched until this is dropped.
pub(crate) struct Watched {
    files: Arc<Files>,
    path: PathBuf,
    told: Arc<Notify>,
}

impl Files {
    /// Tells of every change of a file from now on. `None` where the system cannot.
    pub(crate) fn watch(self: &Arc<Self>, path: &Path, told: &Arc<Notify>) -> Option<Watched> {
        let directory = path.parent()?;
        let mut watcher = self.watcher.lock();
        let watching = match &mut *watcher {
            Some(watching) => watching,
            none => none.insert(self.begin().ok()?),
        };
        if !watching.directories.contains_key(directory) {
            let watched = watching
                .watcher
                .watch(directory, RecursiveMode::NonRecursive);
            watched.ok()?;
        }
        *watching
            .directories
            .entry(directory.to_owned())
            .or_default() += 1;
        let mut waiting = self.waiting.lock();
        let waiting = waiting.entry(path.to_owned()).or_default();
        waiting.push(Arc::clone(told));
        Some(Watched {
            files: Arc::clone(self),
            path: path.to_owned(),
            told: Arc::clone(told),
        })
    }

    fn begin(&self) -> notify::Result<Watching> {
        let waiting = Arc::clone(&self.waiting);
        let mut rested = Instant::now();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let told = waiting.lock();
            let waiting = &*told;
            let tell = |told: &Vec<Arc<Notify>>| told.iter().for_each(|told| told.notify_one());
            match event {
                Ok(event) if event.kind.is_access() => {}
                Ok(event) if !event.need_rescan() => {
                    let found = event.paths.iter().filter_map(|path| waiting.get(path));
                    found.for_each(tell);
                }
                // The system has lost count.
                Ok(_) | Err(_) => waiting.values().for_each(tell),
            }
            drop(told);
            if rested.elapsed() >= REST {
                std::thread::sleep(REST);
                rested = Instant::now();
            }
        })?;
        Ok(Watching {
            watcher,
            directories: HashMap::new(),
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watcher = self.files.watcher.lock();
        {
            let mut waiting = self.files.waiting.lock();
            if let Some(told) = waiting.get_mut(&self.path) {
                told.retain(|told| !Arc::ptr_eq(told, &self.told));
                if told.is_empty() {
                    waiting.remove(&self.path);
                }
            }
        }
        let (Some(watching), Some(directory)) = (&mut *watcher, self.path.parent()) else {
            return;
        };
        if let Some(count) = watching.directories.get_mut(directory) {
            *count -= 1;
            if *count == 0 {
                watching.directories.remove(directory);
                // The directory may be gone, and its watch with it.
                drop(watching.watcher.unwatch(directory));
            }
        }
        if watching.directories.is_empty() {
            *watcher = None;
        }
    }
}
