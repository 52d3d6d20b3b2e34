//! A run as an `.agentlog` trace, written while it is recorded.
//!
//! A trace is another view of the transcript: each event becomes records as the
//! [projection](quipu_formats::agentlog::project) says, and each record is appended with one write as soon as
//! it is made. A thread of its own follows the recorder, so recording never waits for the trace.
//!
//! A process that is killed leaves a trace that ends with a whole record, or with one that is cut off. Whoever
//! opens it next sets the cut-off bytes aside, makes the records again from the transcript, passes over those
//! that are in the file (after comparing them) and goes on behind them. So nothing but the transcript has to
//! be safe, and a trace is brought to disk less eagerly: with [`Durability::Each`] after each event, otherwise
//! a few times a second while events come, and at the end.
//!
//! What a model answers comes in over several events, and a record cannot be changed. So an answer is written
//! when it is known to be whole: at the next prompt, step, result or call, and when the recorder is closed.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use quipu_exchange::lines::Limits;
use quipu_formats::agentlog::project::{Facts, Made, ProjectionOptions, Projector, Sink};
use quipu_formats::agentlog::record::Field;
use quipu_formats::agentlog::{self, ContentId, Item, LIMITS, Parent, Record};
use quipu_formats::loss::Loss;
use quipu_model::Attachment;

use crate::commit::Durability;
use crate::fanout::{Batch, TryNextError};
use crate::follow::Follower;
use crate::journal::{create_directory, in_place, open_locked};
use crate::medium::{DiskFile, Medium as _};
use crate::recover::{SetAside, Source, make_private, set_aside, sync_directory_of};
use crate::{Error, Recorder};

/// How often a trace is brought to disk while events come.
const SYNC_EVERY: Duration = Duration::from_millis(250);

/// Where a trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracePlace {
    /// This file.
    File(PathBuf),
    /// A directory of traces, where each is named by the id of its root: `ab/cdef….agentlog`.
    Directory(PathBuf),
}

/// Keeps text that is too long for a line of a trace.
pub type KeepBlob = dyn FnMut(&Attachment, &[u8]) -> io::Result<()> + Send;

/// How a trace is written.
pub struct TraceOptions {
    /// Where it goes.
    pub place: TracePlace,
    /// How events become records.
    pub projection: ProjectionOptions,
    /// How eagerly it is brought to disk.
    pub durability: Durability,
    /// Keeps text that is too long for a line.
    pub blobs: Box<KeepBlob>,
}

impl std::fmt::Debug for TraceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceOptions")
            .field("place", &self.place)
            .field("projection", &self.projection)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

