//! Recorded runs in the catalogue. Whoever records a run, in this process or another, writes to its file alone; the catalogue is
//! brought up to date when somebody reads from it and the files have changed since. While nothing changes, that costs two loads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::App;

/// When to try again where another process writes to the catalogue.
const BUSY: Duration = Duration::from_millis(300);

/// How long somebody who reads waits for the runs. What takes longer is in the next answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far the catalogue is behind the files of runs.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// The change that the catalogue has, and all before it.
    known: AtomicU64,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    /// Closed when what is under way is done.
    under_way: Option<watch::Receiver<()>>,
    /// Not all the time: it costs more than reading.
    not_before: Option<Instant>,
}

impl Work {
    fn must_wait(&self) -> bool {
        self.not_before.is_some_and(|at| Instant::now() < at)
    }
}

impl Runs {
    /// Whether runs have changed up to this, and nothing keeps them from being read.
    pub(crate) fn is_due(&self, changed: u64) -> bool {
        if self.known.load(Ordering::Acquire) >= changed {
            return false;
        }
        let work = self.work.lock();
        work.under_way.is_none() && !work.must_wait()
    }
}

/// Brings what the catalogue knows of recorded runs up to date, if they have changed and it was not done only just now.
pub(crate) async fn refresh(app: &App) {
    let Some(mut done) = begin(app) else {
        return;
    };
    // Closed or late: what is known by now is answered.
    drop(tokio::time::timeout(PATIENCE, done.changed()).await);
}

/// Begins to read runs, or joins whoever does; `None` where there is nothing to wait for.
fn begin(app: &App) -> Option<watch::Receiver<()>> {
    let runs = app.freshness().runs();
    let changed = app.freshness().of_runs();
    if runs.known.load(Ordering::Acquire) >= changed {
        return None;
    }
    let mut work = runs.work.lock();
    if let Some(done) = &work.under_way {
        return Some(done.clone());
    }
    if work.must_wait() {
        return None;
    }
    let (tell, done) = watch::channel(());
    work.under_way = Some(done.clone());
    drop(work);
    let under_way = UnderWay {
        app: app.clone(),
        wait: BUSY,
        _tell: tell,
    };
    tokio::task::spawn_blocking(move || read(under_way, changed));
    Some(done)
}

/// Ends what is under way, in whatever way it ends.
struct UnderWay {
    app: App,
    /// When to begin again at the earliest.
    wait: Duration,
    _tell: watch::Sender<()>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut work = self.app.freshness().runs().work.lock();
        work.under_way = None;
        work.not_before = Instant::now().checked_add(self.wait);
    }
}

fn read(mut under_way: UnderWay, changed: u64) {
    let app = under_way.app.clone();
    let begun = Instant::now();
    let done = app
        .store()
        .another()
        .and_then(|store| store.try_refresh_runs());
    let rest = 4 * begun.elapsed();
    match done {
        Ok(Some(report)) => {
            for problem in &report.problems {
                tracing::debug!(target: "quipu", path = %problem.path.display(), why = %problem.what, "a run cannot be read");
            }
            under_way.wait = rest;
            let known = &app.freshness().runs().known;
            known.fetch_max(changed, Ordering::AcqRel);
            app.freshness().bump();
        }
        // Another process writes to the catalogue.
        Ok(None) => under_way.wait = BUSY.max(rest),
        Err(error) => {
            tracing::warn!(target: "quipu", why = %error, "what is known of recorded runs is not brought up to date");
            under_way.wait = BUSY.max(rest);
        }
    }
}
