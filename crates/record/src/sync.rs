//! The synchronisation primitives of the recorder: std's, or shuttle's when its interleavings are
//! explored.

pub(crate) use std::sync::Arc;

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread, thread_local,
};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread, thread_local,
};

/// Waits to be told, at most this long. Shuttle knows no time: there, waiting for a moment takes none.
pub(crate) fn wait_at_most<'a, T>(
    tell: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Option<std::time::Duration>,
) -> MutexGuard<'a, T> {
    use std::sync::PoisonError;
    match time {
        None => tell.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(_) if cfg!(feature = "shuttle") => guard,
        Some(time) => {
            tell.wait_timeout(guard, time)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
    }
}
