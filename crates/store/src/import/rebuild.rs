//! Making the catalogue and the search index again.
//!
//! They are made from the archive, beside what they replace, and put in its place when they are whole: however
//! damaged the old catalogue is, the new one does not depend on it. The old one is only asked, as far as it can still
//! be read, which logs it knew, so that it can be told what the archive has lost.
//!
//! What is damaged in the archive is mended on the way. A log that its agent still has is kept again. Of any other,
//! what can be read is kept anew, and what is lost is said.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_agents::Host;

use super::plan::Job;
use super::report::{Problem, Report};
use super::{
    BESIDE, Candidate, Found, ImportError, ImportOptions, Progress, Search, Store, beside_path,
    catalogue_path, lock,
};
use crate::archive::{ArchiveError, Source};
use crate::catalogue::{Remembered, SqliteCatalogue, Stamp};
use crate::hide::Hide;

/// A log, or one session of several in it.
type Part = (PathBuf, Option<String>);

/// What of an archive is damaged.
#[derive(Debug, Default)]
struct Damaged {
    /// Sources whose manifests can be read, by their keys, and why they are damaged.
    sources: BTreeMap<String, String>,
    /// Logs of which the archive has less than it had, and why.
    lost: BTreeMap<Part, String>,
}

impl Store {
    /// Makes the catalogue and the search index of a home again.
    pub fn rebuild(
        home: &Path,
        host: &Host,
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<(Self, Report), ImportError> {
        let refuse = |source| ImportError::Home {
            path: home.to_owned(),
            source,
        };
        quipu_files::create_directory(home).map_err(refuse)?;
        let _lock = lock(home)?;
        let mut report = Report::default();
        let old = catalogue_path(home);
        SqliteCatalogue::refuse_newer(&old)?;
        let known = remembered(&old, &mut report);
        let new = beside_path(home);
        SqliteCatalogue::remove(&new).map_err(refuse)?;
        let catalogue = SqliteCatalogue::open(&new)?;
        let store = Self::with_catalogue(home, Arc::new(catalogue.clone()))?;
        store.clear_temporary();
        store.mark_pending()?;
        let options = &ImportOptions {
            agents: Vec::new(),
            ..options.clone()
        };
        store.prepare_index(&mut report)?;
        let mut damaged = Damaged::default();
        let sources = store.mended_sources(&mut damaged, &mut report)?;
        damaged.compare(known, &sources);
        let (jobs, beside): (Vec<Source>, Vec<Source>) = latest(sources)
            .into_iter()
            .partition(|source| source.key.part.as_deref() != Some(BESIDE));
        damaged.look_beside(&store, &jobs, &beside);
        store.put_beside(&beside)?;
        let jobs: Vec<Job> = jobs.into_iter().filter_map(Job::of_archive).collect();
        report.files += jobs.len() as u64;
        store.work(jobs, options, progress, &mut report)?;
        if progress.stop.load(std::sync::atomic::Ordering::Relaxed) {
            // What is there stays as it is; the next import reads the archive.
            return Ok((Self::open(home)?, report));
        }
        for (key, problem) in std::mem::take(&mut report.damaged) {
            damaged.sources.entry(key).or_insert(problem.what);
        }
        store.heal(damaged, host, options, progress, &mut report)?;
        store.mask_receipts(&mut report)?;
        store.hide(&mut report)?;
        store.catalogue.seal()?;
        // It is closed before it takes the place of the other one.
        drop(store);
        catalogue.take_place_of(&old)?;
        let store = Self::open(home)?;
        store.unmark_pending()?;
        Ok((store, report))
    }

    /// The sources of the archive, after damaged manifests were set aside.
    fn mended_sources(
        &self,
        damaged: &mut Damaged,
        report: &mut Report,
    ) -> Result<Vec<Source>, ImportError> {
        let mut sources = Vec::new();
        for manifest in self.archive.manifests() {
            let manifest = manifest?;
            let error = match manifest.source {
                Ok(source) => {
                    sources.push(source);
                    continue;
                }
                Err(error @ ArchiveError::Manifest { .. }) => error,
                Err(error) => {
                    report.problem(Problem::of_archive(&error));
                    continue;
                }
            };
            let bytes = std::fs::read(&manifest.path).unwrap_or_default();
            let Some(aside) = self.archive.mend_manifest(&manifest.id)? else {
                continue;
            };
            let left = self.archive.source_by_id(&manifest.id.to_string())?;
            let ArchiveError::Manifest { why, line, .. } = error else {
                continue;
            };
            let why = format!(
                "line {line} of its manifest is damaged ({why}); the manifest is now {}",
                aside.display()
            );
            let of = match &left {
                Some(source) => Some((source.key.path.clone(), source.key.part.clone())),
                None => named(&bytes),
            };
            match of {
                Some(of) => drop(damaged.lost.insert(of, why)),
                None if bytes.is_empty() => {}
                None => {
                    report.lost += 1;
                    let what = format!("a log is lost, and its name with it: {why}");
                    report.problem(Problem::new(&aside, what));
                }
            }
            sources.extend(left);
        }
        self.archive.sync()?;
        Ok(sources)
    }

    /// Puts down what is kept beside logs, so that it is noticed when it is lost.
    fn put_beside(&self, beside: &[Source]) -> Result<(), ImportError> {
        let mut hide = Hide::new(self.guard()?);
        self.catalogue.at_once(|| {
            for source in beside {
                let Some(last) = source.versions.last() else {
                    continue;
                };
                let modified = last.modified.map(quipu_model::Timestamp::as_nanosecond);
                let seen = Candidate {
                    path: source.key.path.clone(),
                    stamp: Stamp {
                        size: last.size,
                        modified: modified.and_then(|nanos| i64::try_from(nanos).ok()),
                        ..Stamp::default()
                    },
                    found: Found::Keep,
                    place: None,
                };
                let mut reading = super::many::seen(&seen, &source.key.agent, BESIDE);
                hide.address(&mut reading.path, &mut reading.part);
                reading.manifest = Some(last.manifest_end());
                self.catalogue.put(&reading)?;
            }
            Ok(())
        })
    }

    /// The logs that the catalogue knows.
    fn parts(&self) -> Result<HashSet<Part>, ImportError> {
        let sources = self.catalogue.sources()?.into_iter();
        Ok(sources.map(|row| (row.path, row.part)).collect())
    }

    /// Keeps again what agents still have of what is damaged, and of everything else what is left.
    fn heal(
        &self,
        damaged: Damaged,
        host: &Host,
        options: &ImportOptions,
        progress: &Progress,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        let Damaged { sources, lost } = damaged;
        let mut paths: HashSet<PathBuf> = lost.keys().map(|(path, _)| path.clone()).collect();
        for key in sources.keys() {
            self.catalogue.distrust(key)?;
            if let Some(source) = self.archive.source_by_id(key)? {
                paths.insert(source.key.path);
            }
        }
        // A document beside a log is kept with the log.
        for row in self.catalogue.sources()? {
            let family = row.dialect.as_deref().and_then(quipu_agents::dialect);
            let mut sidecars = family.into_iter().flat_map(|it| it.0.sidecars(&row.path));
            if row.part.is_none() && sidecars.any(|path| paths.contains(&path)) {
                self.catalogue.distrust(&row.key)?;
                paths.insert(row.path);
            }
        }
        let packed = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".zst");
            PathBuf::from(name)
        };
        let mut paths: Vec<PathBuf> = paths
            .into_iter()
            .map(|path| if path.exists() { path } else { packed(&path) })
            .filter(|path| path.exists())
            .collect();
        paths.sort();
        if !paths.is_empty() {
            let search = Search::of_paths(host, &paths, &[]);
            let jobs: Vec<Job> = search.found.into_iter().map(Job::Found).collect();
            self.work(jobs, options, progress, report)?;
        }
        let mut again = Vec::new();
        for (key, why) in sources {
            let Some(source) = self.archive.source_by_id(&key)? else {
                continue;
            };
            if !source
                .versions
                .iter()
                .any(|it| self.archive.check(it).is_err())
            {
                report.kept_again += 1;
                continue;
            }
            let Some(saved) = self.archive.salvage(&source)? else {
                continue;
            };
            report.lost += 1;
            let what = match (saved.whole + saved.partial, saved.lost_bytes) {
                (0, _) => "nothing of it can be read any more".to_owned(),
                (_, 0) => "its last version is whole; earlier ones are lost".to_owned(),
                (_, bytes) => format!("{bytes} of its {} bytes are lost", saved.size),
            };
            let aside = saved.aside.display();
            let what = format!("lost: {what} ({why}); its manifest is now {aside}");
            report.problem(Problem::new(&source.key.path, what));
            self.catalogue.forget(&key)?;
            again.extend(self.archive.source_by_id(&key)?.and_then(Job::of_archive));
        }
        self.archive.sync()?;
        self.work(again, options, progress, report)?;
        report.damaged.clear();
        let there = self.parts()?;
        for ((path, part), why) in lost {
            // What was kept beside a log is not always known to the catalogue.
            let kept = path.exists() || packed(&path).exists();
            if there.contains(&(path.clone(), part)) && kept {
                report.kept_again += 1;
            } else {
                report.lost += 1;
                report.problem(Problem::new(&path, format!("lost: {why}")));
            }
        }
        Ok(())
    }
}

