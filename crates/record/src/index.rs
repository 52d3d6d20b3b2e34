//! Where in a run's file some of its events begin, so that any event is found without reading from the start.
//!
//! An entry is made every 256 events or 64 KiB, whichever comes first. The entries of a long run are kept beside it:
//!
//! ```text
//! <run-id>.jsonl.idx   16 bytes   "quipu-index-1", a line end, two zeros
//!                      32 bytes   an entry: event, line and offset (from 1, 1 and 0) and a check; 64 bits each,
//!                      …          little-endian
//! ```
//!
//! The file is derived and can be deleted. Whoever holds its lock may write it: a recorder as long as it is open, a
//! reader for a moment. The check is the XXH3-64 of the first 512 bytes of the line, seeded with the place of the entry,
//! so an entry that does not belong to the file beside it is noticed where it is used. Then the file is read
//! from its start, and the entries are made again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::recover::make_private;

const EVERY_EVENTS: u64 = 256;
const EVERY_BYTES: u64 = 64 * 1024;

const MAGIC: &[u8; 16] = b"quipu-index-1\n\0\0";
const ENTRY: usize = 32;

/// How much of a line is checked.
pub(crate) const CHECKED: usize = 512;

/// Where the line of an event begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The event's place among the events of the file, from 1. Where a recorder wrote the file, its sequence number.
    pub(crate) event: u64,
    /// The line's number, from 1.
    pub(crate) line: u64,
    /// The line's first byte.
    pub(crate) offset: u64,
}

impl Mark {
    pub(crate) const START: Self = Self {
        event: 1,
        line: 1,
        offset: 0,
    };

    /// Whether an event so far behind this one gets an entry.
    pub(crate) fn is_far_from(&self, other: &Self) -> bool {
        other.event.saturating_sub(self.event) >= EVERY_EVENTS
            || other.offset.saturating_sub(self.offset) >= EVERY_BYTES
    }

    /// The check of an entry for this place, where this line begins.
    fn check(&self, line: &[u8]) -> u64 {
        let line = &line[..line.len().min(CHECKED)];
        let end = memchr::memchr(b'\n', line).unwrap_or(line.len());
        let place = XxHash3_64::oneshot(&self.to_bytes());
        XxHash3_64::oneshot_with_seed(place, &line[..end])
    }

    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.event.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.line.to_le_bytes());
        bytes[16..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }
}

/// A place, and what tells that it is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mark: Mark,
    check: u64,
}

impl Entry {
    /// An entry for a line that begins with these bytes.
    pub(crate) fn new(mark: Mark, line: &[u8]) -> Self {
        Self {
            mark,
            check: mark.check(line),
        }
    }

    /// Whether the file still has that line in that place. `read_at` reads the file.
    pub(crate) fn holds(
        &self,
        mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let mut bytes = [0; CHECKED + 1];
        // The line before has to end there.
        let from = self.mark.offset.saturating_sub(1);
        let n = fill(&mut bytes, from, &mut read_at)?;
        let skipped = usize::from(self.mark.offset > 0);
        let Some(line) = bytes[..n].get(skipped..) else {
            return Ok(false);
        };
        let begins = skipped == 0 || bytes[0] == b'\n';
        Ok(begins && !line.is_empty() && self.mark.check(line) == self.check)
    }

    fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..24].copy_from_slice(&self.mark.to_bytes());
        bytes[24..].copy_from_slice(&self.check.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY]) -> Self {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        Self {
            mark: Mark {
                event: number(0),
                line: number(8),
                offset: number(16),
            },
            check: number(24),
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn fill(
    buffer: &mut [u8],
    offset: u64,
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match read_at(&mut buffer[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

/// The entries of a file, in order, and where they are kept.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    kept: Kept,
}

/// Where entries are kept. Failures are not told: whoever needs an entry that is not there makes it again.
#[derive(Debug, Default)]
enum Kept {
    /// In memory alone.
    #[default]
    Nowhere,
    /// Beside the run, once there is an entry: a short run needs none.
    Later(PathBuf),
    /// In this file, whose lock is held.
    In(File),
}

impl Index {
    /// An index of these entries.
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        Self {
            entries,
            kept: Kept::Nowhere,
        }
    }

    /// Keeps the entries beside the run as long as it is recorded to. They were just made from the whole file, so what is
    /// there and differs is replaced.
    pub(crate) fn keep_beside(&mut self, run: &Path) {
        let path = path_beside(run);
        self.kept = match open(&path, !self.entries.is_empty()) {
            Ok(Some(file)) => match bring_up_to_date(&file, &self.entries) {
                Ok(()) => Kept::In(file),
                Err(_) => Kept::Nowhere,
            },
            Ok(None) => Kept::Later(path),
            Err(_) => Kept::Nowhere,
        };
    }

    pub(crate) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
        let kept = match std::mem::take(&mut self.kept) {
            Kept::Nowhere => return,
            Kept::Later(path) => open(&path, true)
                .and_then(|file| file.ok_or_else(|| io::ErrorKind::NotFound.into()))
                .and_then(|file| bring_up_to_date(&file, &self.entries).map(|()| file)),
            Kept::In(mut file) => file.write_all(&entry.to_bytes()).map(|()| file),
        };
        if let Ok(file) = kept {
            self.kept = Kept::In(file);
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last place at or before an event, and the first one behind it.
    pub(crate) fn around(&self, event: u64) -> (Option<Entry>, Option<Mark>) {
        let behind = self.entries.partition_point(|e| e.mark.event <= event);
        let before = behind.checked_sub(1).map(|at| self.entries[at]);
        (before, self.entries.get(behind).map(|entry| entry.mark))
    }

    pub(crate) fn last(&self) -> Mark {
        self.entries.last().map_or(Mark::START, |entry| entry.mark)
    }
}

/// Where the entries of a run are kept.
pub(crate) fn path_beside(run: &Path) -> PathBuf {
    let mut name = run.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// Opens and locks the file of an index. `None` when it is not there and not to be made.
fn open(path: &Path, create: bool) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(create)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let file = match file {
        Err(e) if e.kind() == io::ErrorKind::NotFound && !create => return Ok(None),
        file => file?,
    };
    make_private(&file, path).map_err(io::Error::other)?;
    file.try_lock()?;
    Ok(Some(file))
}

/// Makes a file hold exactly these entries. What is right already is not written again.
fn bring_up_to_date(mut file: &File, entries: &[Entry]) -> io::Result<()> {
    let found = stored(file, entries.len())?;
    let found = found.filter(|found| entries.starts_with(found));
    let there = found.as_ref().map_or(0, Vec::len);
    let mut bytes = Vec::new();
    if found.is_none() {
        file.set_len(0)?;
        bytes.extend_from_slice(MAGIC);
    } else {
        // Half an entry at the end, by a process that was killed.
        file.set_len((MAGIC.len() + there * ENTRY) as u64)?;
    }
    for entry in &entries[there..] {
        bytes.extend_from_slice(&entry.to_bytes());
    }
    file.write_all(&bytes)
}

/// The entries in a file, of which there are at most `most`; `None` when it is not an index, or too long to be one
/// of this run.
fn stored(file: &File, most: usize) -> io::Result<Option<Vec<Entry>>> {
    let len = file.metadata()?.len();
    let longest = (MAGIC.len() + most.saturating_add(1).saturating_mul(ENTRY)) as u64;
    if len > longest {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut at = FileAt { file, offset: 0 };
    at.by_ref().take(longest).read_to_end(&mut bytes)?;
    let Some(body) = bytes.strip_prefix(MAGIC) else {
        return Ok(None);
    };
    let (entries, _) = body.as_chunks::<ENTRY>();
    let entries: Vec<Entry> = entries.iter().map(Entry::from_bytes).collect();
    let is_ordered = entries.is_sorted_by(|a, b| {
        a.mark.event < b.mark.event && a.mark.line < b.mark.line && a.mark.offset < b.mark.offset
    });
    Ok(is_ordered.then_some(entries))
}

/// The entries kept beside a run whose file is `len` bytes long. None where they are absent, damaged or of another file.
pub(crate) fn load(run: &Path, file: &File, len: u64) -> Vec<Entry> {
    let load = || -> io::Result<Vec<Entry>> {
        let kept = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path_beside(run))?;
        if !kept.metadata()?.is_file() {
            return Ok(Vec::new());
        }
        // An event takes more than eight bytes, so this is more than there can be.
        let most = usize::try_from(len / (8 * EVERY_EVENTS) + 1).unwrap_or(usize::MAX);
        let entries = stored(&kept, most)?.unwrap_or_default();
        let read_at = |bytes: &mut [u8], at| std::os::unix::fs::FileExt::read_at(file, bytes, at);
        match entries.last() {
            Some(last) if !last.holds(read_at)? => Ok(Vec::new()),
            _ => Ok(entries),
        }
    };
    load().unwrap_or_default()
}

/// Keeps entries beside a run that nobody records to; does nothing while somebody does.
pub(crate) fn save(run: &Path, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let save = || -> io::Result<()> {
        match open(&path_beside(run), true)? {
            Some(file) => bring_up_to_date(&file, entries),
            None => Ok(()),
        }
    };
    // Derived: the next reader makes them again.
    drop(save());
}

/// Reads a file from an offset, and leaves the file's own place alone.
pub(crate) struct FileAt<'a> {
    pub(crate) file: &'a File,
    pub(crate) offset: u64,
}

impl io::Read for FileAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = std::os::unix::fs::FileExt::read_at(self.file, buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}
