//! Reading a transcript back from the archive.

use std::borrow::Cow;
use std::io::{self, BufRead as _, Read as _};

use quipu_agents::{
    Collect, Dialect, Entry, Family, Feed, FeedError, HEAD, Limits, Origin, Position, Session, Sink,
};
use quipu_model::{Attachment, Event, Timestamp};

use crate::archive::{Archive, Snapshot, SourceKey};
use crate::catalogue::TranscriptRow;
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
    pub problem: Option<FeedError>,
}

impl Store {
    /// Reads a transcript from what was kept of its log.
    pub fn read(&self, row: TranscriptRow) -> Result<Transcript, ImportError> {
        let run_id = quipu_agents::run_id(&row.run_id);
        let mut events = Collect::new(run_id, &row.path.to_string_lossy());
        let (feed, problem) = feed_through(self, &row, &mut events)?;
        events.mark(feed.ledger());
        Ok(Transcript {
            session: feed.session().clone(),
            events: events.events,
            problem,
            row,
        })
    }
}

/// Reads a transcript again, into a sink.
pub(crate) fn feed(
    store: &Store,
    row: &TranscriptRow,
    sink: &mut dyn Sink,
) -> Result<Feed, ImportError> {
    feed_through(store, row, sink).map(|(feed, _)| feed)
}

fn feed_through(
    store: &Store,
    row: &TranscriptRow,
    sink: &mut dyn Sink,
) -> Result<(Feed, Option<FeedError>), ImportError> {
    let mut sink = Through(sink);
    feed_until(store.archive(), row, &mut sink, |_| false)
}

struct Through<'s>(&'s mut dyn Sink);

impl Sink for Through<'_> {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.0.entry(seq, at, position, entry);
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.0.blob(attachment, bytes);
    }
}

/// A transcript with the address of its log as the archive has it: the catalogue masks secrets in it.
pub(crate) fn located<'r>(
    archive: &Archive,
    row: &'r TranscriptRow,
) -> Result<Cow<'r, TranscriptRow>, ImportError> {
    if !is_masked(&row.path, row.part.as_deref()) {
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

/// The latest that is kept of a transcript's log.
pub(crate) fn snapshot(archive: &Archive, row: &TranscriptRow) -> Result<Snapshot, ImportError> {
    let row = &*located(archive, row)?;
    let mut key = SourceKey::new(row.agent.clone(), row.path.clone());
    if let Some(part) = &row.part {
        key = key.with_part(part);
    }
    let nothing = || ImportError::Home {
        path: row.path.clone(),
        source: io::Error::other("nothing of it is in the archive"),
    };
    archive.latest(&key)?.ok_or_else(nothing)
}

/// Reads a transcript again, into a sink, as far as it is wanted.
pub(crate) fn feed_until<S: Sink>(
    archive: &Archive,
    row: &TranscriptRow,
    sink: &mut S,
    enough: impl Fn(&S) -> bool,
) -> Result<(Feed, Option<FeedError>), ImportError> {
    let row = &*located(archive, row)?;
    let refuse = |source| ImportError::Home {
        path: row.path.clone(),
        source,
    };
    let snapshot = snapshot(archive, row)?;
    let dialect = row.dialect.as_deref().and_then(quipu_agents::dialect);
    let (family, dialect) =
        dialect.ok_or_else(|| refuse(io::Error::other("no adapter knows how it reads")))?;
    let origin = Origin {
        path: &row.path,
        part: row.part.as_deref(),
    };
    let reader = family
        .open(&dialect, &origin, None)
        .ok_or_else(|| refuse(io::Error::other("no adapter reads it")))?;
    let mut feed = Feed::new(dialect.framing, reader);
    let mut from = archive.read(&snapshot);
    loop {
        let bytes = from.fill_buf().map_err(refuse)?;
        if bytes.is_empty() {
            break;
        }
        let read = bytes.len();
        feed.push(bytes, sink);
        from.consume(read);
        if enough(sink) {
            return Ok((feed, None));
        }
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
    Ok((feed, problem))
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
