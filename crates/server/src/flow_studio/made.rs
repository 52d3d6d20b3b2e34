//! Step files of recorded runs that have none: made from their events, for as long as the server runs.
//!
//! A run that was recorded without `--artifacts flow` has a transcript and nothing else. Its files are a projection of that
//! transcript, and making them again makes the same ones. So they are made when somebody asks, in a private directory.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use quipu_formats::flow::StepFiles;
use quipu_formats::flow::stub::Written;
use quipu_model::{Header, Origin, RunId};
use quipu_record::RunLog;
use tempfile::TempDir;

use super::folder::Stamp;

/// How many runs have files at once. The oldest give way.
const MOST: usize = 32;

/// The longest transcript of which files are made.
const LONGEST: u64 = 256 << 20;

/// How many events are read at a time.
const PAGE: usize = 256;

/// The files that were made.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Made when first needed, gone when the server ends.
    base: Mutex<Option<Arc<TempDir>>>,
    /// The latest used last.
    runs: Mutex<VecDeque<(String, Arc<Slot>)>>,
}

/// The files of one run, and what its transcript looked like then. Held while they are made: two who ask for the same run
/// share what is made, and those who ask for others do not wait.
type Slot = Mutex<Option<(Stamp, Arc<MadeFiles>)>>;

/// Files that were made. They are there as long as somebody holds this.
#[derive(Debug)]
pub(super) struct MadeFiles {
    pub(super) path: PathBuf,
    /// Goes before what it is in.
    _directory: TempDir,
    _base: Arc<TempDir>,
}

/// Why the files of a run could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    /// The transcript is too long.
    #[error(
        "its transcript has more than {LONGEST} bytes; `quipu export --to flow` makes its files"
    )]
    TooLong,
    /// The transcript cannot be read.
    #[error(transparent)]
    Log(#[from] quipu_record::Error),
    /// The files cannot be written.
    #[error("cannot write its files: {0}")]
    Io(#[from] io::Error),
}

impl Made {
    /// The files of a run.
    pub(super) fn of(&self, id: &str, transcript: &Path) -> Result<Arc<MadeFiles>, MakeError> {
        let slot = self.slot(id);
        let mut slot = slot.lock();
        let there = std::fs::metadata(transcript)?;
        let at = there.modified()?.duration_since(UNIX_EPOCH);
        let stamp = (at.map_or(0, |at| at.as_nanos()), there.len());
        if there.len() > LONGEST {
            return Err(MakeError::TooLong);
        }
        if let Some((of, files)) = &*slot
            && *of == stamp
        {
            return Ok(Arc::clone(files));
        }
        let base = self.base()?;
        let directory = TempDir::new_in(base.path())?;
        // The last part is the run's own name: readers compare the two.
        let path = directory.path().join(id);
        make(id, transcript, &path)?;
        let files = Arc::new(MadeFiles {
            path,
            _directory: directory,
            _base: base,
        });
        // Whoever reads the ones before keeps them.
        *slot = Some((stamp, Arc::clone(&files)));
        Ok(files)
    }

    fn slot(&self, id: &str) -> Arc<Slot> {
        let mut runs = self.runs.lock();
        let at = runs.iter().position(|(own, _)| own == id);
        let known = at.and_then(|at| runs.remove(at));
        let (id, slot) = known.unwrap_or_else(|| (id.to_owned(), Arc::default()));
        runs.push_back((id, Arc::clone(&slot)));
        if runs.len() > MOST {
            runs.pop_front();
        }
        slot
    }

    fn base(&self) -> io::Result<Arc<TempDir>> {
        let mut base = self.base.lock();
        if let Some(base) = &*base {
            return Ok(Arc::clone(base));
        }
        let made = tempfile::Builder::new().prefix("quipu-flow-").tempdir()?;
        Ok(Arc::clone(base.insert(Arc::new(made))))
    }
}

fn make(id: &str, transcript: &Path, to: &Path) -> Result<(), MakeError> {
    quipu_files::create_directory(to)?;
    let log = RunLog::open_read_only(transcript)?;
    let mut files: Option<StepFiles> = None;
    let mut from = Some(1);
    while let Some(seq) = from {
        let page = log.page(seq, PAGE)?;
        for event in page.events {
            let event = event.decoded.event;
            let files = files.get_or_insert_with(|| StepFiles::new(header(event.run_id.clone())));
            for written in files.take(&event) {
                put(to, &written)?;
            }
        }
        from = page.next;
    }
    for written in files.map(StepFiles::finish).unwrap_or_default() {
        put(to, &written)?;
    }
    if !to.join("meta.json").exists() {
        let meta = serde_json::json!({ "id": id });
        let bytes = meta.to_string().into_bytes();
        let name = "meta.json".to_owned();
        put(to, &Written { name, bytes })?;
    }
    Ok(())
}

fn header(run: RunId) -> Header {
    let mut header = Header::new(run);
    header.origin = Some(Origin {
        agent: quipu_store::import::RECORDED.to_owned(),
        agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..Origin::default()
    });
    header
}

/// Writes a file. Its name is made of escaped parts.
fn put(to: &Path, written: &Written) -> io::Result<()> {
    let path = to.join(&written.name);
    if let Some(parent) = path.parent() {
        quipu_files::create_directory(parent)?;
    }
    let mut file = quipu_files::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(&written.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_as_long_as_somebody_reads_them() {
        let directory = tempfile::tempdir().unwrap();
        let transcript = directory.path().join("r.jsonl");
        let write = |text: &str| {
            let mut options = std::fs::File::options();
            let file = options.create(true).append(true).open(&transcript);
            let mut file = file.unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        write("");
        let made = Made::default();
        let first = made.of("r", &transcript).unwrap();
        let same = made.of("r", &transcript).unwrap();
        assert_eq!(first.path, same.path);
        drop(same);
        write("\n");
        let second = made.of("r", &transcript).unwrap();
        assert_ne!(first.path, second.path);
        assert!(first.path.join("meta.json").exists() && second.path.join("meta.json").exists());
        let path = first.path.clone();
        drop(first);
        assert!(!path.exists(), "nobody reads it any more");
        // Others push it out; whoever reads it does not notice.
        for number in 0..=MOST {
            made.of(&format!("r{number}"), &transcript).unwrap();
        }
        assert!(second.path.join("meta.json").exists());
        assert_eq!(made.runs.lock().len(), MOST);
        let base = second.path.ancestors().nth(2).unwrap().to_owned();
        drop(made);
        drop(second);
        assert!(!base.exists());
    }
}
