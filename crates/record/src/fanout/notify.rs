//! Wakes subscribers, on one thread for all runs of the process.
//!
//! The writer only says that there is something new, and only when the thread does not look at its run and somebody
//! waits. While events keep coming, the thread looks by itself, and pauses after each round for as long
//! as there were subscribers to wake: one alone is woken within a fraction of a millisecond, a thousand
//! every few, with many events for each, so that a crowd does not take the processor from the writers.
//! When nothing comes it sleeps, and the first event after that wakes it at once.
//!
//! Wakers and warning hooks are called on this thread, so a slow one delays those of other runs.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::FanOut;
use super::segment::SEGMENT_LINES;
use super::subscription::Cursor;
use crate::log::Watched;
use crate::recorder::OnLag;
use crate::sync::{
    Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, thread,
    wait_at_most,
};

/// How long to pause for each subscriber that was woken.
const PAUSE_EACH: Duration = Duration::from_micros(4);

/// The bounds of the pause. At 10,000 events a second, 5 ms are 50 events: a fifth of the usual buffer.
const PAUSE: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(200)..=Duration::from_millis(5);

/// The pause when a crowd was woken and has fallen behind by several segments already. It cannot keep
/// up; waking it as often would slow the writer down and still not help it.
const PAUSE_OVERLOADED: Duration = Duration::from_millis(20);
const CROWD: u32 = 64;

/// How long files of other processes are left alone between two looks. Longer as long as none of them changes.
const LOOK: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(5)..=Duration::from_millis(100);

/// How often a subscriber that misses events is spoken of.
const WARN_EVERY: Duration = Duration::from_secs(1);

/// A subscriber misses events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LagWarning {
    /// Its number among the subscribers of the recorder, from 1.
    pub subscriber: u64,
    /// How many it has missed since the last warning.
    pub missed: u64,
    /// How many it has missed in all.
    pub missed_in_all: u64,
}

/// The subscribers of one run that wait.
pub(super) struct Notifier {
    on_lag: Option<Arc<OnLag>>,
    lag: Mutex<Lag>,
    /// The last event that those who waited were woken for.
    announced: AtomicU64,
    /// How many subscribers wait. Read by the writer, so that it need not do anything when it is 0.
    waiting: AtomicUsize,
    wakers: Mutex<Vec<Arc<Cursor>>>,
    /// Whether the thread does not look at this run, so that it has to be told.
    asleep: AtomicBool,
}

