//! When what was written is on disk.
//!
//! Whoever needs an event to be durable waits for it here. The first to wait brings to disk all that
//! was written so far, for everyone; those who come meanwhile share the next round. So one `fdatasync`
//! serves as many events as were written while the one before it ran.
//!
//! With [`Durability::Group`] nobody waits: the first event after a sync puts the run into a queue, and one thread for
//! all runs of the process ([`Syncs`]) syncs it an interval later.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::Error;
use crate::fanout::unharmed;
use crate::journal::in_place;
use crate::medium::Medium;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, thread, wait_at_most,
};

/// How safe an event is when [`crate::Recorder::record`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In the file: survives the end of the process, not of the machine.
    None,
    /// In the file, and on disk at most this much later.
    Group(Duration),
    /// On disk. Threads that record at the same time share a sync.
    Each,
}

impl Default for Durability {
    /// On disk 20 ms later.
    fn default() -> Self {
        Self::Group(Duration::from_millis(20))
    }
}

#[derive(Debug, Default)]
struct State {
    synced: u64,
    syncing: bool,
    failed: Option<String>,
}

pub(crate) struct Commit {
    medium: Arc<dyn Medium>,
    path: PathBuf,
    /// The last sequence number that is wholly in the file.
    written: AtomicU64,
    /// Where the file ended when that was.
    len: AtomicU64,
    /// Whether a sync has failed; looked at for every event.
    failed: AtomicBool,
    state: Mutex<State>,
    round: Condvar,
    /// Whether the thread that syncs knows that there is something to do.
    dirty: AtomicBool,
    /// How long the last sync by that thread took, in microseconds.
    took: AtomicU64,
    /// Whether that thread is to leave it alone. Changed with the queue's lock held.
    closed: AtomicBool,
}

