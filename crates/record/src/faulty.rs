//! A file that fails when told to. Tests only.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::medium::Medium;

/// What an append does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// Takes this many bytes and says so.
    Short(usize),
    /// Takes none.
    NoSpace,
    /// Is interrupted before it takes any.
    Interrupted,
    /// Takes nothing and says so.
    Zero,
}

#[derive(Debug, Default)]
pub(crate) struct FaultyFile {
    pub(crate) bytes: Mutex<Vec<u8>>,
    /// What the next appends do; those behind the last work.
    pub(crate) plan: Mutex<VecDeque<Fault>>,
    pub(crate) fail_truncate: AtomicBool,
    pub(crate) fail_sync: AtomicBool,
    pub(crate) away: AtomicBool,
    /// How long it takes to bring it to disk.
    pub(crate) sync_takes: Mutex<Duration>,
    /// How often it was brought to disk.
    pub(crate) syncs: AtomicUsize,
    /// What has been brought to disk.
    pub(crate) synced: Mutex<usize>,
}

impl FaultyFile {
    pub(crate) fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(faults);
    }

    pub(crate) fn contents(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Medium for FaultyFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let fault = self
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let taken = match fault {
            None => bytes.len(),
            Some(Fault::Short(n)) => n.min(bytes.len()),
            Some(Fault::Zero) => 0,
            Some(Fault::NoSpace) => return Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Interrupted) => return Err(io::ErrorKind::Interrupted.into()),
        };
        self.bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(&bytes[..taken]);
        Ok(taken)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        if self.fail_truncate.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if self.fail_sync.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is broken"));
        }
        let takes = *self
            .sync_takes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !takes.is_zero() {
            std::thread::sleep(takes);
        }
        self.syncs.fetch_add(1, Ordering::SeqCst);
        let len = self
            .bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len();
        *self.synced.lock().unwrap_or_else(PoisonError::into_inner) = len;
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self
            .bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len() as u64)
    }

    fn is_in_place(&self) -> io::Result<bool> {
        Ok(!self.away.load(Ordering::SeqCst))
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| bytes.get(at..))
            .unwrap_or_default();
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}
