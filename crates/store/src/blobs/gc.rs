//! Collecting blobs that nothing refers to any more.
//!
//! A blob is used by an imported session (the catalogue knows) or by a trace (its index knows). A blob that
//! is younger than an hour is left: whoever put it may be about to refer to it. When it cannot be told what
//! is used, nothing is collected.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use super::{BlobError, BlobId};
use crate::FileError;
use crate::Store;
use crate::catalogue::{Catalogue, CatalogueError};
use crate::import::{self, ImportError};
use crate::traces::{TraceError, Traces};

/// A blob is left for so long after it was last put.
const YOUNG: SignedDuration = SignedDuration::from_hours(1);

/// What can be collected, or was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs that nothing refers to, with their sizes, in order.
    pub unused: Vec<(BlobId, u64)>,
    /// Blobs that nothing refers to, but that are too young to tell.
    pub young: u64,
    /// Blobs that something refers to.
    pub used: u64,
}

impl Collected {
    /// How large what is not used is in all.
    pub fn bytes(&self) -> u64 {
        self.unused.iter().map(|(_, size)| size).sum()
    }
}

/// Why nothing was collected.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The catalogue is being made again, and does not know yet what all sessions use.
    #[error("the catalogue of {} is not whole: an import of the archive was not finished; `quipu import` finishes it", .0.display())]
    Rebuilding(PathBuf),
    /// A trace cannot be read, so what it refers to is not known.
    #[error("{} cannot be read, so it is not known what it refers to: {why}", path.display())]
    Unreadable {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A trace refers to more blobs than are remembered, or has a line that is too long to be looked at.
    #[error(
        "{0} has more references than are remembered, or a line that is too long to be looked at, so it is not known which blobs are not used"
    )]
    TooMany(String),
    /// Traces could not be used.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] ImportError),
    /// The catalogue could not be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Blobs could not be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The operating system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Finds blobs of a home that nothing refers to, and removes them when `remove` says so.
///
/// # Errors
///
/// When it cannot be told what is used, or the system refuses.
pub fn collect(home: &Path, now: Timestamp, remove: bool) -> Result<Collected, GcError> {
    refuse_unfinished(home)?;
    if !home.join("blobs").is_dir() {
        return Ok(Collected::default());
    }
    // Held to the end, so that nothing is imported between looking and removing.
    let _lock = remove.then(|| import::lock(home)).transpose()?;
    let store = Store::open_existing(home)?;
    if let Some(store) = &store {
        refresh_runs(store, remove)?;
    }
    let catalogue = store.as_ref().map(Store::catalogue);
    collect_locked(home, catalogue, now, remove)
}

/// As [`collect`], for one who holds the lock of the home where something is to be removed.
pub(crate) fn collect_locked(
    home: &Path,
    catalogue: Option<&dyn Catalogue>,
    now: Timestamp,
    remove: bool,
) -> Result<Collected, GcError> {
    refuse_unfinished(home)?;
    let blobs = super::Blobs::open(&home.join("blobs"))?;
    let traces = traces_of(home)?;
    let mut collected = Collected::default();
    for id in blobs.iter() {
        let id = id?;
        let in_session = match catalogue {
            Some(catalogue) => catalogue.uses_blob(&id.to_string())?,
            None => false,
        };
        let in_trace = match &traces {
            Some(traces) => traces.uses_blob(&id)?,
            None => false,
        };
        if in_session || in_trace {
            collected.used += 1;
            continue;
        }
        let Some(look) = blobs.look(&id)? else {
            continue;
        };
        if look
            .written
            .is_none_or(|written| now.duration_since(written) < YOUNG)
        {
            collected.young += 1;
            continue;
        }
        if remove {
            blobs.remove(&id)?;
        }
        collected.unused.push((id, look.len));
    }
    if remove {
        blobs.sweep_temporary(now)?;
        if let Some(traces) = &traces {
            traces.sweep_temporary(now)?;
        }
    }
    Ok(collected)
}

/// Brings the catalogue up to date with recorded runs and traces: nobody may have looked at them since.
fn refresh_runs(store: &Store, locked: bool) -> Result<(), GcError> {
    let mut report = import::Report::default();
    if locked {
        store.refresh_runs_locked(&mut report)?;
    } else {
        report = store.refresh_runs()?;
    }
    match report.problems.into_iter().next() {
        Some(problem) => Err(GcError::Unreadable {
            path: problem.path,
            why: problem.what,
        }),
        None => Ok(()),
    }
}

fn refuse_unfinished(home: &Path) -> Result<(), GcError> {
    if home.join("rebuild.pending").exists() {
        return Err(GcError::Rebuilding(home.to_owned()));
    }
    Ok(())
}

