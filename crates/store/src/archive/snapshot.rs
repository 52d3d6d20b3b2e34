//! Sources and their snapshots: what is kept of which log.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::ChunkRef;
use crate::address::Digest;

/// Above this, [`Snapshot::matches_prefix`] takes samples.
const COMPARED_WHOLE: u64 = 64 << 20;

/// One chunk in this many is compared then, besides the first and the last.
const SAMPLED: usize = 16;

/// What a caller wants to remember with a snapshot. Meant to be small: each line of the manifest
/// carries its own.
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// Which log it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceKey {
    /// The agent that wrote it, such as `claude`.
    pub agent: String,
    /// Where the agent keeps it. Any bytes that a path can have.
    pub path: PathBuf,
    /// One session inside it, where a database or a tree holds many. An empty part is the same as none.
    pub part: Option<String>,
}

impl SourceKey {
    /// A log that is a source as a whole.
    pub fn new(agent: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            agent: agent.into(),
            path: path.into(),
            part: None,
        }
    }

    /// One part of a log.
    #[must_use]
    pub fn with_part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }

    /// The name of its manifest: the SHA-256 of agent, NUL, path, NUL, part.
    ///
    /// These bytes are hashed: changing them would lose every manifest there is.
    pub fn id(&self) -> Digest {
        let mut hash = Sha256::new();
        hash.update(&self.agent);
        hash.update([0]);
        hash.update(self.path.as_os_str().as_bytes());
        hash.update([0]);
        hash.update(self.part.as_deref().unwrap_or_default());
        Digest::from(<[u8; 32]>::from(hash.finalize()))
    }
}

impl fmt::Display for SourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} log {}", self.agent, self.path.display())?;
        match &self.part {
            Some(part) => write!(f, " part {part}"),
            None => Ok(()),
        }
    }
}

/// A source and all that was kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Which log it is.
    pub key: SourceKey,
    /// The last state of each version, oldest first; never empty.
    pub versions: Vec<Snapshot>,
}

/// What a log held at one time.
///
/// Not to be kept for long: when the log has grown since, a sweep may remove small chunks that were
/// merged into larger ones. Ask [`super::Archive::latest`] again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Which log it is.
    pub key: SourceKey,
    /// Which version of it, counted from 1.
    pub version: u32,
    /// How long it was.
    pub size: u64,
    /// When it was kept.
    pub taken: Timestamp,
    /// When the log was last written to, if the caller said so.
    pub modified: Option<Timestamp>,
    /// All its bytes, in order and without gaps.
    pub chunks: Vec<ChunkRef>,
    /// What the caller wanted to remember.
    pub meta: Option<Meta>,
    /// Where its line ends in the manifest, to notice when somebody else appends.
    pub(super) manifest_end: u64,
}

/// Whether a file still begins with what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// As far as was compared.
    Same,
    /// It does not.
    Differs {
        /// Where the first chunk that differs begins.
        at: u64,
    },
}

impl Snapshot {
    /// How long the manifest is up to the line of this snapshot.
    pub(crate) fn manifest_end(&self) -> u64 {
        self.manifest_end
    }

    /// Tells whether a file still begins with what is kept. A file that is shorter does not.
    ///
    /// All chunks are compared, by hash, when the snapshot is at most 64 MiB. Of a larger one it is the
    /// first, every 16th and the last: agents append to logs, or write them anew, which changes the
    /// beginning or moves everything behind the change; a change in place that keeps the length of a
    /// huge log may be missed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn matches_prefix(&self, mut file: impl Read + Seek) -> io::Result<Prefix> {
        let step = if self.size <= COMPARED_WHOLE {
            1
        } else {
            SAMPLED
        };
        let last = self.chunks.len().saturating_sub(1);
        let mut buffer = vec![0; 128 << 10];
        let mut position = None;
        for (index, chunk) in self.chunks.iter().enumerate() {
            if index % step != 0 && index != last {
                continue;
            }
            if position != Some(chunk.offset) {
                file.seek(SeekFrom::Start(chunk.offset))?;
            }
            if digest_of(&mut file, chunk.len as usize, &mut buffer)? != Some(chunk.id) {
                return Ok(Prefix::Differs { at: chunk.offset });
            }
            position = Some(chunk.end());
        }
        Ok(Prefix::Same)
    }
}

/// The digest of the next `len` bytes; `None` when there are not so many.
fn digest_of(file: &mut impl Read, len: usize, buffer: &mut [u8]) -> io::Result<Option<Digest>> {
    let mut hash = Sha256::new();
    let mut left = len;
    while left > 0 {
        let wanted = left.min(buffer.len());
        let read = match file.read(&mut buffer[..wanted]) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hash.update(&buffer[..read]);
        left -= read;
    }
    Ok(Some(Digest::from(<[u8; 32]>::from(hash.finalize()))))
}
