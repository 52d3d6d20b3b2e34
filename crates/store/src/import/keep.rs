//! Keeping and reading one log.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quipu_agents::{Dialect, Family, GatherError, HEAD, Head, Known, Lies, Limits, is_credential};
use quipu_formats::agentlog::LIMITS;
use quipu_model::Timestamp;
use quipu_redact::{Engine, Guard};

use super::find::{self, Candidate, Found};
use super::pass::{Pass, PassReading, Taken};
use super::plan::{BESIDE, Job, plain_path};
use super::report::Problem;
use super::{ImportOptions, Progress, Store, database};
use crate::archive::{self, ArchiveError, Prefix, Snapshot, SnapshotWriter, SourceKey};
use crate::blobs::{self, BlobId, Blobs};
use crate::catalogue::{Catalogue, Reading, Stamp};
use crate::events::Events;
use crate::hide::Hide;
use crate::search::indexing::Indexing;
use crate::traces::Survey;

/// How much is read at a time.
pub(super) const PIECE: usize = 1 << 20;

/// The longest document beside a log that is looked at.
pub(super) const SIDECAR: u64 = 1 << 20;

/// The longest blob beside a trace that is kept.
const BLOB: u64 = 256 << 20;

/// How a trace reads.
const TRACE: &str = "agentlog";

/// How many bytes a compressed log may unpack to. Logs get some ten times smaller, and very dull ones a hundred
/// times; whatever gets thousands of times smaller was made to fill a disk.
fn most_unpacked(packed: u64) -> u64 {
    const ALWAYS: u64 = 64 << 20;
    const NEVER: u64 = 16 << 30;
    packed.saturating_mul(250).clamp(ALWAYS, NEVER)
}

/// A compressed log as a plain file that nobody else sees.
pub(super) fn unpacked(file: &File, temporary: &Path) -> Result<File, KeepError> {
    let packed = file.metadata()?.len();
    let most = most_unpacked(packed);
    let mut plain = tempfile::tempfile_in(temporary)?;
    let mut decoder = zstd::Decoder::new(file)?;
    decoder.window_log_max(27)?;
    if io::copy(&mut decoder.take(most + 1), &mut plain)? > most {
        return Err(KeepError::Bomb { packed, most });
    }
    plain.seek(SeekFrom::Start(0))?;
    Ok(plain)
}

/// What was done.
pub(super) enum Done {
    /// A log was kept and read.
    Read(Box<PassReading>),
    /// A file was kept.
    Kept {
        bytes: u64,
        new_bytes: u64,
        /// What it looked like, where it is to be remembered.
        seen: Option<Box<Reading>>,
    },
    /// Something that holds many sessions was looked at as a whole.
    Looked(Box<Reading>),
    /// A directory of sessions none of which has changed.
    Unchanged,
    /// What is kept of a log cannot be read.
    Damaged { key: String, problem: Problem },
    /// Nothing can be kept any more.
    Stopped(ArchiveError),
    /// Not the log of an agent that is known.
    Unknown { path: PathBuf },
    /// It could not be done.
    Failed(Problem),
}

/// Keeps and reads logs; shared by threads.
pub(super) struct Keeper<'s> {
    pub(super) archive: &'s archive::Archive,
    pub(super) blobs: &'s Blobs,
    pub(super) events: Events,
    pub(super) temporary: PathBuf,
    now: Timestamp,
    pub(super) agents: Vec<String>,
    /// Where reading of each log stopped. The importing thread has a connection of its own.
    pub(super) catalogue: Arc<dyn Catalogue>,
    /// Where what is read can be looked for.
    pub(super) indexing: Option<Arc<Indexing>>,
    /// What is removed before anything is kept.
    pub(super) redact: Option<Arc<Engine>>,
    /// What is hidden in everything that is made of what is kept.
    pub(super) guard: Arc<Guard>,
    /// What is to be said of logs that were kept all the same.
    said: std::sync::Mutex<Vec<Problem>>,
}

/// A document beside a log: its bytes, and that it was kept.
type Sidecar = (Vec<u8>, Done);

