//! `--artifacts flow`: a transcript and a receipt for each agent step, written as the steps end.
//!
//! A thread follows the recorder of each run from its first event on, so a resumed run makes its files again and
//! writes those that are not there. Runs that were called before a resume are read from their transcripts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use quipu_convert::output::Folder;
use quipu_formats::flow::StepFiles;
use quipu_formats::flow::stub::Written;
use quipu_formats::projection::Beside as _;
use quipu_model::{Environment, Event, Header, Origin, RunId};
use quipu_record::{Recorder, RunLog, Storage};
use serde_json::Value;

use super::replies::PAGE;
use crate::error::{CommandError, Exit, Result};

/// Facts of the machine that a receipt has, and that another execution of the run may find changed.
const OF_THE_MACHINE: [&str; 3] = ["git_sha", "git_branch", "workspace_root"];

/// Writes the files of steps.
pub(super) struct StepArtifacts {
    storage: PathBuf,
    place: Environment,
    writers: Mutex<Vec<(RunId, Writer)>>,
}

type Writer = JoinHandle<anyhow::Result<Vec<RunId>>>;

impl StepArtifacts {
    /// `root` is where the steps run.
    pub(super) fn new(storage: &Path, root: &Path) -> Self {
        Self {
            storage: storage.to_owned(),
            place: work_tree(root),
            writers: Mutex::default(),
        }
    }

    /// Follows a run that is being recorded.
    pub(super) fn follow(&self, recorder: &Arc<Recorder>) {
        let mut follower = recorder.follow(1);
        let mut files = self.files(recorder.run_id());
        let writer = std::thread::spawn(move || {
            while let Some(batch) = follower.recv()? {
                for (seq, line) in batch.lines() {
                    let text = std::str::from_utf8(line)?;
                    let (event, _) = quipu_exchange::decode_text(text)
                        .map_err(|fault| anyhow::anyhow!("event {seq} cannot be read: {fault}"))?;
                    files.take(&event)?;
                }
            }
            files.finish()
        });
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.push((recorder.run_id().clone(), writer));
    }

    /// Waits for what is being written, and writes what the runs have that were called before.
    pub(super) fn finish(&self) -> Result<()> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut known, mut called) = (HashSet::new(), Vec::new());
        for (run, writer) in writers.drain(..) {
            let children = match writer.join() {
                Ok(written) => written.map_err(|error| not_written(&run, error))?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            known.insert(run);
            called.extend(children);
        }
        while let Some(run) = called.pop() {
            if known.insert(run.clone()) {
                called.extend(self.read(&run).map_err(|error| not_written(&run, error))?);
            }
        }
        Ok(())
    }

    /// Makes the files of a run that is not being recorded.
    fn read(&self, run: &RunId) -> anyhow::Result<Vec<RunId>> {
        let path = Storage::at(&self.storage).path_of(run);
        if !path.exists() {
            // It was killed before its first event.
            return Ok(Vec::new());
        }
        let log = RunLog::open_read_only(&path)?;
        let mut files = self.files(run);
        let mut from = Some(1);
        while let Some(seq) = from {
            let page = log.page(seq, PAGE)?;
            for event in page.events {
                files.take(&event.decoded.event)?;
            }
            from = page.next;
        }
        files.finish()
    }

    fn files(&self, run: &RunId) -> Files {
        let mut header = Header::new(run.clone());
        header.origin = Some(Origin {
            agent: quipu_store::import::RECORDED.to_owned(),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..Origin::default()
        });
        header.environment = self.place.clone();
        let root = self.storage.join("runs").join(run.as_str());
        Files {
            made: StepFiles::new(header),
            folder: Folder::sharing(&root),
            root,
        }
    }
}

/// The files of one run.
struct Files {
    made: StepFiles,
    folder: Folder,
    root: PathBuf,
}

impl Files {
    fn take(&mut self, event: &Event) -> anyhow::Result<()> {
        self.made
            .take(event)
            .iter()
            .try_for_each(|written| put(&mut self.folder, &self.root, written))
    }

    fn finish(mut self) -> anyhow::Result<Vec<RunId>> {
        let children = self.made.children().to_vec();
        for written in self.made.finish() {
            put(&mut self.folder, &self.root, &written)?;
        }
        Ok(children)
    }
}

fn put(folder: &mut Folder, root: &Path, written: &Written) -> anyhow::Result<()> {
    let Written { name, bytes } = written;
    let path = root.join(name);
    if name.contains("/receipts/") && is_there(&path, bytes) {
        return Ok(());
    }
    folder
        .put(name, bytes)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// Whether a receipt is there that says the same of the step. What it says of the machine was true when it was written.
fn is_there(path: &Path, bytes: &[u8]) -> bool {
    let of_step = |bytes: &[u8]| -> Option<Value> {
        let mut receipt: Value = serde_json::from_slice(bytes).ok()?;
        for field in OF_THE_MACHINE {
            receipt.as_object_mut()?.remove(field);
        }
        Some(receipt)
    };
    let there = std::fs::read(path).ok().and_then(|there| of_step(&there));
    there.is_some() && there == of_step(bytes)
}

fn not_written(run: &RunId, error: anyhow::Error) -> CommandError {
    let error = error.context(format!("the files of the steps of {run} are not whole"));
    CommandError::new(Exit::Environment, error).hint(format!(
        "the run is recorded; `quipu export {run} --to flow` makes its files"
    ))
}

/// What git says of a directory; nothing where it is not in a work tree, or git is not there.
fn work_tree(root: &Path) -> Environment {
    let git = |args: &[&str]| -> Option<String> {
        let mut command = Command::new("git");
        // Only the directory decides which repository is meant.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(name);
        }
        let output = command
            .arg("-C")
            .arg(root)
            .args(args)
            .stdin(Stdio::null())
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let said = String::from_utf8(output.stdout).ok()?;
        Some(said.trim_end_matches('\n').to_owned()).filter(|said| !said.is_empty())
    };
    let Some(cwd) = git(&["rev-parse", "--show-toplevel"]) else {
        return Environment::default();
    };
    Environment {
        cwd: Some(cwd),
        commit: git(&["rev-parse", "--verify", "--quiet", "HEAD"]),
        git_branch: git(&["symbolic-ref", "--short", "--quiet", "HEAD"]),
        ..Environment::default()
    }
}