impl Notifier {
    pub(super) fn new(on_lag: Option<Arc<OnLag>>) -> Self {
        Self {
            on_lag,
            lag: Mutex::default(),
            announced: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            wakers: Mutex::default(),
            asleep: AtomicBool::new(true),
        }
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Arc<Cursor>>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that something was published. `anyway`: even if nobody waits, so that subscribers which
    /// have stopped reading are noticed.
    pub(super) fn poke(&self, fanout: &Arc<FanOut>, anyway: bool) {
        let watch = anyway && self.on_lag.is_some();
        if !watch && self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        if !self.asleep.load(Ordering::SeqCst) || !self.asleep.swap(false, Ordering::SeqCst) {
            return;
        }
        if !fanout.hub.wakes.add(fanout) {
            // Without a thread, whoever publishes wakes them.
            while let Round::Again { .. } = self.announce(fanout) {}
        }
    }

    /// Asks for a subscriber to be woken when there is something new, or the recorder is closed.
    pub(super) fn register(&self, cursor: &Arc<Cursor>, waker: &Waker) {
        let mut wakers = self.wakers();
        if cursor.set_waker(waker) {
            wakers.push(cursor.clone());
            self.waiting.store(wakers.len(), Ordering::SeqCst);
        }
    }

    /// Forgets a subscriber that has left.
    pub(super) fn forget(&self, cursor: &Arc<Cursor>) {
        let mut wakers = self.wakers();
        if cursor.take_waker().is_some() {
            wakers.retain(|other| other.id != cursor.id);
            self.waiting.store(wakers.len(), Ordering::SeqCst);
        }
    }

    /// Wakes all who wait; gives how many that were.
    pub(super) fn wake_all(&self) -> u32 {
        let waiting = {
            let mut wakers = self.wakers();
            self.waiting.store(0, Ordering::SeqCst);
            std::mem::take(&mut *wakers)
        };
        for waker in waiting.iter().filter_map(|cursor| cursor.take_waker()) {
            unharmed(|| waker.wake());
        }
        u32::try_from(waiting.len()).unwrap_or(u32::MAX)
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.wakers().len()
    }

    pub(super) fn announced(&self) -> u64 {
        self.announced.load(Ordering::SeqCst)
    }

    /// Announces what is new and wakes those who wait. Without anything new, it need not be looked at until somebody
    /// says that there is.
    fn announce(&self, fanout: &FanOut) -> Round {
        if fanout.is_closed() {
            // Closing wakes them as well. This is for one who began to wait meanwhile.
            self.wake_all();
            return Round::Over;
        }
        let seen = self.announced();
        let mut head = fanout.tail.seq();
        if head == seen {
            self.asleep.store(true, Ordering::SeqCst);
            head = fanout.tail.seq();
            // Whoever published before that did not tell; whoever did it since may have.
            if head == seen || !self.asleep.swap(false, Ordering::SeqCst) {
                return Round::Over;
            }
        }
        // Before anybody is woken, so that whoever is woken finds it.
        self.announced.store(head, Ordering::SeqCst);
        let woken = self.wake_all();
        if let Some(on_lag) = &self.on_lag {
            let mut lag = self.lag.lock().unwrap_or_else(PoisonError::into_inner);
            lag.warn(fanout, &**on_lag, Instant::now());
        }
        let is_behind = head.saturating_sub(seen) > 4 * SEGMENT_LINES && seen > 0;
        Round::Again { woken, is_behind }
    }
}

/// What became of a look at a run.
enum Round {
    /// There is nothing new; somebody will say when there is.
    Over,
    /// There was something new, so there may soon be more.
    Again { woken: u32, is_behind: bool },
}

/// When files are looked at.
struct Looks {
    next: Instant,
    pause: Duration,
}

/// The thread that wakes the subscribers of all runs of a process.
#[derive(Default)]
pub(crate) struct Wakes {
    inbox: Mutex<Inbox>,
    tell: Condvar,
    started: AtomicBool,
}

#[derive(Default)]
struct Inbox {
    /// Runs that have something new and were not looked at before.
    runs: Vec<Arc<FanOut>>,
    /// Files of other processes that somebody waits for.
    files: Vec<Arc<Watched>>,
    stopped: bool,
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, if it does not run; gives whether it does.
    fn start(self: &Arc<Self>) -> bool {
        if self.started.load(Ordering::SeqCst) || self.started.swap(true, Ordering::SeqCst) {
            return true;
        }
        let wakes = self.clone();
        let thread = thread::Builder::new()
            .name("quipu-wake".to_owned())
            .spawn(move || wakes.run());
        if thread.is_err() {
            self.started.store(false, Ordering::SeqCst);
        }
        thread.is_ok()
    }

    /// Has a run looked at. False when its thread could not be started.
    fn add(self: &Arc<Self>, run: &Arc<FanOut>) -> bool {
        let is_started = self.start();
        if is_started {
            self.lock().runs.push(run.clone());
            self.tell.notify_one();
        }
        is_started
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.tell.notify_one();
    }

    /// Has a file looked at until it changes. False when its thread could not be started.
    pub(crate) fn watch(self: &Arc<Self>, file: &Arc<Watched>) -> bool {
        let mut inbox = self.lock();
        inbox.files.retain(|other| !Arc::ptr_eq(other, file));
        inbox.files.push(file.clone());
        drop(inbox);
        self.tell.notify_one();
        self.start()
    }

    /// Forgets a file that nobody waits for any more.
    pub(crate) fn unwatch(&self, file: &Arc<Watched>) {
        let mut inbox = self.lock();
        inbox.files.retain(|other| !Arc::ptr_eq(other, file));
    }

