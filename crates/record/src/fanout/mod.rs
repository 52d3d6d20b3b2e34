//! Live events, to any number of subscribers, without ever holding up the writer.
//!
//! ```text
//!  writer ──► pending ──► segment ─ segment ─ segment     the last few thousand lines, shared by all
//!                             ▲         ▲        ▲
//!                         cursor A  cursor B   cursor C …   each subscriber pulls at its own pace
//! ```
//!
//! The writer does the same work however many subscribers there are: it copies the line behind those
//! that nobody has read yet and moves the tail. The first subscriber that wants them seals them into a
//! segment, which all others then read without a lock, many lines at a time. One thread for all runs of the process
//! wakes those that wait, so waking a thousand of them is not the writer's business either.
//!
//! # The contract on top
//!
//! To a subscriber this looks like a bounded buffer of its own, dropping the newest: of a backlog
//! larger than the buffer, the oldest `buffer` events are kept and the rest are missed. Drop-newest,
//! because the file is the record: what is missed can be read there, and what was promised in order
//! stays in order. The shared segments are bounded in lines and bytes; a subscriber that falls further
//! behind than they reach reads what is in its buffer from the file. While all of them stall, and while
//! there are none, the writer keeps nothing.
//!
//! # Invariants
//!
//! * One producer at a time: [`FanOut::publish`] is only called with the recorder's lock held.
//! * A line is pending or in a segment before the tail reaches it, and is read only after that.
//! * The lock on what is pending is taken before the one on segments and cursors, never after.
//! * A line that is in no segment any more, or never was, is in the file.

mod notify;
mod segment;
mod subscription;

#[cfg(all(test, feature = "shuttle"))]
mod shuttle_tests;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

pub use notify::LagWarning;
pub(crate) use notify::{Wakes, unharmed};
pub(crate) use segment::Segment;
pub(crate) use subscription::Parker;
pub use subscription::{Batch, Line, Next, Subscription, TryNextError};

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::history::History;
use crate::hub::Hub;
use crate::recorder::OnLag;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};
use notify::Notifier;
use segment::{Pending, SEGMENT_LINES};
use subscription::Cursor;

/// What is kept for subscribers that are behind, in lines and bytes. Whoever is further behind reads
/// the file.
const KEPT_LINES: u64 = 32 * SEGMENT_LINES;
const KEPT_BYTES: usize = 8 << 20;

/// Hands lines to subscribers.
pub(crate) struct FanOut {
    hub: Arc<Hub>,
    history: Arc<History>,
    /// Whether there are subscribers at all.
    active: AtomicBool,
    tail: Tail,
    /// The last line in a segment.
    sealed: AtomicU64,
    /// Whether any subscriber has room for more. If none has, the writer keeps nothing.
    demand: AtomicBool,
    closed: AtomicBool,
    pending: Mutex<Pending>,
    shared: Mutex<Shared>,
    notifier: Notifier,
}

/// The last event published. On a cache line of its own, because the writer changes it for every event.
#[repr(align(128))]
struct Tail(AtomicU64);

