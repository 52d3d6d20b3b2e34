//! What is in a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use quipu_agents::{About, hash, state};
use serde::{Deserialize, Serialize};

/// How many events a block has at most, and about how many bytes of them.
pub(super) const EVENTS: u32 = 512;
pub(super) const BYTES: usize = 512 << 10;

/// No block unpacks to more than this: one event with one line of the longest that is read.
pub(super) const LARGEST: usize = 192 << 20;

/// What a file begins with, the form of its lines behind it.
const MAGIC: [u8; 8] = *b"quipu ev";

/// One of the two places for the current tail: its number, where it is, how long, and a hash of these.
const SLOT: usize = 32;

/// How long the head is.
const HEAD_LEN: usize = 16 + 2 * SLOT;
pub(super) const HEAD: u64 = HEAD_LEN as u64;

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Block {
    /// Its first byte.
    pub(super) offset: u64,
    /// How long it is, and what it unpacks to.
    pub(super) packed: u32,
    pub(super) unpacked: u32,
    /// Its first event.
    pub(super) first: u64,
    /// How many it has.
    pub(super) events: u32,
    /// The hash of its bytes.
    pub(super) hash: u64,
}

impl Block {
    pub(super) fn end(&self) -> u64 {
        self.first + u64::from(self.events)
    }
}

/// Which state of a log the events are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// The version of the log in the archive.
    pub(crate) version: u32,
    /// How many of its bytes were read.
    pub(crate) read_to: u64,
    /// The adapters that read it.
    pub(crate) adapters: i64,
}

/// Events that no longer count because of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Voids {
    /// The later one.
    pub(super) by: u64,
    /// From this one on,
    pub(super) from: u64,
    /// up to this one, which is not taken back.
    pub(super) to: u64,
}

/// What stands behind the blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tail {
    pub(super) state: State,
    pub(super) blocks: Vec<Block>,
    pub(super) voids: Vec<Voids>,
    pub(super) about: About,
}

impl Tail {
    /// How many events there are.
    pub(super) fn len(&self) -> u64 {
        self.blocks.last().map_or(0, |last| last.end() - 1)
    }

    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(&state::bytes(self), 3)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let len = zstd::zstd_safe::get_frame_content_size(bytes).ok()??;
        let len = usize::try_from(len).ok().filter(|len| *len <= LARGEST)?;
        state::load(&zstd::bulk::decompress(bytes, len).ok()?)
    }
}

/// Which tail is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Current {
    /// Counts up.
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Current {
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Reads which tail is the current one; `None` when the file has none of this form.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD_LEN];
        match file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let is_ours =
            head[..8] == MAGIC && number(&head[8..]) == u64::from(quipu_agents::kept::FORM);
        let (_, slots) = head.split_at(16);
        let slots = slots.chunks_exact(SLOT).filter_map(|slot| {
            let known = number(&slot[24..]) == hash(&slot[..24]);
            known.then(|| Self {
                number: number(slot),
                offset: number(&slot[8..]),
                len: number(&slot[16..]),
            })
        });
        Ok(slots.max_by_key(|slot| slot.number).filter(|_| is_ours))
    }

    /// Makes this the current one. The other place keeps what was current before.
    pub(super) fn write(self, file: &File) -> io::Result<()> {
        let mut slot = [0; SLOT];
        for (at, number) in [self.number, self.offset, self.len].into_iter().enumerate() {
            slot[at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let check = hash(&slot[..24]);
        slot[24..].copy_from_slice(&check.to_le_bytes());
        file.write_all_at(&slot, 16 + self.number % 2 * SLOT as u64)
    }
}

/// Writes what a file begins with.
pub(super) fn write_head(file: &File) -> io::Result<()> {
    let mut head = [0; HEAD_LEN];
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&u64::from(quipu_agents::kept::FORM).to_le_bytes());
    file.write_all_at(&head, 0)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