    /// Looks at the files that are due. Those that have changed are not looked at again until somebody asks.
    fn look_at_files(&self, looks: &mut Looks) {
        let now = Instant::now();
        if looks.next > now {
            return;
        }
        let files = self.lock().files.clone();
        let changed: Vec<_> = files
            .into_iter()
            .filter(|file| file.has_changed())
            .collect();
        looks.pause = if changed.is_empty() {
            (2 * looks.pause).min(*LOOK.end())
        } else {
            *LOOK.start()
        };
        if !changed.is_empty() {
            let is_same = |file: &Arc<Watched>| !changed.iter().any(|it| Arc::ptr_eq(it, file));
            self.lock().files.retain(is_same);
        }
        for file in changed {
            unharmed(|| file.wake());
        }
        looks.next = now + looks.pause;
    }

    fn run(&self) {
        // The runs that are looked at, and when next.
        let mut active: Vec<(Instant, Arc<FanOut>)> = Vec::new();
        let mut looks = Looks {
            next: Instant::now(),
            pause: *LOOK.start(),
        };
        while self.wait(&mut active, &looks) {
            self.look_at_files(&mut looks);
            let began = Instant::now();
            let (due, mut later): (Vec<_>, Vec<_>) = std::mem::take(&mut active)
                .into_iter()
                .partition(|(at, _)| *at <= began || cfg!(feature = "shuttle"));
            let mut woken_in_all: u32 = 0;
            let mut again = Vec::new();
            for (_, run) in due {
                if let Round::Again { woken, is_behind } = run.notifier.announce(&run) {
                    woken_in_all = woken_in_all.saturating_add(woken);
                    again.push((woken >= CROWD && is_behind, run));
                }
            }
            let pause = PAUSE_EACH
                .saturating_mul(woken_in_all)
                .clamp(*PAUSE.start(), *PAUSE.end());
            let now = Instant::now();
            for (is_overloaded, run) in again {
                let pause = if is_overloaded {
                    PAUSE_OVERLOADED
                } else {
                    pause
                };
                later.push((now + pause, run));
            }
            active = later;
        }
    }

    /// Waits until a run or a file is to be looked at; gives whether to go on.
    fn wait(&self, active: &mut Vec<(Instant, Arc<FanOut>)>, looks: &Looks) -> bool {
        let mut inbox = self.lock();
        loop {
            if inbox.stopped {
                return false;
            }
            let now = Instant::now();
            if !inbox.runs.is_empty() {
                active.extend(inbox.runs.drain(..).map(|run| (now, run)));
                return true;
            }
            let files = (!inbox.files.is_empty()).then_some(looks.next);
            let next = active.iter().map(|(at, _)| *at).chain(files).min();
            let left = next.map(|at| at.saturating_duration_since(now));
            if left.is_some_and(|left| left.is_zero() || cfg!(feature = "shuttle")) {
                return true;
            }
            inbox = wait_at_most(&self.tell, inbox, left);
        }
    }
}

/// Calls what is not ours. If it panics, the others still have to be woken.
pub(crate) fn unharmed(call: impl FnOnce()) {
    // The panic was reported by its hook.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)));
}

/// What was last said of each subscriber.
#[derive(Default)]
struct Lag {
    said: HashMap<u64, (Instant, u64)>,
}

impl Lag {
    fn warn(&mut self, fanout: &FanOut, on_lag: &OnLag, now: Instant) {
        let head = fanout.tail.seq();
        let cursors = fanout.cursors();
        self.said
            .retain(|id, _| cursors.iter().any(|cursor| cursor.id == *id));
        for cursor in cursors {
            let stats = cursor.stats(head);
            let (at, before) = self.said.get(&stats.id).copied().unzip();
            let before = before.unwrap_or(0);
            let due = at.is_none_or(|at: Instant| now.duration_since(at) >= WARN_EVERY);
            if due && stats.missed > before {
                self.said.insert(stats.id, (now, stats.missed));
                let warning = LagWarning {
                    subscriber: stats.id,
                    missed: stats.missed - before,
                    missed_in_all: stats.missed,
                };
                unharmed(|| on_lag(warning));
            }
        }
    }
}