/// Why a trace is not written, or not further. The transcript is not affected.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be opened, is open elsewhere, or could not be mended.
    #[error(transparent)]
    File(#[from] Error),
    /// Something in the file is no record, and not one that was cut off either.
    #[error("{} cannot be continued: line {line} is no record", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
    },
    /// The file holds something other than this run makes.
    #[error("{} cannot be continued: line {line} is not what the transcript makes of it", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// The first line that is not.
        line: u64,
    },
    /// An event of the transcript cannot be read back.
    #[error("event {0} of the transcript cannot be read")]
    Event(u64),
    /// The system refused.
    #[error("the trace could not be written: {0}")]
    Io(#[from] io::Error),
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traced {
    /// The file; `None` when the run has no events.
    pub path: Option<PathBuf>,
    /// How many records were in it already.
    pub found: u64,
    /// How many were added.
    pub added: u64,
    /// Bytes that were no record and were set aside.
    pub set_aside: Option<SetAside>,
    /// What the trace does not have of the run.
    pub loss: Loss,
}

/// Writes the trace of a run while it is recorded.
#[derive(Debug)]
pub struct TraceWriter {
    thread: JoinHandle<Result<Traced, TraceError>>,
}

impl TraceWriter {
    /// Follows a recorder, from the first event of the run on.
    ///
    /// # Errors
    ///
    /// When no thread can be started. What goes wrong later is told by [`Self::finish`].
    pub fn follow(recorder: &Recorder, options: TraceOptions) -> io::Result<Self> {
        let events = recorder.follow(1);
        let facts = Facts::recorded(recorder.run_id().clone());
        let thread = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write(events, facts, options))?;
        Ok(Self { thread })
    }

    /// Waits until the recorder is closed and everything is written.
    ///
    /// # Errors
    ///
    /// When the trace could not be written to its end.
    ///
    /// # Panics
    ///
    /// When the thread did.
    pub fn finish(self) -> Result<Traced, TraceError> {
        match self.thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn write(mut events: Follower, facts: Facts, options: TraceOptions) -> Result<Traced, TraceError> {
    let mut projector = Projector::new(facts, options.projection);
    let mut trace = Trace::new(options);
    loop {
        match events.try_recv()? {
            Ok(batch) => trace.take_all(&batch, &mut projector)?,
            Err(TryNextError::Empty) => {
                trace.rest()?;
                match events.recv()? {
                    Some(batch) => trace.take_all(&batch, &mut projector)?,
                    None => break,
                }
            }
            Err(TryNextError::Closed) => break,
        }
    }
    let loss = trace.guard(|trace| projector.finish(trace))?;
    trace.finish()?;
    Ok(Traced {
        loss,
        ..trace.traced
    })
}

/// The trace, before and after there is a file.
struct Trace {
    options: TraceOptions,
    file: Option<TraceFile>,
    /// Why the sink refused; an `io::Error` cannot say.
    failure: Option<TraceError>,
    traced: Traced,
    dirty: bool,
    synced: Instant,
}

/// The file of a trace, open for appending.
struct TraceFile {
    path: PathBuf,
    medium: DiskFile,
    /// Where the last whole record ends.
    len: u64,
    /// How many bytes of one that was cut off are behind that.
    torn: u64,
    /// Whether it is known to be of this run, and made ready to be appended to.
    is_settled: bool,
    /// How many records were there when it was opened, and how many of them were made again since.
    found: u64,
    passed: u64,
    /// Reads them again, to compare.
    there: agentlog::Reader<File>,
    /// The events after which the run was closed before.
    closed_after: Vec<u64>,
}

impl Trace {
    fn new(options: TraceOptions) -> Self {
        Self {
            options,
            file: None,
            failure: None,
            traced: Traced::default(),
            dirty: false,
            synced: Instant::now(),
        }
    }

    fn take_all(&mut self, batch: &Batch, projector: &mut Projector) -> Result<(), TraceError> {
        for (seq, line) in batch.lines() {
            self.take(seq, line, projector)?;
        }
        Ok(())
    }

    fn take(&mut self, seq: u64, line: &[u8], projector: &mut Projector) -> Result<(), TraceError> {
        let mut reader = quipu_exchange::Reader::with_limits(line, Limits::default());
        let Some(Ok(decoded)) = reader.next_decoded()? else {
            return Err(TraceError::Event(seq));
        };
        self.guard(|trace| projector.event(&decoded.event, trace))?;
        let closed = self.file.as_ref().is_some_and(|file| {
            file.passed < file.found && file.closed_after.binary_search(&seq).is_ok()
        });
        if closed {
            self.guard(|trace| projector.flush(trace))?;
        }
        if self.options.durability == Durability::Each {
            self.sync()?;
        }
        Ok(())
    }

    /// Runs something that writes here; what it failed with is told as it is.
    fn guard<T>(&mut self, act: impl FnOnce(&mut Self) -> io::Result<T>) -> Result<T, TraceError> {
        let done = act(self);
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(done?),
        }
    }

    /// Nothing comes for now.
    fn rest(&mut self) -> Result<(), TraceError> {
        if self.options.durability != Durability::None && self.synced.elapsed() >= SYNC_EVERY {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), TraceError> {
        self.synced = Instant::now();
        let asked = self.options.durability != Durability::None;
        if let Some(file) = self.file.as_ref().filter(|_| self.dirty && asked) {
            let refused = Error::io("sync", &file.path);
            file.medium.sync().map_err(refused)?;
            self.dirty = false;
        }
        Ok(())
    }

    fn put(&mut self, made: &Made<'_>) -> Result<(), TraceError> {
        let file = if let Some(file) = &mut self.file {
            file
        } else {
            let path = match &self.options.place {
                TracePlace::File(path) => path.clone(),
                TracePlace::Directory(root) => {
                    let hex = made.id.hex();
                    root.join(&hex[..2]).join(format!("{}.agentlog", &hex[2..]))
                }
            };
            let file = TraceFile::open(&path, made.line)?;
            self.traced.found = file.found;
            self.traced.path = Some(file.path.clone());
            self.file.insert(file)
        };
        if file.passed < file.found {
            return file.pass(made);
        }
        if let Some(aside) = file.settle()? {
            self.traced.set_aside = Some(aside);
        }
        file.append(made.line)?;
        self.traced.added += 1;
        self.dirty = true;
        Ok(())
    }

    /// All records are made. What was written is only of use where others find it.
    fn finish(&mut self) -> Result<(), TraceError> {
        if let Some(file) = &mut self.file {
            if file.passed < file.found {
                return Err(file.differs());
            }
            if let Some(aside) = file.settle()? {
                self.traced.set_aside = Some(aside);
            }
        }
        self.sync()?;
        if let Some(file) = &self.file {
            in_place(&file.medium, &file.path)?;
        }
        Ok(())
    }
}

impl Sink for Trace {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.put(made).map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("the trace cannot be written")
        })
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        (self.options.blobs)(attachment, bytes)
    }
}

impl TraceFile {
    /// Opens the file, and looks at what is in it. Nothing in it is changed before all of it is known to be of
    /// this run. `root` is the record that it has to begin with.
    fn open(path: &Path, root: &[u8]) -> Result<Self, TraceError> {
        let path = &std::path::absolute(path).map_err(Error::io("find", path))?;
        create_directory(path.parent().unwrap_or(path))?;
        let medium = open_locked(path, true)?;
        let again = File::open(path).map_err(Error::io("open", path))?;
        let mut file = Self {
            path: path.clone(),
            medium,
            len: 0,
            torn: 0,
            is_settled: false,
            found: 0,
            passed: 0,
            there: agentlog::Reader::with_limits(again, unbounded()),
            closed_after: Vec::new(),
        };
        file.survey(root)?;
        sync_directory_of(path)?;
        Ok(file)
    }

