//! What all live runs of a process share: one thread that syncs, one that wakes.
//!
//! ```text
//!  run A ─┐            ┌─► quipu-sync   brings what was written to disk, a while later
//!  run B ─┼──► Hub ────┤
//!  run C ─┘            └─► quipu-wake   wakes subscribers; looks at files that other processes write
//! ```
//!
//! Both threads start when they are first needed and sleep while there is nothing to do. They end with the last
//! recorder, subscriber and follower of the process.
//!
//! **Weak spot:** a disk that hangs in a sync holds up the background syncs of runs on other disks. Recording
//! goes on, and whoever waits for an event to be durable syncs by himself.

use crate::commit::Syncs;
use crate::fanout::Wakes;
use crate::sync::Arc;

#[derive(Default)]
pub(crate) struct Hub {
    pub(crate) syncs: Arc<Syncs>,
    pub(crate) wakes: Arc<Wakes>,
}

impl Hub {
    /// The hub of this process.
    #[cfg(not(feature = "shuttle"))]
    pub(crate) fn of_process() -> Arc<Self> {
        use std::sync::{Mutex, PoisonError, Weak};
        static HUB: Mutex<Weak<Hub>> = Mutex::new(Weak::new());
        let mut hub = HUB.lock().unwrap_or_else(PoisonError::into_inner);
        hub.upgrade().unwrap_or_else(|| {
            let fresh = Arc::<Self>::default();
            *hub = Arc::downgrade(&fresh);
            fresh
        })
    }

    /// A hub of its own: an exploration of interleavings must not share anything with the one before it.
    #[cfg(feature = "shuttle")]
    pub(crate) fn of_process() -> Arc<Self> {
        Arc::default()
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.syncs.stop();
        self.wakes.stop();
    }
}
