//! Live events, to any number of subscribers, without ever holding up the writer.
//!
//! ```text
//!  writer ──► segment ─ segment ─ segment          the last few thousand lines, shared by all
//!                 ▲         ▲        ▲
//!             cursor A  cursor B   cursor C …      each subscriber pulls at its own pace
//! ```
//!
//! The writer does the same work however many subscribers there are: it puts the line into the
//! current segment and moves `head`. Subscribers read segments without a lock and pull many lines at
//! a time; a thread of its own wakes those that wait, so waking a thousand of them is not the writer's
//! business either.
//!
//! # The contract on top
//!
//! To a subscriber this looks like a bounded buffer of its own, dropping the newest: of a backlog
//! larger than the buffer, the oldest `buffer` events are kept and the rest are missed. Drop-newest,
//! because the file is the record: what is missed can be read there, and what was promised in order
//! stays in order. A subscriber that stalls keeps its segments alive for as long as it stalls, at most
//! the buffer's worth; while all of them stall, and while there are none, the writer keeps nothing.
//!
//! # Invariants
//!
//! * One producer at a time: [`FanOut::publish`] is only called with the recorder's lock held.
//! * A slot is written once, before `head` reaches it, and read only at or below `head`.
//! * A segment leaves the shared queue only after each subscriber that still needs it has been given
//!   a reference of its own.
//! * A line that is in no segment was not wanted by anybody when it was published. Whoever comes upon
//!   it later has missed it.

mod notify;
mod segment;
mod subscription;

#[cfg(all(test, feature = "shuttle"))]
mod shuttle_tests;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;

pub use notify::LagWarning;
pub use subscription::{Batch, Line, Next, Subscription, TryNextError};

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::recorder::OnLag;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};
use notify::Notifier;
use segment::{SEGMENT_LINES, Segment};
use subscription::Cursor;

/// Segments kept for subscribers that are behind but within their buffer.
const MIN_SEGMENTS: usize = 32;

/// Hands lines to subscribers.
pub(crate) struct FanOut {
    /// The last line published.
    head: AtomicU64,
    /// Whether any subscriber has room for more. If none has, the writer keeps nothing.
    demand: AtomicBool,
    closed: AtomicBool,
    shared: Mutex<Shared>,
    notifier: Notifier,
}

#[derive(Default)]
struct Shared {
    segments: VecDeque<Arc<Segment>>,
    cursors: Vec<Arc<Cursor>>,
    next_id: u64,
    /// What subscribers that have left received and missed.
    left: SubscriberTotals,
}

/// The writer's side, kept under the recorder's lock.
#[derive(Default)]
pub(crate) struct Producer {
    current: Option<Arc<Segment>>,
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
    /// Adds a segment and lets go of the oldest that nobody within its buffer needs.
    fn add(&mut self, segment: Arc<Segment>) {
        self.segments.push_back(segment);
        let widest = self
            .cursors
            .iter()
            .map(|cursor| cursor.capacity)
            .max()
            .unwrap_or(0);
        let needed = usize::try_from(widest.div_ceil(SEGMENT_LINES)).unwrap_or(usize::MAX);
        while self.segments.len() > MIN_SEGMENTS.max(needed.saturating_add(2)) {
            // A subscriber that still stands in it has lost what is beyond its buffer, but not what
            // is in it.
            for cursor in &self.cursors {
                cursor.pin_if_in(&self.segments);
            }
            self.segments.pop_front();
        }
    }
}

impl FanOut {
    pub(crate) fn new(last_seq: u64, on_lag: Option<std::sync::Arc<OnLag>>) -> Self {
        Self {
            head: AtomicU64::new(last_seq),
            demand: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            shared: Mutex::default(),
            notifier: Notifier::new(on_lag),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out the line of event `seq`, which is the one after the last.
    pub(crate) fn publish(self: &Arc<Self>, producer: &mut Producer, seq: u64, line: &[u8]) {
        if self.demand.load(Ordering::SeqCst) {
            let full = producer
                .current
                .as_ref()
                .is_none_or(|segment| !segment.covers(seq));
            if full {
                producer.current = self.next_segment(seq);
            }
            if let Some(segment) = &producer.current {
                segment.set(seq, line);
            }
            self.head.store(seq, Ordering::SeqCst);
            self.notifier.poke(self, full);
        } else {
            producer.current = None;
            self.head.store(seq, Ordering::SeqCst);
            if seq.is_multiple_of(SEGMENT_LINES) {
                self.notifier.poke(self, true);
            }
        }
    }

    /// A segment for event `seq` and what follows; `None` when no subscriber has room for it.
    fn next_segment(&self, seq: u64) -> Option<Arc<Segment>> {
        // First, so that a subscriber that makes room while the others are asked is not overlooked.
        self.demand.store(false, Ordering::SeqCst);
        let mut shared = self.lock();
        if !shared.cursors.iter().any(|cursor| cursor.has_room_for(seq)) {
            return None;
        }
        self.demand.store(true, Ordering::SeqCst);
        let segment = Arc::new(Segment::new(seq));
        shared.add(segment.clone());
        Some(segment)
    }

    /// Adds a subscriber. `producer` shows that the caller holds the recorder's lock, so that no
    /// event is published meanwhile.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        producer: &mut Producer,
        capacity: usize,
    ) -> Subscription {
        let mut shared = self.lock();
        if shared.cursors.is_empty() {
            // It may be from before; nobody could find it.
            producer.current = None;
        }
        shared.next_id += 1;
        let from = self.head.load(Ordering::SeqCst) + 1;
        let cursor = Arc::new(Cursor::new(shared.next_id, from, capacity.max(1) as u64));
        shared.cursors.push(cursor.clone());
        self.demand.store(true, Ordering::SeqCst);
        drop(shared);
        Subscription::new(self.clone(), cursor)
    }

    fn unsubscribe(&self, cursor: &Arc<Cursor>) {
        let head = self.head.load(Ordering::SeqCst);
        let mut shared = self.lock();
        shared.cursors.retain(|other| other.id != cursor.id);
        let stats = cursor.stats(head);
        shared.left.delivered += stats.delivered;
        shared.left.missed += stats.missed;
        if shared.cursors.is_empty() {
            shared.segments.clear();
            self.demand.store(false, Ordering::SeqCst);
        }
    }

    /// The segment with the line of event `seq`, for a subscriber; or else the first event behind
    /// it that is in one, if any is.
    fn segment(&self, cursor: &Cursor, seq: u64) -> Result<Arc<Segment>, Option<u64>> {
        let shared = self.lock();
        if let Some(segment) = cursor.pinned(seq) {
            return Ok(segment);
        }
        let behind = shared
            .segments
            .partition_point(|segment| segment.first() <= seq);
        match behind.checked_sub(1).and_then(|at| shared.segments.get(at)) {
            Some(segment) if segment.has(seq) => Ok(segment.clone()),
            _ => Err(shared.segments.get(behind).map(|segment| segment.first())),
        }
    }

    pub(crate) fn stats(&self) -> FanOutStats {
        let head = self.head.load(Ordering::SeqCst);
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

    fn cursors(&self) -> Vec<Arc<Cursor>> {
        self.lock().cursors.clone()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Ends all subscriptions, once they are drained.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.notifier.stop();
    }
}
