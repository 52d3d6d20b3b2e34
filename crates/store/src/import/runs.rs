//! Recorded runs and traces in the catalogue and the search index.
//!
//! They are their own originals: the transcript of a run in `<home>/transcripts` and a trace in `<home>/traces` are not
//! copied into the archive. The events of a run are read from its file; those of a trace, of which an adapter makes
//! others, are in the event log. What is known of both is brought up to date whenever it is asked for, also while they
//! are written.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use quipu_model::Timestamp;
use quipu_record::RunLog;

use super::find;
use super::keep::{Done, Input, KeepError, Keeper, PIECE};
use super::pass::{Pass, PassReading, Taken};
use super::plan::Job;
use super::report::{Problem, Report};
use super::{ImportError, ImportOptions, Progress, Store};
use crate::archive::SourceKey;
use crate::catalogue::{SourceRow, Stamp};
use crate::events::Events;

/// The agent that recorded runs are listed as.
pub const RECORDED: &str = "quipu";

/// What is kept where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    Trace,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Run, Self::Trace];

    /// How it reads, and the ending of its files.
    const fn dialect(self) -> (&'static str, &'static str) {
        match self {
            Self::Run => ("exchange", "jsonl"),
            Self::Trace => ("agentlog", "agentlog"),
        }
    }

    /// The agent that it is listed as.
    fn agent(self) -> &'static str {
        match self {
            Self::Run => RECORDED,
            Self::Trace => quipu_agents::dialect(self.dialect().0).map_or("", |it| it.1.brand),
        }
    }

    /// The directories of a home that it is in, below the home.
    fn directories(self, home: &Path) -> Vec<PathBuf> {
        match self {
            Self::Run => vec![PathBuf::from("transcripts")],
            Self::Trace => crate::traces::directories(home),
        }
    }
}

/// A recorded run, or a trace.
#[derive(Debug, Clone)]
pub(super) struct Run {
    kind: Kind,
    /// Below the home.
    name: PathBuf,
    pub(super) path: PathBuf,
    pub(super) stamp: Stamp,
}

impl Run {
    /// What it is known by, wherever its home is.
    fn key(&self) -> SourceKey {
        SourceKey::new(self.kind.agent(), self.name.clone())
    }

    pub(super) fn agent(&self) -> &'static str {
        self.kind.agent()
    }
}

/// The recorded runs and traces of a home that hold anything.
fn runs(home: &Path) -> impl Iterator<Item = Run> + use<'_> {
    Kind::ALL.into_iter().flat_map(move |kind| {
        let directories = kind.directories(home).into_iter();
        directories.flat_map(move |below| runs_in(home, kind, &below))
    })
}

fn runs_in(home: &Path, kind: Kind, below: &Path) -> Vec<Run> {
    let listing = std::fs::read_dir(home.join(below));
    let mut runs = Vec::new();
    for entry in listing.into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|it| it == kind.dialect().1)
            && let Ok(metadata) = std::fs::symlink_metadata(&path)
            && metadata.is_file()
            && metadata.len() > 0
        {
            runs.push(Run {
                kind,
                name: below.join(entry.file_name()),
                stamp: find::stamp(&metadata),
                path,
            });
        }
    }
    runs
}

/// Whether a home has recorded runs or traces.
pub(super) fn has_runs(home: &Path) -> bool {
    runs(home).next().is_some()
}

impl Store {
    /// Brings what is known of recorded runs and traces up to date. What another process that writes to the home is doing is not
    /// waited for; then what is known is a little older.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used. What is wrong with a run is in the report.
    pub fn refresh_runs(&self) -> Result<Report, ImportError> {
        Ok(self.try_refresh_runs()?.unwrap_or_default())
    }

    /// Like [`Store::refresh_runs`], but says whether it was done: `None` when there is something new, and another process
    /// that writes to the home is in the way.
    ///
    /// # Errors
    ///
    /// As [`Store::refresh_runs`].
    pub fn try_refresh_runs(&self) -> Result<Option<Report>, ImportError> {
        let mut report = Report::default();
        let (jobs, gone) = self.changed_runs()?;
        if jobs.is_empty() && gone.is_empty() {
            return Ok(Some(report));
        }
        let _lock = match self.lock() {
            Err(ImportError::Busy(_) | ImportError::Home { .. }) => return Ok(None),
            lock => lock?,
        };
        self.put_runs(jobs, &gone, &Progress::default(), &mut report)?;
        self.catalogue.seal()?;
        Ok(Some(report))
    }

