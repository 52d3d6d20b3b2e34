//! The event blocks of each log in a file of its own, which grows.
//!
//! A file is a head, blocks and tails. The head has two places for the number and the address of the current tail; one
//! of them is written when a tail is finished, and the other keeps what was current before.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use quipu_agents::hash;

use super::Fault;
use super::blocks::{BlockWriter, Blocks, EventBlocks};
use crate::FileError;
use crate::files::{create_directory, create_temporary};

/// What a file begins with, the form of its lines behind it.
const MAGIC: [u8; 8] = *b"quipu ev";

/// One of the two places for the current tail: its number, where it is, how long, and a hash of these.
const SLOT: usize = 32;

/// How long the head is.
const HEAD_LEN: usize = 16 + 2 * SLOT;
pub(super) const HEAD: u64 = HEAD_LEN as u64;

/// No tail is longer than this.
const LONGEST_TAIL: u64 = 64 << 20;

/// A directory of event files: `ab/cdef….events`.
#[derive(Debug)]
pub struct EventFiles {
    directory: PathBuf,
}

impl EventFiles {
    /// Those in this directory, which is made when the first is written.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let below = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path())
        };
        below(&self.directory).flat_map(move |folder| below(&folder))
    }
}

impl EventBlocks for EventFiles {
    fn open(&self, key: &str) -> Result<Box<dyn Blocks>, Fault> {
        EventFile::open(self.place(key)).map(|file| Box::new(file) as Box<dyn Blocks>)
    }

    fn begin(&self, key: &str) -> io::Result<Box<dyn BlockWriter>> {
        let (file, written) =
            create_temporary(&self.directory.join("tmp")).map_err(|error| error.source)?;
        write_head(&file)?;
        Ok(Box::new(FileWriter {
            file,
            place: Some((written, self.place(key))),
            number: 0,
            at: HEAD,
        }))
    }

    fn resume(&self, key: &str) -> io::Result<Option<Box<dyn BlockWriter>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let file = match options.open(self.place(key)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let Some(current) = Current::read(&file)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(FileWriter {
            file,
            place: None,
            number: current.number,
            at: current.end(),
        })))
    }

    fn remove(&self, key: &str) -> Result<(), FileError> {
        let path = self.place(key);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(FileError::at("remove", path)),
        }
    }

    fn keys(&self) -> HashSet<String> {
        let key = |path: PathBuf| {
            let folder = path.parent()?.file_name()?.to_str()?;
            let name = path.file_name()?.to_str()?.strip_suffix(".events")?;
            Some(format!("{folder}{name}"))
        };
        self.files().filter_map(key).collect()
    }

    fn bytes(&self) -> u64 {
        self.files()
            .filter_map(|file| Some(std::fs::metadata(file).ok()?.len()))
            .sum()
    }

    fn place(&self, key: &str) -> PathBuf {
        let (folder, name) = key.split_at_checked(2).unwrap_or(("", key));
        self.directory.join(folder).join(format!("{name}.events"))
    }
}

/// A file as it was when it was opened.
#[derive(Debug)]
struct EventFile {
    file: File,
    path: PathBuf,
    tail: Vec<u8>,
}

impl EventFile {
    fn open(path: PathBuf) -> Result<Self, Fault> {
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Fault::Missing,
            _ => Fault::Refused {
                path: path.clone(),
                source,
            },
        };
        let file = File::open(&path).map_err(refused)?;
        let Some(current) = Current::read(&file).map_err(refused)? else {
            return Err(Fault::Foreign(path));
        };
        let len = file.metadata().map_err(refused)?.len();
        let sensible =
            current.offset >= HEAD && current.len <= LONGEST_TAIL && current.end() <= len;
        if !sensible {
            return Err(Fault::tail(path));
        }
        let mut tail = vec![0; usize::try_from(current.len).unwrap_or(0)];
        file.read_exact_at(&mut tail, current.offset)
            .map_err(refused)?;
        Ok(Self { file, path, tail })
    }
}

impl Blocks for EventFile {
    fn tail(&self) -> &[u8] {
        &self.tail
    }

    fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    fn place(&self) -> PathBuf {
        self.path.clone()
    }
}

/// Adds to a file.
#[derive(Debug)]
struct FileWriter {
    file: File,
    /// The file, and where it goes once it is whole; `None` when it is there already.
    place: Option<(PathBuf, PathBuf)>,
    /// Which tail was the last.
    number: u64,
    /// Where the next block goes.
    at: u64,
}

impl BlockWriter for FileWriter {
    fn append(&mut self, block: &[u8]) -> io::Result<u64> {
        let at = self.at;
        self.file.write_all_at(block, at)?;
        self.at += block.len() as u64;
        Ok(at)
    }

    fn taken(&self) -> u64 {
        self.at - HEAD
    }

    fn finish(mut self: Box<Self>, tail: &[u8]) -> io::Result<()> {
        self.file.write_all_at(tail, self.at)?;
        let current = Current {
            number: self.number + 1,
            offset: self.at,
            len: tail.len() as u64,
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

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some((written, _)) = &self.place {
            // What cannot be removed is swept later.
            drop(std::fs::remove_file(written));
        }
    }
}

/// Which tail is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Current {
    /// Counts up.
    number: u64,
    offset: u64,
    len: u64,
}

impl Current {
    fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Reads which tail is the current one; `None` when the file has none of this form.
    fn read(file: &File) -> io::Result<Option<Self>> {
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
    fn write(self, file: &File) -> io::Result<()> {
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
fn write_head(file: &File) -> io::Result<()> {
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