/// What a log is read from.
pub(super) struct Input<'i> {
    pub(super) key: SourceKey,
    pub(super) path: &'i Path,
    pub(super) part: Option<&'i str>,
    pub(super) stamp: Stamp,
    /// How it reads, where that is known.
    pub(super) dialect: Option<(&'static dyn Family, Dialect)>,
    /// Whether that is known by where it lies, and not by its content.
    pub(super) by_place: bool,
    /// Whether it is a recorded run: then its own file has its events.
    pub(super) recorded: bool,
}

impl Input<'_> {
    /// What the archive remembers of how a log reads.
    fn reads_as(&self) -> archive::Meta {
        let mut meta = archive::Meta::new();
        if let Some((_, dialect)) = self.dialect {
            meta.insert("dialect".to_owned(), dialect.name.into());
            if self.by_place {
                meta.insert(BY_PLACE.to_owned(), true.into());
            }
        }
        meta
    }
}

impl<'s> Keeper<'s> {
    pub(super) fn new(
        store: &'s Store,
        options: &ImportOptions,
        indexing: Option<Arc<Indexing>>,
    ) -> Result<Self, super::ImportError> {
        Ok(Self {
            indexing,
            redact: options.redact.clone(),
            guard: Arc::clone(store.guard()?),
            said: std::sync::Mutex::default(),
            archive: &store.archive,
            blobs: &store.blobs,
            events: Events::of(&store.home),
            temporary: store.home.join("tmp"),
            now: options.now,
            agents: options.agents.clone(),
            catalogue: store.catalogue.another()?,
        })
    }

    /// What was to be said so far.
    pub(super) fn said(&self) -> Vec<Problem> {
        self.said
            .lock()
            .map_or_else(|_| Vec::new(), |mut said| std::mem::take(&mut *said))
    }

    pub(super) fn say(&self, problem: Problem) {
        if let Ok(mut said) = self.said.lock() {
            said.push(problem);
        }
    }

    /// What the archive has of a log that is about to be kept. A damaged manifest is set aside: as long as the log
    /// is there, nothing of it is lost but what it once was.
    fn latest(&self, key: &SourceKey) -> Result<Option<Snapshot>, KeepError> {
        match self.archive.latest(key) {
            Err(ArchiveError::Manifest { line, why, .. }) => {
                let aside = self.archive.mend_manifest(&key.id())?;
                let aside = aside.unwrap_or_default();
                let what = format!(
                    "line {line} of its manifest was damaged ({why}), so the log was kept again; the manifest is now {}",
                    aside.display()
                );
                self.say(Problem::new(&key.path, what));
                Ok(self.archive.latest(key)?)
            }
            latest => Ok(latest?),
        }
    }

    /// Does what is to be done.
    pub(super) fn work(&self, job: &Job, progress: &Progress, take: &mut dyn FnMut(Done)) {
        match job {
            Job::Archived(source) => take(self.archived(source, progress)),
            Job::Run(run) => take(self.run(run, progress)),
            Job::Found(candidate) => match candidate.found {
                Found::Log => self.log(candidate, progress, take),
                Found::Keep => take(self.keep(candidate, progress)),
                Found::Many => self.many(candidate, progress, take),
            },
        }
    }

    fn log(&self, candidate: &Candidate, progress: &Progress, take: &mut dyn FnMut(Done)) {
        if let Err(error) = self.try_log(candidate, progress, take) {
            take(failed(&candidate.path, error));
        }
    }

