//! Step files of recorded runs that have none: made from their events, for as long as the server runs.
//!
//! A run that was recorded without `--artifacts flow` has a transcript and nothing else. Its files are a projection of that
//! transcript, and making them again makes the same ones. So they are made when somebody asks, in a private directory.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use quipu_formats::flow::StepFiles;
use quipu_formats::flow::stub::Written;
use quipu_model::{Header, Origin, RunId};
use quipu_record::RunLog;

use super::folder::Stamp;

/// How many runs have files at once. The oldest give way.
const MOST: usize = 32;

/// The longest transcript of which files are made.
const LONGEST: u64 = 256 << 20;

/// How many events are read at a time.
const PAGE: usize = 256;

/// The files that were made.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Made when first needed, gone when the server ends.
    directory: Option<tempfile::TempDir>,
    runs: VecDeque<(String, Stamp, PathBuf)>,
    number: u64,
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
    /// The directory with the files of a run.
    pub(super) fn of(&self, id: &str, transcript: &Path) -> Result<PathBuf, MakeError> {
        let there = std::fs::metadata(transcript)?;
        let at = there.modified()?.duration_since(UNIX_EPOCH);
        let stamp = (at.map_or(0, |at| at.as_nanos()), there.len());
        if there.len() > LONGEST {
            return Err(MakeError::TooLong);
        }
        // One at a time: two who ask for the same run share what is made.
        let mut kept = self.0.lock();
        let known = kept
            .runs
            .iter()
            .find(|(own, of, _)| own == id && *of == stamp);
        if let Some((_, _, path)) = known {
            return Ok(path.clone());
        }
        if kept.directory.is_none() {
            kept.directory = Some(tempfile::Builder::new().prefix("quipu-flow-").tempdir()?);
        }
        kept.number += 1;
        let number = kept.number.to_string();
        let base = kept.directory.as_ref().map(tempfile::TempDir::path);
        // The last part is the run's own name: readers compare the two.
        let path = base.unwrap_or(Path::new("")).join(number).join(id);
        make(id, transcript, &path)?;
        let old: Vec<usize> = (0..kept.runs.len())
            .filter(|at| kept.runs[*at].0 == id)
            .collect();
        let mut gone: Vec<PathBuf> = Vec::new();
        for at in old.into_iter().rev() {
            gone.extend(kept.runs.remove(at).map(|(_, _, path)| path));
        }
        kept.runs.push_back((id.to_owned(), stamp, path.clone()));
        while kept.runs.len() > MOST {
            gone.extend(kept.runs.pop_front().map(|(_, _, path)| path));
        }
        for path in gone.iter().filter_map(|path| path.parent()) {
            // Whoever has one of its files open still reads it.
            drop(std::fs::remove_dir_all(path));
        }
        Ok(path)
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
