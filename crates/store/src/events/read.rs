//! Reading events, from any of them on.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use quipu_agents::kept::Reference;
use quipu_agents::{About, Marks, Sink, hash, kept};
use quipu_model::json::Tape;

use super::blocks::Blocks;
use super::form::{Block, LARGEST, State, Tail};
use super::lines::Reading;
use super::original::{Original, OriginalReader};
use crate::archive::ArchiveError;

/// Why events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file is not there.
    #[error("the events of this log are not kept")]
    Missing,
    /// The file is of another form, or was never finished.
    #[error("{path} does not hold the events of a log", path = .0.display())]
    Foreign(PathBuf),
    /// Some of it is not what was written.
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What of it.
        what: String,
    },
    /// What events refer to cannot be read.
    #[error(transparent)]
    Archived(#[from] ArchiveError),
    /// The file of a recorded run cannot be read.
    #[error(transparent)]
    Run(quipu_record::Error),
    /// The system refused.
    #[error("could not read {path}: {source}", path = .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Fault {
    /// The list of blocks cannot be used.
    pub(super) fn tail(path: PathBuf) -> Self {
        Self::Damaged {
            path,
            what: "the list of its blocks".to_owned(),
        }
    }
}

/// The events of one log, as they were when it was opened.
#[derive(Debug)]
pub struct EventFile {
    blocks: Box<dyn Blocks>,
    tail: Tail,
}

impl EventFile {
    pub(super) fn new(blocks: Box<dyn Blocks>) -> Result<Self, Fault> {
        let tail = Tail::from_bytes(blocks.tail());
        let tail = tail.ok_or_else(|| Fault::tail(blocks.place()))?;
        Ok(Self { blocks, tail })
    }

    /// How many events there are.
    pub fn len(&self) -> u64 {
        self.tail.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn state(&self) -> State {
        self.tail.state
    }

    pub(crate) fn about(&self) -> &About {
        &self.tail.about
    }

    pub(super) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// What only the whole log tells of its events.
    pub(crate) fn marks(&self) -> Marks {
        let voids = self.tail.voids.iter().map(|voids| voids.from..voids.to);
        Marks::new(voids, self.tail.about.open.iter().copied())
    }

    fn damaged(&self, block: &Block, what: &str) -> Fault {
        Fault::Damaged {
            path: self.blocks.place(),
            what: format!(
                "events {} to {}: {what}",
                block.first,
                block.end().saturating_sub(1)
            ),
        }
    }

    /// A block as it is in the file.
    pub(super) fn packed(&self, block: &Block) -> Result<Vec<u8>, Fault> {
        let (packed, unpacked) = (block.packed as usize, block.unpacked as usize);
        if unpacked > LARGEST || packed > LARGEST {
            return Err(self.damaged(block, "too long"));
        }
        let bytes = self
            .blocks
            .read(block.offset, packed)
            .map_err(|error| self.damaged(block, &error.to_string()))?;
        if hash(&bytes) != block.hash {
            return Err(self.damaged(block, "not as they were written"));
        }
        Ok(bytes)
    }

    /// The lines of a block.
    pub(super) fn block(&self, block: &Block) -> Result<Vec<u8>, Fault> {
        zstd::bulk::decompress(&self.packed(block)?, block.unpacked as usize)
            .map_err(|error| self.damaged(block, &error.to_string()))
    }

    /// The blocks that have these events.
    fn blocks(&self, wanted: &RangeInclusive<u64>) -> &[Block] {
        let blocks = &self.tail.blocks;
        let begin = blocks.partition_point(|block| block.end() <= *wanted.start());
        let end = blocks.partition_point(|block| block.first <= *wanted.end());
        &blocks[begin.min(end)..end]
    }

    /// Gives these events to a sink, in order, for as long as it wants more. `log` is the state of the log that they are
    /// of.
    pub(crate) fn replay<S: Sink + ?Sized>(
        &self,
        wanted: RangeInclusive<u64>,
        log: &Original,
        sink: &mut S,
    ) -> Result<(), Fault> {
        let mut tape = Tape::new();
        let mut log = log.reader();
        let mut whole = Vec::new();
        for block in self.blocks(&wanted) {
            let lines = self.block(block)?;
            let mut lines = Reading::new(&lines);
            for seq in block.first..block.end() {
                let cut = || self.damaged(block, "cut short");
                let (written, references) = lines.next().ok_or_else(cut)?;
                if seq < *wanted.start() {
                    continue;
                }
                if seq > *wanted.end() || sink.is_done() {
                    return Ok(());
                }
                let len = references.iter().try_fold(written.len(), |len, reference| {
                    len.checked_add(reference.len)
                });
                if len.is_none_or(|len| len > LARGEST) {
                    return Err(self.damaged(block, "too long"));
                }
                let line = spliced(written, references, &mut log, &mut whole)?;
                let line = std::str::from_utf8(line).map_err(|_| cut())?;
                let entry = kept::read(line, &mut tape)
                    .ok_or_else(|| self.damaged(block, "not of a form that is known"))?;
                sink.entry(entry.seq, entry.at, entry.position, &entry.entry);
            }
        }
        Ok(())
    }

    /// Looks whether these events are as they were written.
    pub(crate) fn check(&self, wanted: &RangeInclusive<u64>) -> Result<(), Fault> {
        let mut blocks = self.blocks(wanted).iter();
        blocks.try_for_each(|block| self.packed(block).map(drop))
    }
}

/// The line, with the bytes of the log where it refers to them.
fn spliced<'l>(
    written: &'l [u8],
    references: &[Reference],
    log: &mut OriginalReader<'_>,
    whole: &'l mut Vec<u8>,
) -> Result<&'l [u8], ArchiveError> {
    if references.is_empty() {
        return Ok(written);
    }
    whole.clear();
    whole.shrink_to(HELD);
    let mut from = 0;
    for reference in references {
        whole.extend_from_slice(written.get(from..reference.place).unwrap_or_default());
        log.append(reference.offset, reference.len, whole)?;
        from = reference.place;
    }
    whole.extend_from_slice(written.get(from..).unwrap_or_default());
    Ok(whole)
}

/// Memory for longer lines is given back.
const HELD: usize = 1 << 20;
