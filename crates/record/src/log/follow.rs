//! What is added to a run's file, as it is added.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use quipu_exchange::lines::Limits;
use quipu_exchange::{Item, Position, Reader};

use super::watch::{FileWatch, LOOK_EVERY, Seen, seen};
use super::{BadLine, identity, open};
use crate::Error;
use crate::fanout::{Batch, Parker, Segment};
use crate::index::{FileAt, Mark};

/// How many lines and bytes are read at a time, but for the last line.
const LINES: usize = 256;
const BYTES: usize = 64 * 1024;

/// Follows the file of a run by its path: what is appended, a file that is cut short and written anew, and one that
/// is moved away and replaced. Made by [`super::RunLog::follow`].
///
/// Blocking ([`LogFollower::recv`]), polling ([`LogFollower::try_next`]) and async ([`LogFollower::poll_next`]) use may be
/// mixed. While it waits, one thread for all followers of the process looks at the file: every few milliseconds
/// while anything changes, ten times a second while nothing does. Dropping it ends it.
pub struct LogFollower {
    path: PathBuf,
    limits: Limits,
    watch: FileWatch,
    /// `None` while it is gone.
    file: Option<Arc<File>>,
    identity: (u64, u64),
    /// The place behind all that was read.
    at: Mark,
    /// The first event that is wanted.
    from: u64,
    /// Whether a last line without its end is taken as it is.
    takes_unended: bool,
    ready: VecDeque<News>,
    /// What the file looked like before it was last read.
    seen: Seen,
}

/// What a follower of a file is given.
#[derive(Debug, Clone)]
pub enum News {
    /// Events on lines in a row.
    Events {
        /// Their lines, numbered by their place among the events of the file.
        batch: Batch,
        /// Where the first begins. The others follow it, line by line.
        at: Position,
    },
    /// Something that is not an event.
    Bad(BadLine),
    /// The file is not there any more. If another takes its place, that is followed.
    Gone,
    /// Another file is in its place; what follows is that, from its start.
    Replaced,
    /// The file was cut short; what follows is all of it, from its start.
    Cut,
}

