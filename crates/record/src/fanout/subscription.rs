//! The subscriber's side.

use std::ops::RangeInclusive;
use std::sync::PoisonError;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use super::segment::{SEGMENT_LINES, Segment};
use super::{FanOut, SubscriberStats};
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering};

/// Where a subscriber stands, visible to the writer.
pub(super) struct Cursor {
    pub(super) id: u64,
    pub(super) capacity: u64,
    /// The next event it will be given.
    next: AtomicU64,
    /// The first event that its last look ahead did not decide on: those before it are either
    /// going to be given or known to be missed.
    undecided: AtomicU64,
    delivered: AtomicU64,
    missed: AtomicU64,
    /// Whom to wake, while it waits.
    waker: Mutex<Option<Waker>>,
}

impl Cursor {
    pub(super) fn new(id: u64, from: u64, capacity: u64) -> Self {
        Self {
            id,
            capacity,
            next: AtomicU64::new(from),
            undecided: AtomicU64::new(from),
            delivered: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            waker: Mutex::default(),
        }
    }

    /// Says whom to wake; gives whether nobody was to be woken before.
    pub(super) fn set_waker(&self, waker: &Waker) -> bool {
        let mut slot = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        slot.replace(waker.clone()).is_none()
    }

    pub(super) fn take_waker(&self) -> Option<Waker> {
        self.waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Whether an event would still fit into the buffer.
    pub(super) fn has_room_for(&self, seq: u64) -> bool {
        seq < self
            .undecided
            .load(Ordering::SeqCst)
            .saturating_add(self.capacity)
    }

    pub(super) fn stats(&self, head: u64) -> SubscriberStats {
        let undecided = self.undecided.load(Ordering::SeqCst);
        let next = self.next.load(Ordering::SeqCst);
        let missed = self.missed.load(Ordering::SeqCst);
        let backlog = (head + 1).saturating_sub(undecided);
        // In the middle of a look ahead, what is left of it waits as well.
        let ahead = undecided.saturating_sub(next).min(self.capacity);
        SubscriberStats {
            id: self.id,
            delivered: self.delivered.load(Ordering::SeqCst),
            missed: missed + backlog.saturating_sub(self.capacity),
            waiting: ahead + backlog.min(self.capacity),
        }
    }
}

/// Receives the events of a recorder from the moment it was made.
///
/// Blocking ([`Subscription::recv`]), polling ([`Subscription::try_recv`]) and async
/// ([`Subscription::poll_batch`]) use may be mixed. Dropping it ends it.
pub struct Subscription {
    fanout: Arc<FanOut>,
    cursor: Arc<Cursor>,
    segment: Option<Arc<Segment>>,
    next: u64,
    /// The end of what the last look ahead found, exclusive.
    end: u64,
    /// What the last look ahead found to be missed, behind `end`.
    gap: Option<RangeInclusive<u64>>,
    parker: Arc<Parker>,
    waker: Waker,
    /// Whether it has been given anything since it last waited.
    served: bool,
}

/// What a subscriber is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An event.
    Line(Line),
    /// The subscriber was too slow for these. They are in the file.
    Missed(RangeInclusive<u64>),
}

/// A line of the transcript, as it is in the file, its end included.
#[derive(Clone)]
pub struct Line {
    segment: Arc<Segment>,
    seq: u64,
}

/// Lines in a row. All who are given the same lines share them; a clone copies none.
#[derive(Clone)]
pub struct Batch {
    segment: Arc<Segment>,
    seqs: RangeInclusive<u64>,
}

/// Why there is nothing to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TryNextError {
    /// Nothing yet.
    #[error("no event yet")]
    Empty,
    /// The recorder is closed and everything was given.
    #[error("the recorder is closed")]
    Closed,
}

impl Subscription {
    pub(super) fn new(fanout: Arc<FanOut>, cursor: Arc<Cursor>) -> Self {
        let next = cursor.next.load(Ordering::SeqCst);
        let parker = Arc::<Parker>::default();
        let waker = Waker::from(parker.clone());
        Self {
            fanout,
            cursor,
            segment: None,
            next,
            end: next,
            gap: None,
            parker,
            waker,
            served: false,
        }
    }

    /// The next event this will give, unless it is missed.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// What it received and missed.
    pub fn stats(&self) -> SubscriberStats {
        self.cursor.stats(self.fanout.tail.seq())
    }

    /// Waits for the next event; `None` once the recorder is closed and everything was given.
    pub fn recv(&mut self) -> Option<Next> {
        loop {
            match self.take(1, self.look()) {
                Ok(taken) => return Some(taken.into()),
                Err(TryNextError::Closed) => return None,
                Err(TryNextError::Empty) => self.park(None),
            }
        }
    }

