//! Keeping and reading one log.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use quipu_agents::{
    Checkpoint, Dialect, Dropped, Entry, FAMILIES, Family, Feed, Framing, GatherError, Gathered,
    HEAD, Head, Ledger, Limits, Origin, Position, Session, Sink, Summary, is_credential, state,
};
use quipu_model::{Attachment, Timestamp};
use serde::{Deserialize, Serialize};

use super::find::{self, Candidate, Found};
use super::report::{Problem, Report};
use super::{Options, Progress, Store, database};
use crate::archive::{self, ArchiveError, Prefix, Snapshot, SnapshotWriter, SourceKey};
use crate::blobs::Blobs;
use crate::catalogue::{Reading, SourceRow, Stamp};

/// How much is read at a time.
const PIECE: usize = 1 << 20;

/// The longest document beside a log that is looked at.
const SIDECAR: u64 = 1 << 20;

/// What is to be done.
pub(super) enum Job {
    /// A file, or everything in a database or tree.
    Found(Candidate),
    /// What the archive has of a source.
    Archived(archive::Source),
}

impl Job {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Found(candidate) => candidate.stamp.size,
            Self::Archived(source) => source.versions.last().map_or(0, |last| last.size),
        }
    }

    pub(super) fn brand(&self) -> Option<&str> {
        match self {
            Self::Found(candidate) => candidate.place.map(|place| place.0),
            Self::Archived(source) => Some(&source.key.agent),
        }
    }

    /// What the archive has of a log. What is only kept is not read.
    pub(super) fn of_archive(source: archive::Source, agents: &[String]) -> Option<Self> {
        let last = source.versions.last()?;
        let kept_only = last.meta.as_ref().is_some_and(|meta| meta.contains_key("keep"));
        let wanted = find::wanted(agents, &source.key.agent);
        (wanted && !kept_only).then_some(Self::Archived(source))
    }
}

/// What was done.
pub(super) enum Done {
    /// A log was kept and read.
    Read(Box<Read1>),
    /// A file was kept.
    Kept { bytes: u64, new_bytes: u64 },
    /// Not the log of an agent that is known.
    Unknown { path: PathBuf },
    /// It could not be done.
    Failed(Problem),
}

/// A reading, and what was known before it.
pub(super) struct Read1 {
    reading: Reading,
    pub(super) before: Before,
    pub(super) read_bytes: u64,
    pub(super) new_bytes: u64,
}

impl std::ops::Deref for Read1 {
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

/// Keeps and reads logs; shared by threads.
pub(super) struct Keeper<'s> {
    archive: &'s archive::Archive,
    blobs: &'s Blobs,
    temporary: PathBuf,
    now: Timestamp,
    agents: Vec<String>,
    /// Where reading of each log that is to be read stopped.
    stopped: std::sync::Mutex<HashMap<String, (u32, Vec<u8>)>>,
    catalogue: std::sync::Mutex<crate::catalogue::Catalogue>,
}

/// What a log is read from.
struct Input<'i> {
    key: SourceKey,
    place: Option<(&'static str, &'static dyn Family)>,
    path: &'i Path,
    part: Option<&'i str>,
    stamp: Stamp,
    /// How it reads, where that is known.
    dialect: Option<(&'static dyn Family, Dialect)>,
}

impl<'s> Keeper<'s> {
    pub(super) fn new(store: &'s Store, options: &Options) -> Result<Self, super::ImportError> {
        Ok(Self {
            archive: &store.archive,
            blobs: &store.blobs,
            temporary: store.home.join("tmp"),
            now: options.now,
            agents: options.agents.clone(),
            stopped: std::sync::Mutex::default(),
            // Threads look up where they stopped; the importing thread has a connection of its own.
            catalogue: std::sync::Mutex::new(crate::catalogue::Catalogue::open(
                store.catalogue.path(),
            )?),
        })
    }

    /// Decides whether a candidate has to be looked at.
    pub(super) fn plan(
        &self,
        mut candidate: Candidate,
        known: &HashMap<PathBuf, Vec<SourceRow>>,
        jobs: &mut Vec<Job>,
        report: &mut Report,
    ) {
        if let Some((_, family)) = candidate.place
            && candidate.found == Found::Log
        {
            candidate.stamp.part = sidecar_stamp(family, &candidate.path);
        }
        if candidate.found == Found::Many && candidate.path.is_file() {
            candidate.stamp = database::stamp(&candidate.path, candidate.stamp);
        }
        let path = plain_path(&candidate.path);
        let rows = known.get(&path).map_or(&[][..], Vec::as_slice);
        let seen = rows.iter().find(|row| match candidate.found {
            Found::Many => row.part.as_deref() == Some(""),
            Found::Log | Found::Keep => row.part.is_none(),
        });
        if seen.is_some_and(|row| row.unchanged(&candidate.stamp)) {
            report.unchanged += 1;
        } else {
            jobs.push(Job::Found(candidate));
        }
    }

