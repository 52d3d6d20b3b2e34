//! The file of a run, read by its events from any process, while it is written and after.

mod follow;
mod watch;

pub use follow::{LogFollower, News};
pub(crate) use watch::Watched;
pub use watch::{FileLook, FileWatch};

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_exchange::lines::Limits;
use quipu_exchange::{Decoded, Fault, Item, Position, Reader};

use crate::Error;
use crate::index::{self, CHECKED, Entry, FileAt, Index, Mark, fill};

/// How many bytes of lines a page holds at most, but for its last.
const PAGE_BYTES: u64 = 8 << 20;

/// The file of a run, read by its events.
///
/// Events are counted from 1 by their place in the file. In a file that a recorder wrote, that is their sequence number;
/// other engines may number theirs otherwise. Whoever writes the file, and whether it is still written, does not matter:
/// each call sees it as it is then.
///
/// An index of the places of some events makes any of them quick to find. A recorder keeps it beside the file
/// (`<file>.idx`). Where it is absent, or belongs to something else, the file is read from its start once. Memory
/// is bounded but for the index, which takes 32 bytes for every 256 events or 64 KiB.
#[derive(Debug)]
pub struct RunLog {
    path: PathBuf,
    limits: Limits,
    /// Whether an index that was made is kept beside the file.
    keeps: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Arc<File>,
    identity: (u64, u64),
    index: Index,
    /// How many entries are kept beside the file.
    kept: usize,
    /// The place behind all whole lines that were looked at.
    end: Mark,
    /// How many events are behind that, on a last line that lacks its end.
    unended: u64,
}

/// Some events of a run.
#[derive(Debug, Default)]
pub struct Page {
    /// The events, in order.
    pub events: Vec<PageEvent>,
    /// What is not an event, between them and behind them up to the next event. Before them only where the page
    /// begins with event 1.
    pub bad: Vec<BadLine>,
    /// Where the next page begins; `None` when the file has no event behind these.
    pub next: Option<u64>,
}

/// An event of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// Its place among the events of the file, from 1.
    pub number: u64,
    /// How many bytes it takes in the file, its line end not counted.
    pub len: u64,
    /// The event, and where it begins.
    pub decoded: Decoded,
}

/// Something in a run's file that is not an event, or cannot be read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Where it begins.
    pub at: Position,
    /// What is wrong with it.
    pub fault: Fault,
    /// Its number, where it is counted as an event.
    pub number: Option<u64>,
}

