//! Databases and trees that hold many sessions.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use quipu_agents::{FAMILIES, Family, Gather, Gathered, Head, Ledger, Session, Summary};

use super::find::{self, Candidate};
use super::keep::{Done, Input, KeepError, Keeper, failed};
use super::pass::PassReading;
use super::report::Problem;
use super::{Progress, database};
use crate::archive::SourceKey;
use crate::catalogue::{Passed, Reading, SourceRow, Stamp};
use crate::hide::Hide;

impl Keeper<'_> {
    /// Takes sessions out of something that holds many.
    pub(super) fn many(
        &self,
        candidate: &Candidate,
        progress: &Progress,
        take: &mut dyn FnMut(Done),
    ) {
        if let Err(error) = self.try_many(candidate, progress, take) {
            take(failed(&candidate.path, error));
        }
    }

    fn try_many(
        &self,
        candidate: &Candidate,
        progress: &Progress,
        take: &mut dyn FnMut(Done),
    ) -> Result<(), KeepError> {
        let path = &candidate.path;
        if path.is_dir() {
            let from = Gathered::Tree(path);
            return self.parts(candidate, candidate.place, &from, progress, take);
        }
        let mut file = File::open(path)?;
        if !database::is_database(&mut file)? {
            let from = Gathered::File(path);
            return self.parts(candidate, candidate.place, &from, progress, take);
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
            (None, None) => {
                take(Done::Unknown { path: path.clone() });
                return Ok(());
            }
        };
        if let Some(damage) = copy.damage() {
            let what = format!(
                "the database is damaged, so some of what was in it may be missing here: {damage}"
            );
            self.say(Problem::new(path, what));
        }
        let from = Gathered::Database(copy.connection());
        self.parts(candidate, place, &from, progress, take)
    }

    fn parts(
        &self,
        candidate: &Candidate,
        place: Option<(&'static str, &'static dyn Family)>,
        from: &Gathered<'_>,
        progress: &Progress,
        take: &mut dyn FnMut(Done),
    ) -> Result<(), KeepError> {
        let path = &candidate.path;
        let Some((brand, family)) = place else {
            take(Done::Unknown { path: path.clone() });
            return Ok(());
        };
        let Some(gather) = family.gather() else {
            take(Done::Unknown { path: path.clone() });
            return Ok(());
        };
        if !find::wanted(&self.agents, brand) {
            return Ok(());
        }
        let mut hide = Hide::new(&self.guard);
        let mut masked = |part: Option<String>| {
            let mut address = (path.clone(), part);
            hide.address(&mut address.0, &mut address.1);
            address
        };
        let known: HashMap<String, SourceRow> = {
            let rows = self.catalogue.sources_at(&masked(None).0)?;
            rows.into_iter()
                .filter_map(|row| Some((row.part.clone()?, row)))
                .collect()
        };
        let (mut all, mut same) = (true, true);
        for part in gather.parts(from)? {
            let stamp = Stamp {
                part: Some(part.stamp.clone()),
                ..Stamp::default()
            };
            let unchanged = masked(Some(part.id.clone()))
                .1
                .and_then(|id| known.get(&id))
                .is_some_and(|row| row.stamp.part == stamp.part && row.is_current());
            if progress.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if unchanged {
                continue;
            }
            same = false;
            let of = Part {
                path,
                brand,
                family,
                gather,
                id: &part.id,
                stamp,
            };
            match self.part(&of, from, progress) {
                Ok(read) => take(Done::Read(Box::new(read))),
                // The others may be all right.
                Err(error) => {
                    all = false;
                    take(failed(path, error));
                }
            }
        }
        if path.is_dir() && same && !known.is_empty() {
            take(Done::Unchanged);
        }
        // That all of it was looked at: the next time it need not be, unless it has changed.
        if path.is_file() && all {
            take(Done::Looked(Box::new(seen(candidate, brand, ""))));
        }
        Ok(())
    }

    /// Keeps and reads one session of several.
    fn part(
        &self,
        part: &Part<'_>,
        from: &Gathered<'_>,
        progress: &Progress,
    ) -> Result<PassReading, KeepError> {
        let mut file = tempfile::tempfile_in(self.temporary_directory()?)?;
        {
            let buffered = io::BufWriter::with_capacity(1 << 16, &mut file);
            let mut rows = quipu_agents::rows::Counted::new(buffered);
            part.gather.write(from, part.id, &mut rows)?;
            io::Write::flush(&mut rows)?;
            if rows.too_long() > 0 {
                let what = format!(
                    "cells of more than {} bytes are left out ({} in session {}); their place says how long they were",
                    quipu_agents::rows::LONGEST,
                    rows.too_long(),
                    part.id
                );
                self.say(Problem::new(part.path, what));
            }
        }
        let mut file = self.scrubbed(file, part.path)?;
        let size = file.metadata()?.len();
        let input = Input {
            key: SourceKey::new(part.brand, part.path).with_part(part.id),
            path: part.path,
            part: Some(part.id),
            stamp: Stamp {
                size,
                ..part.stamp.clone()
            },
            dialect: Some((part.family, part.gather.dialect())),
            by_place: false,
            recorded: false,
        };
        self.read(&input, &mut file, size, part.brand, &[], progress)
    }

    pub(super) fn temporary_directory(&self) -> Result<&Path, KeepError> {
        quipu_files::create_directory(&self.temporary)?;
        Ok(&self.temporary)
    }
}

/// One session of several.
struct Part<'p> {
    path: &'p Path,
    brand: &'p str,
    family: &'static dyn Family,
    gather: &'p dyn Gather,
    id: &'p str,
    stamp: Stamp,
}

/// A reading that says no more than what a file looked like: one that is only kept, or a database that was
/// looked at as a whole (`part` is then empty).
pub(super) fn seen(candidate: &Candidate, brand: &str, part: &str) -> Reading {
    let of = if part.is_empty() { "(all)" } else { part };
    let key = SourceKey::new(brand, candidate.path.clone()).with_part(of);
    Reading {
        key: key.id().to_string(),
        agent: brand.to_owned(),
        dialect: None,
        path: candidate.path.clone(),
        part: Some(part.to_owned()),
        stamp: candidate.stamp.clone(),
        version: 0,
        read_to: 0,
        manifest: None,
        checkpoint: None,
        ledger: Ledger::default(),
        session: Session::default(),
        summary: Summary::default(),
        blobs: Vec::new(),
        first_modified: None,
        passes: Passed::default(),
        problem: None,
        received: None,
    }
}
