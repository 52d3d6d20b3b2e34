//! Cancelling a run that no process runs: it waits, or its process died. Nothing of it is run again, so that neither its
//! workflow nor its inputs are needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indexmap::IndexMap;
use quipu_model::{Body, Json, Place, RunId, Step, StepKind};
use quipu_record::{Recorder, RecorderOptions, Storage};
use quipu_store::blobs::Blobs;
use serde_json::{Value, json};

use super::audit::{Audit, AuditEnd};
use super::chronicle::{Chronicle, with_extra};
use super::clock::Clock;
use super::context::RunFacts;
use super::history::{History, LastEnd};
use super::resume::journal;
use super::run::{broken, close_steps};
use super::{EngineError, RunStatus};

/// The exit code of a run that was cancelled.
pub(super) const EXIT_CODE: u8 = 130;

/// Who cancels a run, and where it is recorded.
#[derive(Debug)]
pub struct Cancelling<'a> {
    /// Where transcripts and blobs are.
    pub home: &'a Path,
    /// Where the audit file is; `None` to write none.
    pub audit: Option<PathBuf>,
    /// How the end is recorded.
    pub recorder: RecorderOptions,
    /// Who cancels.
    pub user: &'a str,
}

impl Cancelling<'_> {
    /// Records that a run is cancelled. `false` when it has ended already; then nothing is written.
    ///
    /// # Errors
    ///
    /// When there is no such run of a workflow, another run called it, a process runs it, or its end cannot be written.
    pub fn record(&self, run_id: &RunId) -> Result<bool, EngineError> {
        let path = Storage::at(self.home).path_of(run_id);
        if !path.exists() {
            let why = format!("there is no run {run_id}");
            return Err(EngineError::Resume(why));
        }
        // The lock comes first: nobody else writes while the transcript is read.
        let journal = journal(&path, run_id, self.recorder.limits);
        let journal = journal.map_err(|error| match error {
            quipu_record::Error::Locked(_) => EngineError::Running(run_id.clone()),
            error => EngineError::Recording(error),
        })?;
        let blobs = Blobs::open(&self.home.join("blobs")).map_err(EngineError::Storing)?;
        let history = History::read(&path, None).map_err(EngineError::Recording)?;
        let started = history.started.as_ref();
        let Some(started) = started.filter(|started| started["workflow_file"].is_string()) else {
            let why = format!("{run_id} is not a run of a workflow");
            return Err(EngineError::Resume(why));
        };
        if let Some(caller) = journal.parent_run_id() {
            let why = format!("{run_id} was called by another run; cancel {caller}");
            return Err(EngineError::Resume(why));
        }
        if matches!(&history.last_end, LastEnd::Said { status, .. } if status != "paused") {
            return Ok(false);
        }
        let text = |name: &str| started[name].as_str().unwrap_or_default().to_owned();
        let clock = Clock(std::sync::Arc::clone(&self.recorder.clock));
        let facts = RunFacts {
            run_id: run_id.clone(),
            name: history.name.clone(),
            started: history.first_at.unwrap_or_else(|| clock.now()),
            clock,
            inputs: IndexMap::new(),
            dir: text("dir").into(),
            user: text("user"),
            hostname: String::new(),
            places: BTreeMap::new(),
        };
        // As with every run, what cannot be audited is not done.
        let audit = self.audit.as_deref();
        let audit = audit.map(|audit| Audit::at(audit, self.user, &[]));
        let audit = audit.transpose()?;
        let recorder = Recorder::start(journal, None, self.recorder.clone());
        let chronicle = Chronicle {
            recorder: Some(recorder.map_err(EngineError::Recording)?.into()),
            blobs: Some(blobs),
            masker: self.recorder.masker.clone(),
            unrecorded: None,
        };
        self.close(&chronicle, &history)?;
        if let Some(audit) = audit {
            let end = AuditEnd {
                status: RunStatus::Cancelled,
                exit_code: EXIT_CODE,
                took: Duration::ZERO,
                error: Some("cancelled".to_owned()),
            };
            audit.completed(&facts, &end)?;
        }
        Ok(true)
    }

    fn close(&self, chronicle: &Chronicle, history: &History) -> Result<(), EngineError> {
        if history.last_end == LastEnd::Interrupted {
            close_steps(chronicle, history).map_err(broken)?;
        }
        let named = Step::new(history.name.clone(), StepKind::Workflow);
        let mut end = named.failed("cancelled");
        let result = json!({ "status": RunStatus::Cancelled.as_str(), "exit_code": EXIT_CODE });
        end.result = Json::of(&result).ok();
        let by: Value = json!({ "cancelled_by": self.user });
        chronicle
            .record(
                &Place::run(),
                Body::RunCompleted(Some(end)),
                with_extra(&by),
            )
            .map_err(broken)?;
        match &chronicle.recorder {
            Some(recorder) => recorder.close().map_err(EngineError::Recording),
            None => Ok(()),
        }
    }
}
