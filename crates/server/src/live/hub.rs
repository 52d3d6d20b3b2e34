//! One stream, however many clients it has: its source is read once, and what becomes of it is shared.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::ring::Ring;
use super::source::{Feed, Looked, Source, Step};
use crate::App;
use crate::problem::Problem;

/// How many rewrites of a log are remembered. A client that has not read for longer begins at the first event.
const REWRITES: usize = 64;

/// What all rings of the process may take together, and what each of them may take at least and at most.
const RINGS: usize = 16 << 20;
const RING: std::ops::RangeInclusive<usize> = (64 << 10)..=(2 << 20);

/// How long to collect what comes before clients are woken again: longer where there are many, so that each is
/// written to less often, with more.
const PAUSE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(2)..=Duration::from_millis(20);
const PAUSE_EACH: Duration = Duration::from_micros(20);

/// How long to collect what changes in the home before the catalogue is looked at.
const SETTLE: Duration = Duration::from_millis(50);

/// How often to look where the system does not say when files change.
const LOOK: Duration = Duration::from_millis(250);

/// What is known of a stream now.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) ring: Ring,
    /// Goes up with every rewrite.
    pub(crate) rewritten: u64,
    /// From which place each of the last rewrites was.
    rewrites: VecDeque<u64>,
    /// Goes up when places come to mean something else.
    pub(crate) resets: u64,
    pub(crate) generation: String,
    pub(crate) is_gone: bool,
    /// Whether the last event ends a run.
    pub(crate) is_ended: bool,
    /// How many heartbeats there were.
    pub(crate) beats: u64,
    /// Why nothing more comes.
    pub(crate) failed: Option<Problem>,
    is_ready: bool,
    /// The place at the last heartbeat.
    at_last_beat: u64,
}

impl State {
    /// From where on everything is other than it was `since` that many rewrites.
    pub(crate) fn again(&self, since: u64) -> Option<u64> {
        let missed = usize::try_from(self.rewritten.saturating_sub(since)).unwrap_or(usize::MAX);
        if missed == 0 {
            return None;
        }
        if missed > self.rewrites.len() {
            return Some(1);
        }
        self.rewrites.iter().rev().take(missed).min().copied()
    }

    fn take(&mut self, step: Step, room: usize) {
        match step {
            Step::Frames(chunk) => {
                self.is_gone = false;
                self.is_ended = chunk.ends_run;
                self.ring.push(chunk, room);
            }
            Step::Again { from } => {
                self.is_gone = false;
                self.is_ended = false;
                self.ring.cut(from);
                self.rewritten += 1;
                self.rewrites.push_back(from);
                if self.rewrites.len() > REWRITES {
                    self.rewrites.pop_front();
                }
            }
            Step::Gone => self.is_gone = true,
            Step::Reset { next } => {
                self.ring = Ring::new(next);
                self.resets += 1;
            }
        }
    }
}

/// A stream that is followed for as long as it has clients.
pub(crate) struct Hub {
    pub(crate) source: Source,
    state: Mutex<State>,
    changed: watch::Sender<()>,
    poked: Arc<Notify>,
    pub(crate) clients: AtomicUsize,
    pub(crate) closed: CancellationToken,
}

impl Hub {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            state: Mutex::new(State {
                ring: Ring::new(1),
                rewritten: 0,
                rewrites: VecDeque::new(),
                resets: 0,
                generation: String::new(),
                is_gone: false,
                is_ended: false,
                beats: 0,
                failed: None,
                is_ready: false,
                at_last_beat: 0,
            }),
            changed: watch::Sender::new(()),
            poked: Arc::default(),
            clients: AtomicUsize::new(0),
            closed: CancellationToken::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Hears when there is something to look at.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits until the stream is followed.
    pub(crate) async fn ready(&self) -> Result<(), Problem> {
        let mut changed = self.subscribe();
        loop {
            {
                let state = self.state();
                if let Some(problem) = &state.failed {
                    return Err(problem.clone());
                }
                if state.is_ready {
                    return Ok(());
                }
            }
            if changed.changed().await.is_err() {
                return Err(Problem::internal());
            }
        }
    }

