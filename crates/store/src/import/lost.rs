//! Noticing what the archive has lost.
//!
//! A log that has not changed is not read again, so nobody would notice when what was kept of it is gone. What is
//! known of such a log is not relied upon any more: if its agent still has it, it is kept again.

use std::collections::HashSet;
use std::path::PathBuf;

use super::report::{Problem, Report};
use super::{BESIDE, ImportError, Store};
use crate::catalogue::SourceRow;

/// A log whose manifest is gone, or has lost its end.
pub(super) struct Lost {
    key: String,
    path: PathBuf,
}

impl Store {
    /// Whether the archive has less of a log than the catalogue knows. Only the manifest is looked at, from outside.
    pub(crate) fn has_lost(&self, row: &SourceRow) -> bool {
        let is_kept = row.part.as_deref() != Some("") && !row.is_in_place();
        let less = match (self.archive.manifest_len(&row.key), row.manifest) {
            (None, _) => true,
            (Some(len), Some(end)) => len < end,
            (Some(len), None) => len == 0,
        };
        is_kept && less
    }

    /// Finds logs that the archive has lost, and puts down that what is known of them is not to be relied upon.
    pub(super) fn lost(
        &self,
        sources: &mut Vec<SourceRow>,
        dry_run: bool,
    ) -> Result<Vec<Lost>, ImportError> {
        let mut lost = Vec::new();
        let (mut beside, mut holders) = (HashSet::new(), HashSet::new());
        for row in sources.iter().filter(|row| self.has_lost(row)) {
            match row.part.as_deref() {
                Some(BESIDE) => drop(beside.insert(row.path.clone())),
                Some(_) => drop(holders.insert(row.path.clone())),
                None => {}
            }
            lost.push(Lost {
                key: row.key.clone(),
                path: row.path.clone(),
            });
        }
        if lost.is_empty() {
            return Ok(lost);
        }
        let mut keys: HashSet<String> = lost.iter().map(|lost| lost.key.clone()).collect();
        for row in sources.iter().filter(|row| row.part.is_none()) {
            let family = row.dialect.as_deref().and_then(quipu_agents::dialect);
            let mut sidecars = family.into_iter().flat_map(|it| it.0.sidecars(&row.path));
            if sidecars.any(|path| beside.contains(&path)) {
                keys.insert(row.key.clone());
            }
        }
        for row in sources.iter_mut().filter(|row| keys.contains(&row.key)) {
            row.adapters = 0;
        }
        // What holds many sessions has to be looked into again.
        let is_whole = |row: &SourceRow| row.part.as_deref() == Some("");
        sources.retain(|row| !(is_whole(row) && holders.contains(&row.path)));
        if !dry_run {
            let (keys, holders) = (sorted(keys), sorted(holders));
            self.catalogue.at_once(|| {
                for key in &keys {
                    self.catalogue.distrust(key)?;
                }
                for path in &holders {
                    self.catalogue.forget_whole(path)?;
                }
                Ok::<(), ImportError>(())
            })?;
        }
        Ok(lost)
    }

    /// Says what became of logs that the archive had lost.
    pub(super) fn report_lost(&self, lost: Vec<Lost>, report: &mut Report) {
        for Lost { key, path } in lost {
            if self.archive.manifest_len(&key).is_some_and(|len| len > 0) {
                report.kept_again += 1;
                continue;
            }
            report.lost += 1;
            let what = if path.exists() {
                "the archive has lost what it kept of this log; `quipu import` keeps it again"
            } else {
                "lost: the archive has nothing of this log any more, nor has its agent; `quipu import --rebuild` takes \
                 it off the list"
            };
            report.problem(Problem::new(&path, what));
        }
    }
}

fn sorted<T: Ord>(set: HashSet<T>) -> Vec<T> {
    let mut all: Vec<T> = set.into_iter().collect();
    all.sort();
    all
}
