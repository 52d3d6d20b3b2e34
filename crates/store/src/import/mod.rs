//! Import: finding logs, keeping them, reading them.
//!
//! Each log is first copied into the archive and then read, from the same bytes: what is kept is what was
//! read, also when an agent writes to the log meanwhile. What reading found out goes to the catalogue, in
//! batches; before a batch is committed, what it refers to is brought to disk. A process that is killed
//! leaves the catalogue at the last batch, and the next import does the rest.
//!
//! | module | what it does |
//! |---|---|
//! | `find` | walks the places of agents, or paths that were given |
//! | `plan` | decides which of them have to be looked at |
//! | `keep` | copies one log into the archive and hands it on |
//! | `scrub` | removes from a log what is not to be kept, where that is asked for |
//! | `pass` | reads the bytes of one log, from its beginning or from where it ended |
//! | `many` | takes sessions out of databases and trees |
//! | `again` | reads what the archive has, without the agents' files |
//! | `rebuild` | makes the catalogue again, beside the old one, and mends the archive |
//! | `lost` | notices what the archive has lost |
//! | `database` | makes private copies of databases, so that no agent's file is locked or touched |
//! | `link` | tells originals from copies |
//! | `received` | transcripts that others submitted |
//! | `runs` | reads recorded runs, which are not copied |
//! | `forget` | removes what was kept of a session |
//! | `report` | what was done |
//! | `watch` | waits for logs to change |

mod again;
mod database;
mod find;
mod forget;
mod keep;
pub(crate) mod link;
mod live;
pub(crate) mod loose;
mod lost;
mod many;
mod pass;
mod plan;
mod rebuild;
mod received;
mod report;
mod runs;
mod scrub;
pub mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use quipu_agents::Host;
use quipu_model::Timestamp;
use quipu_redact::{Engine, Guard};

pub use find::{Candidate, Found, Search};
pub use forget::Holding;
pub use received::Followed;
pub use report::{AgentReport, Problem, Report};
pub use runs::RECORDED;

use crate::annotations::Annotations;
use crate::archive::{Archive, ArchiveError};
use crate::blobs::{BlobError, Blobs};
use crate::catalogue::{Catalogue, CatalogueError, SourceRow, SqliteCatalogue};
use crate::events::Events;
use crate::hide::{Hide, is_masked};
use crate::live::{Bus, BusFile, Change, Changes, What};
use crate::search::indexing::{self, Adding, Indexing};
use crate::search::{Opened, index_path};
use keep::{Done, Keeper};
pub use plan::BESIDE;
use plan::Job;

/// The search index, while it is written to.
type Open = (Arc<Indexing>, Adding);

/// Where everything is kept. Cheap to clone and to share between threads.
#[derive(Debug, Clone)]
pub struct Store {
    home: PathBuf,
    archive: Archive,
    pub(crate) blobs: Arc<Blobs>,
    catalogue: Arc<dyn Catalogue>,
    guard: Arc<OnceLock<Arc<Guard>>>,
    bus: Arc<dyn Bus>,
    pub(crate) index: Opened,
    annotations: Annotations,
}

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// What is removed from logs before anything of them is kept; nothing without one.
    pub redact: Option<Arc<Engine>>,
    /// What time it is.
    pub now: Timestamp,
    /// Only logs of these agents, by name or the beginning of it.
    pub agents: Vec<String>,
    /// Look, but keep nothing.
    pub dry_run: bool,
    /// How many logs are read at the same time; 0 for as many as there are processors.
    pub threads: usize,
}

/// How far an import is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Logs to read.
    pub files: AtomicUsize,
    /// Logs that were read.
    pub files_done: AtomicUsize,
    /// Bytes to read.
    pub bytes: AtomicU64,
    /// Bytes that were read.
    pub bytes_done: AtomicU64,
    /// Set to end the import early, after the logs at hand.
    pub stop: AtomicBool,
}

