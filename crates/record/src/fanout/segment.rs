//! A run of lines, filled by the writer while subscribers read it.

use std::sync::OnceLock;

/// How many lines a segment holds.
pub(super) const SEGMENT_LINES: u64 = 256;

pub(super) struct Segment {
    first: u64,
    lines: Box<[OnceLock<Box<[u8]>>]>,
}

impl Segment {
    /// A segment whose first line is that of event `first`.
    pub(super) fn new(first: u64) -> Self {
        Self {
            first,
            lines: (0..SEGMENT_LINES).map(|_| OnceLock::new()).collect(),
        }
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn last(&self) -> u64 {
        self.first + SEGMENT_LINES - 1
    }

    pub(super) fn covers(&self, seq: u64) -> bool {
        (self.first..self.first + SEGMENT_LINES).contains(&seq)
    }

    /// Whether the line of an event is here.
    pub(super) fn has(&self, seq: u64) -> bool {
        self.slot(seq).is_some_and(|slot| slot.get().is_some())
    }

    fn slot(&self, seq: u64) -> Option<&OnceLock<Box<[u8]>>> {
        self.lines
            .get(usize::try_from(seq.checked_sub(self.first)?).ok()?)
    }

    /// Puts a line in its slot.
    pub(super) fn set(&self, seq: u64, line: &[u8]) {
        if let Some(slot) = self.slot(seq) {
            slot.get_or_init(|| line.into());
        }
    }

    /// The line of an event that has been published.
    pub(super) fn get(&self, seq: u64) -> &[u8] {
        self.slot(seq)
            .and_then(OnceLock::get)
            .map_or(&[], |line| line)
    }
}
