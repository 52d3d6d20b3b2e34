//! Writing events, from the first or behind those that are there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use quipu_agents::{About, Entry, Position, Record, kept};
use quipu_model::Timestamp;
use zstd::bulk::Compressor;

use super::form::{BYTES, Block, Current, EVENTS, HEAD, State, Tail, Voids, write_head};
use super::lines::{Lines, Reading};
use super::{EventFile, Events};
use crate::catalogue::ADAPTERS;
use crate::files::{create_directory, create_temporary};

/// The level of compression: higher ones cost more than the room they save.
const LEVEL: i32 = 3;

/// How much of a file may be of no use before it is written anew, as a part of it and at least.
const UNUSED_PART: u64 = 3;
const UNUSED_LEAST: u64 = 256 << 10;

/// Writes the events of one log.
pub(crate) struct Writer {
    file: File,
    /// The file, and where it goes once it is whole; `None` when it is there already.
    place: Option<(PathBuf, PathBuf)>,
    /// Which tail was the last.
    number: u64,
    /// Where the next block goes.
    at: u64,
    blocks: Vec<Block>,
    voids: Vec<Voids>,
    /// The events of the next block.
    lines: Lines,
    first: u64,
    /// The event at hand.
    line: kept::Line,
    compressor: Compressor<'static>,
    packed: Vec<u8>,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

impl Writer {
    /// Begins a file.
    pub(crate) fn new(events: &Events, key: &str) -> io::Result<Self> {
        let (file, written) =
            create_temporary(&events.temporary()).map_err(|error| error.source)?;
        write_head(&file)?;
        Ok(Self {
            file,
            place: Some((written, events.path(key))),
            number: 0,
            at: HEAD,
            blocks: Vec::new(),
            voids: Vec::new(),
            lines: Lines::default(),
            first: 1,
            line: kept::Line::default(),
            compressor: compressor()?,
            packed: Vec::new(),
            failed: None,
        })
    }

    /// Goes on behind event `last`; `None` when the file does not have what was read before.
    pub(crate) fn resume(events: &Events, key: &str, last: u64, version: u32) -> Option<Self> {
        let path = events.path(key);
        let there = EventFile::open(&path).ok()?;
        let state = there.state();
        let fits = state.version == version && state.adapters == ADAPTERS && there.len() >= last;
        if !fits {
            return None;
        }
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .ok()?;
        let current = Current::read(&file).ok()??;
        let Tail {
            mut blocks,
            mut voids,
            ..
        } = there.tail().clone();
        // Provisional events are read again, and a block is filled up.
        voids.retain(|voids| voids.by <= last);
        let mut writer = Self {
            file,
            place: None,
            number: current.number,
            at: current.end(),
            blocks: Vec::new(),
            voids,
            lines: Lines::default(),
            first: last + 1,
            line: kept::Line::default(),
            compressor: compressor().ok()?,
            packed: Vec::new(),
            failed: None,
        };
        let mut again = Vec::new();
        while let Some(block) = blocks
            .pop_if(|block| block.end() > last + 1 || is_short_block(block) && again.is_empty())
        {
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
        if writer.unused() > UNUSED_LEAST.max(writer.at / UNUSED_PART) {
            writer.move_to(events, key).ok()?;
        }
        Some(writer)
    }

    /// How many bytes of the file are of no use.
    fn unused(&self) -> u64 {
        let used: u64 = self
            .blocks
            .iter()
            .map(|block| u64::from(block.packed))
            .sum();
        (self.at - HEAD).saturating_sub(used)
    }

    /// Goes on in another file, which has what is used of this one.
    fn move_to(&mut self, events: &Events, key: &str) -> io::Result<()> {
        let mut new = Self::new(events, key)?;
        let mut bytes = Vec::new();
        for block in &mut self.blocks {
            bytes.resize(block.packed as usize, 0);
            self.file.read_exact_at(&mut bytes, block.offset)?;
            new.file.write_all_at(&bytes, new.at)?;
            block.offset = new.at;
            new.at += u64::from(block.packed);
        }
        std::mem::swap(&mut self.file, &mut new.file);
        std::mem::swap(&mut self.place, &mut new.place);
        (self.at, self.number) = (new.at, 0);
        Ok(())
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
        let too_long = |_| io::Error::other("an event is too long");
        let block = Block {
            offset: self.at,
            packed: u32::try_from(len).map_err(too_long)?,
            unpacked: u32::try_from(self.lines.bytes().len()).map_err(too_long)?,
            first: self.first,
            events: self.lines.len(),
            hash: quipu_agents::hash(&self.packed),
        };
        self.file.write_all_at(&self.packed, self.at)?;
        self.at += len as u64;
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
            blocks: std::mem::take(&mut self.blocks),
            voids: std::mem::take(&mut self.voids),
            about,
        };
        let bytes = tail.to_bytes()?;
        self.file.write_all_at(&bytes, self.at)?;
        let current = Current {
            number: self.number + 1,
            offset: self.at,
            len: bytes.len() as u64,
        };
        self.file.set_len(current.end())?;
        current.write(&self.file)?;
        if let Some((written, path)) = self.place.take() {
            let directory = path.parent().unwrap_or(&path);
            create_directory(directory).map_err(|error| error.source)?;
            std::fs::rename(&written, &path)?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some((written, _)) = &self.place {
            // What cannot be removed is swept later.
            drop(std::fs::remove_file(written));
        }
    }
}

fn compressor() -> io::Result<Compressor<'static>> {
    Compressor::new(LEVEL)
}

/// Whether more events belong into a block: then it is written anew with those that follow it.
fn is_short_block(block: &Block) -> bool {
    block.events < EVENTS / 2 && (block.unpacked as usize) < BYTES / 2
}
