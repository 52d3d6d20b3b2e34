//! What is to be done: which logs have to be looked at.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use quipu_agents::Family;

use super::database;
use super::find::{self, Candidate, Found};
use super::report::Report;
use super::runs::Run;
use crate::archive;
use crate::catalogue::SourceRow;

/// What files are filed under that are kept beside a log, so that they are never taken for one.
pub const BESIDE: &str = "(beside)";

/// What is to be done.
pub(super) enum Job {
    /// A file, or everything in a database or tree.
    Found(Candidate),
    /// What the archive has of a source.
    Archived(archive::Source),
    /// A recorded run or a trace.
    Run(Run),
}

impl Job {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Found(candidate) => candidate.stamp.size,
            Self::Archived(source) => source.versions.last().map_or(0, |last| last.size),
            Self::Run(run) => run.stamp.size,
        }
    }

    /// The key of what the archive has.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Self::Found(_) | Self::Run(_) => None,
            Self::Archived(source) => Some(source.key.id().to_string()),
        }
    }

    /// The log.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Found(candidate) => &candidate.path,
            Self::Archived(source) => &source.key.path,
            Self::Run(run) => &run.path,
        }
    }

    pub(super) fn brand(&self) -> Option<&str> {
        match self {
            Self::Found(candidate) => candidate.place.map(|place| place.0),
            Self::Archived(source) => Some(&source.key.agent),
            Self::Run(run) => Some(run.agent()),
        }
    }

    /// What the archive has of a log. What is only kept is not read.
    pub(super) fn of_archive(source: archive::Source) -> Option<Self> {
        let kept_only = source.key.part.as_deref() == Some(BESIDE);
        (!kept_only).then_some(Self::Archived(source))
    }
}

/// Decides whether a candidate has to be looked at.
pub(super) fn plan(
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
        Found::Keep => row.part.as_deref() == Some(BESIDE),
        Found::Log => row.part.is_none(),
    });
    if seen.is_some_and(|row| row.unchanged(&candidate.stamp)) {
        report.unchanged += 1;
    } else {
        jobs.push(Job::Found(candidate));
    }
}

/// The path of a log without the ending of compressed ones: it is the same log.
pub(super) fn plain_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(ending) if ending == "zst" => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// What stands for the documents beside a log: they may change when the log does not.
fn sidecar_stamp(family: &dyn Family, log: &Path) -> Option<String> {
    let stamps: Vec<String> = family
        .sidecars(log)
        .iter()
        .filter_map(|beside| fs::metadata(beside).ok())
        .map(|metadata| find::stamp(&metadata))
        .map(|stamp| format!("{}:{}", stamp.size, stamp.modified.unwrap_or(0)))
        .collect();
    (!stamps.is_empty()).then(|| stamps.join(";"))
}
