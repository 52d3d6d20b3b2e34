//! All events of a transcript, a few at a time.

use std::ops::RangeInclusive;

use quipu_model::Event;

use crate::catalogue::TranscriptRow;
use crate::events::{EventLog, Fault};
use crate::import::{ImportError, Store};
use crate::transcript::Kept;

/// How many events the first batch has: about a screen.
const FIRST: u64 = 64;
/// How many events a batch has at most. Each is twice as long as the one before.
const LARGEST: u64 = 4096;

/// Events of a transcript in order, in batches, as they were when reading began.
#[derive(Debug)]
pub struct Batches {
    kept: Kept,
    log: EventLog,
    next: u64,
    last: u64,
    size: u64,
}

impl Store {
    /// Reads these events of a transcript in batches, so that memory does not grow with the transcript.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn batches(
        &self,
        row: &TranscriptRow,
        wanted: &RangeInclusive<u64>,
    ) -> Result<Batches, ImportError> {
        let kept = self.kept();
        let next = (*wanted.start()).max(1);
        let log = kept.open(row, &(next..=next.saturating_add(FIRST - 1)))?;
        let last = log.len()?.min(*wanted.end());
        Ok(Batches {
            kept,
            log,
            next,
            last,
            size: FIRST,
        })
    }
}

impl Batches {
    /// Why the log could not be read wholly.
    ///
    /// # Errors
    ///
    /// When the events cannot be read.
    pub fn problem(&self) -> Result<Option<String>, ImportError> {
        Ok(self.log.about()?.problem)
    }

    fn read(&mut self, wanted: RangeInclusive<u64>) -> Result<Vec<Event>, ImportError> {
        match self.log.events(wanted.clone()) {
            // Only the blocks of the first batch were checked at the beginning.
            Err(Fault::Damaged { .. } | Fault::Missing) => {
                self.log = self.kept.open(&self.log.header().clone(), &wanted)?;
                Ok(self.log.events(wanted)?)
            }
            read => Ok(read?),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<Vec<Event>, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.last {
            return None;
        }
        let end = self.next.saturating_add(self.size - 1).min(self.last);
        let wanted = self.next..=end;
        self.next = end + 1;
        self.size = (self.size * 2).min(LARGEST);
        let read = self.read(wanted);
        if read.is_err() {
            self.next = u64::MAX;
        }
        Some(read)
    }
}