    fn try_log(
        &self,
        candidate: &Candidate,
        progress: &Progress,
        take: &mut dyn FnMut(Done),
    ) -> Result<(), KeepError> {
        let path = &candidate.path;
        let mut file = File::open(path)?;
        if database::is_database(&mut file)? {
            self.many(candidate, progress, take);
            return Ok(());
        }
        // Before anything is read: what is written from now on is seen to be new.
        let stamp = Stamp {
            part: candidate.stamp.part.clone(),
            ..find::stamp(&file.metadata()?)
        };
        let file = if path.extension().is_some_and(|ending| ending == "zst") {
            unpacked(&file, self.temporary_directory()?)?
        } else {
            file
        };
        let plain = plain_path(path);
        let mut file = self.scrubbed(file, &plain)?;
        let size = file.metadata()?.len();
        let known = recognise(&mut file, size, candidate.place, &plain)?;
        if let Some(warning) = known.and_then(|known| known.warning()) {
            take(Done::Failed(Problem::new(path, warning)));
        }
        let sniffed = match known {
            Some(known) => Some((known.family, known.dialect)),
            None => self.read_as_before(&plain)?,
        };
        let brand = match (candidate.place, sniffed) {
            (Some((brand, place)), Some((family, _))) if place.name() == family.name() => brand,
            (_, Some((_, dialect))) => dialect.brand,
            (Some((brand, _)), None) => brand,
            (None, None) => {
                take(Done::Unknown { path: path.clone() });
                return Ok(());
            }
        };
        if !find::wanted(&self.agents, brand) {
            return Ok(());
        }
        let input = Input {
            key: SourceKey::new(brand, plain.clone()),
            path: &plain,
            part: None,
            stamp,
            dialect: sniffed,
            by_place: known.is_some_and(|known| known.is_by_place()),
            recorded: false,
        };
        let mut sidecars = Vec::new();
        for beside in sniffed.map_or_else(Vec::new, |(family, _)| family.sidecars(path)) {
            match self.sidecar(brand, &beside) {
                Ok(Some((bytes, kept))) => {
                    let name = beside.file_name().unwrap_or_default();
                    sidecars.push((name.to_string_lossy().into_owned(), bytes));
                    take(kept);
                }
                Ok(None) => {}
                Err(error) => take(failed(&beside, error)),
            }
        }
        let mut read = self.read(&input, &mut file, size, brand, &sidecars, progress)?;
        if sniffed.is_some_and(|(_, dialect)| dialect.name == TRACE) {
            read.reading
                .blobs
                .extend(self.blobs_beside(path, &mut file));
        }
        take(Done::Read(Box::new(read)));
        Ok(())
    }

