//! Going on with a run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indexmap::IndexMap;
use quipu_exchange::lines::Limits;
use quipu_model::{Event, RunId};
use quipu_record::Journal;
use quipu_store::blobs::Blobs;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::history::{History, LastEnd};
use super::run::{Beginning, MASKED, Resume, execute, load};
use super::spending::Spending;
use super::{EngineError, EngineOptions, Outcome, ResumeOptions};
use crate::definition::places::Places;
use crate::definition::{Budget, Workflow};
use crate::plugin::Plugins;

/// Goes on with a run.
pub(super) async fn resume(
    options: &Arc<EngineOptions>,
    run_id: &RunId,
    how: ResumeOptions,
    cancel: &CancellationToken,
) -> Result<Outcome, EngineError> {
    let path = options.storage.path_of(run_id);
    if !path.exists() {
        return Err(EngineError::Resume(format!(
            "{run_id} is not a run in {}",
            path.parent().unwrap_or(Path::new(".")).display()
        )));
    }
    // The lock comes first: nobody else writes while the transcript is read.
    let journal = open_journal(options, run_id)?;
    let mut history = read_history(options, &path)?;
    let Some(started) = history
        .started
        .clone()
        .filter(|started| started["workflow_file"].is_string())
    else {
        return Err(EngineError::Resume(format!(
            "{run_id} was not started by `quipu run`, so it cannot be resumed"
        )));
    };
    if started["is_child"] == Value::Bool(true) {
        let caller = journal.as_ref().and_then(|journal| journal.parent_run_id());
        let caller = caller.map_or_else(|| "that one".to_owned(), ToString::to_string);
        return Err(EngineError::Resume(format!(
            "{run_id} was called by another run; resume {caller}"
        )));
    }
    let ended = match &history.last_end {
        LastEnd::Said { status, .. } => status.clone(),
        LastEnd::Interrupted => "interrupted".to_owned(),
    };
    if ended == "succeeded" && how.from.is_none() {
        return Err(EngineError::Resume(format!(
            "{run_id} has succeeded; name a step with --from to run it again from there"
        )));
    }
    let (mut discards, mut discards_from, mut discarded) = (Vec::new(), None, Vec::new());
    if let Some(from) = &how.from {
        let path = from.split('[').next().unwrap_or_default();
        let Some((first, around, names)) = history.beginning_at(path) else {
            let paths = history.paths().join(", ");
            return Err(EngineError::Resume(format!(
                "step {from} has not run in {run_id}; steps that have: {paths}"
            )));
        };
        (discards, discards_from, discarded) = (around, Some(first), names);
    } else if ended == "failed" {
        discards = history.failed_end();
    }
    history.take_back(&discards, discards_from);
    let options = &with_root(options, &started, how.root.as_deref())?;
    let workflow = if let Some(workflow) = how.workflow {
        workflow
    } else {
        let file = PathBuf::from(started["workflow_file"].as_str().unwrap_or_default());
        Arc::new(load(options, &file).map_err(EngineError::Resume)?)
    };
    let past = Past::of(options, &history);
    if let Some(verdict) = &how.verdict
        && !past
            .requests
            .contains(&super::approval::hash(&verdict.token))
    {
        return Err(EngineError::Resume(format!(
            "{run_id} does not wait for an answer to this token"
        )));
    }
    let recorded = &started["budget"];
    let recorded = recorded["usd"].as_f64().map(|usd| Budget {
        usd,
        enforce: recorded["enforce"] != Value::Bool(false),
    });
    let budget = options.budget.or(recorded).or(workflow.budget);
    let spending = Spending::new(Arc::clone(&options.prices), budget);
    spending.add_past(&past.spending);
    let beginning = Beginning {
        stack: vec![workflow.name.clone()],
        inputs: inputs_again(&workflow, &history.inputs, how.inputs)?,
        run_id: run_id.clone(),
        parent: None,
        journal,
        secrets: Vec::new(),
        spending: Some(Arc::new(spending)),
        user: started["user"].as_str().unwrap_or_default().to_owned(),
        workflow,
        resume: Some(Resume {
            history,
            discards,
            discards_from,
            from: how.from,
            discarded,
            verdict: Arc::new(Mutex::new(how.verdict)),
        }),
    };
    let (outcome, _) = Box::pin(execute(options, beginning, cancel)).await?;
    Ok(outcome)
}

