//! What is in blocks and tails.

use std::io;

use quipu_agents::{About, state};
use serde::{Deserialize, Serialize};

/// How many events a block has at most, and about how many bytes of them.
pub(super) const EVENTS: u32 = 512;
pub(super) const BYTES: usize = 512 << 10;

/// No block unpacks to more than this: one event with one line of the longest that is read.
pub(super) const LARGEST: usize = 192 << 20;

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
