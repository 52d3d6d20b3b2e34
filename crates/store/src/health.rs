//! Whether what is kept is sound.
//!
//! Each part is looked at by itself and against the others, from the catalogue to the archive and back. Nothing here
//! fails: what cannot be looked at is a finding like any other. Every finding that a command can do something about
//! is healed by `quipu import --rebuild`, or by `quipu import` where that is said.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use quipu_search::index::{Index as _, TantivyIndex};

use crate::archive::{Archive, Usage};
use crate::blobs::{BlobError, BlobId, Blobs};
use crate::events::{ALL, Events, Fault};
use crate::import::{BESIDE, Store};
use crate::search::{index_path, indexing};

/// What was found.
#[derive(Debug, Default)]
pub struct Health {
    /// How much the archive holds.
    pub usage: Usage,
    /// How many snapshots were read and compared with their names, if they were.
    pub checked: Option<u64>,
    /// What is wrong with the catalogue.
    pub catalogue: Vec<String>,
    /// What is wrong with the archive.
    pub archive: Vec<String>,
    /// Logs that the catalogue knows and the archive has lost, wholly or in part.
    pub lost: Vec<PathBuf>,
    /// Logs that are kept and not in the catalogue.
    pub uncatalogued: u64,
    /// What is wrong with blobs that sessions use.
    pub blobs: Vec<String>,
    /// Blobs that are damaged and that no session uses.
    pub loose_blobs: Vec<String>,
    /// What is wrong with the events of sessions. The next import, or whoever asks for them, makes them again.
    pub events: Vec<String>,
    /// Sessions whose events are not kept.
    pub without_events: u64,
    /// What is wrong with the search index.
    pub index: Vec<String>,
    /// Why the next import makes the search index anew.
    pub index_anew: Option<String>,
    /// Sessions that cannot be searched because they are not in the index.
    pub not_indexed: u64,
    /// Logs that an earlier version read, which masked fewer secrets. The next import reads them again.
    pub outdated: u64,
}

impl Health {
    /// Looks at a home. With `all`, everything is read and compared with its name; otherwise it is only looked at
    /// whether it is there. Without a store, because the catalogue cannot be used, the rest is still looked at.
    pub fn of(home: &Path, store: Option<&Store>, all: bool) -> Self {
        let mut health = Self::default();
        if let Some(store) = store {
            health.catalogue = store.catalogue().damages(all);
            match store.catalogue().outdated() {
                Ok(logs) => health.outdated = logs,
                Err(error) => health.catalogue.push(error.to_string()),
            }
        }
        match Archive::open(&home.join("archive")) {
            Ok(archive) => health.look_at_archive(&archive, store, all),
            Err(error) => health.archive.push(error.to_string()),
        }
        match Blobs::open(&home.join("blobs")) {
            Ok(blobs) => health.look_at_blobs(&blobs, store, all),
            Err(error) => health.blobs.push(error.to_string()),
        }
        health.look_at_events(home, store, all);
        health.look_at_index(home, store, all);
        health
    }

    fn look_at_events(&mut self, home: &Path, store: Option<&Store>, all: bool) {
        let events = Events::of(home);
        let keys = store.map(|store| store.catalogue().kept_keys());
        for key in keys.into_iter().flatten().flatten() {
            let looked_at = match events.open(&key) {
                Ok(file) if all => file.check(&ALL),
                opened => opened.map(drop),
            };
            match looked_at {
                Ok(()) => {}
                Err(Fault::Missing) => self.without_events += 1,
                Err(fault) => self.events.push(fault.to_string()),
            }
        }
    }

