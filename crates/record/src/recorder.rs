//! The recorder: one per run.

use std::cell::RefCell;
use std::path::Path;
use std::sync::PoisonError;

use quipu_exchange::Template;
use quipu_exchange::lines::Limits;
use quipu_model::{Draft, RunId, Timestamp};

use crate::Error;
use crate::clock::{Clock, SystemClock, TimeWriter};
use crate::commit::{Commit, Durability};
use crate::fanout::{FanOut, FanOutStats, LagWarning, Producer, Subscription};
use crate::follow::Follower;
use crate::hub::Hub;
use crate::journal::Journal;
use crate::recover::Mended;
use crate::sync::{Arc, Mutex, MutexGuard, thread_local};

/// How often a recorder that does not sync looks whether its file is still in its place.
const LOOK_EVERY_MS: i64 = 100;

/// Buffers larger than this are not kept for the next event.
const KEEP_BYTES: usize = 1 << 20;

/// Sees each event before it is written, and may change it: the place for masking secrets.
///
/// Called on the thread that records, before any lock is taken, so a slow or panicking hook delays
/// or fails that one call and nothing else.
pub type Masker = dyn Fn(&mut Draft) + Send + Sync;

/// Told of subscribers that miss events, at most once a second each. One thread calls it for all runs of the process, so
/// it should be quick.
pub type OnLag = dyn Fn(LagWarning) + Send + Sync;

/// How a recorder behaves.
#[derive(Clone)]
pub struct RecorderOptions {
    /// How safe an event is when `record` returns.
    pub durability: Durability,
    /// How many events wait for a subscriber before the newest are dropped.
    pub buffer: usize,
    /// The longest line that is written, and the largest that is read when a run is reopened.
    pub limits: Limits,
    /// Where times come from.
    pub clock: Arc<dyn Clock>,
    /// Sees each event before it is written.
    pub masker: Option<Arc<Masker>>,
    /// Told of subscribers that miss events.
    pub on_lag: Option<Arc<OnLag>>,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            buffer: 256,
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
            masker: None,
            on_lag: None,
        }
    }
}

impl std::fmt::Debug for RecorderOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecorderOptions")
            .field("durability", &self.durability)
            .field("buffer", &self.buffer)
            .field("limits", &self.limits)
            .field("masker", &self.masker.is_some())
            .finish_non_exhaustive()
    }
}

/// Records the events of one run, from any number of threads.
///
/// Dropping it closes it. See the [crate documentation](crate) for what it promises.
pub struct Recorder {
    run_id: RunId,
    parent_run_id: Option<RunId>,
    options: RecorderOptions,
    mended: Mended,
    /// Taking a sequence number, writing the line and handing it to subscribers is one critical
    /// section, and this is it.
    writer: Mutex<Writer>,
    commit: Arc<Commit>,
    hub: Arc<Hub>,
    fanout: Arc<FanOut>,
    closing: Mutex<()>,
}

struct Writer {
    /// `None` once the recorder is closed.
    journal: Option<Journal>,
    line: Vec<u8>,
    time: Vec<u8>,
    times: TimeWriter,
    looked_at: Option<Timestamp>,
    producer: Producer,
}

thread_local! {
    /// Lines are put together before the lock is taken, in a buffer that is used again.
    static TEMPLATE: RefCell<Template> = RefCell::default();
}

impl Recorder {
    /// Opens the file of a run that has no parent, or is continued.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`].
    pub fn open(path: &Path, run_id: &RunId, options: RecorderOptions) -> Result<Self, Error> {
        let journal = Journal::open(path, run_id, options.limits)?;
        let parent = journal.parent_run_id().cloned();
        Self::start(journal, parent, options)
    }

    /// Records to an open journal, for a run called by `parent_run_id`.
    ///
    /// # Errors
    ///
    /// When the journal has events that name another parent.
    pub fn start(
        journal: Journal,
        parent_run_id: Option<RunId>,
        options: RecorderOptions,
    ) -> Result<Self, Error> {
        if journal.last_seq() > 0 && journal.parent_run_id() != parent_run_id.as_ref() {
            return Err(Error::OtherParent {
                run: journal.run_id().clone(),
                found: journal.parent_run_id().cloned(),
                expected: parent_run_id,
            });
        }
        let last_seq = journal.last_seq();
        let (medium, path) = (journal.medium().clone(), journal.path().to_owned());
        let commit = Commit::new(medium, path, last_seq, journal.len());
        let hub = Hub::of_process();
        Ok(Self {
            run_id: journal.run_id().clone(),
            parent_run_id,
            mended: journal.mended().clone(),
            commit: Arc::new(commit),
            fanout: Arc::new(FanOut::new(
                last_seq,
                journal.history().clone(),
                hub.clone(),
                options.on_lag.clone(),
            )),
            hub,
            closing: Mutex::default(),
            options,
            writer: Mutex::new(Writer {
                journal: Some(journal),
                line: Vec::new(),
                time: Vec::new(),
                times: TimeWriter::default(),
                looked_at: None,
                producer: Producer::default(),
            }),
        })
    }

