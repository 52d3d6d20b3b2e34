//! The last frames of a stream, ready to be written, shared by all its clients.
//!
//! A frame covers one place or several in a row. On the stream of a transcript a place is an event; on that of everything it is
//! one of the catalogue's. Places have no gaps, so a client needs to remember only the next one that it wants.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

/// The transcript that frames are about, for clients that do not want all of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) address: String,
    pub(crate) agent: Option<String>,
    pub(crate) cwd: Option<String>,
    /// Says which one it is, before frames that do not.
    pub(crate) name: Option<Bytes>,
}

/// Frames in a row, about one transcript.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    /// The first place.
    first: u64,
    /// The last place of each frame, and where the frame ends.
    frames: Vec<(u64, usize)>,
    bytes: Bytes,
    pub(crate) subject: Option<Arc<Subject>>,
    /// Whether the last event ends a run.
    pub(crate) ends_run: bool,
}

/// What frames take beside their bytes.
const OVERHEAD: usize = 192;

impl Chunk {
    /// The first place.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The last place.
    pub(crate) fn last(&self) -> u64 {
        self.frames.last().map_or(self.first, |frame| frame.0)
    }

    /// What it takes in memory.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.frames.len() * size_of::<(u64, usize)>() + OVERHEAD
    }

    /// The bytes from a place on; `None` when a frame covers this place and others before it, or none does.
    fn from(&self, place: u64) -> Option<Bytes> {
        if place == self.first {
            return Some(self.bytes.clone());
        }
        let before = self.frames.partition_point(|frame| frame.0 < place);
        let (last, end) = *self.frames.get(before.checked_sub(1)?)?;
        (last + 1 == place && before < self.frames.len()).then(|| self.bytes.slice(end..))
    }

    /// The frames before a place.
    fn before(&self, place: u64) -> Option<Self> {
        let kept = self.frames.partition_point(|frame| frame.0 < place);
        let (_, end) = *self.frames.get(kept.checked_sub(1)?)?;
        Some(Self {
            first: self.first,
            frames: self.frames[..kept].to_vec(),
            // Not a slice: the rest is to be given back.
            bytes: Bytes::copy_from_slice(&self.bytes[..end]),
            subject: self.subject.clone(),
            ends_run: false,
        })
    }

    /// All of it, for a client that reads it alone.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// Collects frames.
#[derive(Debug)]
pub(crate) struct ChunkBuilder {
    first: u64,
    frames: Vec<(u64, usize)>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends_run: bool,
}

