//! One pass over the bytes of a log.

use std::collections::BTreeMap;

use quipu_agents::{
    About, Checkpoint, Dialect, Dropped, Entry, Feed, Framing, Ledger, Origin, Position, Record,
    Session, Sink, Summary, state,
};
use quipu_model::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};

use super::keep::{Input, Keeper};
use crate::archive::Snapshot;
use crate::blobs::Blobs;
use crate::catalogue::{ADAPTERS, Passed, Reading};
use crate::events::{State, Writer};
use crate::hide::Hide;
use crate::search::indexing::Scribe;

/// A reading, and what was known before it.
pub(super) struct PassReading {
    pub(super) reading: Reading,
    pub(super) before: Before,
    pub(super) read_bytes: u64,
    pub(super) new_bytes: u64,
    /// How many events the log has, and how many of those that it had are known to be what they were.
    pub(super) reach: u64,
    pub(super) holds: u64,
}

impl std::ops::Deref for PassReading {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        &self.reading
    }
}

/// What was counted before.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) records: u64,
    pub(super) mapped: u64,
    pub(super) noted: u64,
    pub(super) events: u64,
    pub(super) notes: u64,
    pub(super) dropped: BTreeMap<Dropped, u64>,
}

/// Where reading of a log stopped.
#[derive(Serialize, Deserialize)]
struct Stopped {
    dialect: String,
    feed: Checkpoint,
    summary: Summary,
}

/// One pass over a log.
pub(super) struct Pass<'k> {
    feed: Option<Feed>,
    dialect: Option<Dialect>,
    from: u64,
    before: Before,
    taker: Taker<'k>,
}

impl<'k> Pass<'k> {
    /// Goes on where reading stopped, if that was in the same version of the log.
    pub(super) fn new(
        keeper: &'k Keeper<'_>,
        input: &Input<'_>,
        key: &str,
        version: Option<u32>,
    ) -> Self {
        let mut pass = Self {
            feed: None,
            dialect: None,
            from: 0,
            before: Before::default(),
            taker: Taker {
                summary: Summary::default(),
                hide: Hide::new(&keeper.guard),
                blobs: keeper.blobs,
                kept: Vec::new(),
                failed: None,
                scribe: None,
                events: None,
                recorded: input.recorded,
            },
        };
        let Some((family, dialect)) = input.dialect else {
            return pass;
        };
        pass.dialect = Some(dialect);
        let origin = Origin {
            path: input.path,
            part: input.part,
        };
        let stopped = version.and_then(|version| keeper.stopped(key, version));
        if let Some(stopped) = stopped
            && stopped.dialect == dialect.name
            && let Some(reader) = family.open(&dialect, &origin, Some(stopped.feed.reader_state()))
            && let Some(version) = version
            && let last = stopped.feed.last_seq()
            && let Some(events) = resumed(keeper, input, key, last, version)
        {
            pass.from = stopped.feed.offset;
            let feed = Feed::resume(stopped.feed, reader);
            pass.before = Before::of(feed.ledger(), &stopped.summary);
            pass.taker.summary = stopped.summary;
            pass.feed = Some(feed);
            pass.taker.scribe = keeper.scribe(input, false);
            pass.taker.events = events;
            return pass;
        }
        if let Some(reader) = family.open(&dialect, &origin, None) {
            pass.feed = Some(Feed::new(dialect.framing, reader));
            pass.taker.scribe = keeper.scribe(input, true);
            if !input.recorded {
                match Writer::new(&keeper.events, key) {
                    Ok(events) => pass.taker.events = Some(events),
                    Err(error) => pass.taker.failed = Some(no_events(&error)),
                }
            }
        }
        pass
    }

