//! Where the transcript ends, for readers that must not make the writer wait.

use crate::sync::{AtomicU64, Ordering, fence, thread};

/// The last event published, and where its line ends in the file. One writer, any number of readers,
/// no lock. On a cache line of its own, because the writer changes it for every event.
#[repr(align(128))]
pub(super) struct Tail {
    seq: AtomicU64,
    end: AtomicU64,
    /// Odd while the two are being changed, so that a reader knows when it has seen half of each.
    version: AtomicU64,
}

impl Tail {
    pub(super) fn new(seq: u64) -> Self {
        Self {
            seq: AtomicU64::new(seq),
            end: AtomicU64::new(0),
            version: AtomicU64::new(0),
        }
    }

    /// The last event.
    pub(super) fn seq(&self) -> u64 {
        self.seq.load(Ordering::SeqCst)
    }

    /// Moves on, where nobody asks for the end: there are no subscribers.
    pub(super) fn set_seq(&self, seq: u64) {
        self.seq.store(seq, Ordering::SeqCst);
    }

    /// Moves on. Only one thread at a time.
    pub(super) fn set(&self, seq: u64, end: u64) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.end.store(end, Ordering::Relaxed);
        // In order with the flags by which subscribers ask for events, hence not weaker.
        self.seq.store(seq, Ordering::SeqCst);
        self.version.store(version + 2, Ordering::Release);
    }

    /// The last event and where its line ends.
    pub(super) fn get(&self) -> (u64, u64) {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let tail = (
                self.seq.load(Ordering::SeqCst),
                self.end.load(Ordering::Relaxed),
            );
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return tail;
            }
            thread::yield_now();
        }
    }
}
