//! What is added to a transcript, as it is added.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quipu_exchange::lines::Limits;
use quipu_exchange::{Item, Reader};
use quipu_model::Event;
use quipu_record::{BadLine, Batch, FileLook, FileWatch, LogFollower, News, RunLog};

use super::form::State;
use super::{EventLog, Fault};
use crate::catalogue::TranscriptRow;
use crate::import::ImportError;
use crate::transcript::Kept;

/// How many events are given at a time.
const GIVEN: u64 = 256;

/// So many of the events that were given last are remembered, to see whether they still are what they were.
const REMEMBERED: usize = 64;

/// A file is looked at at least this often, whatever the system says of it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows the events of a transcript from any of them on: first those that are there, then those that are added, by
/// whatever process. A recorded run grows as it is recorded; an imported session grows when its log is imported again,
/// as `quipu import --watch` does. Made by [`EventLog::follow`]; dropping it ends it.
#[derive(Debug)]
pub struct EventFollower {
    of: Of,
    ready: VecDeque<Followed>,
}

#[derive(Debug)]
enum Of {
    Run(Box<LogFollower>),
    Kept(Box<KeptFollower>),
}

/// What a follower of a transcript is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// Events in a row.
    Events(Vec<Event>),
    /// A line of a recorded run that is not an event.
    Bad(BadLine),
    /// What was given from this event on does not hold any more, and is given again as it is now. The end of a log may read
    /// otherwise once the log goes on; a log may be written anew.
    Again {
        /// The first event that is given again.
        from: u64,
    },
    /// There is nothing to read any more: the file is gone, or was pruned. If it comes back, it is followed again.
    Gone,
}

/// What a follower of a transcript is given who wants events as lines.
#[derive(Debug)]
pub enum FollowedLines {
    /// Events in a row.
    Lines(EventLines),
    /// As [`Followed::Bad`].
    Bad(BadLine),
    /// As [`Followed::Again`].
    Again {
        /// The first event that is given again.
        from: u64,
    },
    /// As [`Followed::Gone`].
    Gone,
}

/// Events in a row, each as its line of the exchange format. Those of a recorded run are the bytes of its file.
#[derive(Debug)]
pub struct EventLines(LinesOf);

#[derive(Debug)]
enum LinesOf {
    Run(Batch),
    Kept(Vec<(u64, Vec<u8>)>),
}

impl EventLines {
    fn of(events: &[Event]) -> Self {
        let line = |event: &Event| {
            let mut line = Vec::new();
            quipu_exchange::encode_log(event, &mut line);
            (event.seq, line)
        };
        Self(LinesOf::Kept(events.iter().map(line).collect()))
    }

    /// The events' numbers and lines, without line ends.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let (run, kept) = match &self.0 {
            LinesOf::Run(batch) => (Some(batch.lines()), None),
            LinesOf::Kept(lines) => {
                let lines = lines.iter().map(|(seq, line)| (*seq, line.as_slice()));
                (None, Some(lines))
            }
        };
        let lines = run.into_iter().flatten();
        let lines = lines.chain(kept.into_iter().flatten());
        lines.map(|(seq, line)| (seq, line.strip_suffix(b"\n").unwrap_or(line)))
    }
}

impl EventFollower {
    /// Follows the file of a recorded run, whether or not the catalogue knows of it.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it cannot be read.
    pub fn of_file(path: &Path, from: u64) -> Result<Self, Fault> {
        let log = RunLog::open(path).and_then(|log| log.follow(from));
        log.map(Self::of_run).map_err(Fault::Run)
    }

    /// The file that changes when there is something new.
    pub fn path(&self) -> &Path {
        match &self.of {
            Of::Run(follower) => follower.path(),
            Of::Kept(follower) => &follower.path,
        }
    }