    /// Opens a child run beside this one. Every event of it names this run as its parent; record a
    /// `step.call_workflow.started` event here to name it.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`], and when the child was recorded with another parent.
    pub fn child(&self, run_id: &RunId) -> Result<Self, Error> {
        let path = {
            let writer = self.lock();
            let journal = writer
                .journal
                .as_ref()
                .ok_or_else(|| Error::Closed(self.run_id.clone()))?;
            journal.path().with_file_name(format!("{run_id}.jsonl"))
        };
        let journal = Journal::open(&path, run_id, self.options.limits)?;
        Self::start(journal, Some(self.run_id.clone()), self.options.clone())
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The run that called this one.
    pub fn parent_run_id(&self) -> Option<&RunId> {
        self.parent_run_id.as_ref()
    }

    /// What was mended when the run was opened.
    pub fn mended(&self) -> &Mended {
        &self.mended
    }

    /// The last event in the file; 0 when there is none.
    pub fn last_seq(&self) -> u64 {
        self.commit.written()
    }

    /// The last event that is known to be on disk.
    pub fn durable_seq(&self) -> u64 {
        self.commit.synced()
    }

    /// Records an event and gives its sequence number.
    ///
    /// When this returns, the event is in the file, and as durable as [`RecorderOptions::durability`] says.
    /// Subscribers are given it once it is in the file, which may be before it is on disk.
    ///
    /// # Errors
    ///
    /// When it returns an error, the event is not in the file and no sequence number was used, with one
    /// exception: [`Error::SyncFailed`] may also mean that the event is in the file and may or may not
    /// survive the machine.
    pub fn record(&self, draft: &Draft) -> Result<u64, Error> {
        let mut masked;
        let draft = match &self.options.masker {
            None => draft,
            Some(masker) => {
                masked = draft.clone();
                masker(&mut masked);
                &masked
            }
        };
        let seq = TEMPLATE.with(|template| {
            let template = &mut *template.borrow_mut();
            template.fill(&self.run_id, self.parent_run_id.as_ref(), draft)?;
            let (len, limit) = (template.max_len(), self.options.limits.max_line_bytes);
            let result = if len > limit {
                Err(Error::TooLarge { len, limit })
            } else {
                self.write(template)
            };
            if len > KEEP_BYTES {
                *template = Template::default();
            }
            result
        })?;
        match self.options.durability {
            Durability::None => {}
            Durability::Each => self.commit.wait(seq)?,
            Durability::Group(interval) => self.commit.sync_later(&self.hub.syncs, interval)?,
        }
        Ok(seq)
    }

    /// The critical section.
    fn write(&self, template: &Template) -> Result<u64, Error> {
        let mut writer = self.lock();
        let Writer {
            journal,
            line,
            time,
            times,
            looked_at,
            producer,
        } = &mut *writer;
        let journal = journal
            .as_mut()
            .ok_or_else(|| Error::Closed(self.run_id.clone()))?;
        if let Some(failure) = self.commit.failure() {
            return Err(failure);
        }
        let now = self.options.clock.now();
        let elapsed = looked_at.map_or(i64::MAX, |at| {
            now.as_millisecond()
                .saturating_sub(at.as_millisecond())
                .saturating_abs()
        });
        if elapsed >= LOOK_EVERY_MS {
            journal.check_in_place()?;
            *looked_at = Some(now);
        }
        times.write(now, time);
        line.clear();
        template.render(journal.last_seq() + 1, time, line);
        let seq = journal.append(line)?;
        self.commit.wrote(seq, journal.len());
        self.fanout.publish(producer, seq, line);
        if line.capacity() > KEEP_BYTES {
            *line = Vec::new();
        }
        Ok(seq)
    }

    /// Returns once event `seq`, and all before it, are on disk.
    ///
    /// # Errors
    ///
    /// When they could not be brought there, or there is no such event yet.
    pub fn wait_durable(&self, seq: u64) -> Result<(), Error> {
        let last = self.commit.written();
        if seq > last {
            let run = self.run_id.clone();
            return Err(Error::NotRecorded { run, seq, last });
        }
        self.commit.wait(seq)
    }

    /// Receives events from now on. At most [`RecorderOptions::buffer`] of them wait; when more come, the
    /// newest are dropped and the subscriber is told which.
    pub fn subscribe(&self) -> Subscription {
        // Under the writer's lock, so that "now" is between two events.
        let mut writer = self.lock();
        self.fanout
            .subscribe(&mut writer.producer, self.options.buffer)
    }

    /// Receives every event from `seq` on, first from the file and then live, none twice and none
    /// left out: where the follower falls behind, it reads the file again. Begins at any event without reading those
    /// before it.
    pub fn follow(&self, seq: u64) -> Follower {
        Follower::new(self.subscribe(), self.fanout.history(), seq)
    }

    /// What subscribers received and missed.
    pub fn stats(&self) -> FanOutStats {
        self.fanout.stats()
    }

    /// Brings everything to disk as the durability asks, ends all subscriptions once they are
    /// drained, and lets go of the file. Closing again does nothing.
    ///
    /// # Errors
    ///
    /// When what was written could not be brought to disk.
    pub fn close(&self) -> Result<(), Error> {
        // Whoever closes it a second time finds it closed when that returns.
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(journal) = self.lock().journal.take() else {
            return Ok(());
        };
        self.hub.syncs.forget(&self.commit);
        let whole = journal.check_in_place();
        let synced = match self.options.durability {
            Durability::None => Ok(()),
            Durability::Group(_) | Durability::Each => self.commit.wait(journal.last_seq()),
        };
        self.fanout.close();
        drop(journal);
        synced.and(whole)
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        // A panic while it is held can only come from the clock, before anything was changed.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A caller who wants to know calls `close`.
        drop(self.close());
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("run_id", &self.run_id)
            .field("last_seq", &self.last_seq())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