    /// Does what is to be done.
    pub(super) fn work(&self, job: &Job, progress: &Progress) -> Vec<Done> {
        match job {
            Job::Archived(source) => vec![self.archived(source, progress)],
            Job::Found(candidate) => match candidate.found {
                Found::Log => self.log(candidate, progress),
                Found::Keep => vec![self.keep(candidate, progress)],
                Found::Many => self.many(candidate, progress),
            },
        }
    }

    fn log(&self, candidate: &Candidate, progress: &Progress) -> Vec<Done> {
        let path = &candidate.path;
        match self.try_log(candidate, progress) {
            Ok(done) => done,
            Err(error) => vec![Done::Failed(Problem::new(path, error.to_string()))],
        }
    }

    fn try_log(&self, candidate: &Candidate, progress: &Progress) -> Result<Vec<Done>, KeepError> {
        let path = &candidate.path;
        let mut file = File::open(path)?;
        if database::is_database(&mut file)? {
            return Ok(self.many(candidate, progress));
        }
        let mut file = if path.extension().is_some_and(|ending| ending == "zst") {
            self.unpacked(file)?
        } else {
            file
        };
        let metadata = file.metadata()?;
        let stamp = Stamp {
            part: candidate.stamp.part.clone(),
            ..find::stamp(&fs::metadata(path)?)
        };
        let size = metadata.len();
        let plain = plain_path(path);
        let sniffed = self.sniff(&mut file, size)?;
        let brand = match (candidate.place, sniffed) {
            (Some((brand, place)), Some((family, _))) if place.name() == family.name() => brand,
            (_, Some((_, dialect))) => dialect.brand,
            (Some((brand, _)), None) => brand,
            (None, None) => return Ok(vec![Done::Unknown { path: path.clone() }]),
        };
        if !find::wanted(&self.agents, brand) {
            return Ok(Vec::new());
        }
        let input = Input {
            key: SourceKey::new(brand, plain.clone()),
            place: candidate.place,
            path: &plain,
            part: None,
            stamp,
            dialect: sniffed,
        };
        let mut done = Vec::new();
        let mut sidecars = Vec::new();
        if let Some((family, _)) = sniffed {
            for beside in family.sidecars(path) {
                if let Some((bytes, kept)) = self.sidecar(brand, &beside)? {
                    let name = beside.file_name().unwrap_or_default();
                    sidecars.push((name.to_string_lossy().into_owned(), bytes));
                    done.extend(kept);
                }
            }
        }
        done.push(Done::Read(Box::new(
            self.read(&input, &mut file, size, brand, &sidecars, progress)?,
        )));
        Ok(done)
    }

    /// A compressed log as a plain file that nobody else sees.
    fn unpacked(&self, file: File) -> Result<File, KeepError> {
        super::make_private(&self.temporary)?;
        let mut plain = tempfile::tempfile_in(&self.temporary)?;
        let mut decoder = zstd::Decoder::new(file)?;
        decoder.window_log_max(27)?;
        io::copy(&mut decoder, &mut plain)?;
        plain.seek(SeekFrom::Start(0))?;
        Ok(plain)
    }

    /// Whose log it is.
    fn sniff(
        &self,
        file: &mut File,
        size: u64,
    ) -> Result<Option<(&'static dyn Family, Dialect)>, KeepError> {
        let mut head = vec![0; HEAD.min(usize::try_from(size).unwrap_or(HEAD))];
        file.seek(SeekFrom::Start(0))?;
        let read = read_full(file, &mut head)?;
        head.truncate(read);
        let whole = size <= read as u64;
        let found = quipu_agents::identify(&head, whole);
        let limits = Limits::default();
        let begins = head.trim_ascii_start().first().copied();
        let could_be_document = !whole
            && matches!(begins, Some(b'{' | b'['))
            && size <= limits.document as u64
            && !first_line_is_whole(&head);
        if found.is_some() || !could_be_document {
            return Ok(found);
        }
        file.seek(SeekFrom::Start(0))?;
        let mut all = Vec::new();
        file.take(size).read_to_end(&mut all)?;
        Ok(quipu_agents::identify(&all, true))
    }

