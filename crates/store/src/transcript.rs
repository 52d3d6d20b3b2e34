//! Reading the events of a kept transcript.

use std::borrow::Cow;
use std::io::{self, BufRead as _, Read as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use quipu_agents::{
    About, Dialect, Entry, Family, Feed, HEAD, Limits, Origin, Position, Record, Session, Sink,
};
use quipu_model::{Attachment, Event, Timestamp};
use quipu_prices::Prices;

use crate::archive::{Archive, Snapshot, SourceKey};
use crate::blobs::Blobs;
use crate::catalogue::{ADAPTERS, TranscriptRow};
use crate::events::{
    ALL, EventFile, EventFollower, EventLog, Events, Given, Original, Page, State, Writer,
};
use crate::hide::is_masked;
use crate::import::{BESIDE, ImportError, Store};

/// A transcript, whole.
#[derive(Debug)]
pub struct Transcript {
    /// What the catalogue says of it.
    pub row: TranscriptRow,
    /// What its log says of the session.
    pub session: Session,
    /// Its events, in order, marked where only the whole log tells.
    pub events: Vec<Event>,
    /// Why it could not be read wholly.
    pub problem: Option<String>,
}

impl Store {
    /// Reads a transcript whole.
    pub fn read(&self, row: TranscriptRow) -> Result<Transcript, ImportError> {
        let kept = self.kept().open(&row, &ALL)?;
        let events = kept.events(ALL)?;
        let About {
            session, problem, ..
        } = kept.about()?;
        Ok(Transcript {
            row,
            session,
            events,
            problem,
        })
    }

    /// The events of a transcript, whether it was imported or recorded.
    pub fn events(&self, row: &TranscriptRow) -> Result<EventLog, ImportError> {
        self.kept().open(row, &ALL)
    }

    /// Reads up to `most` events of a transcript, from event `from` on.
    pub fn page(&self, row: &TranscriptRow, from: u64, most: usize) -> Result<Page, ImportError> {
        let from = from.max(1);
        let wanted = from..=from.saturating_add(most as u64).saturating_sub(1);
        let kept = self.kept().open(row, &wanted)?;
        Ok(kept.page(from, most, &|_| true)?)
    }

    /// Gives these events of a transcript, one at a time: see [`EventLog::each`].
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn each_event(
        &self,
        row: &TranscriptRow,
        wanted: &RangeInclusive<u64>,
        prices: Option<&Prices>,
        take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Given, ImportError> {
        Ok(self.kept().open(row, wanted)?.each(wanted, prices, take)?)
    }

    /// Follows the events of a transcript from one on: those that are there, then those that are added, by whatever
    /// process. Those before are not read.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn follow(&self, row: &TranscriptRow, from: u64) -> Result<EventFollower, ImportError> {
        Ok(self.kept().open(row, &(from..=from))?.follow(from)?)
    }

    /// What events are read from.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            archive: self.archive().clone(),
            events: Events::of(self.home()),
        }
    }
}

/// Gives all events of a transcript to a sink.
pub(crate) fn feed(
    store: &Store,
    row: &TranscriptRow,
    sink: &mut dyn Sink,
) -> Result<About, ImportError> {
    Ok(store.kept().open(row, &ALL)?.replay(&ALL, sink)?)
}

/// The events of kept logs, and the logs to make them again from.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    archive: Archive,
    events: Events,
}

impl Kept {
    /// The events of a transcript, of which these are wanted. Events that are missing, damaged or of an earlier state
    /// of the log are made again.
    pub(crate) fn open(
        &self,
        row: &TranscriptRow,
        wanted: &RangeInclusive<u64>,
    ) -> Result<EventLog, ImportError> {
        if row.recorded {
            return Ok(EventLog::run(row.clone())?);
        }
        let (file, log) = self.file(row, wanted)?;
        Ok(EventLog::kept(row.clone(), file, log, self.clone()))
    }

    /// Where the events of a transcript are kept, unless it is a recorded run.
    pub(crate) fn events_path(&self, row: &TranscriptRow) -> PathBuf {
        self.events.path(&row.key)
    }

    /// Whether there is a log to make events of.
    pub(crate) fn has_log(&self, row: &TranscriptRow) -> bool {
        if !row.is_archived() {
            return row.path.is_file();
        }
        let source = self.archive.source_by_id(&row.key);
        source.is_ok_and(|source| source.is_some())
    }

