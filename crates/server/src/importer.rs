//! What the import does that feeds the home. Whoever imports says so here; requests ask.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use quipu_api::Time;
use quipu_api::import::Import;
use quipu_api::serve::{Doing, ImportState};
use quipu_model::Timestamp;
use quipu_store::documents;
use quipu_store::import::{Progress, Report};

/// What the import does.
#[derive(Debug, Default)]
pub struct Importer(Mutex<State>);

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
        let mut state = self.0.lock();
        if state.stops {
            progress.stop.store(true, Ordering::Relaxed);
        }
        state.doing = Some(Doing::Importing);
        state.progress = progress;
    }

    /// Has the import end after the logs at hand, and every later one, too.
    pub fn stop(&self) {
        let mut state = self.0.lock();
        state.stops = true;
        state.progress.stop.store(true, Ordering::Relaxed);
    }

    /// An import ended, and logs are watched from now on, or are not.
    pub fn ended(&self, at: Timestamp, report: Result<&Report, String>, watching: bool) {
        let mut state = self.0.lock();
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

    /// As it is now.
    pub fn state(&self) -> ImportState {
        let state = self.0.lock();
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