    /// Copies a log into the archive and reads it.
    fn read(
        &self,
        input: &Input<'_>,
        file: &mut File,
        size: u64,
        brand: &str,
        sidecars: &[(String, Vec<u8>)],
        progress: &Progress,
    ) -> Result<Read1, KeepError> {
        let kept = self.archive.latest(&input.key)?;
        let prefix = match &kept {
            Some(kept) => Some(kept.matches_prefix(&mut *file)?),
            None => None,
        };
        let (mut writer, same) = match (&kept, prefix) {
            (Some(kept), Some(Prefix::Same)) if kept.size == size => (None, Some(kept)),
            (Some(kept), Some(Prefix::Same)) => (Some(self.archive.grow(kept)?), Some(kept)),
            (Some(kept), _) => (Some(self.archive.rewrite(kept)?), None),
            (None, _) => (Some(self.archive.begin(&input.key)?), None),
        };
        let key = input.key.id().to_string();
        let mut reading = Pass::new(self, input, &key, same.map(|kept| kept.version));
        let from = same.map_or(0, |kept| kept.size);
        let resumed = reading.from();
        let start = from.min(resumed);
        progress.bytes_done.fetch_add(start, Ordering::Relaxed);
        file.seek(SeekFrom::Start(start))?;
        let mut at = start;
        let mut piece = vec![0; PIECE];
        while at < size {
            let most = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
            let read = file.read(&mut piece[..most]);
            let read = match read {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let bytes = &piece[..read];
            if let Some(writer) = &mut writer {
                writer.write(behind(bytes, at, from))?;
            }
            reading.push(behind(bytes, at, resumed));
            at += read as u64;
            progress.bytes_done.fetch_add(read as u64, Ordering::Relaxed);
        }
        let snapshot = self.finish(writer, same, &input.stamp, false)?;
        let new_bytes = snapshot.size.saturating_sub(from);
        Ok(reading.done(input, &key, brand, &snapshot, sidecars, at - start, new_bytes))
    }

    fn finish(
        &self,
        writer: Option<SnapshotWriter>,
        same: Option<&Snapshot>,
        stamp: &Stamp,
        keep_only: bool,
    ) -> Result<Snapshot, KeepError> {
        let Some(writer) = writer else {
            return same
                .cloned()
                .ok_or_else(|| io::Error::other("nothing to keep").into());
        };
        let modified = stamp
            .modified
            .and_then(|nanos| Timestamp::from_nanosecond(i128::from(nanos)).ok());
        let meta = keep_only.then(|| {
            let mut meta = archive::Meta::new();
            meta.insert("keep".to_owned(), true.into());
            meta
        });
        Ok(writer.finish(self.now, modified, meta)?)
    }

    /// Keeps a file without reading it.
    fn keep(&self, candidate: &Candidate, progress: &Progress) -> Done {
        let brand = candidate.place.map_or("unknown", |place| place.0);
        match self.try_keep(brand, &candidate.path) {
            Ok((bytes, new_bytes)) => {
                progress.bytes_done.fetch_add(bytes, Ordering::Relaxed);
                Done::Kept { bytes, new_bytes }
            }
            Err(error) => Done::Failed(Problem::new(&candidate.path, error.to_string())),
        }
    }

    fn try_keep(&self, brand: &str, path: &Path) -> Result<(u64, u64), KeepError> {
        let mut file = File::open(path)?;
        let stamp = find::stamp(&file.metadata()?);
        let key = SourceKey::new(brand, path);
        let kept = self.archive.latest(&key)?;
        let same = match &kept {
            Some(kept) => kept.matches_prefix(&mut file)? == Prefix::Same,
            None => false,
        };
        let (mut writer, from) = match &kept {
            Some(kept) if same && kept.size == stamp.size => return Ok((stamp.size, 0)),
            Some(kept) if same => (self.archive.grow(kept)?, kept.size),
            Some(kept) => (self.archive.rewrite(kept)?, 0),
            None => (self.archive.begin(&key)?, 0),
        };
        file.seek(SeekFrom::Start(from))?;
        let mut left = (&mut file).take(stamp.size - from);
        let mut piece = vec![0; PIECE.min(usize::try_from(stamp.size).unwrap_or(PIECE))];
        loop {
            let read = left.read(&mut piece)?;
            if read == 0 {
                break;
            }
            writer.write(&piece[..read])?;
        }
        let snapshot = self.finish(Some(writer), None, &stamp, true)?;
        Ok((stamp.size, snapshot.size.saturating_sub(from)))
    }

    /// A document beside a log: its bytes, and that it was kept.
    fn sidecar(
        &self,
        brand: &str,
        path: &Path,
    ) -> Result<Option<(Vec<u8>, Option<Done>)>, KeepError> {
        if is_credential(path) {
            return Ok(None);
        }
        let bytes = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= SIDECAR => fs::read(path)?,
            _ => return Ok(None),
        };
        let (size, new_bytes) = self.try_keep(brand, path)?;
        let kept = (new_bytes > 0).then_some(Done::Kept {
            bytes: size,
            new_bytes,
        });
        Ok(Some((bytes, kept)))
    }

