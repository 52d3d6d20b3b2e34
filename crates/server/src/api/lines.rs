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

use crate::problem::Problem;

/// How many events a block has.
const BLOCK: u64 = 256;

/// How much is kept at most. It is given up when nobody asked for a while.
const ROOM: usize = 40 << 20;

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

/// The lines of a block.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// The seq of each event, and where its line ends.
    ends: Vec<(u64, usize)>,
    /// Lines in the block that are not events, by the seq of the event before them, or the first of the block.
    bad: u64,
    /// How many events the transcript had when it was read.
    total: u64,
}

impl Block {
    fn read(store: &Store, row: &TranscriptRow, number: u64) -> Result<Self, Problem> {
        let first = number * BLOCK + 1;
        let page = store.page(row, first, usize::try_from(BLOCK).unwrap_or(256))?;
        let mut block = Self {
            bad: page.bad,
            total: page.len,
            ..Self::default()
        };
        for event in &page.events {
            // A page of a filter may reach further; a block does not.
            if event.seq >= first + BLOCK {
                break;
            }
            quipu_exchange::encode_log(event, &mut block.bytes);
            while block.bytes.last() == Some(&b'\n') {
                block.bytes.pop();
            }
            block.ends.push((event.seq, block.bytes.len()));
        }
        block.bytes.shrink_to_fit();
        Ok(block)
    }

    /// Whether nothing is added to it any more.
    fn is_full(&self, number: u64) -> bool {
        self.total >= (number + 1) * BLOCK
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * 16 + 256
    }
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
        self.slice(from, most, None, &mut |number| {
            let kept = self.kept.lock();
            kept.blocks.get(&(state.clone(), number)).cloned().ok_or(())
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
        self.slice(from, most, total, &mut |number| {
            let key = (state.clone(), number);
            if let Some(block) = self.kept.lock().blocks.get(&key).cloned() {
                return Ok(block);
            }
            let block = Arc::new(Block::read(store, row, number)?);
            if block.is_full(number) {
                self.put(key, Arc::clone(&block));
            }
            Ok(block)
        })
    }

    fn slice<E>(
        &self,
        from: u64,
        most: usize,
        total: Option<u64>,
        block: &mut dyn FnMut(u64) -> Result<Arc<Block>, E>,
    ) -> Result<Slice, E> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut slice = Slice {
            next: from,
            ..Slice::default()
        };
        let mut count = 0;
        while count < most {
            let number = (slice.next - 1) / BLOCK;
            let block = block(number)?;
            slice.total = total.unwrap_or(slice.total.max(block.total));
            let at = block.ends.partition_point(|(seq, _)| *seq < slice.next);
            let to = block.ends.len().min(at + (most - count));
            if at == 0 && to == block.ends.len() {
                slice.bad += block.bad;
            }
            let mut begin = if at == 0 { 0 } else { block.ends[at - 1].1 };
            for (_, end) in &block.ends[at..to] {
                if count > 0 {
                    slice.bytes.push(b',');
                }
                slice.bytes.extend_from_slice(&block.bytes[begin..*end]);
                begin = *end;
                count += 1;
            }
            let behind = (number + 1) * BLOCK + 1;
            slice.next = if to < block.ends.len() {
                block.ends[to - 1].0 + 1
            } else {
                behind.min(slice.total + 1).max(slice.next)
            };
            if behind > slice.total || to < block.ends.len() {
                break;
            }
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
