//! Noticing that something changed, without asking.
//!
//! Answers are kept in memory. Whether one still holds is known by a number: it goes up when the system says that a file of the home
//! changed, and when this process changed something. Where the system does not say (no notifications left), the number goes up
//! with every question, and every answer is looked at again.
//!
//! The system says that the catalogue's log was written to, and a moment later whoever wrote makes that known to readers. A reader
//! in between has what was there before, under the new number. So the number goes up again, twice: soon after, and when it has been
//! quiet for long enough that whoever wrote cannot still be at it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::watch;

use crate::runs::Runs;

/// The directories of recorded runs and of traces in a home.
const RUNS: &str = "transcripts";
const TRACES: &str = "traces";

/// How long the thread that is told of changes rests, at most half of the time. Whoever writes to a file wakes it if it does
/// not rest; and the system puts equal changes together meanwhile.
const REST: Duration = Duration::from_millis(2);

/// How long after a change everybody who reads sees it.
const SETTLE: Duration = Duration::from_millis(50);

/// Whether something changed since.
pub struct Freshness {
    state: Arc<State>,
    runs: Runs,
    /// None where the system does not notify.
    _watcher: Option<notify::RecommendedWatcher>,
    notified: bool,
}

struct State {
    number: AtomicU64,
    /// Goes up with every change of a recorded run or a trace.
    of_runs: AtomicU64,
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
            of_runs: AtomicU64::new(1),
            changed: watch::Sender::new(1),
        });
        let watcher = watch_home(home, &state).ok();
        Self {
            notified: watcher.is_some(),
            state,
            runs: Runs::default(),
            _watcher: watcher,
        }
    }

    /// The number that goes up with every change.
    pub fn number(&self) -> u64 {
        if !self.notified {
            return self.state.number.fetch_add(1, Ordering::AcqRel) + 1;
        }
        if self.runs.is_due(self.of_runs()) {
            // What was answered meanwhile is older than the runs, and is not to be answered again.
            return self.state.bump();
        }
        self.state.number.load(Ordering::Acquire)
    }

    /// The number that goes up when the file of a recorded run changes.
    pub(crate) fn of_runs(&self) -> u64 {
        if self.notified {
            return self.state.of_runs.load(Ordering::Acquire);
        }
        self.state.of_runs.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How far the catalogue is behind recorded runs.
    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
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

/// Whether what is in files changed. `SQLite` gives its log to the owner of the catalogue whenever root opens it, even if it is
/// theirs: then no answer would ever be kept.
fn is_of_contents(kind: EventKind) -> bool {
    !kind.is_access() && !matches!(kind, EventKind::Modify(ModifyKind::Metadata(_)))
}

fn watch_home(home: &Path, state: &Arc<State>) -> notify::Result<notify::RecommendedWatcher> {
    let told = Arc::clone(state);
    let settled = settler(state)?;
    let (runs, traces) = (home.join(RUNS), home.join(TRACES));
    let of_runs = [runs.clone(), traces.clone()];
    let is_of_runs = move |path: &Path| of_runs.iter().any(|directory| path.starts_with(directory));
    let (mut rested, mut bumped) = (Instant::now(), None::<Instant>);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let (changed, runs_changed) = match event {
            Ok(event) if !is_of_contents(event.kind) => (false, false),
            Ok(event) if !event.need_rescan() => {
                let mut paths = event.paths.iter().filter(|path| matters(path));
                let first = paths.next();
                let any = first.into_iter().chain(paths).any(|path| is_of_runs(path));
                (first.is_some(), any)
            }
            // The system has lost count.
            Ok(_) | Err(_) => (true, true),
        };
        if runs_changed {
            told.of_runs.fetch_add(1, Ordering::AcqRel);
        }
        if changed {
            // What follows at once is left to the thread that waits until it has settled.
            if bumped.is_none_or(|at| at.elapsed() >= REST) {
                told.bump();
                bumped = Some(Instant::now());
            }
            // One that was not heard yet will do.
            settled.try_send(()).ok();
        }
        if rested.elapsed() >= REST {
            std::thread::sleep(REST);
            rested = Instant::now();
        }
    })?;
    watcher.watch(home, RecursiveMode::NonRecursive)?;
    if quipu_files::create_directory(&runs).is_ok() {
        watcher.watch(&runs, RecursiveMode::NonRecursive)?;
    }
    if quipu_files::create_directory(&traces).is_ok() {
        watcher.watch(&traces, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

/// A thread that has the number go up again after what it is told of. It ends when nobody can tell it anything any more.
fn settler(state: &Arc<State>) -> notify::Result<SyncSender<()>> {
    let state = Arc::clone(state);
    let (tell, told): (_, Receiver<()>) = sync_channel(1);
    let thread = std::thread::Builder::new().name("quipu-freshness".to_owned());
    let spawned = thread.spawn(move || {
        while told.recv().is_ok() {
            loop {
                std::thread::sleep(REST);
                state.bump();
                if told.recv_timeout(SETTLE).is_err() {
                    break;
                }
            }
            state.bump();
        }
    });
    spawned.map_err(notify::Error::io)?;
    Ok(tell)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn until(what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn quiet(of: &State) -> u64 {
        loop {
            let before = of.number.load(Ordering::Acquire);
            std::thread::sleep(SETTLE * 4);
            if of.number.load(Ordering::Acquire) == before {
                return before;
            }
        }
    }

    #[test]
    fn a_change_is_seen_once_more_when_it_has_settled_and_then_it_is_quiet() {
        let home = tempfile::tempdir().unwrap();
        let freshness = Freshness::new(home.path());
        assert!(freshness.is_notified());
        let state = &freshness.state;
        let (before, of_runs) = (quiet(state), freshness.of_runs());
        let written = Instant::now();
        let log = home.path().join("index.sqlite-wal");
        std::fs::File::create(log).unwrap();
        until("a change is noticed", || {
            state.number.load(Ordering::Acquire) > before
        });
        // Somebody who reads while the change is being made known is told afterwards.
        let first = state.number.load(Ordering::Acquire);
        let last = quiet(state);
        assert!(last > first, "{first} {last} {:?}", written.elapsed());
        assert_eq!(freshness.of_runs(), of_runs, "it is not a run");
        assert_eq!(quiet(state), last);
        // What changes no answer is not a change.
        std::fs::File::create(home.path().join("index.sqlite-shm")).unwrap();
        assert_eq!(quiet(state), last);
        let owner = std::fs::File::open(home.path().join("index.sqlite-wal")).unwrap();
        owner
            .set_permissions(owner.metadata().unwrap().permissions())
            .unwrap();
        assert_eq!(quiet(state), last, "whose a file is");
        for file in ["transcripts/run.jsonl", "traces/trace.agentlog"] {
            let of_runs = freshness.of_runs();
            std::fs::File::create(home.path().join(file)).unwrap();
            until(file, || freshness.of_runs() > of_runs);
        }
    }

    #[test]
    fn many_small_changes_wake_less_often_than_they_are_made() {
        let home = tempfile::tempdir().unwrap();
        let freshness = Freshness::new(home.path());
        let before = quiet(&freshness.state);
        let begun = Instant::now();
        let path = home.path().join("transcripts/run.jsonl");
        let mut file = std::fs::File::create(path).unwrap();
        for _ in 0..20_000 {
            file.write_all(b"x").unwrap();
        }
        let took = begun.elapsed();
        let after = quiet(&freshness.state);
        // At most twice for each rest, and some more for the first and the last.
        let rests = (took + SETTLE).as_micros() / REST.as_micros();
        assert!(
            u128::from(after - before) <= 2 * rests + 4,
            "{} for {rests} rests",
            after - before
        );
    }
}
