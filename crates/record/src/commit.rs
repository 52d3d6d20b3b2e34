//! When what was written is on disk.
//!
//! Whoever needs an event to be durable waits for it here. The first to wait brings to disk all that
//! was written so far, for everyone; those who come meanwhile share the next round. So one `fdatasync`
//! serves as many events as were written while the one before it ran.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::journal::in_place;
use crate::medium::Medium;

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
    /// Whether the background thread has something to do.
    dirty: AtomicBool,
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
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn medium(&self) -> Arc<dyn Medium> {
        self.medium.clone()
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
    /// Waits, unless it is closed.
    fn pause(&self, interval: Duration) {
        let began = Instant::now();
        while !self.closed.load(Ordering::SeqCst) {
            let left = interval.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            std::thread::park_timeout(left);
        }
    }

    /// Says that there will be no more events: a background thread ends, or does not begin.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// The thread that syncs a while after something was written. Sleeps while nothing is.
#[derive(Debug)]
pub(crate) struct Background {
    thread: JoinHandle<()>,
}

impl Background {
    pub(crate) fn start(commit: Arc<Commit>, interval: Duration) -> std::io::Result<Self> {
        let run = move || {
            while !commit.closed.load(Ordering::SeqCst) {
                if !commit.dirty.load(Ordering::SeqCst) {
                    std::thread::park();
                    continue;
                }
                // All that is written until then shares one sync. While it is dirty nobody wakes the thread but to end it.
                commit.pause(interval);
                // Before asking what was written: whatever comes later makes it dirty again.
                commit.dirty.store(false, Ordering::SeqCst);
                // A failure is kept, and told to whoever records next.
                if commit.wait(commit.written()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("quipu-sync".to_owned())
            .spawn(run)?;
        Ok(Self { thread })
    }

    /// Says that something was written.
    pub(crate) fn wake(&self, commit: &Commit) {
        if !commit.dirty.load(Ordering::SeqCst) && !commit.dirty.swap(true, Ordering::SeqCst) {
            self.thread.thread().unpark();
        }
    }

    pub(crate) fn stop(self, commit: &Commit) {
        commit.close();
        self.thread.thread().unpark();
        // It has no result, and if it panicked there is nothing left to undo.
        drop(self.thread.join());
    }
}
