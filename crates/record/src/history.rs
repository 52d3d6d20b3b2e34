//! Events that are in the file of a run that is recorded to, for those who come later or fall behind.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::fanout::Segment;
use crate::index::{CHECKED, Entry, Index, Mark, fill};
use crate::medium::Medium;

/// How much of the file is read at a time.
const CHUNK: usize = 64 * 1024;

/// How many parts of the file are remembered at most before those that nobody reads are forgotten.
const REMEMBERED: usize = 64;

/// The file of a run, read by its events.
///
/// What is read begins and ends where the index has its entries, so subscribers that read the same events at the same time
/// share them.
pub(crate) struct History {
    medium: Arc<dyn Medium>,
    index: Mutex<Index>,
    /// What somebody still reads, by its first event.
    shared: Mutex<BTreeMap<u64, Weak<Segment>>>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").finish_non_exhaustive()
    }
}

impl History {
    pub(crate) fn new(medium: Arc<dyn Medium>, index: Index) -> Self {
        Self {
            medium,
            index: Mutex::new(index),
            shared: Mutex::default(),
        }
    }

    pub(crate) fn medium(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    /// Adds the place of an event, whose line is in the file.
    pub(crate) fn note(&self, mark: Mark, line: &[u8]) {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.add(Entry::new(mark, line));
    }

    /// Some lines of the file, that of event `seq` among them, none behind event `last`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or does not have the event.
    pub(crate) fn segment(&self, seq: u64, last: u64) -> io::Result<Arc<Segment>> {
        let (before, behind) = {
            let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
            index.around(seq)
        };
        let start = before.map_or(Mark::START, |entry| entry.mark);
        let shared = |first| {
            let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.get(&first).and_then(Weak::upgrade)
        };
        if let Some(found) = shared(start.event).filter(|segment| segment.covers(seq)) {
            return Ok(found);
        }
        let last = behind.map_or(last, |behind| last.min(behind.event - 1));
        let segment = Arc::new(self.read(start, last)?);
        if !segment.covers(seq) {
            let message = format!("event {seq} is no longer in the file");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.len() >= REMEMBERED {
            shared.retain(|_, segment| segment.strong_count() > 0);
        }
        shared.insert(start.event, Arc::downgrade(&segment));
        Ok(segment)
    }

    /// Reads the lines from a place up to that of event `last`, or as far as the file has them.
    fn read(&self, start: Mark, last: u64) -> io::Result<Segment> {
        let wanted = usize::try_from(last + 1 - start.event).unwrap_or(usize::MAX);
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        while ends.len() < wanted {
            let have = bytes.len();
            bytes.resize(have + CHUNK, 0);
            let at = start.offset + have as u64;
            let n = fill(&mut bytes[have..], at, |buffer, at| {
                self.medium.read_at(buffer, at)
            })?;
            bytes.truncate(have + n);
            if n == 0 {
                break;
            }
            let left = wanted - ends.len();
            let found = memchr::memchr_iter(b'\n', &bytes[have..]).take(left);
            ends.extend(found.map(|at| have + at + 1));
        }
        bytes.truncate(ends.last().copied().unwrap_or(0));
        Ok(Segment::new(start.event, bytes, ends))
    }
}

/// An entry for a line of a medium.
pub(crate) fn entry_of(medium: &dyn Medium, mark: Mark) -> io::Result<Entry> {
    let mut line = [0; CHECKED];
    let n = fill(&mut line, mark.offset, |buffer, at| {
        medium.read_at(buffer, at)
    })?;
    Ok(Entry::new(mark, &line[..n]))
}