    /// The events of a log, and the log in the state that they are of.
    fn file(
        &self,
        row: &TranscriptRow,
        wanted: &RangeInclusive<u64>,
    ) -> Result<(EventFile, Original), ImportError> {
        if row.is_trace() {
            return self.trace(row, wanted);
        }
        let row = &*located(&self.archive, row)?;
        let source = self.archive.source(&source_key(row))?;
        let versions = source.map(|source| source.versions).unwrap_or_default();
        let not_kept = || ImportError::NotKept(row.path.clone());
        let latest = versions.last().ok_or_else(not_kept)?;
        let opened = self.events.open(&row.key);
        if let Ok(file) = opened
            && let Some(snapshot) = fitting(file.state(), &versions, row)
            && file.check(wanted).is_ok()
        {
            return Ok((file, Original::Archived(self.archive.slices(snapshot))));
        }
        let state = State {
            version: latest.version,
            read_to: latest.size,
            adapters: ADAPTERS,
        };
        let file = self.make(row, &Bytes::Archived(latest), state)?;
        Ok((file, Original::Archived(self.archive.slices(latest))))
    }

    /// The events of a trace, and its file. They may be of a later state than the catalogue knows.
    fn trace(
        &self,
        row: &TranscriptRow,
        wanted: &RangeInclusive<u64>,
    ) -> Result<(EventFile, Original), ImportError> {
        let refused = |source| ImportError::Archived {
            path: row.path.clone(),
            source,
        };
        let len = std::fs::metadata(&row.path).map_err(refused)?.len();
        let state = State {
            version: 0,
            read_to: row.size.min(len),
            adapters: ADAPTERS,
        };
        let fits = |there: State| {
            let is_there = (state.read_to..=len).contains(&there.read_to);
            is_there && (there.version, there.adapters) == (state.version, state.adapters)
        };
        let file = match self.events.open(&row.key) {
            Ok(file) if fits(file.state()) && file.check(wanted).is_ok() => file,
            _ => self.make(row, &Bytes::InPlace(state.read_to), state)?,
        };
        let len = file.state().read_to;
        Ok((file, Original::in_place(&row.path, len).map_err(refused)?))
    }

    /// Makes the events of a log again: in their place, or where nobody else sees them if nothing may be written there.
    fn make(
        &self,
        row: &TranscriptRow,
        bytes: &Bytes<'_>,
        state: State,
    ) -> Result<EventFile, ImportError> {
        match self.make_in(&self.events, row, bytes, state) {
            Err(ImportError::Home { .. }) => {
                let refused = |source| ImportError::Home {
                    path: std::env::temp_dir(),
                    source,
                };
                // What is open can be read after its directory is gone.
                let elsewhere = tempfile::tempdir().map_err(refused)?;
                self.make_in(&Events::of(elsewhere.path()), row, bytes, state)
            }
            made => made,
        }
    }

    fn make_in(
        &self,
        events: &Events,
        row: &TranscriptRow,
        bytes: &Bytes<'_>,
        state: State,
    ) -> Result<EventFile, ImportError> {
        let refused = |source| ImportError::Home {
            path: events.path(&row.key),
            source,
        };
        let mut writer = Writer::new(events, &row.key).map_err(refused)?;
        let about = read_again(&self.archive, row, bytes, &mut Into(&mut writer))?;
        writer.finish(state, about).map_err(refused)?;
        Ok(events.open(&row.key)?)
    }
}

struct Into<'w>(&'w mut Writer);

impl Sink for Into<'_> {
    fn record(&mut self, record: Option<Record<'_>>) {
        self.0.record(record);
    }

    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.0.take(seq, at, position, entry);
    }
}

/// Gives a sink what stood inside of a log as well, from where it is kept.
pub(crate) struct WithBlobs<'s> {
    pub(crate) blobs: &'s Blobs,
    pub(crate) sink: &'s mut dyn Sink,
}

impl Sink for WithBlobs<'_> {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        if self.sink.wants_blobs() {
            for attachment in &entry.attachments {
                self.give(attachment);
            }
        }
        self.sink.entry(seq, at, position, entry);
    }

    fn is_done(&self) -> bool {
        self.sink.is_done()
    }
}

impl WithBlobs<'_> {
    /// Gives what is kept of an attachment. What stood outside of the log was never kept.
    fn give(&mut self, attachment: &Attachment) {
        if let Ok(id) = attachment.sha256.parse()
            && let Ok(bytes) = self.blobs.get(&id)
        {
            self.sink.blob(attachment, &bytes);
        }
    }
}

/// A transcript with the address of its log as the archive has it: the catalogue masks secrets in it.
pub(crate) fn located<'r>(
    archive: &Archive,
    row: &'r TranscriptRow,
) -> Result<Cow<'r, TranscriptRow>, ImportError> {
    if !row.is_archived() || !is_masked(&row.path, row.part.as_deref()) {
        return Ok(Cow::Borrowed(row));
    }
    Ok(match archive.source_by_id(&row.key)? {
        Some(source) => Cow::Owned(TranscriptRow {
            path: source.key.path,
            part: source.key.part,
            ..row.clone()
        }),
        None => Cow::Borrowed(row),
    })
}

