//! Reading what the archive has.

use std::io::Read as _;
use std::sync::atomic::Ordering;

use super::Progress;
use super::keep::{BY_PLACE, Done, Input, KeepError, Keeper, PIECE, SIDECAR};
use super::pass::{Pass, PassReading, Taken};
use super::plan::BESIDE;
use super::report::Problem;
use crate::archive::{self, SourceKey};
use crate::catalogue::Stamp;

impl Keeper<'_> {
    /// Reads what the archive has of a source.
    pub(super) fn archived(&self, source: &archive::Source, progress: &Progress) -> Done {
        let key = &source.key;
        match self.try_archived(source, progress) {
            Ok(read) => Done::Read(Box::new(read)),
            Err(error) => Done::Damaged {
                key: key.id().to_string(),
                problem: Problem::new(&key.path, error.to_string()),
            },
        }
    }

    fn try_archived(
        &self,
        source: &archive::Source,
        progress: &Progress,
    ) -> Result<PassReading, KeepError> {
        let Some(snapshot) = source.versions.last() else {
            return Err(KeepError::Nothing);
        };
        let key = &source.key;
        let nanos = snapshot
            .modified
            .and_then(|at| i64::try_from(at.as_nanosecond()).ok());
        let stamp = Stamp {
            size: snapshot.size,
            modified: nanos,
            ..Stamp::default()
        };
        // How it was read when it was kept is of use where its content alone no longer tells, and decides
        // where it never did.
        let meta = |key| snapshot.meta.as_ref().and_then(|meta| meta.get(key));
        let before = meta("dialect").and_then(|name| quipu_agents::dialect(name.as_str()?));
        let by_place = before.is_some() && meta(BY_PLACE).is_some();
        let found = match before {
            // So does who took it out of something that holds many.
            Some(before) if by_place || key.part.is_some() => Some(before),
            _ => crate::transcript::identify(self.archive, snapshot)?.or(before),
        };
        let input = Input {
            key: key.clone(),
            path: &key.path,
            part: key.part.as_deref(),
            stamp,
            dialect: found,
            by_place,
            recorded: false,
        };
        let mut sidecars = Vec::new();
        if let Some((family, _)) = found {
            for beside in family.sidecars(&key.path) {
                let of = SourceKey::new(key.agent.clone(), beside.clone()).with_part(BESIDE);
                if let Some(kept) = self.archive.latest(&of)? {
                    let mut bytes = Vec::new();
                    self.archive
                        .read(&kept)
                        .take(SIDECAR)
                        .read_to_end(&mut bytes)?;
                    let name = beside.file_name().unwrap_or_default();
                    sidecars.push((name.to_string_lossy().into_owned(), bytes));
                }
            }
        }
        let id = key.id().to_string();
        let mut reading = Pass::new(self, &input, &id, None);
        let mut from = self.archive.read(snapshot);
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece)?;
            if read == 0 {
                break;
            }
            reading.push(&piece[..read]);
            progress
                .bytes_done
                .fetch_add(read as u64, Ordering::Relaxed);
        }
        let size = snapshot.size;
        let taken = Taken::of(snapshot);
        Ok(reading.done(&input, &id, &key.agent, &taken, &sidecars, size, 0))
    }
}
