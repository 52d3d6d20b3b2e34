//! Calling another workflow: a run of its own, in a file of its own, with links both ways.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use quipu_model::{Place, RunId};
use quipu_record::Journal;
use quipu_store::blobs::Blobs;
use serde_json::{Map, Value};

use super::context::Context;
use super::history::History;
use super::resume::open_journal;
use super::run::{Beginning, Resume, Run, execute, load, new_run_id};
use super::state::StepState;
use super::step::{Boxed, Doing, Done, cancelled};
use super::{RunStatus, Stop};
use crate::definition::{Action, Text, Workflow};
use crate::template::{self, Variables as _};

/// A call with everything filled in.
pub(super) struct PreparedCall {
    workflow: Arc<Workflow>,
    pub(super) file: PathBuf,
    pub(super) inputs: IndexMap<String, Value>,
}

impl PreparedCall {
    /// Finds and reads the workflow, and checks that it may be called from here.
    pub(super) fn find(run: &Run, name: &str, given: Map<String, Value>) -> Result<Self, String> {
        let most = run.options.max_depth;
        if run.stack.len() > most {
            return Err(format!(
                "workflows call each other more than {most} deep: {}",
                run.stack.join(" → ")
            ));
        }
        let file = run
            .options
            .places
            .find(name)
            .map_err(|error| error.to_string())?;
        let workflow = load(&run.options, &file)?;
        if run.stack.contains(&workflow.name) {
            let stack = run.stack.join(" → ");
            return Err(format!(
                "{} calls itself: {stack} → {}",
                workflow.name, workflow.name
            ));
        }
        let given = given
            .into_iter()
            .map(|(name, value)| (name, as_text(value)))
            .collect();
        let inputs = crate::definition::inputs::resolve(&workflow, &given).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("; ")
        })?;
        Ok(Self {
            workflow: Arc::new(workflow),
            file,
            inputs,
        })
    }

    /// The run that is called: the one that an earlier execution began, or a new one. Only the first attempt goes on
    /// with an earlier one.
    pub(super) fn run_id(run: &Run, place: &Place, input: &str, tries: u32) -> RunId {
        let before = run.history.as_ref().filter(|_| tries == 1);
        before
            .and_then(|history| history.child_of(place, input))
            .or_else(|| new_run_id().ok())
            .unwrap_or_else(|| run.facts.run_id.clone())
    }
}

/// Values are handed to a called workflow as texts, as from a command line.
pub(super) fn as_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl Doing<'_> {
    /// Runs the workflow that the step calls.
    pub(super) fn call<'a>(
        &'a self,
        call: &'a PreparedCall,
        child: Option<&'a RunId>,
    ) -> Boxed<'a, Result<Done, Stop>> {
        Box::pin(async move {
            let Some(child) = child else {
                return Ok(StepState::failed("the called run has no id").into());
            };
            let run = self.run;
            let (journal, resume) = self.resume_of(child)?;
            let mut stack = run.stack.clone();
            stack.push(call.workflow.name.clone());
            let beginning = Beginning {
                workflow: Arc::clone(&call.workflow),
                inputs: call.inputs.clone(),
                run_id: child.clone(),
                parent: Some(run.facts.run_id.clone()),
                journal,
                secrets: run.secrets.clone(),
                spending: Some(Arc::clone(&run.spending)),
                stack,
                resume,
                user: run.starter.clone(),
            };
            let done = Box::pin(execute(&run.options, beginning, self.cancel)).await;
            let (outcome, values) = done.map_err(Stop::Broken)?;
            match outcome.status {
                RunStatus::Cancelled => return Ok(cancelled("cancelled").into()),
                RunStatus::Paused => {
                    if let Some(mut pause) = outcome.pause {
                        pause.path = format!("{}/{}", self.place.path, pause.path);
                        return Err(Stop::Paused(pause));
                    }
                }
                RunStatus::Succeeded | RunStatus::Failed => {}
            }
            let mut state = StepState::said(outcome.message.clone().unwrap_or_else(|| {
                format!("workflow {} {}", outcome.workflow, outcome.status.as_str())
            }));
            state.exit_code = Some(i32::from(outcome.exit_code));
            if let Some(error) = &outcome.error {
                state.error = Some(format!("workflow {} failed: {error}", outcome.workflow));
            } else {
                match self.outputs(&values) {
                    Ok(outputs) => state.response = Some(Value::Object(outputs)),
                    Err(error) => state.error = Some(error),
                }
            }
            Ok(state.into())
        })
    }

    /// What the called run has done already, where it goes on.
    fn resume_of(&self, child: &RunId) -> Result<(Option<Journal>, Option<Resume>), Stop> {
        let run = self.run;
        let path = run.options.storage.path_of(child);
        if run.history.is_none() || !path.exists() {
            return Ok((None, None));
        }
        let journal = open_journal(&run.options, child).map_err(Stop::Broken)?;
        let blobs = Blobs::open(&run.options.blobs).ok();
        let mut history = History::read(&path, blobs).map_err(Stop::recording)?;
        if history.started.is_none() {
            return Ok((journal, None));
        }
        let discards = history.failed_end();
        history.take_back(&discards, None);
        let resume = Resume {
            history,
            discards,
            discards_from: None,
            from: None,
            discarded: Vec::new(),
            verdict: Arc::clone(&run.verdict),
        };
        Ok((journal, Some(resume)))
    }

    /// What is taken from the called workflow: the output of a step by its name, a path, or a template over its values.
    fn outputs(&self, values: &Context) -> Result<Map<String, Value>, String> {
        let Action::CallWorkflow(step) = &self.step.action else {
            return Ok(Map::new());
        };
        let mut outputs = Map::new();
        for (name, from) in &step.outputs {
            outputs.insert(name.clone(), self.output(values, from)?);
        }
        Ok(outputs)
    }

    fn output(&self, values: &Context, from: &Text) -> Result<Value, String> {
        if from.text.contains("{{") {
            let wrong =
                |error: template::TemplateError| self.run.at_place(error.at, &error.to_string());
            return template::Template::parse(from)
                .and_then(|t| t.eval(values))
                .map_err(wrong);
        }
        let path: Vec<&str> = from.text.trim().split('.').collect();
        let value = match path.as_slice() {
            [step] => values.value(&["states", step, "Output"]),
            path => values.value(path),
        };
        value.ok_or_else(|| {
            let what = format!("the called workflow has no value {}", from.text);
            self.run.at_place(from.at, &what)
        })
    }
}
