//! A bus for all processes that use a home: a file that changes are appended to.
//!
//! The first line of the file is its number, and each further line a change. A file that is long enough gives way to one
//! with the next number; whoever reads it goes on there, and knows by the number whether one was left out. Publishers
//! lock the file, so that none appends to one that has given way.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use notify::{RecursiveMode, Watcher as _};

use super::{Bus, Change, Changes, Heard};
use crate::files;

/// A file gives way to another one when it is longer than this.
const LONGEST: u64 = 256 << 10;

/// How often a follower looks where the system does not say that the file has changed.
const LOOK: Duration = Duration::from_millis(20);

/// How often it looks where the system does: it may have lost count.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// A bus in a file of a directory.
#[derive(Debug, Clone)]
pub struct BusFile {
    path: PathBuf,
    tmp: PathBuf,
    longest: u64,
}

impl BusFile {
    /// The bus in this directory. Its file is made when something is first said.
    pub fn new(directory: &Path) -> Self {
        Self {
            path: directory.join("changes.jsonl"),
            tmp: directory.join("tmp"),
            longest: LONGEST,
        }
    }

    /// As [`BusFile::new`], with files that give way sooner.
    #[cfg(any(test, feature = "testkit"))]
    #[must_use]
    pub fn giving_way_at(mut self, bytes: u64) -> Self {
        self.longest = bytes;
        self
    }

    /// The current file, locked. Another process may make a new one between opening and locking.
    fn locked(&self) -> io::Result<File> {
        loop {
            let mut options = quipu_files::options();
            let opened = options.read(true).append(true).open(&self.path);
            let file = match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.begin(1, "")?;
                    continue;
                }
                opened => opened?,
            };
            file.lock()?;
            if is_at(&file, &self.path)? {
                return Ok(file);
            }
        }
    }

    /// Makes the file with this number.
    fn begin(&self, number: u64, lines: &str) -> io::Result<()> {
        let text = format!("{number}\n{lines}");
        let placed = match number {
            // Of two who make the first one, one does.
            1 => files::place_if_absent(&self.path, text.as_bytes(), &self.tmp).map(drop),
            _ => files::place(&self.path, text.as_bytes(), &self.tmp),
        };
        placed.map_err(|error| error.source)
    }
}

impl Bus for BusFile {
    fn publish(&self, changes: &[Change]) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut lines = String::new();
        for change in changes {
            lines.push_str(&serde_json::to_string(change)?);
            lines.push('\n');
        }
        let mut file = self.locked()?;
        if file.metadata()?.len() < self.longest {
            return file.write_all(lines.as_bytes());
        }
        let number = number_of(&mut file)?.unwrap_or(1);
        self.begin(number.saturating_add(1), &lines)
    }

    fn follow(&self) -> io::Result<Box<dyn Changes>> {
        let mut follower = Follower {
            bell: Bell::at(&self.path).ok(),
            bus: self.clone(),
            file: None,
            number: 0,
            held: Vec::new(),
        };
        if follower.open()?
            && let Some(file) = &mut follower.file
        {
            file.seek(SeekFrom::End(0))?;
            follower.held.clear();
        }
        Ok(Box::new(follower))
    }
}

/// The number that a file begins with; `None` when it is not one of ours. What follows is read next.
fn number_of(file: &mut File) -> io::Result<Option<u64>> {
    let mut head = [0; 24];
    file.seek(SeekFrom::Start(0))?;
    let mut read = 0;
    while read < head.len() {
        match file.read(&mut head[read..])? {
            0 => break,
            more => read += more,
        }
    }
    let end = head[..read].iter().position(|byte| *byte == b'\n');
    let Some(end) = end else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(end as u64 + 1))?;
    let digits = std::str::from_utf8(&head[..end]).ok();
    Ok(digits.and_then(|digits| digits.parse().ok()))
}

/// Whether a file is the one at this path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Rings when the file at a path changes, or another takes its place.
struct Bell {
    rung: Receiver<()>,
    _watcher: notify::RecommendedWatcher,
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bell").finish_non_exhaustive()
    }
}

impl Bell {
    fn at(path: &Path) -> notify::Result<Self> {
        let (ring, rung) = sync_channel(1);
        let name = path.file_name().map(ToOwned::to_owned);
        let directory = path.parent().unwrap_or(path).to_owned();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                let is_ours = match event {
                    Ok(event) if event.kind.is_access() => false,
                    Ok(event) => {
                        let mut paths = event.paths.iter();
                        event.need_rescan() || paths.any(|path| path.file_name() == name.as_deref())
                    }
                    Err(_) => true,
                };
                if is_ours {
                    // One that was not heard yet will do.
                    ring.try_send(()).ok();
                }
            })?;
        watcher.watch(&directory, RecursiveMode::NonRecursive)?;
        Ok(Self {
            rung,
            _watcher: watcher,
        })
    }

    fn wait(&self, at_most: Duration) {
        // Rung or not, the follower looks.
        self.rung.recv_timeout(at_most).ok();
    }
}

/// Reads the file, and those that follow it.
#[derive(Debug)]
struct Follower {
    bus: BusFile,
    /// None where the system does not say when files change.
    bell: Option<Bell>,
    file: Option<File>,
    /// The number of the file; 0 before there is one.
    number: u64,
    /// What was read and is not a whole line yet, or was not given yet.
    held: Vec<u8>,
}

impl Follower {
    /// Opens the current file, and says whether there is one. Gives up what is left of the one before.
    fn open(&mut self) -> io::Result<bool> {
        let mut file = match File::open(&self.bus.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let Some(number) = number_of(&mut file)? else {
            return Ok(false);
        };
        self.number = number;
        self.file = Some(file);
        self.held.clear();
        Ok(true)
    }

    /// A whole line, if one was read.
    fn line(&mut self) -> Option<Heard> {
        let end = self.held.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.held.drain(..=end).collect();
        // What somebody else wrote there may be anything.
        Some(serde_json::from_slice(&line).map_or(Heard::Missed, Heard::Change))
    }

    fn look(&mut self) -> io::Result<Option<Heard>> {
        if let Some(heard) = self.line() {
            return Ok(Some(heard));
        }
        let Some(file) = &mut self.file else {
            // The first file is read from its beginning: nothing was said before it was there.
            let is_first = self.open()? && self.number > 1;
            return Ok(is_first.then_some(Heard::Missed));
        };
        // First whether it has given way: nothing is appended to it after that.
        let is_current = is_at(file, &self.bus.path)?;
        let room = self.bus.longest.saturating_mul(2).max(1 << 20);
        if file.take(room).read_to_end(&mut self.held)? > 0 {
            return Ok(self.line());
        }
        if is_current {
            return Ok(None);
        }
        let before = self.number;
        let is_next = self.open()? && self.number == before.saturating_add(1);
        if is_next {
            return Ok(self.line());
        }
        // It was removed, or several came and went.
        if self.number == before {
            self.file = None;
        }
        Ok(Some(Heard::Missed))
    }
}

impl Changes for Follower {
    fn next(&mut self, wait: Duration) -> io::Result<Heard> {
        let begun = Instant::now();
        loop {
            if let Some(heard) = self.look()? {
                return Ok(heard);
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(Heard::Nothing);
            }
            match &self.bell {
                Some(bell) => bell.wait(left.min(LOOK_ANYWAY)),
                None => std::thread::sleep(left.min(LOOK)),
            }
        }
    }
}