impl Commit {
    pub(crate) fn new(medium: Arc<dyn Medium>, path: PathBuf, last_seq: u64, len: u64) -> Self {
        Self {
            medium,
            path,
            written: AtomicU64::new(last_seq),
            len: AtomicU64::new(len),
            failed: AtomicBool::new(false),
            // What is in the file was not necessarily synced by whoever wrote it.
            state: Mutex::default(),
            round: Condvar::new(),
            dirty: AtomicBool::new(false),
            took: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held, and each change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that all events up to `seq` are in the file, which is `len` bytes long.
    pub(crate) fn wrote(&self, seq: u64, len: u64) {
        // The length first: whoever sees the event then sees a length that covers it.
        self.len.store(len, Ordering::Relaxed);
        self.written.store(seq, Ordering::Release);
    }

    /// The last event in the file.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The last event on disk.
    pub(crate) fn synced(&self) -> u64 {
        self.lock().synced
    }

    /// Returns once event `seq` is on disk.
    pub(crate) fn wait(&self, seq: u64) -> Result<(), Error> {
        let mut state = self.lock();
        loop {
            if let Some(message) = &state.failed {
                let (path, message) = (self.path.clone(), message.clone());
                return Err(Error::SyncFailed { path, message });
            }
            if state.synced >= seq {
                return Ok(());
            }
            if state.syncing {
                state = self
                    .round
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.syncing = true;
            drop(state);
            let upto = self.written();
            let done = self.sync();
            state = self.lock();
            state.syncing = false;
            match done {
                Ok(()) => state.synced = state.synced.max(upto),
                Err(message) => {
                    state.failed = Some(message);
                    self.failed.store(true, Ordering::SeqCst);
                }
            }
            self.round.notify_all();
        }
    }

    /// Brings what was written to disk, and looks that it is there. A file that is on disk but no
    /// longer in its place, or no longer whole, is not what was promised.
    fn sync(&self) -> Result<(), String> {
        let expected = self.len.load(Ordering::Relaxed);
        self.medium.sync().map_err(|e| e.to_string())?;
        in_place(&*self.medium, &self.path).map_err(|e| e.to_string())?;
        let found = self.medium.size().map_err(|e| e.to_string())?;
        if found < expected {
            let path = self.path.clone();
            return Err(Error::Changed {
                path,
                expected,
                found,
            }
            .to_string());
        }
        Ok(())
    }

    /// Whether a sync has failed. What it should have brought to disk may be lost, and trying again
    /// would not tell, so nothing more is taken.
    pub(crate) fn failure(&self) -> Option<Error> {
        if !self.failed.load(Ordering::SeqCst) {
            return None;
        }
        let message = self.lock().failed.clone()?;
        Some(Error::SyncFailed {
            path: self.path.clone(),
            message,
        })
    }
}

impl Commit {
    /// Has the thread that syncs bring what was written to disk, at most `interval` later.
    pub(crate) fn sync_later(
        self: &Arc<Self>,
        syncs: &Arc<Syncs>,
        interval: Duration,
    ) -> Result<(), Error> {
        if self.dirty.load(Ordering::SeqCst) || self.dirty.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        // The sync has to be done by then, so it begins earlier by as long as the last one took. But not much
        // earlier: a disk that is slow would otherwise be asked all the time.
        let took = Duration::from_micros(self.took.load(Ordering::Relaxed));
        if syncs.add(self, interval.saturating_sub(took.min(interval / 6))) {
            return Ok(());
        }
        // Without a thread, whoever records pays for the sync.
        self.dirty.store(false, Ordering::SeqCst);
        self.wait(self.written())
    }

    /// What the thread that syncs does.
    fn sync_now(&self) {
        // Before asking what was written: whatever comes later makes it dirty again.
        self.dirty.store(false, Ordering::SeqCst);
        let began = Instant::now();
        // A failure is kept, and told to whoever records next.
        drop(self.wait(self.written()));
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.took.store(took, Ordering::Relaxed);
    }
}

/// The runs that have something to sync, and the thread that does it when it is due.
#[derive(Default)]
pub(crate) struct Syncs {
    queue: Mutex<Queue>,
    tell: Condvar,
}

#[derive(Default)]
struct Queue {
    /// By when they are due. The number tells those apart that are due at the same time.
    due: BTreeMap<(Instant, u64), Arc<Commit>>,
    added: u64,
    started: bool,
    stopped: bool,
}

impl Syncs {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run that is to be synced after `delay`. False when its thread could not be started.
    fn add(self: &Arc<Self>, commit: &Arc<Commit>, delay: Duration) -> bool {
        let mut queue = self.lock();
        if commit.closed.load(Ordering::SeqCst) {
            // Whoever closes it brings everything to disk.
            return true;
        }
        if !queue.started {
            let syncs = self.clone();
            let thread = thread::Builder::new()
                .name("quipu-sync".to_owned())
                .spawn(move || syncs.run());
            queue.started = thread.is_ok();
            if !queue.started {
                return false;
            }
        }
        let now = Instant::now();
        // An interval that ends after all time is one that closing ends.
        let Some(due) = now.checked_add(delay) else {
            return true;
        };
        queue.added += 1;
        let key = (due, queue.added);
        let is_first = queue.due.first_key_value().is_none_or(|(at, _)| key < *at);
        queue.due.insert(key, commit.clone());
        drop(queue);
        if is_first {
            self.tell.notify_one();
        }
        true
    }

    /// Forgets a run that is closed, and lets go of its file.
    pub(crate) fn forget(&self, commit: &Arc<Commit>) {
        let mut queue = self.lock();
        commit.closed.store(true, Ordering::SeqCst);
        queue.due.retain(|_, other| !Arc::ptr_eq(other, commit));
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.tell.notify_one();
    }

    fn run(&self) {
        let mut queue = self.lock();
        while !queue.stopped {
            let Some(first) = queue.due.first_entry() else {
                queue = wait_at_most(&self.tell, queue, None);
                continue;
            };
            let left = first.key().0.saturating_duration_since(Instant::now());
            if !left.is_zero() && cfg!(not(feature = "shuttle")) {
                queue = wait_at_most(&self.tell, queue, Some(left));
                continue;
            }
            let commit = first.remove();
            drop(queue);
            // The medium may be somebody else's, and other runs need this thread.
            unharmed(|| commit.sync_now());
            drop(commit);
            queue = self.lock();
        }
    }
}