    /// Waits for the next event, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Next, TryNextError> {
        self.take_within(1, timeout).map(Next::from)
    }

    /// Waits for events, but not longer than `timeout`, and gives as many as can be had at once.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn recv_batch_timeout(
        &mut self,
        timeout: Duration,
    ) -> Result<Result<Batch, RangeInclusive<u64>>, TryNextError> {
        self.take_within(SEGMENT_LINES, timeout).map(Into::into)
    }

    fn take_within(&mut self, most: u64, timeout: Duration) -> Result<Taken, TryNextError> {
        let began = Instant::now();
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            match self.take(most, Look::AtAll) {
                Err(TryNextError::Empty) if !left.is_zero() => self.park(Some(left)),
                other => return other,
            }
        }
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn try_recv(&mut self) -> Result<Next, TryNextError> {
        self.take(1, Look::AtAll).map(Next::from)
    }

    /// As many events as can be had at once, if there are any. Cheaper than one by one.
    ///
    /// # Errors
    ///
    /// When there are none.
    pub fn try_batch(&mut self) -> Result<Result<Batch, RangeInclusive<u64>>, TryNextError> {
        self.take(SEGMENT_LINES, Look::AtAll).map(Into::into)
    }

    /// Waits for events and gives as many as can be had at once; `None` at the end.
    pub fn recv_batch(&mut self) -> Option<Result<Batch, RangeInclusive<u64>>> {
        loop {
            match self.take(SEGMENT_LINES, self.look()) {
                Ok(taken) => return Some(taken.into()),
                Err(TryNextError::Closed) => return None,
                Err(TryNextError::Empty) => self.park(None),
            }
        }
    }

    /// Like [`Subscription::recv_batch`], for use in a future.
    pub fn poll_batch(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Batch, RangeInclusive<u64>>>> {
        for attempt in 0..2 {
            match self.take(SEGMENT_LINES, self.look()) {
                Ok(taken) => return Poll::Ready(Some(taken.into())),
                Err(TryNextError::Closed) => return Poll::Ready(None),
                // Look again after asking to be woken: it may have come in between.
                Err(TryNextError::Empty) if attempt == 0 => self.ask(context.waker()),
                Err(TryNextError::Empty) => {}
            }
        }
        self.served = false;
        Poll::Pending
    }

    /// How eagerly to look for the next event. Whoever has just been given some can wait for the rest
    /// to be announced; else a crowd would chase the writer line by line.
    fn look(&self) -> Look {
        if self.served && !self.fanout.is_closed() {
            Look::Announced
        } else {
            Look::AtAll
        }
    }

    /// The last event that can be had without troubling the writer.
    fn announced(&self) -> u64 {
        self.fanout
            .notifier
            .announced()
            .max(self.fanout.sealed.load(Ordering::SeqCst))
    }

    /// Asks to be woken when there is more.
    fn ask(&self, waker: &Waker) {
        self.fanout.notifier.register(&self.cursor, waker);
        if self.fanout.tail.seq() >= self.next {
            // It is there already, but perhaps nobody is awake to announce it.
            self.fanout.notifier.poke(&self.fanout, false);
        }
    }

    fn take(&mut self, most: u64, look: Look) -> Result<Taken, TryNextError> {
        if self.next == self.end {
            if let Some(gap) = self.gap.take() {
                return Ok(self.miss(gap));
            }
            self.look_ahead(look)?;
        }
        self.served = true;
        let Some(segment) = self.segment_at_next() else {
            // The file was cut or taken away; what it held is missed, not made up.
            let last = self.fanout.tail.seq();
            let gap = self.next..=last;
            let known = self.gap.take().map_or(0, |gap| gap.end() + 1 - gap.start());
            let missed = (last + 1 - self.next).saturating_sub(known);
            self.cursor.missed.fetch_add(missed, Ordering::SeqCst);
            self.cursor.undecided.store(last + 1, Ordering::SeqCst);
            return Ok(self.miss(gap));
        };
        let last = (self.end - 1)
            .min(*segment.seqs().end())
            .min(self.next + most - 1);
        let seqs = self.next..=last;
        self.cursor
            .delivered
            .fetch_add(last + 1 - self.next, Ordering::SeqCst);
        self.next = last + 1;
        self.cursor.next.store(self.next, Ordering::SeqCst);
        Ok(Taken::Batch(Batch { segment, seqs }))
    }

    /// Passes over events that are missed.
    fn miss(&mut self, gap: RangeInclusive<u64>) -> Taken {
        self.next = gap.end() + 1;
        self.end = self.next;
        self.cursor.next.store(self.next, Ordering::SeqCst);
        self.segment = None;
        Taken::Missed(gap)
    }

    /// Decides what to give next: of a backlog that is larger than the buffer, the oldest.
    fn look_ahead(&mut self, look: Look) -> Result<(), TryNextError> {
        // Read before the tail: whatever was published before closing is then seen.
        let closed = self.fanout.is_closed();
        let head = self.fanout.tail.seq();
        if head < self.next {
            return Err(if closed {
                TryNextError::Closed
            } else {
                TryNextError::Empty
            });
        }
        let room = self.next.saturating_add(self.cursor.capacity);
        let undecided = if head >= room {
            self.cursor
                .missed
                .fetch_add(head + 1 - room, Ordering::SeqCst);
            self.end = room;
            self.gap = Some(room..=head);
            head + 1
        } else {
            // What is in segments, or was announced to all, can be had without troubling the writer
            // for a few lines more.
            let known = self.announced().min(head);
            self.end = match look {
                _ if known >= self.next => known + 1,
                Look::AtAll => head + 1,
                Look::Announced => return Err(TryNextError::Empty),
            };
            self.end
        };
        self.cursor.undecided.store(undecided, Ordering::SeqCst);
        // After that, so that the writer sees the room when it looks.
        if !self.fanout.demand.load(Ordering::SeqCst) {
            self.fanout.demand.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// The segment with the next event; `None` when not even the file has it.
    fn segment_at_next(&mut self) -> Option<Arc<Segment>> {
        let held = self
            .segment
            .take()
            .filter(|segment| segment.covers(self.next));
        self.segment = held.or_else(|| self.fanout.segment(self.next)).or_else(|| {
            let history = &self.fanout.history;
            history.segment(self.next, self.end - 1).ok()
        });
        self.segment.clone()
    }

    fn park(&mut self, timeout: Option<Duration>) {
        self.ask(&self.waker);
        // What was announced before this asked to be woken is not announced again.
        let known = if self.served {
            self.announced()
        } else {
            self.fanout.tail.seq()
        };
        let there = known >= self.next;
        self.served = false;
        if !there && !self.fanout.is_closed() {
            self.parker.park(timeout);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.fanout.unsubscribe(&self.cursor);
    }
}

/// How eagerly to look for the next event.
#[derive(Clone, Copy)]
enum Look {
    /// Whatever there is.
    AtAll,
    /// Only what can be had without troubling the writer.
    Announced,
}

enum Taken {
    Batch(Batch),
    Missed(RangeInclusive<u64>),
}

impl From<Taken> for Next {
    /// Of a batch, the first.
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Missed(gap) => Self::Missed(gap),
            Taken::Batch(Batch { segment, seqs }) => Self::Line(Line {
                segment,
                seq: *seqs.start(),
            }),
        }
    }
}

impl From<Taken> for Result<Batch, RangeInclusive<u64>> {
    fn from(taken: Taken) -> Self {
        match taken {
            Taken::Batch(batch) => Ok(batch),
            Taken::Missed(gap) => Err(gap),
        }
    }
}

impl Line {
    /// The event's sequence number.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The line.
    pub fn bytes(&self) -> &[u8] {
        self.segment.get(self.seq)
    }
}

impl Batch {
    /// All lines of a segment, which has some.
    pub(crate) fn of(segment: Arc<Segment>) -> Self {
        let seqs = segment.seqs();
        Self { segment, seqs }
    }

    /// The lines from event `seq` on; `None` when there are none.
    pub(crate) fn from(self, seq: u64) -> Option<Self> {
        let (start, end) = (seq.max(*self.seqs.start()), *self.seqs.end());
        (start <= end).then_some(Self {
            segment: self.segment,
            seqs: start..=end,
        })
    }

    /// The sequence numbers of the events.
    pub fn seqs(&self) -> RangeInclusive<u64> {
        self.seqs.clone()
    }

    /// The events' sequence numbers and lines.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.seqs.clone().map(|seq| (seq, self.segment.get(seq)))
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line({})", self.seq)
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Batch({:?})", self.seqs)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        self.seq == other.seq && self.bytes() == other.bytes()
    }
}

impl Eq for Line {}

/// Lets a thread wait to be woken.
#[derive(Default)]
pub(crate) struct Parker {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Parker {
    pub(crate) fn park(&self, timeout: Option<Duration>) {
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*woken {
            match timeout {
                None => {
                    woken = self
                        .wake
                        .wait(woken)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Some(timeout) => {
                    let waited = self.wake.wait_timeout(woken, timeout);
                    woken = waited.unwrap_or_else(PoisonError::into_inner).0;
                    break;
                }
            }
        }
        *woken = false;
    }

    fn unpark(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_one();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }
}