/// Why an import could not be done. What is wrong with a log is no such reason; it is in the report.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The catalogue could not be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The archive could not be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Blobs could not be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// Logs are kept, but the catalogue is gone.
    #[error("logs are kept in {home}, but there is no catalogue of them; `quipu import --rebuild` makes it again", home = .0.display())]
    NoCatalogue(PathBuf),
    /// Another process is importing.
    #[error("another import is at work in {home}", home = .0.display())]
    Busy(PathBuf),
    /// The search index could not be used.
    #[error(transparent)]
    Index(#[from] quipu_search::index::IndexError),
    /// The rules for what is hidden cannot be used.
    #[error(transparent)]
    Rules(#[from] quipu_redact::RuleError),
    /// Nothing is kept of a log.
    #[error("{path}: nothing of it is in the archive", path = .0.display())]
    NotKept(PathBuf),
    /// A log is kept, but no adapter reads it.
    #[error("{path}: no adapter knows how it reads", path = .0.display())]
    Unread(PathBuf),
    /// What is kept of a log could not be read.
    #[error("{path}: could not read what is kept of it: {source}", path = .path.display())]
    Archived {
        /// The log.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A kept page cannot be read back.
    #[error("cannot use {path}: {why}", path = .path.display())]
    Page {
        /// The page.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Events could not be read.
    #[error(transparent)]
    Events(#[from] crate::events::Fault),
    /// The home could not be made.
    #[error("cannot use {path}: {source}", path = .path.display())]
    Home {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Keeps all others out that write to what is kept, for as long as what it gives is held.
pub(crate) fn lock(home: &Path) -> Result<std::fs::File, ImportError> {
    let path = home.join("import.lock");
    let refuse = |source| ImportError::Home {
        path: path.clone(),
        source,
    };
    let file = private_file(&path).map_err(refuse)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(ImportError::Busy(home.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(refuse(error)),
    }
}

/// How long is waited for whoever does not take long.
const SOON: Duration = Duration::from_secs(1);

/// A batch is committed when it has so many logs, or is so old.
const BATCH: usize = 256;
const BATCH_AGE: Duration = Duration::from_secs(1);

impl Store {
    /// Opens the store in this directory, or makes one.
    pub fn open(home: &Path) -> Result<Self, ImportError> {
        let refuse = |source| ImportError::Home {
            path: home.to_owned(),
            source,
        };
        quipu_files::create_directory(home).map_err(refuse)?;
        let catalogue = SqliteCatalogue::open(&catalogue_path(home))?;
        Self::with_catalogue(home, Arc::new(catalogue))
    }

    fn with_catalogue(home: &Path, catalogue: Arc<dyn Catalogue>) -> Result<Self, ImportError> {
        Ok(Self {
            home: home.to_owned(),
            archive: Archive::open(&home.join("archive"))?,
            blobs: Arc::new(Blobs::open(&home.join("blobs"))?),
            catalogue,
            guard: Arc::default(),
            bus: Arc::new(BusFile::new(home)),
            index: Opened::default(),
            annotations: Annotations::of_home(home),
        })
    }

    /// Opens the store in this directory, if there is one.
    ///
    /// # Errors
    ///
    /// [`ImportError::NoCatalogue`] when logs are kept there but nothing is known of them.
    pub fn open_existing(home: &Path) -> Result<Option<Self>, ImportError> {
        if catalogue_path(home).exists() || runs::has_runs(home) {
            return Self::open(home).map(Some);
        }
        let archive = Archive::open(&home.join("archive"))?;
        if archive.sources().next().is_some() {
            return Err(ImportError::NoCatalogue(home.to_owned()));
        }
        Ok(None)
    }

    /// The same store with a connection to the catalogue of its own: who reads with it does not wait for who writes with
    /// this one.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be opened again.
    pub fn another(&self) -> Result<Self, ImportError> {
        Ok(Self {
            catalogue: self.catalogue.another()?,
            ..self.clone()
        })
    }

    /// The catalogue.
    pub fn catalogue(&self) -> &dyn Catalogue {
        &*self.catalogue
    }

    /// The archive.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Images and the like.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Labels and notes of people.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// What keeps secrets out of the search index and out of what is found: the rules that come with Quipu, unless
    /// others were set.
    pub fn guard(&self) -> Result<&Arc<Guard>, ImportError> {
        if let Some(guard) = self.guard.get() {
            return Ok(guard);
        }
        let guard = Arc::new(Guard::secrets()?);
        Ok(self.guard.get_or_init(|| guard))
    }

    /// Uses another guard. Before anything is imported or looked for.
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> Self {
        self.guard = Arc::new(OnceLock::from(Arc::new(guard)));
        self
    }

    /// Hears of what changes from now on, whichever process changes it.
    ///
    /// # Errors
    ///
    /// When the home cannot be read.
    pub fn changes(&self) -> Result<Box<dyn Changes>, ImportError> {
        self.bus.follow().map_err(refused(self.home.clone()))
    }

    /// Says what became of logs. Whoever follows looks by itself as well, so that it is no harm when that fails.
    pub(crate) fn say(&self, what: What, keys: impl IntoIterator<Item = String>) {
        let changes: Vec<Change> = keys.into_iter().map(|key| Change { key, what }).collect();
        drop(self.bus.publish(&changes));
    }

    /// The directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Imports what agents have on this machine.
    pub fn import(
        &self,
        host: &Host,
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<Report, ImportError> {
        self.import_found(Search::of_places(host, &options.agents), options, progress)
    }

    /// Imports these files and directories.
    pub fn import_paths(
        &self,
        host: &Host,
        paths: &[PathBuf],
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<Report, ImportError> {
        self.import_found(
            Search::of_paths(host, paths, &options.agents),
            options,
            progress,
        )
    }

    /// Imports what a search found.
    pub fn import_found(
        &self,
        search: Search,
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<Report, ImportError> {
        let _lock = self.lock_soon()?;
        let mut report = Report::of_search(&search);
        self.clear_temporary();
        if !options.dry_run {
            // What a rebuild left that was killed; what cannot be removed now is removed the next time.
            drop(SqliteCatalogue::remove(&beside_path(&self.home)));
            self.prepare_index(&mut report)?;
        }
        let mut sources = self.catalogue.sources()?;
        let outdated = sources.iter().any(SourceRow::is_outdated);
        let unfinished = sources.is_empty() || outdated || self.pending().exists();
        if unfinished && !options.dry_run {
            // What is kept may be all there is of logs that are gone by now.
            self.read_archive(options, progress, &mut report)?;
            sources = self.catalogue.sources()?;
        }
        if outdated && !options.dry_run {
            self.catalogue.compact()?;
            self.mask_receipts(&mut report)?;
        }
        self.locate(&mut sources)?;
        let lost = self.lost(&mut sources, options.dry_run)?;
        let mut known: HashMap<PathBuf, Vec<SourceRow>> = HashMap::new();
        for row in sources {
            known.entry(row.path.clone()).or_default().push(row);
        }
        let mut jobs = Vec::new();
        for candidate in search.found {
            plan::plan(candidate, &known, &mut jobs, &mut report);
        }
        if options.dry_run {
            report.dry_run(&jobs);
            return Ok(report);
        }
        jobs.extend(self.to_read_again(&jobs, &mut report)?);
        self.work(jobs, options, progress, &mut report)?;
        self.refresh_runs_locked(&mut report)?;
        self.report_lost(lost, &mut report);
        for (_, problem) in std::mem::take(&mut report.damaged) {
            report.problem(problem);
        }
        self.catalogue.seal()?;
        self.hide(&mut report)?;
        Ok(report)
    }

    /// Gives logs their addresses as the archive has them: the catalogue masks secrets in them.
    fn locate(&self, sources: &mut [SourceRow]) -> Result<(), ImportError> {
        for row in sources {
            if is_masked(&row.path, row.part.as_deref())
                && let Some(source) = self.archive.source_by_id(&row.key)?
            {
                (row.path, row.part) = (source.key.path, source.key.part);
            }
        }
        Ok(())
    }

    /// Masks secrets in what is said of logs.
    fn hide(&self, report: &mut Report) -> Result<(), ImportError> {
        if report.problems.is_empty() && report.unknown_examples.is_empty() {
            return Ok(());
        }
        let hide = Hide::new(self.guard()?);
        let path = |path: &mut PathBuf| {
            if let Cow::Owned(masked) = hide.path(&path.to_string_lossy()) {
                *path = masked.into();
            }
        };
        report.unknown_examples.iter_mut().for_each(path);
        for problem in &mut report.problems {
            path(&mut problem.path);
            problem.what = hide.text(&problem.what, None).into_owned();
        }
        Ok(())
    }

    /// What is kept but cannot be looked for, or has no events: it is read again, unless that is to be done anyway.
    fn to_read_again(&self, jobs: &[Job], report: &mut Report) -> Result<Vec<Job>, ImportError> {
        let planned: HashSet<&Path> = jobs.iter().map(Job::path).collect();
        let mut more = Vec::new();
        let mut keys: BTreeSet<String> = self.catalogue.not_indexed()?.into_iter().collect();
        let there = Events::of(&self.home).keys();
        let transcripts = self.catalogue.kept_keys()?.into_iter();
        keys.extend(transcripts.filter(|key| !there.contains(key)));
        for key in keys {
            let source = match self.archive.source_by_id(&key) {
                Ok(source) => source,
                Err(error) => {
                    report.problem(Problem::of_archive(&error));
                    continue;
                }
            };
            let source = source.filter(|source| !planned.contains(source.key.path.as_path()));
            more.extend(source.and_then(Job::of_archive));
        }
        Ok(more)
    }

    /// Says that the archive was not read to its end; the next import does the rest.
    fn pending(&self) -> PathBuf {
        self.home.join("rebuild.pending")
    }

    fn mark_pending(&self) -> Result<(), ImportError> {
        let file = private_file(&self.pending());
        drop(file.map_err(refused(self.pending()))?);
        Ok(())
    }

    fn unmark_pending(&self) -> Result<(), ImportError> {
        match std::fs::remove_file(self.pending()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(refused(self.pending())(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes copies that an import left which was killed.
    fn clear_temporary(&self) {
        // What cannot be removed now is removed the next time.
        drop(std::fs::remove_dir_all(self.home.join("tmp")));
    }

    fn read_archive(
        &self,
        options: &ImportOptions,
        progress: &Progress,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        self.mark_pending()?;
        let mut sources = Vec::new();
        for source in self.archive.sources() {
            match source {
                Ok(source) => sources.push(source),
                Err(error) => report.problem(Problem::of_archive(&error)),
            }
        }
        // All agents, whichever are asked for: what is left out would seem not to be kept.
        let sources = rebuild::latest(sources).into_iter();
        let jobs: Vec<Job> = sources.filter_map(Job::of_archive).collect();
        let keys = jobs.iter().filter_map(Job::key).collect();
        report.files += jobs.len() as u64;
        self.work(jobs, options, progress, report)?;
        if progress.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.catalogue.at_once(|| self.catalogue.keep_only(&keys))?;
        self.unmark_pending()
    }

    /// Masks secrets in what an earlier version wrote down of what it removed.
    fn mask_receipts(&self, report: &mut Report) -> Result<(), ImportError> {
        for (path, error) in crate::receipts::mask(&self.home, self.guard()?) {
            report.problem(Problem::refused(&path, &error));
        }
        Ok(())
    }

    fn lock(&self) -> Result<std::fs::File, ImportError> {
        lock(&self.home)
    }

    /// The same, but whoever only brings recorded runs up to date is waited for: a server does so whenever somebody asks.
    fn lock_soon(&self) -> Result<std::fs::File, ImportError> {
        let until = Instant::now() + SOON;
        loop {
            match self.lock() {
                Err(ImportError::Busy(_)) if Instant::now() < until => {
                    std::thread::sleep(SOON / 100);
                }
                locked => return locked,
            }
        }
    }

    /// Reads logs on several threads, and puts down what they find on this one.
    fn work(
        &self,
        mut jobs: Vec<Job>,
        options: &ImportOptions,
        progress: &Progress,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        // The longest first, so that no thread is left with one when the others are done.
        jobs.sort_by_key(|job| std::cmp::Reverse(job.size()));
        progress.files.fetch_add(jobs.len(), Ordering::Relaxed);
        let bytes = jobs.iter().map(Job::size).sum();
        progress.bytes.fetch_add(bytes, Ordering::Relaxed);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = match options.threads {
            0 => processors.min(8),
            n => n,
        };
        if jobs.is_empty() && self.catalogue.dead_passes()?.is_empty() {
            return Ok(());
        }
        let index = Indexing::open(&self.home, &*self.catalogue, threads, bytes, self.guard()?);
        let mut index = self.or_without(index, report)?;
        let indexing = index.as_ref().map(|(indexing, _)| indexing.clone());
        let keeper = &Keeper::new(self, options, indexing)?;
        let next = AtomicUsize::new(0);
        let (to, from) = sync_channel::<Done>(threads * 4);
        let mut changed = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..threads.min(jobs.len()) {
                let (to, next, jobs) = (to.clone(), &next, &jobs);
                scope.spawn(move || {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if progress.stop.load(Ordering::Relaxed) {
                            break;
                        }
                        // Nobody takes anything any more after something went wrong.
                        keeper.work(job, progress, &mut |done| drop(to.send(done)));
                        progress.files_done.fetch_add(1, Ordering::Relaxed);
                    }
                    if let Some(indexing) = &keeper.indexing {
                        indexing.flush();
                    }
                });
            }
            drop(to);
            let mut batch: Vec<Done> = Vec::new();
            let mut begun = Instant::now();
            loop {
                let done = from.recv_timeout(BATCH_AGE);
                let ended = matches!(done, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
                batch.extend(done);
                let due = batch.len() >= BATCH || begun.elapsed() >= BATCH_AGE || ended;
                if due && !batch.is_empty() {
                    if let Err(error) = self.commit(&mut batch, &mut changed, report) {
                        // Threads stop at their next send.
                        progress.stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                    begun = Instant::now();
                }
                self.index(&mut index, false, report);
                if ended {
                    return Ok::<(), ImportError>(());
                }
            }
        })?;
        self.index(&mut index, true, report);
        report.problems_of(keeper);
        link::settle(self, &changed, report)?;
        Ok(())
    }

    /// Adds to the search index what was read. What goes wrong there is no reason to keep nothing: the next
    /// import does the rest.
    fn index(&self, index: &mut Option<Open>, all: bool, report: &mut Report) {
        let Some((indexing, mut adding)) = index.take() else {
            return;
        };
        let added = adding.add(&indexing, &*self.catalogue, all);
        let done = match added {
            Ok(()) if all => adding.finish(),
            Ok(()) => {
                *index = Some((indexing, adding));
                return;
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            indexing.stop();
            report.problem(Problem::new(&index_path(&self.home), error.to_string()));
        }
    }

    fn prepare_index(&self, report: &mut Report) -> Result<(), ImportError> {
        let prepared = indexing::prepare(&self.home, &*self.catalogue);
        report.index_anew = self.or_without(prepared, report)?.flatten();
        Ok(())
    }

    /// Goes on without the index when it is the index that refuses.
    fn or_without<T>(
        &self,
        done: Result<T, ImportError>,
        report: &mut Report,
    ) -> Result<Option<T>, ImportError> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error @ (ImportError::Index(_) | ImportError::Home { .. })) => {
                report.problem(Problem::new(&index_path(&self.home), error.to_string()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Brings what was kept to disk, and then puts down what was read.
    fn commit(
        &self,
        batch: &mut Vec<Done>,
        changed: &mut Vec<i64>,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        self.archive.sync()?;
        self.blobs.sync()?;
        let mut hide = Hide::new(self.guard()?);
        let mut read = Vec::new();
        self.catalogue.at_once(|| {
            for done in batch.drain(..) {
                report.took(&done);
                match done {
                    Done::Read(mut reading) => {
                        reading.reading.received = received::sender(&self.home, &reading.path);
                        hide.address(&mut reading.reading.path, &mut reading.reading.part);
                        changed.extend(self.catalogue.compared_with(&reading.key)?);
                        let put = self.catalogue.put(&reading)?;
                        if put.is_some() {
                            let (events, holds) = (reading.reach, reading.holds);
                            self.catalogue.put_advance(&reading.key, events, holds)?;
                        }
                        changed.extend(put);
                        read.push(reading.key.clone());
                    }
                    Done::Kept {
                        seen: Some(mut seen),
                        ..
                    }
                    | Done::Looked(mut seen) => {
                        hide.address(&mut seen.path, &mut seen.part);
                        self.catalogue.put(&seen)?;
                    }
                    Done::Kept { seen: None, .. } | Done::Unknown { .. } | Done::Unchanged => {}
                    Done::Failed(problem) => report.problem(problem),
                    Done::Damaged { key, problem } => {
                        self.catalogue.distrust(&key)?;
                        report.damaged.push((key, problem));
                    }
                    Done::Stopped(error) => return Err(error.into()),
                }
            }
            Ok::<(), ImportError>(())
        })?;
        self.say(What::Read, read);
        Ok(())
    }
}

fn refused(path: PathBuf) -> impl FnOnce(std::io::Error) -> ImportError {
    move |source| ImportError::Home { path, source }
}

/// Where the catalogue of a home is made again, until it is whole.
fn beside_path(home: &Path) -> PathBuf {
    home.join("index.sqlite.new")
}

/// The catalogue of a home.
pub fn catalogue_path(home: &Path) -> PathBuf {
    home.join("index.sqlite")
}

fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = quipu_files::options();
    options.read(true).write(true).create(true);
    options.truncate(false).open(path)
}

/// Programs share a store between their threads.
const _: () = {
    const fn shared<T: Send + Sync + Clone>() {}
    shared::<Store>();
};