    /// Like [`EventFollower::try_next`], for who wants events as lines. Not to be mixed with it.
    ///
    /// # Errors
    ///
    /// When events cannot be read.
    pub fn try_next_lines(&mut self) -> Result<Option<FollowedLines>, ImportError> {
        if let Of::Run(follower) = &mut self.of {
            let news = follower.try_next().map_err(run_fault)?;
            return Ok(news.map(|news| match news {
                News::Events { batch, .. } => FollowedLines::Lines(EventLines(LinesOf::Run(batch))),
                News::Bad(bad) => FollowedLines::Bad(bad),
                News::Gone => FollowedLines::Gone,
                News::Replaced | News::Cut => FollowedLines::Again { from: 1 },
            }));
        }
        Ok(self.try_next()?.map(|followed| match followed {
            Followed::Events(events) => FollowedLines::Lines(EventLines::of(&events)),
            Followed::Bad(bad) => FollowedLines::Bad(bad),
            Followed::Again { from } => FollowedLines::Again { from },
            Followed::Gone => FollowedLines::Gone,
        }))
    }

    pub(super) fn of_run(follower: LogFollower) -> Self {
        Self {
            of: Of::Run(Box::new(follower)),
            ready: VecDeque::new(),
        }
    }

    pub(super) fn of_kept(kept: Kept, row: TranscriptRow, from: u64) -> Self {
        let path = kept.events_path(&row);
        Self {
            of: Of::Kept(Box::new(KeptFollower {
                kept,
                row,
                watch: FileWatch::of(&path),
                path,
                look: FileLook::default(),
                state: None,
                is_gone: false,
                next: from.max(1),
                given: VecDeque::new(),
            })),
            ready: VecDeque::new(),
        }
    }

    /// What is new, if anything is.
    ///
    /// # Errors
    ///
    /// When events cannot be read.
    pub fn try_next(&mut self) -> Result<Option<Followed>, ImportError> {
        if let Some(ready) = self.ready.pop_front() {
            return Ok(Some(ready));
        }
        match &mut self.of {
            Of::Run(follower) => match follower.try_next().map_err(run_fault)? {
                Some(news) => {
                    self.ready.extend(of_run(news));
                    Ok(self.ready.pop_front())
                }
                None => Ok(None),
            },
            Of::Kept(follower) => {
                follower.look_for(&mut self.ready)?;
                Ok(self.ready.pop_front())
            }
        }
    }

    /// Waits for something new, but not longer than `timeout`.
    ///
    /// # Errors
    ///
    /// When events cannot be read.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Followed>, ImportError> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(news) = self.try_next()? {
                return Ok(Some(news));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match &mut self.of {
                Of::Run(follower) => match follower.recv_timeout(left).map_err(run_fault)? {
                    Some(news) => self.ready.extend(of_run(news)),
                    None => return Ok(None),
                },
                Of::Kept(follower) => follower.watch.wait(&follower.look, left.min(LOOK_EVERY)),
            }
        }
    }

    /// Like [`EventFollower::recv_timeout`], for use in a future or a stream. It never ends by itself.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Followed, ImportError>> {
        loop {
            match self.try_next() {
                Ok(Some(news)) => return Poll::Ready(Ok(news)),
                Err(error) => return Poll::Ready(Err(error)),
                Ok(None) => {}
            }
            match &mut self.of {
                Of::Run(follower) => match follower.poll_next(context) {
                    Poll::Ready(Ok(news)) => self.ready.extend(of_run(news)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(run_fault(error))),
                    Poll::Pending => return Poll::Pending,
                },
                Of::Kept(follower) => {
                    follower.watch.wake(&follower.look, context.waker());
                    return Poll::Pending;
                }
            }
        }
    }
}

/// What is new in the file of a run.
fn of_run(news: News) -> Vec<Followed> {
    match news {
        News::Events { batch, mut at } => {
            let mut given = Vec::new();
            let mut events = Vec::new();
            for (number, line) in batch.lines() {
                let mut reader = Reader::resuming(
                    line,
                    Limits::default(),
                    at.offset,
                    at.line.saturating_sub(1),
                );
                // What is in memory is read, whatever it is.
                let item = reader.next().ok().flatten();
                let fault = match item {
                    Some(Item::Event(found)) => match found.decode() {
                        Ok(decoded) => {
                            let mut event = decoded.event;
                            event.seq = number;
                            events.push(event);
                            None
                        }
                        Err(fault) => Some(fault),
                    },
                    Some(Item::Bad(bad)) => Some(bad.fault),
                    None => None,
                };
                if let Some(fault) = fault {
                    given.extend(taken(&mut events));
                    let number = Some(number);
                    given.push(Followed::Bad(BadLine { at, fault, number }));
                }
                at.line += 1;
                at.offset += line.len() as u64;
            }
            given.extend(taken(&mut events));
            given
        }
        News::Bad(bad) => vec![Followed::Bad(bad)],
        News::Gone => vec![Followed::Gone],
        News::Replaced | News::Cut => vec![Followed::Again { from: 1 }],
    }
}

