//! Events as lines, kept in memory by the block.
//!
//! A page of events is read again and again: by a person who scrolls, by several who look at the same run. Reading it takes
//! unpacking, and making events of records; giving it out takes copying. So lines are made once for a block of events, and
//! kept while there is room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use rustc_hash::FxBuildHasher;

use super::events::LONGEST as PAGE;
use crate::problem::Problem;

/// How many events a block has.
const BLOCK: u64 = 256;

/// How much is kept at most. It is given up when nobody asked for a while.
const ROOM: usize = 128 << 20;

/// How long lines are kept that nobody asks for.
const IDLE: Duration = Duration::from_secs(60);

/// The state of a transcript that lines are of. What is derived of a log may change wherever the log grows; what is in the
/// file of a run does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    address: String,
    version: u32,
    read_to: u64,
    inode: u64,
}

impl State {
    fn of(row: &TranscriptRow) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let inode = if row.recorded {
            std::fs::metadata(&row.path).map_or(0, |file| file.ino())
        } else {
            0
        };
        Self {
            address: row.address.clone(),
            version: row.version,
            read_to: if row.recorded { 0 } else { row.read_to },
            inode,
        }
    }
}

type Key = (State, u64);

/// The last event that a block can have.
fn end(number: u64) -> u64 {
    number.saturating_add(1).saturating_mul(BLOCK)
}

/// A block ends behind the event with which it has so many bytes: events may be long.
const LONGEST: usize = 4 << 20;

/// The lines of a block.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// The seq of each event, and where its line ends.
    ends: Vec<(u64, usize)>,
    /// The first event that was not looked at.
    next: u64,
    /// Lines in the block that are not events, by the seq of the event before them, or the first of the block.
    bad: u64,
    /// How many events the transcript had when it was read.
    total: u64,
}

impl Block {
    /// Reads the events of a block, from one of them on.
    fn read(store: &Store, row: &TranscriptRow, number: u64, from: u64) -> Result<Self, Problem> {
        let mut block = Self::default();
        let given = store.each_event(row, &(from..=end(number)), None, &mut |event| {
            quipu_exchange::encode_log(&event, &mut block.bytes);
            while block.bytes.last() == Some(&b'\n') {
                block.bytes.pop();
            }
            block.ends.push((event.seq, block.bytes.len()));
            block.bytes.len() < LONGEST
        })?;
        (block.next, block.total, block.bad) = (given.next, given.len, given.bad);
        block.bytes.shrink_to_fit();
        Ok(block)
    }

    /// Whether nothing is added to it any more.
    fn is_full(&self, number: u64) -> bool {
        self.total >= end(number)
    }

    /// Whether it ends before an event, since those before are long.
    fn ends_before(&self, from: u64, number: u64) -> bool {
        self.next <= from && self.next <= end(number).min(self.total)
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * 16 + 256
    }
}

/// The first event of a block.
fn start(number: u64) -> u64 {
    number.saturating_mul(BLOCK).saturating_add(1)
}

/// Lines that were made, the oldest of which give way.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: Mutex<Kept>,
    asked: AtomicU64,
    watched: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<Key, Arc<Block>, FxBuildHasher>,
    order: VecDeque<Key>,
    bytes: usize,
}

/// Some events as they are put into a page.
#[derive(Debug, Default)]
pub(super) struct Slice {
    /// The lines, with commas between them.
    pub(super) bytes: Vec<u8>,
    /// The first event that was not looked at.
    pub(super) next: u64,
    /// How many events there are.
    pub(super) total: u64,
    /// Lines that are not events.
    pub(super) bad: u64,
}

impl Lines {
    /// Events from one on, if all of them are kept. Needs neither the disk nor another thread.
    pub(super) fn kept(&self, row: &TranscriptRow, from: u64, most: usize) -> Option<Slice> {
        // A run may have grown: how many events it has is in its file.
        if row.recorded {
            return None;
        }
        let state = State::of(row);
        self.slice(from, most, None, &mut |number, from| {
            let kept = self.kept.lock();
            let block = kept.blocks.get(&(state.clone(), number));
            let block = block.filter(|block| !block.ends_before(from, number));
            block.cloned().ok_or(())
        })
        .ok()
    }

