//! The file of the journal: appending under a lock, reading what was added.
//!
//! A line that a process could not finish stays where it is. It is not read, and the next line begins behind a newline of
//! its own, so that no byte of it is destroyed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use quipu_model::hex;

use super::held::Held;
use super::line::{LONGEST_LINE, Line};
use super::{AnnotationError, Result};

/// How long the journal is at most, in bytes. All of what counts in it is held in memory.
pub const LONGEST_JOURNAL: u64 = 256 << 20;

/// How many bytes the id of an annotation has.
const ID: usize = 8;

/// A file, as far as a look at it tells whether it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    file: (u64, u64),
    len: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Where the journal is.
#[derive(Debug, Clone)]
pub(super) struct Journal {
    path: PathBuf,
    tmp: PathBuf,
}

/// The journal, while nobody else writes to it.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    path: PathBuf,
}

impl Journal {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            path: home.join("annotations.jsonl"),
            tmp: home.join("tmp"),
        }
    }

    fn refused(&self) -> impl Fn(io::Error) -> AnnotationError {
        refused(&self.path)
    }

    /// Reads what was added since the last look. A file that is another one, or that was changed otherwise, is read
    /// again.
    pub(super) fn catch_up(&self, held: &mut Held) -> Result<()> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *held = Held::default();
                return Ok(());
            }
            Err(error) => return Err(self.refused()(error)),
        };
        let now = Stamp::of(&file.metadata().map_err(self.refused())?);
        if held.stamp == Some(now) {
            return Ok(());
        }
        let grew = held
            .stamp
            .is_some_and(|before| before.file == now.file && before.len < now.len);
        if !grew {
            *held = Held::default();
        }
        read(file, now.len, held).map_err(self.refused())?;
        held.stamp = Some(now);
        Ok(())
    }

    /// Opens the journal, or makes it, and keeps others from writing.
    pub(super) fn lock(&self) -> Result<Locked> {
        loop {
            let mut options = quipu_files::options();
            options.read(true).append(true).create(true);
            let is_new = !self.path.exists();
            let file = options.open(&self.path).map_err(self.refused())?;
            file.lock().map_err(self.refused())?;
            // Another process may have written it anew in between.
            if self.is_at(&file).map_err(self.refused())? {
                quipu_files::restrict(&self.path);
                if is_new {
                    self.sync_directory().map_err(self.refused())?;
                }
                return Ok(Locked {
                    file,
                    path: self.path.clone(),
                });
            }
        }
    }

    fn is_at(&self, file: &File) -> io::Result<bool> {
        let own = file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }

    /// Writes the journal anew without the lines about these transcripts.
    pub(super) fn without(&self, transcripts: &BTreeSet<String>) -> Result<u64> {
        if !self.path.exists() {
            return Ok(0);
        }
        let locked = self.lock()?;
        self.rewrite(&locked.file, transcripts)
            .map_err(self.refused())
    }

    fn rewrite(&self, from: &File, transcripts: &BTreeSet<String>) -> io::Result<u64> {
        let mut from = BufReader::new(from);
        from.seek(SeekFrom::Start(0))?;
        let (file, written) =
            crate::files::create_temporary(&self.tmp).map_err(|error| error.source)?;
        let mut to = io::BufWriter::new(file);
        let mut removed = 0;
        let mut line = Vec::new();
        let result = (|| {
            loop {
                line.clear();
                // What is longer than any line of ours is passed on in pieces.
                let more = (&mut from)
                    .take(LONGEST_LINE as u64)
                    .read_until(b'\n', &mut line)?;
                if more == 0 {
                    break;
                }
                let about = Line::read(line.strip_suffix(b"\n").unwrap_or(&line));
                if about.is_some_and(|line| transcripts.contains(&line.transcript)) {
                    removed += 1;
                } else {
                    to.write_all(&line)?;
                }
            }
            let file = to.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            std::fs::rename(&written, &self.path)?;
            self.sync_directory()
        })();
        if result.is_err() {
            drop(std::fs::remove_file(&written));
        }
        result.map(|()| removed)
    }
}

fn refused(path: &Path) -> impl Fn(io::Error) -> AnnotationError + use<> {
    let path = path.to_owned();
    move |source| AnnotationError::Io {
        path: path.clone(),
        source,
    }
}

/// Reads whole lines from where reading stopped. What has no end yet is read when it has one.
fn read(mut file: File, len: u64, held: &mut Held) -> io::Result<()> {
    file.seek(SeekFrom::Start(held.read_to))?;
    let mut from = BufReader::new(file.take(len.min(LONGEST_JOURNAL).saturating_sub(held.read_to)));
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut passed = 0;
    loop {
        line.clear();
        let most = LONGEST_LINE as u64 + 1;
        let more = (&mut from).take(most).read_until(b'\n', &mut line)?;
        if more == 0 {
            return Ok(());
        }
        passed += more as u64;
        if line.last() != Some(&b'\n') {
            // A torn end, or a line that is too long: what follows of it is part of it.
            is_too_long = true;
            continue;
        }
        line.pop();
        match Line::read(&line) {
            Some(line) if !is_too_long => held.take(line),
            _ if line.is_empty() && !is_too_long => {}
            _ => held.bad += 1,
        }
        is_too_long = false;
        held.read_to += std::mem::take(&mut passed);
    }
}

impl Locked {
    /// Adds a line, and brings it to disk.
    pub(super) fn append(&mut self, line: &Line) -> Result<()> {
        let refused = refused(&self.path);
        let mut text = Vec::new();
        let len = self.file.seek(SeekFrom::End(0)).map_err(&refused)?;
        if len > 0 {
            let mut last = [0];
            let read = self.file.seek(SeekFrom::End(-1));
            read.and_then(|_| self.file.read_exact(&mut last))
                .map_err(&refused)?;
            if last != *b"\n" {
                text.push(b'\n');
            }
        }
        serde_json::to_writer(&mut text, line)
            .map_err(io::Error::from)
            .map_err(&refused)?;
        text.push(b'\n');
        if len.saturating_add(text.len() as u64) > LONGEST_JOURNAL {
            return Err(AnnotationError::Full(self.path.clone()));
        }
        // One write, so that a reader sees all of it or its beginning.
        self.file.write_all(&text).map_err(&refused)?;
        self.file.sync_data().map_err(&refused)
    }
}

/// An id that no other annotation has.
pub(super) fn new_id() -> Result<String> {
    let mut bytes = [0; ID];
    let drawn = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    drawn.map_err(refused(Path::new("/dev/urandom")))?;
    Ok(hex::encode(&bytes))
}
