//! Where the event blocks of transcripts are kept, by the key of their log.
//!
//! Blocks are bytes here: what is in them is known to `write` and `read`. A log that grows adds blocks behind those that
//! are there, and then a tail that says which of them count. `testkit::events` tries any implementation.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::Fault;
use crate::FileError;

/// Where event blocks are kept. Every method may be called from any thread at any time; one at a time writes to a key.
pub trait EventBlocks: fmt::Debug + Send + Sync {
    /// Opens what was finished last under a key. What is opened does not change, whatever is written meanwhile.
    ///
    /// # Errors
    ///
    /// [`Fault::Missing`] when nothing was, and others when it cannot be used.
    fn open(&self, key: &str) -> Result<Box<dyn Blocks>, Fault>;

    /// Begins with no block. What is there stays until this is finished, and then this takes its place.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn begin(&self, key: &str) -> io::Result<Box<dyn BlockWriter>>;

    /// Goes on behind what was finished last; `None` when there is nothing to go on from.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn resume(&self, key: &str) -> io::Result<Option<Box<dyn BlockWriter>>>;

    /// Removes what is kept under a key, if anything is.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn remove(&self, key: &str) -> Result<(), FileError>;

    /// The keys under which something was finished.
    fn keys(&self) -> HashSet<String>;

    /// How many bytes all of it takes.
    fn bytes(&self) -> u64;

    /// Where the blocks of a key are or would be, for people.
    fn place(&self, key: &str) -> PathBuf;
}

/// Blocks as they were finished.
pub trait Blocks: fmt::Debug + Send + Sync {
    /// What they were finished with.
    fn tail(&self) -> &[u8];

    /// Reads so many bytes from an address on.
    ///
    /// # Errors
    ///
    /// When they cannot be read, or there are not so many.
    fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Where they are, for people.
    fn place(&self) -> PathBuf;
}

/// Adds blocks. One that is dropped before it is finished leaves everything as it was.
pub trait BlockWriter: fmt::Debug + Send {
    /// Adds a block, and gives its address. Addresses of blocks that were finished before stay as they are.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn append(&mut self, block: &[u8]) -> io::Result<u64>;

    /// How many bytes it has room for up to here: blocks, also those that no longer count, and earlier tails.
    fn taken(&self) -> u64;

    /// Ends with a tail. From now on it is what is opened.
    ///
    /// # Errors
    ///
    /// When the system refuses. Then what was there before is opened.
    fn finish(self: Box<Self>, tail: &[u8]) -> io::Result<()>;
}