    fn look_at_archive(&mut self, archive: &Archive, store: Option<&Store>, all: bool) {
        match archive.usage() {
            Ok(usage) => self.usage = usage,
            Err(error) => self.archive.push(error.to_string()),
        }
        let rows = match store.map(|store| store.catalogue().sources()) {
            Some(Ok(rows)) => Some(rows),
            Some(Err(error)) => {
                self.catalogue.push(error.to_string());
                None
            }
            None => None,
        };
        // By name, not by agent: what once seemed to be another agent's log is still kept as that.
        let known: Option<HashSet<(&Path, Option<&str>)>> = rows.as_ref().map(|rows| {
            let named = rows.iter();
            named
                .map(|row| (row.path.as_path(), row.part.as_deref()))
                .collect()
        });
        // A path that holds a secret is masked in the catalogue.
        let keys: HashSet<&str> = rows.iter().flatten().map(|row| &*row.key).collect();
        let mut kept: HashMap<String, (u32, u64)> = HashMap::new();
        let mut checked = 0;
        for manifest in archive.manifests() {
            let source = match manifest.and_then(|manifest| {
                let source = manifest.source?;
                Ok((manifest.id, source))
            }) {
                Ok((id, source)) => {
                    if let Some(last) = source.versions.last() {
                        kept.insert(id.to_string(), (last.version, last.size));
                    }
                    source
                }
                Err(error) => {
                    self.archive.push(error.to_string());
                    continue;
                }
            };
            let is_log = source.key.part.as_deref() != Some(BESIDE);
            if let Some(known) = &known {
                let of = (source.key.path.as_path(), source.key.part.as_deref());
                let is_known = known.contains(&of) || keys.contains(&*source.key.id().to_string());
                self.uncatalogued += u64::from(is_log && !is_known);
            }
            for version in &source.versions {
                checked += u64::from(all);
                let sound = if all {
                    archive.check(version)
                } else {
                    archive.glance(version)
                };
                if let Err(error) = sound {
                    self.archive.push(error.to_string());
                }
            }
        }
        self.checked = all.then_some(checked);
        // Two logs may share a chunk.
        self.archive.dedup();
        let (Some(rows), Some(store)) = (&rows, store) else {
            return;
        };
        for row in rows {
            // A crash may leave the archive ahead of the catalogue, and that is nothing; but never behind it.
            let behind = kept
                .get(&row.key)
                .is_some_and(|there| *there < (row.version, row.read_to));
            if store.has_lost(row) || (row.version > 0 && behind) {
                self.lost.push(row.path.clone());
            }
        }
    }

    fn look_at_blobs(&mut self, blobs: &Blobs, store: Option<&Store>, all: bool) {
        let used = match store.map(|store| store.catalogue().blobs()) {
            Some(Ok(used)) => used,
            Some(Err(error)) => {
                self.catalogue.push(error.to_string());
                Vec::new()
            }
            None => Vec::new(),
        };
        let mut seen = HashSet::new();
        for id in used.iter().filter_map(|name| name.parse::<BlobId>().ok()) {
            seen.insert(id);
            let found = if all {
                blobs.get(&id).err()
            } else {
                let path = blobs.path(&id);
                (!path.is_file()).then_some(BlobError::Missing(path))
            };
            self.blobs.extend(found.map(|error| error.to_string()));
        }
        if !all {
            return;
        }
        for id in blobs.iter() {
            match id {
                Ok(id) if seen.contains(&id) => {}
                Ok(id) => {
                    let damage = blobs.get(&id).err().map(|error| error.to_string());
                    self.loose_blobs.extend(damage);
                }
                Err(error) => self.blobs.push(error.to_string()),
            }
        }
    }

    fn look_at_index(&mut self, home: &Path, store: Option<&Store>, all: bool) {
        let Some(store) = store else {
            return;
        };
        match indexing::unfit(home, store.catalogue()) {
            Ok(why) => self.index_anew = why,
            Err(error) => self.catalogue.push(error.to_string()),
        }
        if self.index_anew.is_some() {
            return;
        }
        match store.catalogue().count_not_indexed() {
            Ok(sessions) => self.not_indexed = sessions,
            Err(error) => self.catalogue.push(error.to_string()),
        }
        match TantivyIndex::open(&index_path(home)) {
            Ok(Some(index)) => self.index = index.damages(all),
            Ok(None) => {}
            Err(error) => self.index.push(error.to_string()),
        }
    }
}
