//! Databases and trees that hold many sessions.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use quipu_agents::{FAMILIES, Family, Gathered, Head, Ledger, Session, Summary};

use super::find::{self, Candidate};
use super::keep::{Done, Input, KeepError, Keeper, failed};
use super::{Progress, database};
use crate::archive::SourceKey;
use crate::catalogue::{Reading, SourceRow, Stamp};

impl Keeper<'_> {
    /// Takes sessions out of something that holds many.
    pub(super) fn many(&self, candidate: &Candidate, progress: &Progress) -> Vec<Done> {
        match self.try_many(candidate, progress) {
            Ok(done) => done,
            Err(error) => vec![failed(&candidate.path, error)],
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
        let copy = database::Copy::of(path, self.temporary_directory()?)?;
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
            let mut file = tempfile::tempfile_in(self.temporary_directory()?)?;
            {
                let mut buffered = io::BufWriter::with_capacity(1 << 16, &mut file);
                gather.write(from, &part.id, &mut buffered)?;
                io::Write::flush(&mut buffered)?;
            }
            let size = file.metadata()?.len();
            let input = Input {
                key: SourceKey::new(brand, path.clone()).with_part(&part.id),
                path,
                part: Some(&part.id),
                stamp: Stamp { size, ..stamp },
                dialect: Some((family, gather.dialect())),
            };
            match self.read(&input, &mut file, size, brand, &[], progress) {
                Ok(read) => done.push(Done::Read(Box::new(read))),
                Err(error) => done.push(failed(path, error)),
            }
        }
        // That all of it was looked at: the next time it need not be, unless it has changed.
        if path.is_file() {
            done.push(Done::Looked(Box::new(seen(candidate, brand, Some("")))));
        }
        Ok(done)
    }

    pub(super) fn temporary_directory(&self) -> Result<&Path, KeepError> {
        super::make_private(&self.temporary)?;
        Ok(&self.temporary)
    }
}

/// A reading that says no more than what a file looked like: one that is only kept, or a database that was
/// looked at as a whole (`part` is then empty).
pub(super) fn seen(candidate: &Candidate, brand: &str, part: Option<&str>) -> Reading {
    let mut key = SourceKey::new(brand, candidate.path.clone());
    if part.is_some() {
        key = key.with_part("\0all");
    }
    Reading {
        key: key.id().to_string(),
        agent: brand.to_owned(),
        dialect: None,
        path: candidate.path.clone(),
        part: part.map(str::to_owned),
        stamp: candidate.stamp.clone(),
        version: 0,
        read_to: 0,
        checkpoint: None,
        ledger: Ledger::default(),
        session: Session::default(),
        summary: Summary::default(),
        problem: None,
    }
}

fn poisoned() -> io::Error {
    io::Error::other("another thread failed while it used the catalogue")
}
