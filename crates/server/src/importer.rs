//! What the import does that feeds the home. Whoever imports says so here; requests ask.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use quipu_agents::Host;
use quipu_api::Time;
use quipu_api::import::Import;
use quipu_api::serve::{Doing, ImportState};
use quipu_model::Timestamp;
use quipu_store::documents;
use quipu_store::facade::Expiry;
use quipu_store::import::{Candidate, Progress, Report};

/// What the import does.
#[derive(Debug, Default)]
pub struct Importer {
    state: Mutex<State>,
    looked: Mutex<Option<Looked>>,
}

/// Logs that their agents delete soon, as they were when somebody last looked for them.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub(crate) at: Timestamp,
    pub(crate) expiry: Expiry,
    /// Kept or not; the first to go first.
    pub(crate) logs: Arc<[Candidate]>,
}

/// They are looked for no more often than this, in seconds: agents count days.
const LOOK_AGAIN: u64 = 300;

/// So many of them are looked at.
const MOST: usize = 20_000;

#[derive(Debug, Default)]
struct State {
    doing: Option<Doing>,
    progress: Arc<Progress>,
    last_at: Option<Timestamp>,
    last: Option<Import>,
    error: Option<String>,
    stops: bool,
}

impl Importer {
    /// An import begins, which says here how far it is.
    pub fn begins(&self, progress: Arc<Progress>) {
        let mut state = self.state.lock();
        if state.stops {
            progress.stop.store(true, Ordering::Relaxed);
        }
        state.doing = Some(Doing::Importing);
        state.progress = progress;
    }

    /// Has the import end after the logs at hand, and every later one, too.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stops = true;
        state.progress.stop.store(true, Ordering::Relaxed);
    }

    /// An import ended, and logs are watched from now on, or are not.
    pub fn ended(&self, at: Timestamp, report: Result<&Report, String>, watching: bool) {
        let mut state = self.state.lock();
        state.doing = watching.then_some(Doing::Watching);
        state.last_at = Some(at);
        match report {
            Ok(report) => {
                state.last = Some(documents::import(report));
                state.error = None;
            }
            Err(error) => state.error = Some(error),
        }
    }

    /// Logs that are deleted soon, from the places of agents on this machine. `None` where this server does not import: then
    /// nobody looks at what is there.
    pub(crate) fn expiring(&self, host: &Host, now: Timestamp) -> Option<Looked> {
        self.state.lock().doing?;
        // Whoever comes meanwhile waits, and finds what is found here.
        let mut looked = self.looked.lock();
        let is_old = |it: &Looked| now.as_second().abs_diff(it.at.as_second()) >= LOOK_AGAIN;
        if looked.as_ref().is_none_or(is_old) {
            let expiry = Expiry::of(host);
            let mut logs = expiry.look(host, now);
            logs.truncate(MOST);
            *looked = Some(Looked {
                at: now,
                expiry,
                logs: logs.into(),
            });
        }
        looked.clone()
    }

    /// As it is now.
    pub fn state(&self) -> ImportState {
        let state = self.state.lock();
        let progress = &state.progress;
        let count = |n: usize| n as u64;
        ImportState {
            doing: state.doing.unwrap_or(Doing::Nothing),
            files: count(progress.files.load(Ordering::Relaxed)),
            files_done: count(progress.files_done.load(Ordering::Relaxed)),
            bytes: progress.bytes.load(Ordering::Relaxed),
            bytes_done: progress.bytes_done.load(Ordering::Relaxed),
            last_at: state.last_at.map(Time::of),
            last: state.last.clone(),
            error: state.error.clone(),
        }
    }
}
