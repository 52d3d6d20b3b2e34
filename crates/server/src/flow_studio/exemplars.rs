//! Which runs people marked as ones to learn from. Kept in the home, never in the directory of a run.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The largest file that is read.
const LARGEST: u64 = 16 << 20;

/// How many runs can be marked.
const MOST: usize = 50_000;

/// Marks, by the path of the run.
#[derive(Debug)]
pub(super) struct Exemplars {
    path: PathBuf,
    /// One change at a time.
    changing: Mutex<()>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Marks {
    runs: BTreeMap<String, bool>,
}

impl Exemplars {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            path: home.join("flow-studio").join("exemplars.json"),
            changing: Mutex::default(),
        }
    }

    /// All marks, by the path of the run.
    pub(super) fn all(&self) -> io::Result<BTreeMap<String, bool>> {
        let length = match std::fs::metadata(&self.path) {
            Ok(there) => there.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        if length > LARGEST {
            return Err(io::Error::other("exemplars.json is too large"));
        }
        let marks: Marks = serde_json::from_slice(&std::fs::read(&self.path)?)?;
        Ok(marks.runs)
    }

    /// Marks a run, or says that it is not one.
    pub(super) fn set(&self, run: &Path, is_exemplar: bool) -> io::Result<()> {
        let _one = self.changing.lock();
        let mut runs = self.all()?;
        runs.insert(run.to_string_lossy().into_owned(), is_exemplar);
        if runs.len() > MOST {
            return Err(io::Error::other("too many runs are marked"));
        }
        let directory = self.path.parent().unwrap_or(Path::new("."));
        quipu_files::create_directory(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(&serde_json::to_vec_pretty(&Marks { runs })?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}