    /// Where reading begins.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Some(feed) = &mut self.feed
            && !bytes.is_empty()
        {
            feed.push(bytes, &mut self.taker);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a reading is made of")]
    pub(super) fn done(
        mut self,
        input: &Input<'_>,
        key: &str,
        brand: &str,
        taken: &Taken,
        sidecars: &[(String, Vec<u8>)],
        read_bytes: u64,
        new_bytes: u64,
    ) -> PassReading {
        let mut problem;
        let mut checkpoint = None;
        let (mut ledger, mut session) = (Ledger::default(), Session::default());
        let mut holds = 0;
        match &mut self.feed {
            None => problem = Some("kept, but no adapter knows this format".to_owned()),
            Some(feed) => {
                let dialect = self.dialect.map_or("", |dialect| dialect.name);
                let resumable = self.dialect.is_some_and(|d| d.framing == Framing::Lines);
                let stopped = resumable.then(|| feed.checkpoint()).flatten();
                let stopped = stopped.filter(|stopped| self.taker.hide.may_keep(stopped));
                checkpoint = stopped.map(|feed| {
                    state::bytes(&Stopped {
                        dialect: dialect.to_owned(),
                        feed,
                        summary: self.taker.summary.clone(),
                    })
                });
                if let Some(scribe) = &mut self.taker.scribe
                    && resumable
                {
                    scribe.provisional();
                }
                for (name, bytes) in sidecars {
                    feed.sidecar(name, bytes, &mut self.taker);
                }
                let error = feed.finish(&mut self.taker).err();
                problem = error.as_ref().map(ToString::to_string);
                if let Some(events) = self.taker.events.take() {
                    holds = events.holds();
                    let state = State {
                        version: taken.version,
                        read_to: taken.size,
                        adapters: ADAPTERS,
                    };
                    let about = About::new(feed, error.as_ref());
                    if let Err(error) = events.finish(state, about) {
                        self.taker.failed = Some(no_events(&error));
                    }
                }
                ledger = feed.ledger().clone();
                session = feed.session().clone();
            }
        }
        if input.by_place
            && let Some(dialect) = self.dialect
        {
            ledger.drift.known_by_place(dialect.name);
        }
        self.taker.hide.session(&mut session);
        self.taker.hide.ledger(&mut ledger);
        let mut passes = Passed::default();
        if let Some(mut scribe) = self.taker.scribe.take() {
            if let Some(title) = &session.title {
                scribe.title(title, self.taker.summary.first_at);
            }
            passes = scribe.finish();
        }
        if let Some(failed) = self.taker.failed {
            problem = Some(failed);
        }
        let mut summary = self.taker.summary;
        if input.recorded {
            // A message of several blocks is one event, and what a killed recorder left at the end is none.
            let torn = ledger.dropped.get(&Dropped::TornTail).copied();
            (summary.events, summary.notes) = (ledger.records - torn.unwrap_or(0), 0);
            (self.before.events, self.before.notes) = (self.before.records, 0);
        }
        let problem = problem.map(|what| self.taker.hide.text(&what, None).into_owned());
        let reading = Reading {
            key: key.to_owned(),
            agent: brand.to_owned(),
            dialect: self.dialect.map(|dialect| dialect.name),
            path: input.path.to_owned(),
            part: input.part.map(str::to_owned),
            stamp: input.stamp.clone(),
            version: taken.version,
            read_to: taken.size,
            manifest: taken.manifest,
            checkpoint,
            ledger,
            session,
            summary,
            blobs: self.taker.kept,
            first_modified: taken.first_modified,
            passes,
            problem,
            received: None,
        };
        PassReading {
            before: self.before,
            read_bytes,
            new_bytes,
            reach: reading.ledger.seq,
            holds,
            reading,
        }
    }
}

impl Keeper<'_> {
    fn scribe(&self, input: &Input<'_>, whole: bool) -> Option<Scribe<'_>> {
        let indexing = self.indexing.as_ref()?;
        Some(indexing.scribe(&input.key.agent, whole))
    }

    fn stopped(&self, key: &str, version: u32) -> Option<Stopped> {
        let (of, bytes) = self.catalogue.checkpoint(key).ok()??;
        if of != version {
            return None;
        }
        state::load(&bytes)
    }
}

impl Before {
    fn of(ledger: &Ledger, summary: &Summary) -> Self {
        Self {
            records: ledger.records,
            mapped: ledger.mapped,
            noted: ledger.noted,
            events: summary.events,
            notes: summary.notes,
            dropped: ledger.dropped.clone(),
        }
    }
}

/// Sums up what is read, and keeps what stands outside of it.
struct Taker<'k> {
    summary: Summary,
    hide: Hide,
    blobs: &'k Blobs,
    /// The blobs that were seen.
    kept: Vec<String>,
    failed: Option<String>,
    scribe: Option<Scribe<'k>>,
    events: Option<Writer>,
    /// Whether the log is that of a recorded run, whose lines are numbered: line N has event N.
    recorded: bool,
}

/// The event log, behind what was read of it; `None` when that is not there. A run has none but its own file.
#[expect(
    clippy::option_option,
    reason = "it may be there, and it may be needed"
)]
fn resumed(
    keeper: &Keeper<'_>,
    input: &Input<'_>,
    key: &str,
    last: u64,
    version: u32,
) -> Option<Option<Writer>> {
    if input.recorded {
        return Some(None);
    }
    Writer::resume(&keeper.events, key, last, version).map(Some)
}

/// The bytes that a pass was over.
pub(super) struct Taken {
    /// Their version in the archive; 0 for those that are not in it.
    pub(super) version: u32,
    pub(super) size: u64,
    /// How long the manifest is up to that version.
    pub(super) manifest: Option<u64>,
    pub(super) first_modified: Option<i64>,
}

impl Taken {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        Self {
            version: snapshot.version,
            size: snapshot.size,
            manifest: Some(snapshot.manifest_end()),
            first_modified: super::keep::first_modified(snapshot),
        }
    }
}

/// Why the events of a log are not kept, in a sentence.
fn no_events(error: &std::io::Error) -> String {
    format!("its events could not be kept: {error}; they are made again when they are asked for")
}

impl Sink for Taker<'_> {
    fn record(&mut self, record: Option<Record<'_>>) {
        if let Some(events) = &mut self.events {
            events.record(record);
        }
    }

    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        // Like the archive, the event log has what was there.
        if let Some(events) = &mut self.events {
            events.take(seq, at, position, entry);
        }
        for attachment in &entry.attachments {
            // What stood outside of a log may be kept all the same: the recorder puts it beside the run.
            if let Ok(id) = attachment.sha256.parse()
                && self.blobs.path(&id).is_file()
            {
                self.kept.push(id.to_string());
            }
        }
        let entry = self.hide.entry(entry);
        self.hide.observe(&mut self.summary, &entry);
        if let Some(scribe) = &mut self.scribe {
            let seq = if self.recorded { position.line } else { seq };
            scribe.entry(seq, at, position, &entry);
        }
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) {
        match self.blobs.put(bytes) {
            Ok(id) => self.kept.push(id.to_string()),
            Err(error) => self.failed = Some(error.to_string()),
        }
    }
}
