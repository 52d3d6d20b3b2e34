//! Wakes subscribers, on a thread of its own.
//!
//! The writer only says that there is something new, and only when the thread sleeps and somebody
//! waits. While events keep coming, the thread looks by itself, and pauses after each round for as long
//! as there were subscribers to wake: one alone is woken within a fraction of a millisecond, a thousand
//! every few, with many events for each, so that a crowd does not take the processor from the writer.
//! When nothing comes it sleeps, and the first event after that wakes it at once.

use std::collections::HashMap;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::FanOut;
use super::segment::SEGMENT_LINES;
use super::subscription::Cursor;
use crate::recorder::OnLag;
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, thread};

/// How long to pause for each subscriber that was woken.
const PAUSE_EACH: Duration = Duration::from_micros(4);

/// The bounds of the pause. At 10,000 events a second, 5 ms are 50 events: a fifth of the usual buffer.
const PAUSE: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(200)..=Duration::from_millis(5);

/// The pause when a crowd was woken and has fallen behind by several segments already. It cannot keep
/// up; waking it as often would slow the writer down and still not help it.
const PAUSE_OVERLOADED: Duration = Duration::from_millis(20);
const CROWD: u32 = 64;

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

pub(super) struct Notifier {
    on_lag: Option<std::sync::Arc<OnLag>>,
    /// The last event that those who waited were woken for.
    announced: AtomicU64,
    /// How many subscribers wait. Read by the writer, so that it need not do anything when it is 0.
    waiting: AtomicUsize,
    wakers: Mutex<Vec<Arc<Cursor>>>,
    /// Whether the thread sleeps, so that it has to be told.
    asleep: AtomicBool,
    stopped: Mutex<bool>,
    tell: Condvar,
    started: AtomicBool,
}

impl Notifier {
    pub(super) fn new(on_lag: Option<std::sync::Arc<OnLag>>) -> Self {
        Self {
            on_lag,
            announced: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            wakers: Mutex::default(),
            asleep: AtomicBool::new(true),
            stopped: Mutex::new(false),
            tell: Condvar::new(),
            started: AtomicBool::new(false),
        }
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
        self.start(fanout);
        // With the lock, so that the thread is not between looking and waiting.
        drop(self.stopped.lock().unwrap_or_else(PoisonError::into_inner));
        self.tell.notify_one();
    }

    /// Asks for a subscriber to be woken when there is something new, or the recorder is closed.
    pub(super) fn register(&self, fanout: &Arc<FanOut>, cursor: &Arc<Cursor>, waker: &Waker) {
        self.start(fanout);
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.set_waker(waker) {
            wakers.push(cursor.clone());
            self.waiting.store(wakers.len(), Ordering::SeqCst);
        }
    }

    /// Forgets a subscriber that has left.
    pub(super) fn forget(&self, cursor: &Arc<Cursor>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor.take_waker().is_some() {
            wakers.retain(|other| other.id != cursor.id);
            self.waiting.store(wakers.len(), Ordering::SeqCst);
        }
    }

    /// Wakes all who wait; gives how many that were.
    fn wake_all(&self) -> u32 {
        let waiting = {
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            self.waiting.store(0, Ordering::SeqCst);
            std::mem::take(&mut *wakers)
        };
        for waker in waiting.iter().filter_map(|cursor| cursor.take_waker()) {
            unharmed(|| waker.wake());
        }
        u32::try_from(waiting.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.tell.notify_one();
        self.wake_all();
    }

    /// Starts the thread. It ends when the fan-out is closed, which dropping the recorder does. Without
    /// one, subscribers look for themselves now and then.
    fn start(&self, fanout: &Arc<FanOut>) {
        if !self.started.load(Ordering::SeqCst) && !self.started.swap(true, Ordering::SeqCst) {
            let fanout = fanout.clone();
            let run = move || fanout.notifier.run(&fanout);
            if thread::Builder::new()
                .name("quipu-wake".to_owned())
                .spawn(run)
                .is_err()
            {
                self.started.store(false, Ordering::SeqCst);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.len()
    }

    pub(super) fn announced(&self) -> u64 {
        self.announced.load(Ordering::SeqCst)
    }

    pub(super) fn is_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    fn run(&self, fanout: &FanOut) {
        let mut lag = Lag::default();
        let mut seen = 0;
        loop {
            let head = fanout.tail.seq();
            if head == seen {
                if !self.sleep(fanout, seen) {
                    self.wake_all();
                    return;
                }
                continue;
            }
            let behind = head - seen > 4 * SEGMENT_LINES && seen > 0;
            seen = head;
            // Before anybody is woken, so that whoever is woken finds it.
            self.announced.store(head, Ordering::SeqCst);
            let woken = self.wake_all();
            if let Some(on_lag) = &self.on_lag {
                lag.warn(fanout, &**on_lag, Instant::now());
            }
            let pause = match woken {
                CROWD.. if behind => PAUSE_OVERLOADED,
                _ => PAUSE_EACH
                    .saturating_mul(woken)
                    .clamp(*PAUSE.start(), *PAUSE.end()),
            };
            if cfg!(not(feature = "shuttle")) {
                std::thread::sleep(pause);
            }
        }
    }

    /// Sleeps until there is something after event `seen`; gives whether to go on.
    fn sleep(&self, fanout: &FanOut, seen: u64) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        // Whoever published before that did not tell.
        if fanout.tail.seq() != seen {
            self.asleep.store(false, Ordering::SeqCst);
            return true;
        }
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped && self.asleep.load(Ordering::SeqCst) {
            stopped = self
                .tell
                .wait(stopped)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !*stopped
    }
}

/// Calls what is not ours. If it panics, the others still have to be woken.
fn unharmed(call: impl FnOnce()) {
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
