//! History and live events as one stream.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::fanout::{Batch, Subscription, TryNextError};
use crate::history::History;

/// Every event of a run from one on, each once, in order.
///
/// Reads what is past from the file and what is new from the recorder. If it falls further behind
/// than its buffer, it reads the file again instead of missing anything; the writer does not wait for
/// it either way. Lines are shared with all others who are given them.
///
/// Blocking ([`Follower::recv`]), polling ([`Follower::try_recv`]) and async ([`Follower::poll_next`]) use may be mixed.
/// Dropping it ends it.
#[derive(Debug)]
pub struct Follower {
    live: Subscription,
    history: Arc<History>,
    /// The event to give next.
    next: u64,
    /// Up to which event the file is to be read.
    in_file: u64,
}

impl Follower {
    pub(crate) fn new(live: Subscription, history: Arc<History>, from: u64) -> Self {
        Self {
            in_file: live.next_seq() - 1,
            live,
            history,
            next: from.max(1),
        }
    }

    /// The next event this will give.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// Waits for events; `None` once the recorder is closed and everything was given.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn recv(&mut self) -> io::Result<Option<Batch>> {
        let got = self.pull(|live| live.recv_batch().ok_or(TryNextError::Closed))?;
        Ok(got.ok())
    }

    /// Waits for events, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. No event yet is not an error.
    pub fn recv_timeout(&mut self, timeout: Duration) -> io::Result<Result<Batch, TryNextError>> {
        self.pull(|live| live.recv_batch_timeout(timeout))
    }

    /// The next events, if there are any.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. No event yet is not an error.
    pub fn try_recv(&mut self) -> io::Result<Result<Batch, TryNextError>> {
        self.pull(Subscription::try_batch)
    }

    /// Like [`Follower::recv`], for use in a future or a stream. The waker is called when there is more, or the recorder
    /// is closed.
    ///
    /// Reads the file when it is behind, at most some 64 KiB or a line at a time.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Batch>>> {
        loop {
            match self.past() {
                Ok(None) => {}
                Ok(Some(batch)) => return Poll::Ready(Some(Ok(batch))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
            match self.live.poll_batch(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(live)) => {
                    if let Some(batch) = self.fresh(live) {
                        return Poll::Ready(Some(Ok(batch)));
                    }
                }
            }
        }
    }

    fn pull(
        &mut self,
        mut live: impl FnMut(
            &mut Subscription,
        ) -> Result<Result<Batch, RangeInclusive<u64>>, TryNextError>,
    ) -> io::Result<Result<Batch, TryNextError>> {
        loop {
            if let Some(batch) = self.past()? {
                return Ok(Ok(batch));
            }
            match live(&mut self.live) {
                Err(why) => return Ok(Err(why)),
                Ok(live) => {
                    if let Some(batch) = self.fresh(live) {
                        return Ok(Ok(batch));
                    }
                }
            }
        }
    }

    /// Events that are to be read from the file; `None` when there are none.
    fn past(&mut self) -> io::Result<Option<Batch>> {
        if self.next > self.in_file {
            return Ok(None);
        }
        let segment = self.history.segment(self.next, self.in_file)?;
        Ok(self.give(Batch::of(segment)))
    }

    /// What came live: events to give, if there are any that are not given yet.
    fn fresh(&mut self, live: Result<Batch, RangeInclusive<u64>>) -> Option<Batch> {
        match live {
            Ok(batch) => self.give(batch),
            Err(gap) => {
                self.in_file = *gap.end();
                None
            }
        }
    }

    fn give(&mut self, batch: Batch) -> Option<Batch> {
        let batch = batch.from(self.next)?;
        self.next = batch.seqs().end() + 1;
        Some(batch)
    }
}