fn run_fault(error: quipu_record::Error) -> ImportError {
    Fault::Run(error).into()
}

fn taken(events: &mut Vec<Event>) -> Option<Followed> {
    let events = std::mem::take(events);
    (!events.is_empty()).then_some(Followed::Events(events))
}

/// Follows the events of an imported log.
#[derive(Debug)]
struct KeptFollower {
    kept: Kept,
    row: TranscriptRow,
    watch: FileWatch,
    path: PathBuf,
    /// What the file looked like before it was last read.
    look: FileLook,
    /// Which state of the log was read to its end.
    state: Option<State>,
    is_gone: bool,
    /// The next event.
    next: u64,
    /// Events that were given last, by what they said.
    given: VecDeque<(u64, u64)>,
}

impl KeptFollower {
    /// Looks for what is new.
    fn look_for(&mut self, ready: &mut VecDeque<Followed>) -> Result<(), ImportError> {
        let look = self.watch.look();
        // Blocks that are not in a file do not show whether they changed.
        let is_file = look != FileLook::default();
        if self.state.is_some() && is_file && look == self.look {
            return Ok(());
        }
        let Some(log) = self.open()? else {
            if !std::mem::replace(&mut self.is_gone, true) {
                ready.push_back(Followed::Gone);
            }
            (self.look, self.state) = (look, None);
            return Ok(());
        };
        self.is_gone = false;
        let state = log.state();
        if state.is_some() && state == self.state {
            self.look = look;
            return Ok(());
        }
        let len = log.len()?;
        if let Some(from) = self.changed(&log, len)? {
            self.given.retain(|(seq, _)| *seq < from);
            self.next = from;
            ready.push_back(Followed::Again { from });
        }
        let last = len.min(self.next.saturating_add(GIVEN - 1));
        if self.next <= last {
            let events = log.events(self.next..=last)?;
            for event in &events {
                if self.given.len() == REMEMBERED {
                    self.given.pop_front();
                }
                self.given.push_back((event.seq, said(event)));
            }
            self.next = last + 1;
            ready.push_back(Followed::Events(events));
        }
        if self.next > len {
            (self.look, self.state) = (look, state);
        }
        Ok(())
    }

    /// The events as they are now; `None` when nothing is kept of the log.
    fn open(&self) -> Result<Option<EventLog>, ImportError> {
        if !self.path.exists() && !self.kept.has_log(&self.row) {
            return Ok(None);
        }
        match self.kept.open(&self.row, &(self.next..=self.next)) {
            Ok(log) => Ok(Some(log)),
            Err(error) if self.kept.has_log(&self.row) => Err(error),
            // Pruned while it was opened.
            Err(_) => Ok(None),
        }
    }

    /// The first of the events that were given and say something else now.
    fn changed(&self, log: &EventLog, len: u64) -> Result<Option<u64>, ImportError> {
        let (Some((first, _)), Some((last, _))) = (self.given.front(), self.given.back()) else {
            return Ok(None);
        };
        let now = if *first <= len {
            log.events(*first..=(*last).min(len))?
        } else {
            Vec::new()
        };
        let mut now = now.iter();
        let other = self.given.iter().find(|(seq, was)| {
            !now.next()
                .is_some_and(|it| it.seq == *seq && said(it) == *was)
        });
        // Where none of them is what it was, the log is another.
        Ok(other.map(|(seq, _)| if seq == first { 1 } else { *seq }))
    }
}

/// What an event says, but for what only the rest of the log tells of it.
fn said(event: &Event) -> u64 {
    let mut event = event.clone();
    event.annotations.flags.superseded = false;
    event.annotations.flags.dangling = false;
    let mut line = Vec::new();
    quipu_exchange::encode_log(&event, &mut line);
    quipu_agents::hash(&line)
}
