//! Noticing that something changed, without asking.
//!
//! Answers are kept in memory. Whether one still holds is known by a number: it goes up when the system says that a file of the home
//! changed, and when this process changed something. Where the system does not say (no notifications left), the number goes up
//! with every question, and every answer is looked at again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use notify::{RecursiveMode, Watcher as _};
use tokio::sync::watch;

/// The directory of recorded runs in a home.
const RUNS: &str = "transcripts";

/// Whether something changed since.
pub struct Freshness {
    state: Arc<State>,
    /// None where the system does not notify.
    _watcher: Option<notify::RecommendedWatcher>,
    notified: bool,
}

struct State {
    number: AtomicU64,
    changed: watch::Sender<u64>,
}

impl std::fmt::Debug for Freshness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Freshness")
            .field("notified", &self.notified)
            .finish_non_exhaustive()
    }
}

impl State {
    fn bump(&self) -> u64 {
        let number = self.number.fetch_add(1, Ordering::AcqRel) + 1;
        self.changed.send_replace(number);
        number
    }
}

impl Freshness {
    /// Watches the files of a home.
    pub fn new(home: &Path) -> Self {
        let state = Arc::new(State {
            number: AtomicU64::new(1),
            changed: watch::Sender::new(1),
        });
        let watcher = watch_home(home, &state).ok();
        Self {
            notified: watcher.is_some(),
            state,
            _watcher: watcher,
        }
    }

    /// The number that goes up with every change.
    pub fn number(&self) -> u64 {
        if self.notified {
            return self.state.number.load(Ordering::Acquire);
        }
        self.state.number.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Says that this process changed something.
    pub fn bump(&self) {
        self.state.bump();
    }

    /// Hears of changes. What comes is the latest number; those between may be left out.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.state.changed.subscribe()
    }

    /// Whether the system says when files change.
    pub fn is_notified(&self) -> bool {
        self.notified
    }
}

/// Whether a change of this file can change an answer. Readers of the catalogue touch its shared memory, which is not a change.
fn matters(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    !matches!(
        name,
        Some("index.sqlite-shm" | "import.lock" | "server.json" | "server.lock")
    ) && path.extension().is_none_or(|ending| ending != "tmp")
}

fn watch_home(home: &Path, state: &Arc<State>) -> notify::Result<notify::RecommendedWatcher> {
    let told = Arc::clone(state);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let changed = match event {
            Ok(event) if event.kind.is_access() => false,
            Ok(event) => event.need_rescan() || event.paths.iter().any(|path| matters(path)),
            Err(_) => true,
        };
        if changed {
            told.bump();
        }
    })?;
    watcher.watch(home, RecursiveMode::NonRecursive)?;
    let runs = home.join(RUNS);
    if quipu_files::create_directory(&runs).is_ok() {
        watcher.watch(&runs, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}