impl Tail {
    fn seq(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves on. Only one thread at a time.
    fn set(&self, seq: u64) {
        // In order with the flags by which subscribers ask for events, hence not weaker.
        self.0.store(seq, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Shared {
    segments: VecDeque<Arc<Segment>>,
    /// How many lines are in the segments, and how many bytes.
    kept: (u64, usize),
    cursors: Vec<Arc<Cursor>>,
    next_id: u64,
    /// What subscribers that have left received and missed.
    left: SubscriberTotals,
}

/// The writer's side, kept under the recorder's lock.
#[derive(Default)]
pub(crate) struct Producer {
    /// How many lines were published since it was last asked whether anybody has room.
    unasked: u64,
}

/// What all subscribers received and missed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FanOutStats {
    /// The last event handed out.
    pub head: u64,
    /// Received by all subscribers together, including those that have left.
    pub delivered: u64,
    /// Missed by all subscribers together, including those that have left.
    pub missed: u64,
    /// Those that are subscribed now, in the order they came.
    pub subscribers: Vec<SubscriberStats>,
}

/// What one subscriber received and missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberStats {
    /// Its number among the subscribers of the recorder, from 1.
    pub id: u64,
    /// How many events it received.
    pub delivered: u64,
    /// How many it missed so far.
    pub missed: u64,
    /// How many wait for it.
    pub waiting: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct SubscriberTotals {
    delivered: u64,
    missed: u64,
}

impl Shared {
    /// Adds a segment and lets go of the oldest when there is too much; gives the last of those.
    fn add(&mut self, segment: Segment) -> Option<Arc<Segment>> {
        self.kept.0 += segment.len();
        self.kept.1 += segment.size();
        self.segments.push_back(Arc::new(segment));
        let mut gone = None;
        while self.segments.len() > 1 && (self.kept.0 > KEPT_LINES || self.kept.1 > KEPT_BYTES) {
            gone = self.segments.pop_front();
            if let Some(oldest) = &gone {
                self.kept.0 -= oldest.len();
                self.kept.1 -= oldest.size();
            }
        }
        gone
    }

    /// The segment with the line of event `seq`.
    fn find(&self, seq: u64) -> Option<Arc<Segment>> {
        let behind = self
            .segments
            .partition_point(|segment| *segment.seqs().start() <= seq);
        let segment = self.segments.get(behind.checked_sub(1)?)?;
        segment.covers(seq).then(|| segment.clone())
    }

    fn clear(&mut self) {
        self.segments.clear();
        self.kept = (0, 0);
    }
}

impl FanOut {
    /// A fan-out for the lines behind those of the first `last_seq` events, which are in the file.
    pub(crate) fn new(
        last_seq: u64,
        history: Arc<History>,
        hub: Arc<Hub>,
        on_lag: Option<Arc<OnLag>>,
    ) -> Self {
        Self {
            hub,
            history,
            active: AtomicBool::new(false),
            tail: Tail(AtomicU64::new(last_seq)),
            sealed: AtomicU64::new(last_seq),
            demand: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            pending: Mutex::default(),
            shared: Mutex::default(),
            notifier: Notifier::new(on_lag),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out the line of event `seq`, which is the one after the last.
    pub(crate) fn publish(self: &Arc<Self>, producer: &mut Producer, seq: u64, line: &[u8]) {
        if !self.active.load(Ordering::SeqCst) {
            self.tail.set(seq);
            return;
        }
        producer.unasked += 1;
        let ask = producer.unasked >= SEGMENT_LINES;
        if ask {
            producer.unasked = 0;
            self.ask_for_room(seq);
        }
        if self.demand.load(Ordering::SeqCst) {
            let mut pending = self.pending();
            pending.push(seq, line);
            if pending.is_full() {
                self.seal(&mut pending);
            }
        }
        self.tail.set(seq);
        self.notifier.poke(self, ask);
    }

    /// Finds out whether any subscriber has room for event `seq`.
    fn ask_for_room(&self, seq: u64) {
        // First, so that a subscriber that makes room while the others are asked is not overlooked.
        self.demand.store(false, Ordering::SeqCst);
        let mut pending = self.pending();
        self.seal(&mut pending);
        drop(pending);
        if self
            .lock()
            .cursors
            .iter()
            .any(|cursor| cursor.has_room_for(seq))
        {
            self.demand.store(true, Ordering::SeqCst);
        }
    }

    /// Makes what is pending readable.
    fn seal(&self, pending: &mut Pending) {
        if let Some(segment) = pending.seal() {
            let last = *segment.seqs().end();
            let gone = self.lock().add(segment);
            if let Some(unread) = gone.and_then(|gone| Arc::try_unwrap(gone).ok()) {
                pending.reuse(unread);
            }
            self.sealed.store(last, Ordering::SeqCst);
        }
    }

    /// Adds a subscriber. `producer` shows that the caller holds the recorder's lock, so that no
    /// event is published meanwhile.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        producer: &mut Producer,
        capacity: usize,
    ) -> Subscription {
        producer.unasked = 0;
        let mut pending = self.pending();
        let mut shared = self.lock();
        if shared.cursors.is_empty() {
            // Whatever is left from earlier subscribers, this one has not asked for.
            pending.clear();
            shared.clear();
        }
        shared.next_id += 1;
        let from = self.tail.seq() + 1;
        let cursor = Arc::new(Cursor::new(shared.next_id, from, capacity.max(1) as u64));
        shared.cursors.push(cursor.clone());
        self.active.store(true, Ordering::SeqCst);
        self.demand.store(true, Ordering::SeqCst);
        drop((shared, pending));
        Subscription::new(self.clone(), cursor)
    }

    fn unsubscribe(&self, cursor: &Arc<Cursor>) {
        self.notifier.forget(cursor);
        let head = self.tail.seq();
        let mut shared = self.lock();
        shared.cursors.retain(|other| other.id != cursor.id);
        let stats = cursor.stats(head);
        shared.left.delivered += stats.delivered;
        shared.left.missed += stats.missed;
        if shared.cursors.is_empty() {
            shared.clear();
            self.active.store(false, Ordering::SeqCst);
            self.demand.store(false, Ordering::SeqCst);
        }
    }

    /// The segment with the line of event `seq`, which is in a segment, or pending, or only in the
    /// file any more.
    fn segment(&self, seq: u64) -> Option<Arc<Segment>> {
        if let Some(found) = self.lock().find(seq) {
            return Some(found);
        }
        if seq > self.sealed.load(Ordering::SeqCst) {
            self.seal(&mut self.pending());
        }
        self.lock().find(seq)
    }

    pub(crate) fn stats(&self) -> FanOutStats {
        let head = self.tail.seq();
        let shared = self.lock();
        let subscribers: Vec<_> = shared
            .cursors
            .iter()
            .map(|cursor| cursor.stats(head))
            .collect();
        FanOutStats {
            head,
            delivered: shared.left.delivered + subscribers.iter().map(|s| s.delivered).sum::<u64>(),
            missed: shared.left.missed + subscribers.iter().map(|s| s.missed).sum::<u64>(),
            subscribers,
        }
    }

    pub(crate) fn history(&self) -> Arc<History> {
        self.history.clone()
    }

    fn cursors(&self) -> Vec<Arc<Cursor>> {
        self.lock().cursors.clone()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Ends all subscriptions, once they are drained.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.notifier.wake_all();
    }
}
