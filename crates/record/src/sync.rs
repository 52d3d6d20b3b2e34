//! The synchronisation primitives of the fan-out: std's, or shuttle's when its interleavings are
//! explored.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread,
};