    /// Takes sessions out of something that holds many.
    fn many(&self, candidate: &Candidate, progress: &Progress) -> Vec<Done> {
        match self.try_many(candidate, progress) {
            Ok(done) => done,
            Err(error) => {
                let path = &candidate.path;
                vec![Done::Failed(Problem::new(path, error.to_string()))]
            }
        }
    }

    fn try_many(&self, candidate: &Candidate, progress: &Progress) -> Result<Vec<Done>, KeepError> {
        let path = &candidate.path;
        if path.is_dir() {
            let from = Gathered::Tree(path);
            return self.parts(candidate, candidate.place, &from, progress);
        }
        let mut file = File::open(path)?;
        if !database::is_database(&mut file)? {
            let from = Gathered::File(path);
            return self.parts(candidate, candidate.place, &from, progress);
        }
        drop(file);
        super::make_private(&self.temporary)?;
        let copy = database::Copy::of(path, &self.temporary)?;
        let tables = quipu_agents::rows::tables(copy.connection())?;
        let family = Head::of_database(&tables, |head| {
            FAMILIES
                .iter()
                .find(|family| family.sniff(head).is_some())
                .copied()
        });
        let place = match (candidate.place, family) {
            (Some((brand, place)), Some(family)) if place.name() == family.name() => {
                Some((brand, family))
            }
            (_, Some(family)) => {
                let brand = family.gather().map_or("", |gather| gather.dialect().brand);
                Some((brand, family))
            }
            (Some(place), None) => Some(place),
            (None, None) => return Ok(vec![Done::Unknown { path: path.clone() }]),
        };
        let from = Gathered::Database(copy.connection());
        self.parts(candidate, place, &from, progress)
    }

