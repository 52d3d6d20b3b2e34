//! Lines in a row, as the writer collects them and as subscribers read them.

use std::ops::RangeInclusive;

/// How many lines a segment holds at most.
pub(super) const SEGMENT_LINES: u64 = 256;

/// How long a segment is at most, but for its last line.
pub(super) const SEGMENT_BYTES: usize = 256 * 1024;

/// How many buffers are kept to be used again.
const SPARE_BUFFERS: usize = 4;

/// Lines that the writer has collected and nobody has asked for yet.
#[derive(Default)]
pub(super) struct Pending {
    first: u64,
    bytes: Vec<u8>,
    /// Where each line ends in `bytes`.
    ends: Vec<usize>,
    /// Buffers to be used again.
    spare: Vec<(Vec<u8>, Vec<usize>)>,
}

impl Pending {
    /// Collects the line of event `seq`.
    pub(super) fn push(&mut self, seq: u64, line: &[u8]) {
        if self.ends.is_empty() {
            self.first = seq;
        }
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() as u64 >= SEGMENT_LINES || self.bytes.len() >= SEGMENT_BYTES
    }

    /// What was collected, to be read; `None` when there is nothing.
    pub(super) fn seal(&mut self) -> Option<Segment> {
        if self.ends.is_empty() {
            return None;
        }
        // A buffer that is well filled is given away; a few lines are not worth one.
        let (bytes, ends) = if self.bytes.len() * 2 > self.bytes.capacity() {
            let (bytes, ends) = self.spare.pop().unwrap_or_default();
            (
                std::mem::replace(&mut self.bytes, bytes),
                std::mem::replace(&mut self.ends, ends),
            )
        } else {
            (self.bytes.clone(), self.ends.clone())
        };
        let segment = Segment {
            first: self.first,
            bytes,
            ends,
        };
        self.clear();
        Some(segment)
    }

    /// Takes the buffers of a segment that nobody reads any more. Fresh ones would have to be brought
    /// into the cache, and often be asked of the system, for every segment.
    pub(super) fn reuse(&mut self, segment: Segment) {
        let Segment {
            mut bytes,
            mut ends,
            ..
        } = segment;
        if self.spare.len() < SPARE_BUFFERS && bytes.capacity() <= 4 * SEGMENT_BYTES {
            bytes.clear();
            ends.clear();
            self.spare.push((bytes, ends));
        }
    }

    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 1 << 20 {
            self.bytes = Vec::new();
        }
    }
}

/// Lines that do not change any more.
pub(crate) struct Segment {
    first: u64,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Segment {
    /// Lines that were read from a file. The first is that of event `first`; `ends` is where each ends in `bytes`.
    pub(crate) fn new(first: u64, bytes: Vec<u8>, ends: Vec<usize>) -> Self {
        Self { first, bytes, ends }
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn seqs(&self) -> RangeInclusive<u64> {
        self.first..=(self.first + self.len()).saturating_sub(1)
    }

    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    pub(crate) fn covers(&self, seq: u64) -> bool {
        self.seqs().contains(&seq)
    }

    /// The line of an event; empty when it is not one of these.
    pub(super) fn get(&self, seq: u64) -> &[u8] {
        let Some(at) = seq
            .checked_sub(self.first)
            .and_then(|at| usize::try_from(at).ok())
        else {
            return &[];
        };
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        self.ends
            .get(at)
            .map_or(&[], |&end| &self.bytes[start..end])
    }
}