impl std::fmt::Debug for LogFollower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFollower")
            .field("path", &self.path)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl LogFollower {
    pub(super) fn new(
        path: &Path,
        limits: Limits,
        file: Arc<File>,
        at: Mark,
        from: u64,
    ) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(Error::io("look at", path))?;
        Ok(Self {
            path: path.to_owned(),
            limits,
            watch: FileWatch::of(path),
            identity: identity(&metadata),
            file: Some(file),
            at,
            from,
            takes_unended: false,
            ready: VecDeque::new(),
            seen: None,
        })
    }

    /// Also gives a last line that lacks its end, as it is: for a file to which nothing is added any more.
    #[must_use]
    pub fn to_the_last_byte(mut self) -> Self {
        self.takes_unended = true;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is new, if anything is.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn try_next(&mut self) -> Result<Option<News>, Error> {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return Ok(Some(news));
            }
            if !self.look()? {
                return Ok(None);
            }
        }
    }

    /// Waits for something new.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn recv(&mut self) -> Result<News, Error> {
        loop {
            if let Some(news) = self.recv_until(None)? {
                return Ok(news);
            }
        }
    }

    /// Waits for something new, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<News>, Error> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    fn recv_until(&mut self, end: Option<Instant>) -> Result<Option<News>, Error> {
        let parker = Arc::<Parker>::default();
        let waker = Waker::from(parker.clone());
        loop {
            if let Some(news) = self.try_next()? {
                return Ok(Some(news));
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let left = if self.ask(&waker) {
                left
            } else {
                Some(left.unwrap_or(LOOK_EVERY).min(LOOK_EVERY))
            };
            parker.park(left);
        }
    }

    /// Like [`LogFollower::recv`], for use in a future or a stream. It never ends by itself.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<News, Error>> {
        match self.try_next() {
            Ok(Some(news)) => Poll::Ready(Ok(news)),
            Err(error) => Poll::Ready(Err(error)),
            Ok(None) => {
                self.ask(context.waker());
                Poll::Pending
            }
        }
    }

    /// Asks to be woken when the file has changed since just before it was last read.
    fn ask(&self, waker: &Waker) -> bool {
        self.watch.ask(self.seen, waker)
    }

    /// Looks for what is new, whatever became of the file; gives whether there was anything.
    fn look(&mut self) -> Result<bool, Error> {
        let there = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(Error::io("look at", &self.path)(e)),
        };
        self.seen = there.as_ref().map(seen);
        if let Some(file) = self.file.clone() {
            // To the end of the old file first: something may have been added before it was moved.
            if self.read(&file)? {
                return Ok(true);
            }
            if there.as_ref().map(identity) == Some(self.identity) {
                return Ok(false);
            }
            self.file = None;
            if there.is_none() {
                self.ready.push_back(News::Gone);
                return Ok(true);
            }
        }
        if there.is_none() {
            return Ok(false);
        }
        let file = match open(&self.path) {
            Ok(file) => file,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata().map_err(Error::io("look at", &self.path))?;
        self.identity = identity(&metadata);
        self.file = Some(Arc::new(file));
        self.restart(News::Replaced);
        Ok(true)
    }

    fn restart(&mut self, why: News) {
        self.at = Mark::START;
        self.from = 1;
        self.ready.push_back(why);
    }

    /// Reads some whole lines; gives whether there was anything.
    fn read(&mut self, file: &File) -> Result<bool, Error> {
        let metadata = file.metadata().map_err(Error::io("look at", &self.path))?;
        if metadata.len() < self.at.offset {
            self.restart(News::Cut);
            return Ok(true);
        }
        let before = self.at;
        if metadata.len() > before.offset {
            let done = self.read_lines(file);
            done.map_err(Error::io("read", &self.path))?;
        }
        Ok(self.at != before)
    }

    fn read_lines(&mut self, file: &File) -> io::Result<()> {
        let offset = self.at.offset;
        let source = FileAt { file, offset };
        let mut reader = Reader::resuming(source, self.limits, offset, self.at.line - 1);
        let mut lines = Collected::default();
        let mut taken = 0;
        while let Some(item) = reader.next()? {
            if item.is_unterminated() && !self.takes_unended {
                // The rest of the line is still to come; it is read again then.
                break;
            }
            let number = match &item {
                Item::Event(found) => found.at.line,
                Item::Bad(bad) => bad.at.line,
            };
            // A line may hold several things, and all of them are taken.
            if number >= self.at.line {
                if taken >= LINES || lines.bytes.len() >= BYTES {
                    break;
                }
                taken += 1;
            }
            let is_wanted = self.at.event >= self.from;
            match item {
                Item::Event(found) => {
                    if is_wanted {
                        if !lines.goes_on_at(found.at) {
                            self.ready.extend(lines.take());
                        }
                        lines.push(self.at.event, found.at, found.text);
                    }
                    self.at.event += 1;
                }
                Item::Bad(bad) if is_wanted => {
                    self.ready.extend(lines.take());
                    self.ready.push_back(News::Bad(BadLine {
                        at: bad.at,
                        fault: bad.fault,
                        number: None,
                    }));
                }
                Item::Bad(_) => {}
            }
            let line = reader.line();
            self.at.line = line.number + 1;
            self.at.offset = line.offset + line.len + u64::from(line.terminated);
        }
        self.ready.extend(lines.take());
        Ok(())
    }
}

/// Lines in a row.
#[derive(Default)]
struct Collected {
    first: Option<(u64, Position)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Collected {
    /// Whether a line there follows these.
    fn goes_on_at(&self, at: Position) -> bool {
        self.first.as_ref().is_some_and(|(_, first)| {
            at.offset == first.offset + self.bytes.len() as u64
                && at.line == first.line + self.ends.len() as u64
        })
    }

    fn push(&mut self, event: u64, at: Position, text: &str) {
        self.first.get_or_insert((event, at));
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
        self.ends.push(self.bytes.len());
    }

    fn take(&mut self) -> Option<News> {
        let Self { first, bytes, ends } = std::mem::take(self);
        let (event, at) = first?;
        let batch = Batch::of(Arc::new(Segment::new(event, bytes, ends)));
        Some(News::Events { batch, at })
    }
}