/// Opens the transcript of a run, and keeps others from it. `None` when the run goes on unrecorded; a run that another
/// process has open does not.
pub(super) fn open_journal(
    options: &EngineOptions,
    run_id: &RunId,
) -> Result<Option<Journal>, EngineError> {
    let path = options.storage.path_of(run_id);
    match journal(&path, run_id, options.recorder.limits) {
        Ok(journal) => Ok(Some(journal)),
        Err(quipu_record::Error::Locked(_)) => Err(EngineError::Running(run_id.clone())),
        Err(_) if options.go_on_unrecorded => Ok(None),
        Err(error) => Err(EngineError::Recording(error)),
    }
}

/// How often and how long a lock is tried for: whoever looks whether a run goes on holds it for a moment.
const LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(10);

/// Opens a journal, and does not take somebody who only looks for somebody who writes.
pub(super) fn journal(
    path: &Path,
    run_id: &RunId,
    limits: Limits,
) -> Result<Journal, quipu_record::Error> {
    for _ in 1..LOOKS {
        match Journal::open(path, run_id, limits) {
            Err(quipu_record::Error::Locked(_)) => std::thread::sleep(LOOK),
            opened => return opened,
        }
    }
    Journal::open(path, run_id, limits)
}

fn read_history(options: &EngineOptions, path: &Path) -> Result<History, EngineError> {
    let blobs = Blobs::open(&options.blobs).ok();
    History::read(path, blobs).map_err(EngineError::Recording)
}

/// The options of a run that goes on: in the directory that it began in, unless another is named.
fn with_root(
    options: &Arc<EngineOptions>,
    started: &Value,
    other: Option<&Path>,
) -> Result<Arc<EngineOptions>, EngineError> {
    let root = match (other, started["dir"].as_str()) {
        (Some(other), _) => other.to_owned(),
        (None, Some(dir)) => PathBuf::from(dir),
        (None, None) => return Ok(Arc::clone(options)),
    };
    if !root.is_dir() {
        return Err(EngineError::Resume(format!(
            "the directory {} of the run is gone; name another with --root",
            root.display()
        )));
    }
    if root == options.root {
        return Ok(Arc::clone(options));
    }
    let mut options = EngineOptions::clone(options);
    options.places = Places::from_env(&root);
    options.plugins = Plugins::discover(&options.places.plugins);
    options.root = root;
    Ok(Arc::new(options))
}

/// What a run and the runs that it called have done: what they cost, and what they wait for.
#[derive(Default)]
struct Past {
    spending: Vec<Event>,
    requests: BTreeSet<String>,
}

impl Past {
    fn of(options: &EngineOptions, history: &History) -> Self {
        let mut past = Self::default();
        past.take(history);
        let mut todo = history.children.clone();
        let mut seen = BTreeSet::new();
        while let Some(child) = todo.pop() {
            if !seen.insert(child.clone()) {
                continue;
            }
            // A child that was never begun has no file.
            if let Ok(history) = read_history(options, &options.storage.path_of(&child)) {
                past.take(&history);
                todo.extend(history.children);
            }
        }
        past
    }

    fn take(&mut self, history: &History) {
        self.spending.extend(history.spending.iter().cloned());
        self.requests.extend(history.requests.keys().cloned());
    }
}

/// The inputs of a run that goes on: those of its last execution, and those that are given again.
fn inputs_again(
    workflow: &Workflow,
    before: &Value,
    given: IndexMap<String, String>,
) -> Result<IndexMap<String, Value>, EngineError> {
    let before = before.as_object().into_iter().flatten();
    let mut inputs: IndexMap<String, String> = before
        .map(|(name, value)| (name.clone(), super::call::as_text(value.clone())))
        .collect();
    inputs.extend(given);
    if let Some((name, _)) = inputs.iter().find(|(_, value)| *value == MASKED) {
        return Err(EngineError::Resume(format!(
            "the input {name} was masked in the transcript; give it again with --input {name}=…"
        )));
    }
    crate::definition::inputs::resolve(workflow, &inputs).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        EngineError::Resume(errors.join("; "))
    })
}
