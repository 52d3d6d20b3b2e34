//! Forgetting sessions: what was kept of them, and what is known of them.
//!
//! Only what is ours goes. The logs of agents are not touched, and one that is still there is imported
//! again by the next import.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use quipu_model::Timestamp;

use super::{BESIDE, ImportError, Store};
use crate::archive::{Source, SourceKey, Swept};
use crate::blobs::gc::{self, GcError};
use crate::catalogue::TranscriptRow;
use crate::events::Events;
use crate::live::What;
use crate::search::indexing::Indexing;
use crate::transcript::located;

/// A transcript, and what the archive has of it.
#[derive(Debug, Clone)]
pub struct Holding {
    /// The transcript.
    pub row: TranscriptRow,
    /// Its log, and what was kept beside it for its sake.
    pub sources: Vec<Source>,
}

impl Store {
    /// What the archive has of these transcripts.
    pub fn holdings(&self, rows: Vec<TranscriptRow>) -> Result<Vec<Holding>, ImportError> {
        let mut holdings = Vec::new();
        // What a session keeps beside its log is in a directory of the same name.
        let mut directories: HashMap<(String, PathBuf), usize> = HashMap::new();
        let mut files: HashMap<(String, PathBuf), usize> = HashMap::new();
        for row in rows {
            let at = holdings.len();
            let found = located(&self.archive, &row)?;
            let mut key = SourceKey::new(row.agent.clone(), found.path.clone());
            if let Some(part) = &found.part {
                key = key.with_part(part);
            } else {
                let directory = found.path.with_extension("");
                directories.insert((row.agent.clone(), directory), at);
                let dialect = row.dialect.as_deref().and_then(quipu_agents::dialect);
                for beside in dialect
                    .into_iter()
                    .flat_map(|it| it.0.sidecars(&found.path))
                {
                    files.insert((row.agent.clone(), beside), at);
                }
            }
            drop(found);
            let sources = self.archive.source(&key)?.into_iter().collect();
            holdings.push(Holding { row, sources });
        }
        if directories.is_empty() {
            return Ok(holdings);
        }
        // A manifest that is damaged cannot be told whose it is; a sweep will complain of it.
        for source in self.archive.sources().flatten() {
            if source.key.part.as_deref() != Some(BESIDE) {
                continue;
            }
            let key = |path: &std::path::Path| (source.key.agent.clone(), path.to_owned());
            let owner = files.get(&key(&source.key.path)).or_else(|| {
                let mut above = source.key.path.ancestors().skip(1);
                above.find_map(|directory| directories.get(&key(directory)))
            });
            if let Some(owner) = owner {
                holdings[*owner].sources.push(source);
            }
        }
        Ok(holdings)
    }

    /// Removes blobs that neither a transcript nor a trace refers to, but for young ones. In doubt nothing goes:
    /// `quipu agentlog gc` says what the doubt is.
    fn sweep_blobs(&self, now: Timestamp) -> Result<(), ImportError> {
        match gc::collect_locked(&self.home, Some(&*self.catalogue), now, true) {
            Err(GcError::Store(error)) => Err(error),
            Err(GcError::Catalogue(error)) => Err(error.into()),
            Err(GcError::Blobs(error)) => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Takes what was forgotten out of the search index, and out of its files.
    fn purge_index(&self) -> Result<(), ImportError> {
        if self.catalogue.dead_passes()?.is_empty() {
            return Ok(());
        }
        let (indexing, adding) = Indexing::open(&self.home, &*self.catalogue, 1, 0, self.guard()?)?;
        adding.purge(&indexing, &*self.catalogue)
    }

    /// Forgets transcripts, and removes what nothing else needs.
    pub fn prune(&self, holdings: &[Holding], now: Timestamp) -> Result<Swept, ImportError> {
        let _lock = self.lock_soon()?;
        // The archive first: what is left after a crash is still listed, and can be forgotten again.
        for source in holdings.iter().flat_map(|holding| &holding.sources) {
            self.archive.forget(&source.key)?;
        }
        self.archive.sync()?;
        let events = Events::of(&self.home);
        for holding in holdings {
            events
                .remove(&holding.row.key)
                .map_err(|error| super::refused(error.path)(error.source))?;
        }
        // What was a copy of something that goes is a copy no longer.
        let mut left = Vec::new();
        for holding in holdings {
            left.extend(self.catalogue.compared_with(&holding.row.key)?);
        }
        self.catalogue.at_once(|| {
            for holding in holdings {
                self.catalogue.forget(&holding.row.key)?;
                // Also what was kept beside it, and that its database was looked at: should the agent still
                // have any of it, the next import is to find it new.
                for source in &holding.sources {
                    self.catalogue.forget(&source.key.id().to_string())?;
                }
                self.catalogue.forget_whole(&holding.row.path)?;
            }
            Ok::<(), ImportError>(())
        })?;
        let keys = holdings.iter().map(|holding| holding.row.key.clone());
        self.say(What::Forgotten, keys);
        self.sweep_blobs(now)?;
        let gone: HashSet<i64> = holdings.iter().map(|holding| holding.row.id).collect();
        left.retain(|id| !gone.contains(id));
        super::link::settle(self, &left, &mut super::Report::default())?;
        self.purge_index()?;
        Ok(self.archive.sweep(now, false)?)
    }
}