    /// Events from one on.
    pub(super) fn read(
        &self,
        store: &Store,
        row: &TranscriptRow,
        from: u64,
        most: usize,
    ) -> Result<Slice, Problem> {
        let state = State::of(row);
        let total = if row.recorded {
            Some(store.events(row)?.len()?)
        } else {
            None
        };
        self.slice(from, most, total, &mut |number, from| {
            let key = (state.clone(), number);
            let kept = self.kept.lock().blocks.get(&key).cloned();
            let block = if let Some(block) = kept {
                block
            } else {
                let block = Arc::new(Block::read(store, row, number, start(number))?);
                if block.is_full(number) {
                    self.put(key, Arc::clone(&block));
                }
                block
            };
            if block.ends_before(from, number) {
                // Events before it fill the block.
                return Ok(Arc::new(Block::read(store, row, number, from)?));
            }
            Ok(block)
        })
    }

    fn slice<E>(
        &self,
        from: u64,
        most: usize,
        total: Option<u64>,
        block: &mut dyn FnMut(u64, u64) -> Result<Arc<Block>, E>,
    ) -> Result<Slice, E> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut slice = Slice {
            next: from,
            total: total.unwrap_or(0),
            ..Slice::default()
        };
        let mut count = 0;
        while count < most && slice.bytes.len() < PAGE {
            let number = slice.next.saturating_sub(1) / BLOCK;
            let block = block(number, slice.next)?;
            // A run may have grown meanwhile.
            slice.total = slice.total.max(block.total);
            let at = block.ends.partition_point(|(seq, _)| *seq < slice.next);
            let mut to = at;
            let mut begin = if at == 0 { 0 } else { block.ends[at - 1].1 };
            while to < block.ends.len() && count < most && slice.bytes.len() < PAGE {
                if count > 0 {
                    slice.bytes.push(b',');
                }
                let end = block.ends[to].1;
                slice.bytes.extend_from_slice(&block.bytes[begin..end]);
                begin = end;
                (count, to) = (count + 1, to + 1);
            }
            let is_cut = to < block.ends.len();
            if at == 0 && !is_cut {
                slice.bad += block.bad;
            }
            if is_cut {
                slice.next = block.ends[to - 1].0.saturating_add(1);
                break;
            }
            let behind = block.next.min(slice.total.saturating_add(1));
            if behind <= slice.next || behind > slice.total {
                slice.next = slice.next.max(behind);
                break;
            }
            slice.next = behind;
        }
        Ok(slice)
    }

    fn put(&self, key: Key, block: Arc<Block>) {
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        kept.bytes += block.size();
        match kept.blocks.insert(key.clone(), block) {
            Some(before) => kept.bytes -= before.size(),
            None => kept.order.push_back(key),
        }
        while kept.bytes > ROOM {
            let Some(oldest) = kept.order.pop_front() else {
                break;
            };
            if let Some(gone) = kept.blocks.remove(&oldest) {
                kept.bytes -= gone.size();
            }
        }
    }

    /// Gives everything up when nobody asked for it for a while. Whoever begins to wait is told so, and nobody waits twice.
    pub(super) fn begins_to_wait(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }

    /// Waits until nobody asks any more, then gives up what is kept.
    pub(super) async fn give_up(&self) {
        let mut asked = self.asked.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(IDLE).await;
            let now = self.asked.load(Ordering::Relaxed);
            if now == asked {
                break;
            }
            asked = now;
        }
        *self.kept.lock() = Kept::default();
        self.watched.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_of_all_numbers_come_to_an_end() {
        let lines = Lines::default();
        for from in [u64::MAX, u64::MAX - 1, u64::MAX - BLOCK, 1 << 53] {
            let mut blocks = 0;
            let slice = lines.slice::<()>(from, 10, None, &mut |_, _| {
                blocks += 1;
                assert!(blocks < 3, "it goes on and on");
                Ok(Arc::new(Block {
                    total: 5,
                    next: from,
                    ..Block::default()
                }))
            });
            let slice = slice.unwrap();
            assert_eq!((slice.next, slice.total), (from, 5));
            let block = Block {
                total: 5,
                ..Block::default()
            };
            assert!(!block.is_full(from / BLOCK), "nothing of it is kept");
        }
    }
}