/// The state of a log that events are of, if they can be used: they are of the latest, or of one that the catalogue has not
/// left behind. While an import is at work, the archive is ahead of the events, and the events of the catalogue.
fn fitting<'v>(
    state: State,
    versions: &'v [Snapshot],
    row: &TranscriptRow,
) -> Option<&'v Snapshot> {
    let latest = versions.last()?;
    let of = versions.iter().find(|it| it.version == state.version)?;
    let is_latest = (state.version, state.read_to) == (latest.version, latest.size);
    let is_known = (state.version, state.read_to) >= (row.version, row.read_to);
    let is_there = state.read_to <= of.size && state.adapters == ADAPTERS;
    (is_there && (is_latest || is_known)).then_some(of)
}

fn source_key(row: &TranscriptRow) -> SourceKey {
    let key = SourceKey::new(row.agent.clone(), row.path.clone());
    match &row.part {
        Some(part) => key.with_part(part),
        None => key,
    }
}

/// The latest that is kept of a transcript's log.
pub(crate) fn snapshot(archive: &Archive, row: &TranscriptRow) -> Result<Snapshot, ImportError> {
    let row = &*located(archive, row)?;
    archive
        .latest(&source_key(row))?
        .ok_or_else(|| ImportError::NotKept(row.path.clone()))
}

/// The bytes that a log is read again from.
pub(crate) enum Bytes<'b> {
    /// A state of it that the archive has.
    Archived(&'b Snapshot),
    /// So many of its own file.
    InPlace(u64),
}

impl Bytes<'_> {
    fn open<'b>(
        &'b self,
        archive: &'b Archive,
        row: &TranscriptRow,
    ) -> io::Result<Box<dyn io::BufRead + 'b>> {
        Ok(match self {
            Self::Archived(snapshot) => Box::new(archive.read(snapshot)),
            Self::InPlace(len) => {
                let file = std::fs::File::open(&row.path)?;
                Box::new(io::BufReader::with_capacity(PIECE, file.take(*len)))
            }
        })
    }
}

/// So much of a file is read at a time.
const PIECE: usize = 256 << 10;

/// Has an adapter read a log again.
pub(crate) fn read_again(
    archive: &Archive,
    row: &TranscriptRow,
    bytes: &Bytes<'_>,
    sink: &mut dyn Sink,
) -> Result<About, ImportError> {
    let refuse = |source| ImportError::Archived {
        path: row.path.clone(),
        source,
    };
    let unknown = || ImportError::Unread(row.path.clone());
    let dialect = row.dialect.as_deref().and_then(quipu_agents::dialect);
    let (family, dialect) = dialect.ok_or_else(unknown)?;
    let origin = Origin {
        path: &row.path,
        part: row.part.as_deref(),
    };
    let reader = family.open(&dialect, &origin, None).ok_or_else(unknown)?;
    let mut feed = Feed::new(dialect.framing, reader);
    let mut from = bytes.open(archive, row).map_err(refuse)?;
    loop {
        let bytes = from.fill_buf().map_err(refuse)?;
        if bytes.is_empty() {
            break;
        }
        let read = bytes.len();
        feed.push(bytes, sink);
        from.consume(read);
    }
    for beside in family.sidecars(&row.path) {
        let of = SourceKey::new(row.agent.clone(), beside.clone()).with_part(BESIDE);
        if let Some(kept) = archive.latest(&of)? {
            let mut bytes = Vec::new();
            archive
                .read(&kept)
                .read_to_end(&mut bytes)
                .map_err(refuse)?;
            let name = beside.file_name().unwrap_or_default().to_string_lossy();
            feed.sidecar(&name, &bytes, sink);
        }
    }
    let problem = feed.finish(sink).err();
    Ok(About::new(&feed, problem.as_ref()))
}

/// Whose log a snapshot is.
pub(crate) fn identify(
    archive: &Archive,
    snapshot: &Snapshot,
) -> io::Result<Option<(&'static dyn Family, Dialect)>> {
    let mut head = Vec::new();
    archive
        .read(snapshot)
        .take(HEAD as u64)
        .read_to_end(&mut head)?;
    let whole = snapshot.size <= head.len() as u64;
    let found = quipu_agents::identify(&head, whole);
    let document = snapshot.size <= Limits::default().document as u64;
    if found.is_some() || whole || !document {
        return Ok(found);
    }
    let mut all = Vec::new();
    archive.read(snapshot).read_to_end(&mut all)?;
    Ok(quipu_agents::identify(&all, true))
}