    /// Keeps the blobs beside a trace that it refers to, and gives their names.
    fn blobs_beside(&self, trace: &Path, file: &mut File) -> Vec<String> {
        let directory = blobs::beside(trace);
        if !directory.is_dir() {
            return Vec::new();
        }
        let keep = |blobs: &Blobs, id: &BlobId| -> Result<String, KeepError> {
            let found = fs::symlink_metadata(blobs.path(id))?;
            if !found.is_file() || found.len() > BLOB {
                return Err(KeepError::UnkeptBlob);
            }
            Ok(self.blobs.put(&blobs.get(id)?)?.to_string())
        };
        let survey = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| Survey::read(file, LIMITS))
            .map_err(KeepError::from);
        let mut kept = Vec::new();
        match survey.and_then(|survey| Ok((survey, Blobs::open(&directory)?))) {
            Ok((survey, blobs)) => {
                let there = survey.blobs.keys().filter(|id| blobs.path(id).exists());
                for id in there {
                    match keep(&blobs, id) {
                        Ok(name) => kept.push(name),
                        Err(error) => self.say(Problem::new(&blobs.path(id), error.to_string())),
                    }
                }
            }
            Err(error) => self.say(Problem::new(&directory, error.to_string())),
        }
        kept
    }

    /// How a log was read before. A log that has grown is still the log it was, also where so much of it no
    /// longer tells.
    fn read_as_before(
        &self,
        path: &Path,
    ) -> Result<Option<(&'static dyn Family, Dialect)>, KeepError> {
        let (mut path, mut part) = (path.to_owned(), None);
        Hide::new(&self.guard).address(&mut path, &mut part);
        let rows = self.catalogue.sources_at(&path)?;
        let row = rows.into_iter().find(|row| row.part.is_none());
        Ok(row.and_then(|row| quipu_agents::dialect(&row.dialect?)))
    }

    /// Copies a log into the archive and reads it.
    pub(super) fn read(
        &self,
        input: &Input<'_>,
        file: &mut File,
        size: u64,
        brand: &str,
        sidecars: &[(String, Vec<u8>)],
        progress: &Progress,
    ) -> Result<PassReading, KeepError> {
        let kept = self.latest(&input.key)?;
        let prefix = match &kept {
            Some(kept) => Some(kept.matches_prefix(&mut *file)?),
            None => None,
        };
        let (mut writer, same) = match (&kept, prefix) {
            // What the catalogue does not know may have been cut short by a crash, or be damaged.
            (Some(kept), _) if !self.is_known(&input.key)? && self.archive.check(kept).is_err() => {
                (Some(self.archive.rewrite(kept)?), None)
            }
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
            progress
                .bytes_done
                .fetch_add(read as u64, Ordering::Relaxed);
        }
        let snapshot = self.finish(writer, kept.as_ref(), &input.stamp, input.reads_as())?;
        let new_bytes = snapshot.size.saturating_sub(from);
        Ok(reading.done(
            input,
            &key,
            brand,
            &Taken::of(&snapshot),
            sidecars,
            at - start,
            new_bytes,
        ))
    }

    fn is_known(&self, key: &SourceKey) -> Result<bool, KeepError> {
        Ok(self.catalogue.knows(&key.id().to_string())?)
    }

    fn finish(
        &self,
        writer: Option<SnapshotWriter>,
        before: Option<&Snapshot>,
        stamp: &Stamp,
        reads_as: archive::Meta,
    ) -> Result<Snapshot, KeepError> {
        let Some(writer) = writer else {
            return before.cloned().ok_or(KeepError::Nothing);
        };
        let modified = stamp
            .modified
            .and_then(|nanos| Timestamp::from_nanosecond(i128::from(nanos)).ok());
        // So that the catalogue can be made again as it was: which of two logs is older, and how it read.
        let mut meta = reads_as;
        let first = before.and_then(first_modified).or(stamp.modified);
        meta.extend(first.map(|first| (FIRST_MODIFIED.to_owned(), first.into())));
        Ok(writer.finish(self.now, modified, Some(meta))?)
    }

    /// Keeps a file without reading it.
    fn keep(&self, candidate: &Candidate, progress: &Progress) -> Done {
        let brand = candidate.place.map_or("unknown", |place| place.0);
        match self.try_keep(brand, &candidate.path) {
            Ok((bytes, new_bytes)) => {
                progress.bytes_done.fetch_add(bytes, Ordering::Relaxed);
                Done::Kept {
                    bytes,
                    new_bytes,
                    seen: Some(Box::new(super::many::seen(candidate, brand, BESIDE))),
                }
            }
            Err(error) => failed(&candidate.path, error),
        }
    }

    fn try_keep(&self, brand: &str, path: &Path) -> Result<(u64, u64), KeepError> {
        let file = File::open(path)?;
        let stamp = find::stamp(&file.metadata()?);
        let mut file = self.scrubbed(file, path)?;
        let size = file.metadata()?.len();
        let key = SourceKey::new(brand, path).with_part(BESIDE);
        let kept = self.latest(&key)?;
        let same = match &kept {
            // What the catalogue does not know may be damaged.
            Some(kept) if !self.is_known(&key)? && self.archive.check(kept).is_err() => false,
            Some(kept) => kept.matches_prefix(&mut file)? == Prefix::Same,
            None => false,
        };
        let (mut writer, from) = match &kept {
            Some(kept) if same && kept.size == size => return Ok((stamp.size, 0)),
            Some(kept) if same => (self.archive.grow(kept)?, kept.size),
            Some(kept) => (self.archive.rewrite(kept)?, 0),
            None => (self.archive.begin(&key)?, 0),
        };
        file.seek(SeekFrom::Start(from))?;
        let mut left = (&mut file).take(size.saturating_sub(from));
        let mut piece = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
        loop {
            let read = left.read(&mut piece)?;
            if read == 0 {
                break;
            }
            writer.write(&piece[..read])?;
        }
        let nothing = archive::Meta::new();
        let snapshot = self.finish(Some(writer), kept.as_ref(), &stamp, nothing)?;
        Ok((stamp.size, snapshot.size.saturating_sub(from)))
    }

    /// A document beside a log: its bytes, and that it was kept.
    fn sidecar(&self, brand: &str, path: &Path) -> Result<Option<Sidecar>, KeepError> {
        if is_credential(path) {
            return Ok(None);
        }
        let (bytes, stamp) = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= SIDECAR => {
                let mut bytes = Vec::new();
                let mut file = self.scrubbed(File::open(path)?, path)?;
                file.read_to_end(&mut bytes)?;
                (bytes, find::stamp(&metadata))
            }
            Ok(metadata) if metadata.is_file() => {
                return Err(KeepError::LongSidecar);
            }
            _ => return Ok(None),
        };
        let (size, new_bytes) = self.try_keep(brand, path)?;
        let beside = Candidate {
            path: path.to_owned(),
            stamp,
            found: Found::Keep,
            place: None,
        };
        let seen = Box::new(super::many::seen(&beside, brand, BESIDE));
        let kept = match new_bytes {
            0 => Done::Looked(seen),
            new_bytes => Done::Kept {
                bytes: size,
                new_bytes,
                seen: Some(seen),
            },
        };
        Ok(Some((bytes, kept)))
    }
}