    fn parts(
        &self,
        candidate: &Candidate,
        place: Option<(&'static str, &'static dyn Family)>,
        from: &Gathered<'_>,
        progress: &Progress,
    ) -> Result<Vec<Done>, KeepError> {
        let path = &candidate.path;
        let Some((brand, family)) = place else {
            return Ok(vec![Done::Unknown { path: path.clone() }]);
        };
        let Some(gather) = family.gather() else {
            return Ok(vec![Done::Unknown { path: path.clone() }]);
        };
        if !find::wanted(&self.agents, brand) {
            return Ok(Vec::new());
        }
        let known: HashMap<String, SourceRow> = {
            let catalogue = self.catalogue.lock().map_err(|_| poisoned())?;
            let rows = catalogue.sources_at(path)?;
            rows.into_iter()
                .filter_map(|row| Some((row.part.clone()?, row)))
                .collect()
        };
        let mut done = Vec::new();
        for part in gather.parts(from)? {
            let stamp = Stamp {
                part: Some(part.stamp.clone()),
                ..Stamp::default()
            };
            let unchanged = known
                .get(&part.id)
                .is_some_and(|row| row.stamp.part == stamp.part && row.is_current());
            if unchanged || progress.stop.load(Ordering::Relaxed) {
                continue;
            }
            let mut file = tempfile::tempfile_in(&self.temporary_directory()?)?;
            {
                let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut file);
                gather.write(from, &part.id, &mut buffered)?;
                io::Write::flush(&mut buffered)?;
            }
            let size = file.metadata()?.len();
            let input = Input {
                key: SourceKey::new(brand, path.clone()).with_part(&part.id),
                place,
                path,
                part: Some(&part.id),
                stamp,
                dialect: Some((family, gather.dialect())),
            };
            match self.read(&input, &mut file, size, brand, &[], progress) {
                Ok(read) => done.push(Done::Read(Box::new(read))),
                Err(error) => done.push(Done::Failed(Problem::new(path, error.to_string()))),
            }
        }
        // That all of it was looked at: the next time it need not be, unless it has changed.
        if path.is_file() {
            done.push(Done::Read(Box::new(container(candidate, brand))));
        }
        Ok(done)
    }

    fn temporary_directory(&self) -> Result<&Path, KeepError> {
        super::make_private(&self.temporary)?;
        Ok(&self.temporary)
    }

    /// Reads what the archive has of a source.
    fn archived(&self, source: &archive::Source, progress: &Progress) -> Done {
        let key = &source.key;
        match self.try_archived(source, progress) {
            Ok(read) => Done::Read(Box::new(read)),
            Err(error) => Done::Failed(Problem::new(&key.path, error.to_string())),
        }
    }

    fn try_archived(
        &self,
        source: &archive::Source,
        progress: &Progress,
    ) -> Result<Read1, KeepError> {
        let Some(snapshot) = source.versions.last() else {
            return Err(io::Error::other("nothing was kept").into());
        };
        let key = &source.key;
        let nanos = snapshot
            .modified
            .and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        let stamp = Stamp {
            size: snapshot.size,
            modified: nanos,
            ..Stamp::default()
        };
        let found = crate::transcript::identify(self.archive, snapshot)?;
        let input = Input {
            key: key.clone(),
            place: None,
            path: &key.path,
            part: key.part.as_deref(),
            stamp,
            dialect: found,
        };
        let mut sidecars = Vec::new();
        if let Some((family, _)) = found {
            for beside in family.sidecars(&key.path) {
                let of = SourceKey::new(key.agent.clone(), beside.clone());
                if let Some(kept) = self.archive.latest(&of)? {
                    let mut bytes = Vec::new();
                    self.archive.read(&kept).take(SIDECAR).read_to_end(&mut bytes)?;
                    let name = beside.file_name().unwrap_or_default();
                    sidecars.push((name.to_string_lossy().into_owned(), bytes));
                }
            }
        }
        let id = key.id().to_string();
        let mut reading = Pass::new(self, &input, &id, None);
        let mut from = self.archive.read(snapshot);
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece)?;
            if read == 0 {
                break;
            }
            reading.push(&piece[..read]);
            progress.bytes_done.fetch_add(read as u64, Ordering::Relaxed);
        }
        let size = snapshot.size;
        Ok(reading.done(&input, &id, &key.agent, snapshot, &sidecars, size, 0))
    }
}

/// One pass over a log.
struct Pass<'k> {
    feed: Option<Feed>,
    dialect: Option<Dialect>,
    from: u64,
    before: Before,
    taker: Taker<'k>,
}

