//! Writing events, from the first or behind those that are there.

use std::collections::VecDeque;
use std::io;

use quipu_agents::{About, Entry, Position, Record, kept};
use quipu_model::Timestamp;
use zstd::bulk::Compressor;

use super::blocks::BlockWriter;
use super::form::{BYTES, Block, EVENTS, State, Tail, Voids};
use super::lines::{Lines, Reading};
use super::{EventFile, Events};
use crate::catalogue::ADAPTERS;

/// The level of compression: higher ones cost more than the room they save.
const LEVEL: i32 = 3;

/// How much of a file may be of no use before it is written anew, as a part of it and at least.
const UNUSED_PART: u64 = 3;
const UNUSED_LEAST: u64 = 256 << 10;

/// Writes the events of one log.
pub(crate) struct Writer {
    into: Box<dyn BlockWriter>,
    blocks: Vec<Block>,
    voids: Vec<Voids>,
    /// The events of the next block.
    lines: Lines,
    first: u64,
    /// The event at hand.
    line: kept::Line,
    compressor: Compressor<'static>,
    packed: Vec<u8>,
    /// The events that were there before and are read again, by what they said.
    before: VecDeque<(u64, u64)>,
    /// How many of the events that were there before are known to say what they said.
    holds: u64,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn new(events: &Events, key: &str) -> io::Result<Self> {
        Ok(Self {
            into: events.blocks.begin(key)?,
            blocks: Vec::new(),
            voids: Vec::new(),
            lines: Lines::default(),
            first: 1,
            line: kept::Line::default(),
            compressor: compressor()?,
            packed: Vec::new(),
            before: VecDeque::new(),
            holds: 0,
            failed: None,
        })
    }

    /// Goes on behind event `last`; `None` when the file does not have what was read before.
    pub(crate) fn resume(events: &Events, key: &str, last: u64, version: u32) -> Option<Self> {
        let there = events.open(key).ok()?;
        let state = there.state();
        let fits = state.version == version && state.adapters == ADAPTERS && there.len() >= last;
        if !fits {
            return None;
        }
        let Tail {
            mut blocks,
            mut voids,
            ..
        } = there.tail().clone();
        // Provisional events are read again, and a block is filled up.
        voids.retain(|voids| voids.by <= last);
        let mut writer = Self {
            into: events.blocks.resume(key).ok()??,
            blocks: Vec::new(),
            voids,
            lines: Lines::default(),
            first: last + 1,
            line: kept::Line::default(),
            compressor: compressor().ok()?,
            packed: Vec::new(),
            before: VecDeque::new(),
            holds: last,
            failed: None,
        };
        let mut again = Vec::new();
        while let Some(block) = blocks
            .pop_if(|block| block.end() > last + 1 || is_short_block(block) && again.is_empty())
        {
            if block.end() > last + 1 {
                writer.remember(&there, &block, last)?;
            }
            if block.first <= last {
                again.push(block);
            }
        }
        for block in again.iter().rev() {
            if writer.lines.len() == 0 {
                writer.first = block.first;
            }
            let lines = there.block(block).ok()?;
            let mut lines = Reading::new(&lines);
            for _ in block.first..block.end().min(last + 1) {
                let (written, references) = lines.next()?;
                writer.lines.push(written, references);
            }
        }
        writer.blocks = blocks;
        if writer.unused() > UNUSED_LEAST.max(writer.into.taken() / UNUSED_PART) {
            writer.into = moved(&there, &mut writer.blocks, events, key)?;
        }
        Some(writer)
    }

    /// Remembers what the provisional events of a block said. Blocks come from the last one on.
    fn remember(&mut self, there: &EventFile, block: &Block, last: u64) -> Option<()> {
        let lines = there.block(block).ok()?;
        let mut lines = Reading::new(&lines);
        let mut before = VecDeque::new();
        for seq in block.first..block.end() {
            let (written, references) = lines.next()?;
            if seq > last {
                before.push_back((seq, said(written, references)));
            }
        }
        before.append(&mut self.before);
        self.before = before;
        Some(())
    }