    /// Reads the runs that have changed, and forgets those that are gone. They are not imported, so only what is wrong
    /// with them is reported.
    pub(crate) fn refresh_runs_locked(&self, report: &mut Report) -> Result<(), ImportError> {
        let (jobs, gone) = self.changed_runs()?;
        let mut own = Report::default();
        self.put_runs(jobs, &gone, &Progress::default(), &mut own)?;
        for problem in own.problems {
            report.problem(problem);
        }
        Ok(())
    }

    /// The runs that have to be read, and the keys of those that are gone.
    fn changed_runs(&self) -> Result<(Vec<Job>, Vec<String>), ImportError> {
        let known = self.catalogue.in_place()?;
        let mut known: HashMap<String, SourceRow> = known
            .into_iter()
            .map(|row| (row.key.clone(), row))
            .collect();
        let mut jobs = Vec::new();
        for run in runs(&self.home) {
            let row = known.remove(&run.key().id().to_string());
            if !row.is_some_and(|row| row.unchanged(&run.stamp) && row.path == run.path) {
                jobs.push(Job::Run(run));
            }
        }
        Ok((jobs, known.into_keys().collect()))
    }

    fn put_runs(
        &self,
        jobs: Vec<Job>,
        gone: &[String],
        progress: &Progress,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        if !gone.is_empty() {
            self.catalogue.at_once(|| {
                let mut gone = gone.iter();
                gone.try_for_each(|key| self.catalogue.forget(key))
            })?;
            let events = Events::of(&self.home);
            for key in gone {
                // What cannot be removed belongs to nothing any more.
                drop(events.remove(key));
            }
        }
        if jobs.is_empty() {
            return Ok(());
        }
        self.prepare_index(report)?;
        let options = ImportOptions {
            redact: None,
            now: Timestamp::now(),
            agents: Vec::new(),
            dry_run: false,
            threads: 0,
        };
        self.work(jobs, &options, progress, report)
    }
}

impl Keeper<'_> {
    /// Reads a run, from where reading stopped.
    pub(super) fn run(&self, run: &Run, progress: &Progress) -> Done {
        match self.try_run(run, progress) {
            Ok(read) => Done::Read(Box::new(read)),
            Err(error) => Done::Failed(Problem::new(&run.path, error.to_string())),
        }
    }

    fn try_run(&self, run: &Run, progress: &Progress) -> Result<PassReading, KeepError> {
        let mut file = File::open(&run.path)?;
        let stamp = find::stamp(&file.metadata()?);
        let key = run.key();
        let id = key.id().to_string();
        let input = Input {
            key,
            path: &run.path,
            part: None,
            stamp,
            dialect: quipu_agents::dialect(run.kind.dialect().0),
            by_place: false,
            recorded: run.kind == Kind::Run,
        };
        let size = input.stamp.size;
        // A run that was mended is shorter than it was, and a file that took its place is another.
        let mut pass = Pass::new(self, &input, &id, Some(0));
        let is_other = pass.from() > size || self.is_replaced(&id, &input.stamp)?;
        if is_other {
            pass = Pass::new(self, &input, &id, None);
        }
        let from = pass.from();
        file.seek(SeekFrom::Start(from))?;
        let mut left = file.take(size - from.min(size));
        let mut piece =
            vec![0; PIECE.min(usize::try_from(size - from.min(size)).unwrap_or(PIECE) + 1)];
        loop {
            let read = left.read(&mut piece)?;
            if read == 0 {
                break;
            }
            pass.push(&piece[..read]);
            progress
                .bytes_done
                .fetch_add(read as u64, Ordering::Relaxed);
        }
        let taken = Taken {
            version: 0,
            size,
            manifest: None,
            first_modified: input.stamp.modified,
        };
        let mut done = pass.done(
            &input,
            &id,
            run.agent(),
            &taken,
            &[],
            size - from.min(size),
            0,
        );
        if run.kind == Kind::Run {
            // Events as whoever follows the file counts them: what is not one has no number, and the last has a line end.
            let log = RunLog::open(&run.path).and_then(|log| log.ended());
            let broken = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            done.reach = log.map_err(broken)?;
            // A run is only ever added to.
            done.holds = if is_other { 0 } else { u64::MAX };
        }
        Ok(done)
    }

    /// Whether another file is where a run was.
    fn is_replaced(&self, key: &str, stamp: &Stamp) -> Result<bool, KeepError> {
        let catalogue = &self.catalogue;
        let known = catalogue.source(key)?;
        Ok(known.is_some_and(|row| row.stamp.inode != stamp.inode))
    }
}