impl<'k> Pass<'k> {
    /// Goes on where reading stopped, if that was in the same version of the log.
    fn new(keeper: &'k Keeper<'_>, input: &Input<'_>, key: &str, version: Option<u32>) -> Self {
        let mut pass = Self {
            feed: None,
            dialect: None,
            from: 0,
            before: Before::default(),
            taker: Taker {
                summary: Summary::default(),
                blobs: keeper.blobs,
                failed: None,
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
        {
            pass.from = stopped.feed.offset;
            let feed = Feed::resume(stopped.feed, reader);
            pass.before = Before::of(feed.ledger(), &stopped.summary);
            pass.taker.summary = stopped.summary;
            pass.feed = Some(feed);
            return pass;
        }
        if let Some(reader) = family.open(&dialect, &origin, None) {
            pass.feed = Some(Feed::new(dialect.framing, reader));
        }
        pass
    }

    /// Where reading begins.
    fn from(&self) -> u64 {
        self.from
    }

    fn push(&mut self, bytes: &[u8]) {
        if let Some(feed) = &mut self.feed
            && !bytes.is_empty()
        {
            feed.push(bytes, &mut self.taker);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what a reading is made of")]
    fn done(
        mut self,
        input: &Input<'_>,
        key: &str,
        brand: &str,
        snapshot: &Snapshot,
        sidecars: &[(String, Vec<u8>)],
        read_bytes: u64,
        new_bytes: u64,
    ) -> Read1 {
        let mut problem = None;
        let mut checkpoint = None;
        let (mut ledger, mut session) = (Ledger::default(), Session::default());
        match &mut self.feed {
            None => problem = Some("kept, but no adapter knows this format".to_owned()),
            Some(feed) => {
                let dialect = self.dialect.map_or("", |dialect| dialect.name);
                let resumable = self.dialect.is_some_and(|d| d.framing == Framing::Lines);
                checkpoint = resumable.then(|| feed.checkpoint()).flatten().map(|feed| {
                    state::save(&Stopped {
                        dialect: dialect.to_owned(),
                        feed,
                        summary: self.taker.summary.clone(),
                    })
                });
                for (name, bytes) in sidecars {
                    feed.sidecar(name, bytes, &mut self.taker);
                }
                if let Err(error) = feed.finish(&mut self.taker) {
                    problem = Some(error.to_string());
                }
                ledger = feed.ledger().clone();
                session = feed.session().clone();
            }
        }
        if let Some(failed) = self.taker.failed {
            problem = Some(failed);
        }
        let reading = Reading {
            key: key.to_owned(),
            agent: brand.to_owned(),
            dialect: self.dialect.map(|dialect| dialect.name),
            path: input.path.to_owned(),
            part: input.part.map(str::to_owned),
            stamp: input.stamp.clone(),
            version: snapshot.version,
            read_to: snapshot.size,
            checkpoint,
            ledger,
            session,
            summary: self.taker.summary,
            problem,
        };
        Read1 {
            reading,
            before: self.before,
            read_bytes,
            new_bytes,
        }
    }
}

impl Keeper<'_> {
    fn stopped(&self, key: &str, version: u32) -> Option<Stopped> {
        let ready = self.stopped.lock().ok()?.remove(key);
        let (of, bytes) = match ready {
            Some(ready) => ready,
            None => self.catalogue.lock().ok()?.checkpoint(key).ok()??,
        };
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
    blobs: &'k Blobs,
    failed: Option<String>,
}

impl Sink for Taker<'_> {
    fn entry(&mut self, _seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        self.summary.observe(entry);
    }

    fn blob(&mut self, _attachment: &Attachment, bytes: &[u8]) {
        if let Err(error) = self.blobs.put(bytes) {
            self.failed = Some(error.to_string());
        }
    }
}

/// The part of a piece that begins at `at` which lies behind `from`.
fn behind(bytes: &[u8], at: u64, from: u64) -> &[u8] {
    let skip = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
    bytes.get(skip..).unwrap_or_default()
}

/// Reads until the buffer is full or nothing is left.
fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Whether the first line is a value of its own.
pub(crate) fn first_line_is_whole(head: &[u8]) -> bool {
    let Some(end) = memchr_newline(head) else {
        return false;
    };
    let line = String::from_utf8_lossy(&head[..end]);
    quipu_model::Json::parse(line.trim()).is_ok()
}

fn memchr_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// The path of a log without the ending of compressed ones: it is the same log.
fn plain_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(ending) if ending == "zst" => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// What stands for the documents beside a log: they may change when the log does not.
fn sidecar_stamp(family: &dyn Family, log: &Path) -> Option<String> {
    let mut stamp = String::new();
    for beside in family.sidecars(log) {
        if let Ok(metadata) = fs::metadata(&beside) {
            let now = find::stamp(&metadata);
            stamp.push_str(&format!("{}:{};", now.size, now.modified.unwrap_or(0)));
        }
    }
    (!stamp.is_empty()).then_some(stamp)
}

/// A reading that says that a database was looked at as a whole.
fn container(candidate: &Candidate, brand: &str) -> Read1 {
    let key = SourceKey::new(brand, candidate.path.clone()).with_part("\0all");
    Read1 {
        reading: Reading {
            key: key.id().to_string(),
            agent: brand.to_owned(),
            dialect: None,
            path: candidate.path.clone(),
            part: Some(String::new()),
            stamp: candidate.stamp.clone(),
            version: 0,
            read_to: 0,
            checkpoint: None,
            ledger: Ledger::default(),
            session: Session::default(),
            summary: Summary::default(),
            problem: None,
        },
        before: Before::default(),
        read_bytes: 0,
        new_bytes: 0,
    }
}

fn poisoned() -> io::Error {
    io::Error::other("another thread failed while it used the catalogue")
}

/// Why a log could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Gather(#[from] GatherError),
    #[error(transparent)]
    Catalogue(#[from] crate::catalogue::CatalogueError),
}