impl RunLog {
    /// Opens the file of a run. If it is long and has no index, one is made and kept beside it, private to the user.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is not a regular one.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::with(path, true)
    }

    /// Opens a file that is not ours to write beside: an index is used if there is one, and made in memory if not.
    ///
    /// # Errors
    ///
    /// As [`RunLog::open`].
    pub fn open_read_only(path: &Path) -> Result<Self, Error> {
        Self::with(path, false)
    }

    fn with(path: &Path, keeps: bool) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(Error::io("find", path))?;
        let state = State::open(&path)?;
        Ok(Self {
            path,
            limits: Limits::default(),
            keeps,
            state: Mutex::new(state),
        })
    }

    /// The same, read with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many events the file has now. One that only lacks its line end is counted.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn len(&self) -> Result<u64, Error> {
        let mut state = self.lock();
        self.look(&mut state)?;
        Ok(state.end.event - 1 + state.unended)
    }

    /// How many events the file has now whose lines have their ends: as many as a follower is given.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn ended(&self) -> Result<u64, Error> {
        let mut state = self.lock();
        self.look(&mut state)?;
        Ok(state.end.event - 1)
    }

    /// Whether the file has no event.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// At most `most` events, from one on. Fewer where the file ends, or where long lines fill the page: then
    /// [`Page::next`] tells where to go on.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn page(&self, from: u64, most: usize) -> Result<Page, Error> {
        let from = from.max(1);
        let (file, start) = self.start_of(from)?;
        let source = FileAt {
            file: &file,
            offset: start.offset,
        };
        let mut reader = Reader::resuming(source, self.limits, start.offset, start.line - 1);
        let mut page = Page::default();
        let (mut number, mut bytes) = (start.event, 0);
        loop {
            let mut text_len = None;
            let item = reader.next_looked_at(|text| text_len = Some(text.len() as u64));
            let Some(item) = item.map_err(Error::io("read", &self.path))? else {
                return Ok(page);
            };
            let bad = match (item, text_len) {
                (Err(bad), None) => {
                    // Bytes before the first event are on the first page.
                    if number <= from && from > 1 {
                        continue;
                    }
                    (bad.at, bad.fault, None)
                }
                (item, len) => {
                    let this = number;
                    number += 1;
                    if this < from {
                        continue;
                    }
                    let given = this - from;
                    if given >= most as u64 || (bytes >= PAGE_BYTES && given > 0) {
                        page.next = Some(this);
                        return Ok(page);
                    }
                    let len = len.unwrap_or(0);
                    bytes += len;
                    match item {
                        Ok(decoded) => {
                            let number = this;
                            page.events.push(PageEvent {
                                number,
                                len,
                                decoded,
                            });
                            continue;
                        }
                        Err(bad) => (bad.at, bad.fault, Some(this)),
                    }
                }
            };
            let (at, fault, number) = bad;
            page.bad.push(BadLine { at, fault, number });
        }
    }

    /// Follows the file from an event on: first what is there, then what is added, by whatever process.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn follow(&self, from: u64) -> Result<LogFollower, Error> {
        let from = from.max(1);
        let (file, start) = self.start_of(from)?;
        LogFollower::new(&self.path, self.limits, file, start, from)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place at or before an event, and the file it is in. The end of the file where it has no such event.
    fn start_of(&self, event: u64) -> Result<(Arc<File>, Mark), Error> {
        let mut state = self.lock();
        self.notice_change(&mut state)?;
        for _ in 0..2 {
            if event >= state.end.event {
                self.scan(&mut state)?;
            }
            if event >= state.end.event {
                return Ok((state.file.clone(), state.end));
            }
            let Some(entry) = state.index.around(event).0 else {
                break;
            };
            let read_at = |bytes: &mut [u8], at| state.file.read_at(bytes, at);
            if entry
                .holds(read_at)
                .map_err(Error::io("read", &self.path))?
            {
                return Ok((state.file.clone(), entry.mark));
            }
            // It is of another file, or damaged.
            state.forget();
        }
        Ok((state.file.clone(), Mark::START))
    }

    fn look(&self, state: &mut State) -> Result<(), Error> {
        self.notice_change(state)?;
        self.scan(state)
    }

    /// Begins anew where the file was replaced or cut short. A file that is gone is read as long as it is open.
    fn notice_change(&self, state: &mut State) -> Result<(), Error> {
        let is_other = std::fs::metadata(&self.path)
            .is_ok_and(|there| there.is_file() && identity(&there) != state.identity);
        if is_other {
            *state = State::open(&self.path)?;
        }
        let metadata = state.file.metadata();
        let len = metadata.map_err(Error::io("look at", &self.path))?.len();
        if len < state.end.offset {
            state.forget();
        }
        Ok(())
    }

    /// Looks at the lines that were added.
    fn scan(&self, state: &mut State) -> Result<(), Error> {
        let read = Error::io("read", &self.path);
        self.scan_lines(state).map_err(read)?;
        if self.keeps && state.index.entries().len() != state.kept {
            index::save(&self.path, state.index.entries());
            state.kept = state.index.entries().len();
        }
        Ok(())
    }

    fn scan_lines(&self, state: &mut State) -> std::io::Result<()> {
        let file = state.file.clone();
        let start = state.end;
        let source = FileAt {
            file: &file,
            offset: start.offset,
        };
        let mut reader = Reader::resuming(source, self.limits, start.offset, start.line - 1);
        let mut noted = state.index.last();
        state.unended = 0;
        while let Some(item) = reader.next()? {
            let is_event = matches!(item, Item::Event(_));
            let line = *reader.line();
            if !line.terminated {
                state.unended += u64::from(is_event);
                continue;
            }
            let mark = Mark {
                event: state.end.event,
                line: line.number,
                offset: line.offset,
            };
            // Only the first event of a line begins where the line does.
            let begins_line = line.offset >= state.end.offset;
            if is_event && begins_line && noted.is_far_from(&mark) {
                let mut bytes = [0; CHECKED];
                let n = fill(&mut bytes, mark.offset, |b, at| file.read_at(b, at))?;
                state.index.add(Entry::new(mark, &bytes[..n]));
                noted = mark;
            }
            state.end = Mark {
                event: mark.event + u64::from(is_event),
                line: line.number + 1,
                offset: line.offset + line.len + 1,
            };
        }
        Ok(())
    }
}

impl State {
    fn open(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        let metadata = file.metadata().map_err(Error::io("look at", path))?;
        let entries = index::load(path, &file, metadata.len());
        let kept = entries.len();
        let index = Index::of(entries);
        Ok(Self {
            identity: identity(&metadata),
            file: Arc::new(file),
            // What is behind the last entry is not known.
            end: index.last(),
            index,
            kept,
            unended: 0,
        })
    }

    /// Forgets all that is known of the file's contents.
    fn forget(&mut self) {
        self.index = Index::default();
        self.kept = usize::MAX;
        self.end = Mark::START;
    }
}

fn open(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new()
        .read(true)
        // Opening a pipe would wait.
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(Error::io("open", path))?;
    let metadata = file.metadata().map_err(Error::io("look at", path))?;
    if !metadata.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    Ok(file)
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