/// The traces of a home, when it is known of all of them what they refer to.
fn traces_of(home: &Path) -> Result<Option<Traces>, GcError> {
    let Some(traces) = Traces::open_existing(home)? else {
        return Ok(None);
    };
    if let Some(problem) = traces.problems().first() {
        return Err(GcError::Unreadable {
            path: problem.path.clone(),
            why: problem.why.clone(),
        });
    }
    match traces.overflowing()?.pop() {
        Some(path) => Err(GcError::TooMany(path)),
        None => Ok(Some(traces)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::blobs::Blobs;
    use crate::traces::Checks;
    use crate::traces::tests::kit::{root, trace};

    fn later() -> Timestamp {
        Timestamp::now() + SignedDuration::from_mins(61)
    }

    #[test]
    fn what_a_trace_refers_to_stays() {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        let used = blobs.put(b"used").unwrap();
        let unused = blobs.put(b"not used").unwrap();
        let traces = Traces::open(home.path()).unwrap();
        let text = trace(
            &root("a"),
            &[&format!(r#"{{"note":"see {}"}}"#, used.uri())],
        );
        traces.put(text.as_bytes(), &Checks::default()).unwrap();

        let young = collect(home.path(), Timestamp::now(), true).unwrap();
        assert_eq!((young.used, young.young, young.unused.len()), (1, 1, 0));
        let dry = collect(home.path(), later(), false).unwrap();
        assert_eq!((dry.unused.clone(), dry.bytes()), (vec![(unused, 8)], 8));
        assert!(blobs.get(&unused).is_ok());
        assert_eq!(collect(home.path(), later(), true).unwrap(), dry);
        assert!(blobs.get(&unused).is_err() && blobs.get(&used).is_ok());
        assert_eq!(collect(home.path(), later(), true).unwrap().unused, []);
    }

    /// Puts a blob and a trace of a root and one line that is made with its name. Says whether it is used.
    fn is_used(line: impl Fn(&BlobId) -> Vec<u8>, checks: &Checks) -> bool {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        let id = blobs.put(b"png").unwrap();
        let mut text = trace(&root("a"), &[]).into_bytes();
        text.extend(line(&id));
        let traces = Traces::open(home.path()).unwrap();
        traces.put(&text[..], checks).unwrap();
        drop(traces);
        let used = || collect(home.path(), later(), false).unwrap().used == 1;
        let before = used();
        std::fs::remove_file(home.path().join("traces/index.sqlite")).unwrap();
        assert_eq!(used(), before, "the index is derived");
        before
    }

    #[test]
    fn what_a_line_that_is_no_record_refers_to_stays() {
        let checks = Checks::default();
        assert!(!is_used(|_| Vec::new(), &checks));
        assert!(is_used(|id| format!("{{\"a\":\"{id}").into(), &checks));
        assert!(is_used(|id| format!("see {id}\n").into(), &checks));
        assert!(is_used(|id| format!("[\"\\b{id}\"]\n").into(), &checks));
        let not_text = |id: &BlobId| [b"\xff", id.to_string().as_bytes(), b"\n"].concat();
        assert!(is_used(not_text, &checks));
        let deep = |id: &BlobId| {
            let (open, close) = ("[".repeat(3000), "]".repeat(3000));
            format!("{{\"a\":{open}\"{id}\"{close}}}\n").into()
        };
        assert!(is_used(deep, &checks));
        let mut checks = checks;
        checks.limits.max_depth = 5000;
        assert!(is_used(deep, &checks));
        checks.limits.max_line_bytes = 1000;
        let long = |id: &BlobId| format!("{{\"a\":\"{}{id}\"}}\n", "z".repeat(2000)).into();
        assert!(is_used(long, &checks));
    }

    #[test]
    fn what_the_envelope_of_a_record_refers_to_stays() {
        let line = |id: &BlobId| {
            let meta = format!(r#"{{"blob":"{}"}}"#, id.uri());
            crate::traces::tests::kit::records_of(&root("b"), Some(&meta), &[]).into_bytes()
        };
        assert!(is_used(line, &Checks::default()));
    }

    #[test]
    fn what_is_put_again_is_young_again() {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        let id = blobs.put(b"png").unwrap();
        let file = File::open(blobs.path(&id)).unwrap();
        let old = Timestamp::now() - SignedDuration::from_hours(5);
        file.set_modified(old.into()).unwrap();
        let now = Timestamp::now();
        assert_eq!(collect(home.path(), now, false).unwrap().unused.len(), 1);
        blobs.put(b"png").unwrap();
        assert_eq!(collect(home.path(), now, false).unwrap().young, 1);
    }

    #[test]
    fn in_doubt_nothing_goes() {
        let home = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        let id = blobs.put(b"png").unwrap();
        let refused = |fits: fn(&GcError) -> bool| {
            let error = collect(home.path(), later(), true).unwrap_err();
            assert!(fits(&error), "{error}");
            assert!(blobs.get(&id).is_ok());
        };
        let pending = home.path().join("rebuild.pending");
        File::create(&pending).unwrap();
        refused(|error| matches!(error, GcError::Rebuilding(_)));
        std::fs::remove_file(pending).unwrap();
        let held = import::lock(home.path()).unwrap();
        refused(|error| matches!(error, GcError::Store(ImportError::Busy(_))));
        drop(held);
        // A session uses it.
        let store = Store::open(home.path()).unwrap();
        let insert = format!(
            "pragma foreign_keys = off; insert into blob_use (transcript, blob) values (1, '{id}')"
        );
        crate::import::tests::kit::tamper(&store, &insert);
        assert_eq!(collect(home.path(), later(), true).unwrap().used, 1);
        assert!(blobs.get(&id).is_ok());
    }

    #[test]
    fn forgetting_sessions_spares_what_is_young() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let blobs = Blobs::open(&home.path().join("blobs")).unwrap();
        let id = blobs.put(b"png").unwrap();
        store.prune(&[], Timestamp::now()).unwrap();
        assert!(blobs.get(&id).is_ok());
        let pending = home.path().join("rebuild.pending");
        File::create(&pending).unwrap();
        store.prune(&[], later()).unwrap();
        assert!(blobs.get(&id).is_ok());
        std::fs::remove_file(pending).unwrap();
        store.prune(&[], later()).unwrap();
        assert!(blobs.get(&id).is_err());
    }
}