impl ChunkBuilder {
    /// Frames from this place on.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            first,
            frames: Vec::new(),
            bytes: Vec::new(),
            ends_run: false,
        }
    }

    /// The bytes that were written since the last frame are a frame up to this place.
    pub(crate) fn end_frame(&mut self, last: u64) {
        self.frames.push((last, self.bytes.len()));
    }

    /// The place behind what was collected.
    pub(crate) fn next(&self) -> u64 {
        self.frames.last().map_or(self.first, |frame| frame.0 + 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has something, and would be larger than this with so many bytes more.
    pub(crate) fn is_full(&self, more: usize, most: usize) -> bool {
        !self.frames.is_empty() && self.bytes.len() + more > most
    }

    /// What was collected, unless that is nothing.
    pub(crate) fn finish(mut self, subject: Option<Arc<Subject>>) -> Option<Chunk> {
        let (_, end) = *self.frames.last()?;
        self.bytes.truncate(end);
        self.bytes.shrink_to_fit();
        Some(Chunk {
            first: self.first,
            frames: self.frames,
            bytes: self.bytes.into(),
            subject,
            ends_run: self.ends_run,
        })
    }
}

/// The last frames of a stream.
#[derive(Debug)]
pub(crate) struct Ring {
    chunks: VecDeque<Chunk>,
    size: usize,
    /// The next place.
    next: u64,
}

/// What a client finds.
#[derive(Debug)]
pub(crate) enum Found {
    /// Frames, and the place behind them.
    Frames(Vec<(Bytes, Option<Arc<Subject>>)>, u64),
    /// Nothing new.
    Nothing,
    /// What it wants is not here any more, or only together with something before it.
    Behind,
}

/// A client takes frames until it has so many bytes.
const TAKEN: usize = 64 << 10;

impl Ring {
    /// Nothing before this place is here.
    pub(crate) fn new(next: u64) -> Self {
        Self {
            chunks: VecDeque::new(),
            size: 0,
            next,
        }
    }

    /// The next place.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Adds frames. Old ones give way, so that all of them take no more than `room`, but the newest stay however long they
    /// are.
    pub(crate) fn push(&mut self, chunk: Chunk, room: usize) {
        if chunk.first != self.next {
            // Whoever is between the two reads it elsewhere.
            self.chunks.clear();
            self.size = 0;
        }
        self.next = chunk.last() + 1;
        self.size += chunk.size();
        self.chunks.push_back(chunk);
        while self.size > room && self.chunks.len() > 1 {
            self.pop();
        }
    }

    /// Gives back memory that nobody needs soon.
    pub(crate) fn trim(&mut self, room: usize) {
        while self.size > room && self.pop() {}
    }

    fn pop(&mut self) -> bool {
        let Some(chunk) = self.chunks.pop_front() else {
            return false;
        };
        self.size -= chunk.size();
        true
    }

    /// Forgets everything from a place on.
    pub(crate) fn cut(&mut self, from: u64) {
        if from >= self.next {
            return;
        }
        self.next = from;
        while let Some(chunk) = self.chunks.pop_back() {
            self.size -= chunk.size();
            if chunk.first >= from {
                continue;
            }
            let kept = chunk.before(from);
            if let Some(kept) = kept.filter(|kept| kept.last() + 1 == from) {
                self.size += kept.size();
                self.chunks.push_back(kept);
            } else {
                // A frame covers this place and others before it, and is gone with it.
                self.chunks.clear();
                self.size = 0;
            }
            return;
        }
    }

    /// The frames from a place on.
    pub(crate) fn read(&self, from: u64) -> Found {
        if from >= self.next {
            return Found::Nothing;
        }
        let begin = self.chunks.partition_point(|chunk| chunk.last() < from);
        let mut chunks = self.chunks.range(begin..);
        let Some(first) = chunks.next() else {
            return Found::Behind;
        };
        let Some(bytes) = (first.first <= from).then(|| first.from(from)).flatten() else {
            return Found::Behind;
        };
        let (mut taken, mut next) = (bytes.len(), first.last() + 1);
        let mut frames = vec![(bytes, first.subject.clone())];
        for chunk in chunks {
            if taken >= TAKEN {
                break;
            }
            taken += chunk.bytes.len();
            next = chunk.last() + 1;
            frames.push((chunk.bytes.clone(), chunk.subject.clone()));
        }
        Found::Frames(frames, next)
    }

    #[cfg(test)]
    fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame for each of these places says its place.
    fn chunk(first: u64, places: u64, covers: u64) -> Chunk {
        let mut builder = ChunkBuilder::new(first);
        let mut place = first;
        while place < first + places {
            let last = (place + covers).min(first + places) - 1;
            builder
                .bytes
                .extend_from_slice(format!("{place}-{last}\n").as_bytes());
            builder.end_frame(last);
            place = last + 1;
        }
        builder.finish(None).unwrap()
    }

    fn said(frames: &[(Bytes, Option<Arc<Subject>>)]) -> Vec<(u64, u64)> {
        let texts = frames
            .iter()
            .map(|(bytes, _)| String::from_utf8(bytes.to_vec()).unwrap());
        let text: String = texts.collect();
        let pair = |line: &str| {
            let (first, last) = line.split_once('-').unwrap();
            (first.parse().unwrap(), last.parse().unwrap())
        };
        text.lines().map(pair).collect()
    }

    proptest! {
        /// Whatever is added and cut off, a client finds exactly what follows the last that it had, or is told that it
        /// is behind; and the memory is bounded.
        #[test]
        fn a_client_finds_what_follows_and_nothing_else(
            steps in prop::collection::vec((1_u64..40, 1_u64..4, 0_u8..12, 0_u64..60), 1..40),
            room in 300_usize..20_000,
        ) {
            let mut ring = Ring::new(1);
            let mut client = 1;
            for (places, covers, step, back) in steps {
                match step {
                    0 => {
                        let from = ring.next().saturating_sub(back).max(1);
                        ring.cut(from);
                        prop_assert!(ring.next() == from || from > ring.next());
                        client = client.min(ring.next());
                    }
                    1..=3 => match ring.read(client) {
                        Found::Nothing => prop_assert_eq!(client, ring.next()),
                        Found::Behind => client = ring.next(),
                        Found::Frames(frames, next) => {
                            for (first, last) in said(&frames) {
                                prop_assert_eq!(first, client);
                                client = last + 1;
                            }
                            prop_assert_eq!(client, next);
                        }
                    },
                    _ => ring.push(chunk(ring.next(), places, covers), room),
                }
                prop_assert!(ring.size() <= room || ring.chunks.len() <= 1);
                prop_assert_eq!(ring.size(), ring.chunks.iter().map(Chunk::size).sum::<usize>());
            }
        }
    }

    #[test]
    fn the_middle_of_a_frame_is_not_given() {
        let mut ring = Ring::new(1);
        ring.push(chunk(1, 6, 3), 10_000);
        assert!(matches!(ring.read(2), Found::Behind));
        assert!(matches!(ring.read(4), Found::Frames(frames, 7) if said(&frames) == [(4, 6)]));
        assert!(matches!(ring.read(7), Found::Nothing));
        ring.trim(0);
        assert!(matches!(ring.read(4), Found::Behind));
        ring.push(chunk(7, 1, 1), 10_000);
        assert!(matches!(ring.read(7), Found::Frames(_, 8)));
    }
}