impl Damaged {
    /// Compares what the old catalogue knew with what the archive has.
    fn compare(&mut self, known: Vec<Remembered>, sources: &[Source]) {
        let state = |source: &Source| source.versions.last().map(|last| (last.version, last.size));
        let keys: HashMap<String, &Source> = sources
            .iter()
            .map(|source| (source.key.id().to_string(), source))
            .collect();
        let parts: HashMap<(&Path, Option<&str>), &Source> = sources
            .iter()
            .map(|source| ((&*source.key.path, source.key.part.as_deref()), source))
            .collect();
        for log in known {
            let of = (&*log.path, log.part.as_deref());
            let session = || match &log.run_id {
                Some(id) => format!("session {id}"),
                None => "it".to_owned(),
            };
            let why = match keys.get(&log.key).or_else(|| parts.get(&of)) {
                None => format!(
                    "the catalogue knew {}, and the archive has nothing of it",
                    session()
                ),
                Some(source) if log.read.is_some_and(|read| state(source) < Some(read)) => {
                    let left = state(source).map_or(0, |(_, size)| size);
                    format!(
                        "the archive has lost the end of {}: {left} bytes are left",
                        session()
                    )
                }
                Some(_) => continue,
            };
            self.lost.entry((log.path, log.part)).or_insert(why);
        }
    }

