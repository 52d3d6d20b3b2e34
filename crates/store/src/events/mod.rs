//! The event log: what adapters made of kept logs, to be read from any event on.
//!
//! ```text
//! <home>/events/ab/cdef….events     one file for each log, named like its manifest in the archive
//! ```
//!
//! An adapter runs once, when its log is imported. What it hands over goes to the catalogue, to the search index and
//! here; whoever wants events later asks for them by number, and no adapter runs again. All of it is derived: a file
//! that is missing, damaged, or older than the adapters is made again from the archive.
//!
//! A file is a head, blocks, and tails:
//!
//! | part | holds |
//! |---|---|
//! | head | two places for the number and the address of the current tail |
//! | block | up to 512 entries as lines (`quipu_agents::kept`) with references to the log, compressed |
//! | tail | where each block is, what only the whole log tells of its events, and what the log says of its session |
//!
//! Lines do not repeat what the archive has: long texts and values are references into the kept log, and reading puts the
//! bytes of the archive in their place. What a file refers to never changes, since it belongs to one version of its log.
//!
//! A log that grows adds blocks and a tail, and then the head names that tail. What is there is never changed, so
//! whoever reads meanwhile reads what was there. A process that is killed leaves bytes behind the current tail, which
//! the next one writes over. When a third of a file is no longer used it is written anew.
//!
//! Files hold some of what the archive holds, secrets included, and are as private.

mod blocks;
mod file;
mod follow;
mod form;
mod lines;
mod log;
mod original;
mod read;
mod run;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use blocks::{BlockWriter, Blocks, EventBlocks};
pub use file::EventFiles;
pub use follow::{EventFollower, EventLines, Followed, FollowedLines};
pub(crate) use form::State;
pub use log::{EventLog, Given, Page};
pub(crate) use original::Original;
pub use read::{EventFile, Fault};
pub(crate) use write::Writer;

use crate::FileError;

/// All events.
pub(crate) const ALL: RangeInclusive<u64> = 1..=u64::MAX;

/// The event logs of a home.
#[derive(Debug, Clone)]
pub struct Events {
    blocks: Arc<dyn EventBlocks>,
}

impl Events {
    /// Those of this home.
    pub fn of(home: &Path) -> Self {
        Self::in_blocks(Arc::new(EventFiles::new(home.join("events"))))
    }

    /// Those whose blocks are kept there.
    pub fn in_blocks(blocks: Arc<dyn EventBlocks>) -> Self {
        Self { blocks }
    }

    /// Where the events of a log are, by the name of its manifest.
    pub(crate) fn path(&self, key: &str) -> PathBuf {
        self.blocks.place(key)
    }

    /// Opens the events of a log.
    pub(crate) fn open(&self, key: &str) -> Result<EventFile, Fault> {
        EventFile::new(self.blocks.open(key)?)
    }

    /// Removes the events of a log.
    pub(crate) fn remove(&self, key: &str) -> Result<(), FileError> {
        self.blocks.remove(key)
    }

    /// The logs that have events.
    pub(crate) fn keys(&self) -> HashSet<String> {
        self.blocks.keys()
    }

    /// How many bytes all of them take.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }
}