    /// Finds out what is in the file: records, and perhaps a last line without its end, which was cut off.
    /// Anything else was not written by us.
    fn survey(&mut self, root: &[u8]) -> Result<(), TraceError> {
        let mut reader = agentlog::Reader::with_limits(self.source(0), unbounded());
        let (mut found, mut len, mut closed) = (0, 0, Vec::new());
        let mut bad = None;
        while let Some(item) = reader.next()? {
            let closed_after = match item {
                Item::Record(record) if record.id().is_some() => closed_after(&record),
                Item::Record(Record { at, .. }) | Item::Bad { at, .. } => {
                    bad = Some(at.line);
                    break;
                }
            };
            if reader.passed().unterminated {
                break;
            }
            if let Some(seq) = closed_after
                && closed.last().is_none_or(|last| *last < seq)
            {
                closed.push(seq);
            }
            found += 1;
            len = reader.position();
        }
        let size = self.medium.size();
        let size = size.map_err(Error::io("look at", &self.path))?;
        (self.found, self.len, self.closed_after) = (found, len, closed);
        self.torn = size.saturating_sub(len);
        if !self.is_torn(root)? {
            let path = self.path.clone();
            let line = bad.unwrap_or(found + 1);
            return Err(TraceError::Damaged { path, line });
        }
        Ok(())
    }

    /// Whether what is behind the records can be one that was cut off: it has no line end, and in place of the
    /// root it is the beginning of that.
    fn is_torn(&self, root: &[u8]) -> Result<bool, TraceError> {
        let mut source = self.source(self.len).take(self.torn);
        let mut expected = if self.found == 0 { Some(root) } else { None };
        let mut buffer = [0; 8 * 1024];
        loop {
            let n = source.read(&mut buffer)?;
            let bytes = &buffer[..n];
            if bytes.contains(&b'\n') {
                return Ok(false);
            }
            if let Some(rest) = &mut expected {
                let Some(behind) = rest.strip_prefix(bytes) else {
                    return Ok(false);
                };
                *rest = behind;
            }
            if n == 0 {
                return Ok(true);
            }
        }
    }

    fn source(&self, offset: u64) -> Source<'_> {
        let medium = &self.medium;
        Source { medium, offset }
    }

    /// Makes the file ready to be appended to, once all its records were passed. Bytes that were cut off are
    /// set aside.
    fn settle(&mut self) -> Result<Option<SetAside>, TraceError> {
        if std::mem::replace(&mut self.is_settled, true) {
            return Ok(None);
        }
        let path = &self.path;
        make_private(self.medium.file(), path)?;
        if self.torn == 0 {
            return Ok(None);
        }
        let aside = set_aside(&self.medium, path, self.len, self.torn)?;
        let refused = Error::io("cut the torn tail off", path);
        self.medium.truncate(self.len).map_err(refused)?;
        self.medium.sync().map_err(Error::io("sync", path))?;
        Ok(Some(aside))
    }

    /// The next record that is there is not one of this run.
    fn differs(&self) -> TraceError {
        TraceError::Differs {
            path: self.path.clone(),
            line: self.passed + 1,
        }
    }

    /// Compares a record that was made again with the one that is there.
    fn pass(&mut self, made: &Made<'_>) -> Result<(), TraceError> {
        let differs = self.differs();
        let (id, parent) = match self.there.next()? {
            Some(Item::Record(record)) => {
                let parent = match record.parent() {
                    Parent::Id(id) => Some(id),
                    _ => None,
                };
                (record.id(), parent)
            }
            _ => return Err(differs),
        };
        if id != Some(made.id) || parent != parent_of(made.line) {
            return Err(differs);
        }
        self.passed += 1;
        Ok(())
    }

    /// Appends a record, whole or not at all.
    fn append(&mut self, line: &[u8]) -> Result<(), TraceError> {
        let mut done = 0;
        while done < line.len() {
            let refused = match self.medium.append(&line[done..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(n) => {
                    done += n;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // If this fails as well, whoever opens the trace next sets the rest aside.
            drop(self.medium.truncate(self.len));
            return Err(Error::io("write to", &self.path)(refused).into());
        }
        self.len += line.len() as u64;
        Ok(())
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        drop(self.medium.unlock());
    }
}

/// A trace of ours may be as long as its run.
fn unbounded() -> Limits {
    Limits {
        max_total_bytes: u64::MAX,
        ..LIMITS
    }
}

fn closed_after(record: &Record<'_>) -> Option<u64> {
    let meta = record.get(Field::Meta)?;
    meta.path(&["quipu", "flushed"])?.as_u64()
}

fn parent_of(line: &[u8]) -> Option<ContentId> {
    let mut reader = agentlog::Reader::new(line);
    match reader.next() {
        Ok(Some(Item::Record(record))) => match record.parent() {
            Parent::Id(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