    /// Looks at what is not read when the catalogue is made: earlier versions, and what is kept beside logs.
    fn look_beside(&mut self, store: &Store, logs: &[Source], beside: &[Source]) {
        let earlier = logs.iter().filter_map(|source| {
            let (_, earlier) = source.versions.split_last()?;
            Some((source, earlier))
        });
        let beside = beside.iter().map(|source| (source, &source.versions[..]));
        for (source, versions) in earlier.chain(beside) {
            let damage = versions
                .iter()
                .find_map(|version| store.archive.check(version).err());
            if let Some(error @ ArchiveError::Chunk { .. }) = damage {
                let key = source.key.id().to_string();
                self.sources.insert(key, error.to_string());
            }
        }
    }
}

/// A log that once seemed to be another agent's was kept as that as well: the last counts.
pub(super) fn latest(sources: Vec<Source>) -> Vec<Source> {
    let mut last: BTreeMap<Part, Source> = BTreeMap::new();
    let taken = |source: &Source| source.versions.last().map(|last| last.taken);
    for source in sources {
        let of = (source.key.path.clone(), source.key.part.clone());
        match last.get(&of) {
            Some(other) if taken(other) > taken(&source) => {}
            _ => drop(last.insert(of, source)),
        }
    }
    last.into_values().collect()
}

/// The logs that a catalogue knows, as far as it can be read.
fn remembered(path: &Path, report: &mut Report) -> Vec<Remembered> {
    let (known, unread) = SqliteCatalogue::remembered(path);
    if let Some(why) = unread {
        let what = format!(
            "the old catalogue can be read only in part ({why}), so it cannot be told whether the archive has lost \
             other logs that it knew"
        );
        report.problem(Problem::new(path, what));
    }
    known
}

/// The log that a damaged manifest is about, where it still says.
fn named(bytes: &[u8]) -> Option<Part> {
    let text = |key: &str| -> Option<String> {
        let at = bytes
            .windows(key.len())
            .position(|it| it == key.as_bytes())?
            + key.len();
        let mut values = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<String>();
        values.next()?.ok()
    };
    let path = text("\"path\":")?;
    Some((
        path.into(),
        text("\"part\":").filter(|part| !part.is_empty()),
    ))
}