    /// How many of the events that were there before are known to say what they said.
    pub(crate) fn holds(&self) -> u64 {
        self.holds
    }

    /// How many bytes that are there are of no use.
    fn unused(&self) -> u64 {
        let used: u64 = self
            .blocks
            .iter()
            .map(|block| u64::from(block.packed))
            .sum();
        self.into.taken().saturating_sub(used)
    }

    /// Learns of the record that the following entries borrow from.
    pub(crate) fn record(&mut self, record: Option<Record<'_>>) {
        self.line.record(record);
    }

    /// Takes an entry.
    pub(crate) fn take(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        if self.failed.is_some() {
            return;
        }
        if let Some(voids) = &entry.voids {
            self.voids.push(Voids {
                by: seq,
                from: voids.start,
                to: voids.end,
            });
        }
        if self.lines.len() == 0 {
            self.first = seq;
        }
        kept::write(seq, at, position, entry, &mut self.line);
        if let Some((before, was)) = self.before.pop_front() {
            if before == seq && was == said(self.line.bytes(), self.line.references()) {
                self.holds = seq;
            } else {
                self.before.clear();
            }
        }
        self.lines.push(self.line.bytes(), self.line.references());
        if self.lines.len() >= EVENTS || self.lines.bytes().len() >= BYTES {
            self.pack();
        }
    }

    /// Writes the block at hand.
    fn pack(&mut self) {
        if self.lines.len() > 0
            && self.failed.is_none()
            && let Err(error) = self.try_pack()
        {
            self.failed = Some(error);
        }
        self.lines.clear(2 * BYTES);
    }

    fn try_pack(&mut self) -> io::Result<()> {
        let room = zstd::zstd_safe::compress_bound(self.lines.bytes().len());
        self.packed.clear();
        self.packed.reserve(room);
        let len = self
            .compressor
            .compress_to_buffer(self.lines.bytes(), &mut self.packed)?;
        let too_long = |_| io::Error::new(io::ErrorKind::FileTooLarge, "an event is too long");
        let mut block = Block {
            offset: 0,
            packed: u32::try_from(len).map_err(too_long)?,
            unpacked: u32::try_from(self.lines.bytes().len()).map_err(too_long)?,
            first: self.first,
            events: self.lines.len(),
            hash: quipu_agents::hash(&self.packed),
        };
        block.offset = self.into.append(&self.packed)?;
        self.blocks.push(block);
        self.packed.shrink_to(2 * BYTES);
        Ok(())
    }

    /// Ends with what is known of the log as a whole. From now on the events can be read.
    pub(crate) fn finish(mut self, state: State, about: About) -> io::Result<()> {
        self.pack();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let tail = Tail {
            state,
            blocks: self.blocks,
            voids: self.voids,
            about,
        };
        self.into.finish(&tail.to_bytes()?)
    }
}

/// Copies the blocks that are used into another place, in which nothing else is.
fn moved(
    there: &EventFile,
    blocks: &mut [Block],
    events: &Events,
    key: &str,
) -> Option<Box<dyn BlockWriter>> {
    let mut new = events.blocks.begin(key).ok()?;
    for block in blocks {
        block.offset = new.append(&there.packed(block).ok()?).ok()?;
    }
    Some(new)
}

/// What an event says, in a number. A reference says the same as before as long as it is into the same version of the log.
fn said(written: &[u8], references: &[kept::Reference]) -> u64 {
    let mut all = written.to_vec();
    for reference in references {
        for number in [
            reference.place as u64,
            reference.offset,
            reference.len as u64,
        ] {
            all.extend_from_slice(&number.to_le_bytes());
        }
    }
    quipu_agents::hash(&all)
}

fn compressor() -> io::Result<Compressor<'static>> {
    Compressor::new(LEVEL)
}

/// Whether more events belong into a block: then it is written anew with those that follow it.
fn is_short_block(block: &Block) -> bool {
    block.events < EVENTS / 2 && (block.unpacked as usize) < BYTES / 2
}