/// What the archive remembers of a log under this name.
const FIRST_MODIFIED: &str = "first_modified";

/// That it is known by its place how a log reads.
pub(super) const BY_PLACE: &str = "by_place";

/// When a log was first seen to be written to.
pub(super) fn first_modified(snapshot: &Snapshot) -> Option<i64> {
    snapshot.meta.as_ref()?.get(FIRST_MODIFIED)?.as_i64()
}

/// Whose log this is.
pub(super) fn recognise(
    file: &mut File,
    size: u64,
    place: Option<(&'static str, &'static dyn Family)>,
    path: &Path,
) -> Result<Option<Known>, KeepError> {
    let lies = place.map(|(brand, family)| Lies {
        brand,
        family,
        path,
    });
    let look =
        |bytes: &[u8], whole| Head::look(bytes, whole, |head| quipu_agents::recognise(head, lies));
    let mut head = vec![0; HEAD.min(usize::try_from(size).unwrap_or(HEAD))];
    file.seek(SeekFrom::Start(0))?;
    let read = read_full(file, &mut head)?;
    head.truncate(read);
    // A first line may be as long as a line can be: a prompt with an image in it.
    while memchr_newline(&head).is_none() && head.len() < Limits::default().line {
        let before = head.len();
        file.take(1 << 20).read_to_end(&mut head)?;
        if head.len() == before {
            break;
        }
    }
    let whole = size <= head.len() as u64;
    let found = look(&head, whole);
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
    Ok(look(&all, true))
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
fn first_line_is_whole(head: &[u8]) -> bool {
    let Some(end) = memchr_newline(head) else {
        return false;
    };
    let line = String::from_utf8_lossy(&head[..end]);
    quipu_model::Json::parse(line.trim()).is_ok()
}

fn memchr_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// What failed: the log, or the place where everything is kept, in which case nothing more can be done.
pub(super) fn failed(path: &Path, error: KeepError) -> Done {
    match error {
        KeepError::Archive(error) if error.is_ours() => Done::Stopped(error),
        error => Done::Failed(Problem::new(path, error.to_string())),
    }
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
    #[error(
        "its {packed} bytes unpack to more than {most}, which no log does, so it is not kept; if it is one, unpack it \
         and import that"
    )]
    Bomb { packed: u64, most: u64 },
    #[error("beside a log and longer than {SIDECAR} bytes, so it is not read")]
    LongSidecar,
    #[error("not a file, or longer than {BLOB} bytes, so it was not kept")]
    UnkeptBlob,
    #[error(transparent)]
    Blobs(#[from] blobs::BlobError),
    #[error("nothing of it is kept")]
    Nothing,
    #[error("no adapter reads it")]
    NoAdapter,
    #[error("the database is being written all the time; try again when the agent is idle")]
    BusyDatabase,
    #[error("the database cannot be read: {0}")]
    Database(String),
    #[error(transparent)]
    Scrub(#[from] quipu_redact::raw::RawError),
}