    /// Follows the source until nobody wants it any more.
    pub(crate) async fn run(self: Arc<Self>, app: App) {
        if let Err(problem) = self.follow(&app).await {
            self.state().failed = Some(problem);
            app.live().forget(&self);
        }
        // Clients look, and see that it is over.
        self.changed.send_replace(());
    }

    async fn follow(&self, app: &App) -> Result<(), Problem> {
        let source = self.source.clone();
        let mut fresh = app.freshness().subscribe();
        let mut beats = app.live().beats();
        let feed = match source {
            // Brings the catalogue up to date, which may take a while.
            Source::Everything { .. } => app.work(move |store| source.begin(store)).await?,
            source => app.read(move |store| source.begin(store)).await?,
        };
        let path = feed.path();
        let watched = path
            .as_deref()
            .map(|path| app.live().files().watch(path, &self.poked));
        let is_told = match &watched {
            Some(watched) => watched.is_some(),
            None => app.freshness().is_notified(),
        };
        {
            let mut state = self.state();
            state.ring = Ring::new(feed.next());
            state.generation = feed.generation();
        }
        let mut feed = Some(feed);
        loop {
            // What changes from now on is seen by this look, or wakes for another.
            fresh.borrow_and_update();
            let looked = self.look(app, &mut feed).await?;
            let again_in = looked.again_in;
            let is_new = !looked.steps.is_empty();
            let goes_on = looked.more;
            self.publish(app, looked);
            let clients = u32::try_from(self.clients.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            if is_new || goes_on {
                let pause = PAUSE_EACH.saturating_mul(clients);
                tokio::time::sleep(pause.clamp(*PAUSE.start(), *PAUSE.end())).await;
            }
            if goes_on && !app.ending().is_cancelled() && !self.closed.is_cancelled() {
                continue;
            }
            let look_again = async {
                match (again_in, is_told) {
                    (Some(wait), _) => tokio::time::sleep(wait).await,
                    (None, false) => tokio::time::sleep(LOOK).await,
                    (None, true) => std::future::pending().await,
                }
            };
            let home_changes = async {
                if watched.is_some() || fresh.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(SETTLE).await;
            };
            tokio::select! {
                () = self.closed.cancelled() => return Ok(()),
                () = app.ending().cancelled() => return Ok(()),
                () = self.poked.notified() => {}
                () = home_changes => {}
                () = look_again => {}
                // The system may have lost count, so this looks as well.
                _ = beats.changed() => self.beat(),
            }
        }
    }

    async fn look(&self, app: &App, feed: &mut Option<Feed>) -> Result<Looked, Problem> {
        let Some(mut taken) = feed.take() else {
            return Err(Problem::internal());
        };
        // Many streams look at the same time when there is a heartbeat, and each takes a thread.
        let _turn = app.live().turn().await;
        let done = tokio::task::spawn_blocking(move || {
            let looked = taken.look();
            let generation = taken.generation();
            (taken, generation, looked)
        });
        let (taken, generation, looked) = done.await.map_err(|_| Problem::internal())?;
        *feed = Some(taken);
        self.state().generation = generation;
        looked
    }

    fn publish(&self, app: &App, looked: Looked) {
        let room = RINGS / app.live().hubs().max(1);
        let room = room
            .clamp(*RING.start(), *RING.end())
            .min(app.live().limits().ring);
        {
            let mut state = self.state();
            if looked.steps.is_empty() && state.is_ready {
                return;
            }
            for step in looked.steps {
                state.take(step, room);
            }
            state.is_ready |= !looked.more;
        }
        self.changed.send_replace(());
    }

    fn beat(&self) {
        {
            let mut state = self.state();
            state.beats += 1;
            if state.at_last_beat == state.ring.next() {
                // Nothing came for long: who keeps up has it all.
                state.ring.trim(*RING.start());
            }
            state.at_last_beat = state.ring.next();
        }
        self.changed.send_replace(());
    }
}
