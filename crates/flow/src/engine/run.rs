//! A run: from opening its transcript to closing it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use quipu_model::{Annotations, Body, Place, RunId, Severity, Step as NamedStep, StepKind};
use quipu_record::Recorder;
use quipu_store::blobs::Blobs;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::action::is_terminal;
use super::audit::{Audit, AuditEnd};
use super::chronicle::{Chronicle, End, Unrecorded, dollars, with_extra};
use super::clock::Clock;
use super::context::{Context, ErrorFacts, RunFacts};
use super::frame::Frame;
use super::history::{History, LastEnd};
use super::prepare::Filler;
use super::spending::Spending;
use super::state::StepState;
use super::{
    EngineError, EngineOptions, News, Outcome, Pause, ResumeOptions, RunStatus, Stop, Verdict,
};
use crate::definition::places::Places;
use crate::definition::{Action, At, OnFailure, Step, Text, Workflow};
use crate::expression::Expression;
use crate::plugin::Plugins;

/// Everything about a run that its steps share.
pub(super) struct Run {
    pub(super) options: Arc<EngineOptions>,
    pub(super) workflow: Arc<Workflow>,
    pub(super) facts: Arc<RunFacts>,
    pub(super) chronicle: Chronicle,
    pub(super) history: Option<History>,
    pub(super) spending: Arc<Spending>,
    pub(super) counts: Counts,
    /// The workflows that called this one, outermost first, this one included.
    pub(super) stack: Vec<String>,
    pub(super) verdict: Option<Verdict>,
    pub(super) starter: String,
    /// The plugins that the workflow uses, open.
    pub(super) plugins: Plugins,
    /// Ends programs of plugins when the run has ended.
    plugins_end: DropGuard,
}

/// How many steps ran, and how many answered from the transcript.
#[derive(Debug, Default)]
pub(super) struct Counts {
    steps: AtomicU64,
    answered: AtomicU64,
    /// Answers that the transcript does not say yet.
    unsaid: AtomicU64,
}

impl Counts {
    pub(super) fn stepped(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.unsaid.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a run goes after a step.
pub(super) enum Next {
    Goto(String),
    End(Ending),
    /// The step says nothing.
    Nowhere,
}

/// How a workflow ended.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) status: RunStatus,
    pub(super) exit_code: u8,
    pub(super) message: Option<String>,
    pub(super) error: Option<String>,
    /// The step that failed.
    pub(super) step: Option<String>,
    pub(super) pause: Option<Pause>,
}

impl Ending {
    pub(super) fn failed(error: impl Into<String>, step: Option<&str>) -> Self {
        Self {
            status: RunStatus::Failed,
            exit_code: 1,
            message: None,
            error: Some(error.into()),
            step: step.map(str::to_owned),
            pause: None,
        }
    }
}

/// What a run begins with.
pub(super) struct Beginning {
    pub(super) workflow: Arc<Workflow>,
    pub(super) inputs: IndexMap<String, Value>,
    pub(super) run_id: RunId,
    pub(super) parent: Option<Arc<Recorder>>,
    pub(super) spending: Option<Arc<Spending>>,
    pub(super) stack: Vec<String>,
    pub(super) resume: Option<Resume>,
    pub(super) user: String,
}

/// What a run that goes on knows.
pub(super) struct Resume {
    pub(super) history: History,
    pub(super) discards: Vec<u64>,
    pub(super) discards_from: Option<u64>,
    pub(super) from: Option<String>,
    pub(super) discarded: Vec<String>,
    pub(super) verdict: Option<Verdict>,
}

/// A new id: a UUID of version 4.
///
/// # Errors
///
/// When the system has no random numbers.
pub fn new_run_id() -> Result<RunId, EngineError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| EngineError::Environment(format!("no random numbers: {error}")))?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = quipu_model::hex::encode(&bytes);
    let id = format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    );
    RunId::new(&id).map_err(|error| EngineError::Environment(error.to_string()))
}

/// Runs a workflow from its beginning.
pub(super) async fn begin(
    options: &Arc<EngineOptions>,
    workflow: Arc<Workflow>,
    inputs: IndexMap<String, Value>,
    cancel: &CancellationToken,
) -> Result<Outcome, EngineError> {
    let beginning = Beginning {
        stack: vec![workflow.name.clone()],
        workflow,
        inputs,
        run_id: new_run_id()?,
        parent: None,
        spending: None,
        resume: None,
        user: options.user.clone(),
    };
    let (outcome, _) = Box::pin(execute(options, beginning, cancel)).await?;
    Ok(outcome)
}

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
    let blobs = Blobs::open(&options.blobs).ok();
    let mut history = History::read(&path, blobs).map_err(EngineError::Recording)?;
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
        return Err(EngineError::Resume(format!(
            "{run_id} was called by another run; resume that one"
        )));
    }
    let ended = match &history.last_end {
        LastEnd::Said(status) => status.clone(),
        LastEnd::Interrupted => "interrupted".to_owned(),
    };
    if ended == "succeeded" && how.from.is_none() {
        return Err(EngineError::Resume(format!(
            "{run_id} has succeeded; name a step with --from to run it again from there"
        )));
    }
    let (mut discards, mut discards_from, mut discarded) = (Vec::new(), None, Vec::new());
    if let Some(from) = &how.from {
        let Some((first, names)) = history.beginning_at(from) else {
            let paths = history.paths().join(", ");
            return Err(EngineError::Resume(format!(
                "step {from} has not run in {run_id}; steps that have: {paths}"
            )));
        };
        (discards_from, discarded) = (Some(first), names);
    } else if ended == "failed" || ended == "cancelled" {
        discards = history.failed_end();
    }
    history.take_back(&discards, discards_from);
    let workflow = if let Some(workflow) = how.workflow {
        workflow
    } else {
        let file = PathBuf::from(started["workflow_file"].as_str().unwrap_or_default());
        Arc::new(load(options, &file).map_err(EngineError::Resume)?)
    };
    let beginning = Beginning {
        stack: vec![workflow.name.clone()],
        inputs: inputs_again(&started, how.inputs)?,
        run_id: run_id.clone(),
        parent: None,
        spending: None,
        user: started["user"].as_str().unwrap_or_default().to_owned(),
        workflow,
        resume: Some(Resume {
            history,
            discards,
            discards_from,
            from: how.from,
            discarded,
            verdict: how.verdict,
        }),
    };
    let (outcome, _) = Box::pin(execute(options, beginning, cancel)).await?;
    Ok(outcome)
}

/// The inputs of a run that goes on: those of its beginning, and those that are given again.
fn inputs_again(
    started: &Value,
    given: IndexMap<String, Value>,
) -> Result<IndexMap<String, Value>, EngineError> {
    let before = started["inputs"].as_object().into_iter().flatten();
    let mut inputs: IndexMap<String, Value> = before
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    inputs.extend(given);
    match inputs
        .iter()
        .find(|(_, value)| value.as_str() == Some(MASKED))
    {
        Some((name, _)) => Err(EngineError::Resume(format!(
            "the input {name} was masked in the transcript; give it again with --input {name}=…"
        ))),
        None => Ok(inputs),
    }
}

/// What is in the place of a secret.
pub(super) const MASKED: &str = "***";

/// Reads a workflow file; all that is wrong with it, as one text.
pub(super) fn load(options: &EngineOptions, file: &Path) -> Result<Workflow, String> {
    crate::definition::load::load(file, &options.places)
        .map(|loaded| loaded.workflow)
        .map_err(|wrong| wrong.to_string())
}

/// Runs a workflow to its end, and gives the values at its end.
pub(super) async fn execute(
    options: &Arc<EngineOptions>,
    beginning: Beginning,
    cancel: &CancellationToken,
) -> Result<(Outcome, Context), EngineError> {
    let began = Instant::now();
    let is_resumed = beginning.resume.is_some();
    let parent = beginning
        .parent
        .as_ref()
        .map(|parent| parent.run_id().clone());
    let mut run = open(options, beginning)?;
    let opened = Box::pin(run.open_plugins()).await;
    let run = Arc::new(run);
    let audit = Audit::open(options.audit.as_deref(), &run.facts)?;
    if let Some(audit) = &audit {
        audit.started(&run.facts)?;
    }
    run.tell(News::RunStarted {
        workflow: &run.workflow.name,
        resumed: is_resumed,
        parent: parent.as_ref(),
    });
    let mut context = Context::new(Arc::clone(&run.facts));
    let ended = match opened {
        Ok(()) => run.drive(&mut context, cancel).await,
        Err(error) => Ok(Ending::failed(error, None)),
    };
    let ending = match ended {
        Ok(ending) => ending,
        Err(Stop::Cancelled) => Ending {
            status: RunStatus::Cancelled,
            exit_code: 130,
            message: None,
            error: Some("cancelled".to_owned()),
            step: None,
            pause: None,
        },
        Err(Stop::Paused(pause)) => Ending {
            status: RunStatus::Paused,
            exit_code: 1,
            message: Some(format!("waits for an approval of step {}", pause.path)),
            error: None,
            step: Some(pause.path.clone()),
            pause: Some(pause),
        },
        Err(Stop::Budget(why) | Stop::Circle(why)) => Ending::failed(why, None),
        Err(Stop::Broken(error)) => {
            // The transcript ends here; the audit file is another one and may still take a line.
            if let Some(audit) = &audit {
                let end = AuditEnd {
                    status: RunStatus::Failed,
                    exit_code: 4,
                    took: began.elapsed(),
                    error: Some(error.to_string()),
                };
                audit.completed(&run.facts, &end).ok();
            }
            return Err(error);
        }
    };
    let ending = run.last_hooks(&mut context, ending).await;
    let outcome = run.outcome(&ending, began.elapsed());
    let closed = run.close(&outcome);
    if let Some(audit) = &audit {
        let end = AuditEnd {
            status: outcome.status,
            exit_code: outcome.exit_code,
            took: outcome.took,
            error: outcome.error.clone(),
        };
        audit.completed(&run.facts, &end)?;
    }
    closed?;
    run.tell(News::RunEnded { outcome: &outcome });
    Ok((outcome, context))
}

/// Opens the transcript of a run, closes what a killed execution left open, and writes down the beginning.
fn open(options: &Arc<EngineOptions>, beginning: Beginning) -> Result<Run, EngineError> {
    let Beginning {
        workflow,
        inputs,
        run_id,
        parent,
        spending,
        stack,
        resume,
        user,
    } = beginning;
    let recorder = match &parent {
        Some(parent) => parent.child(&run_id),
        None => options.storage.record(&run_id, options.recorder.clone()),
    };
    let unrecorded = options
        .go_on_unrecorded
        .then(|| Unrecorded::new(run_id.clone(), Arc::clone(&options.observer)));
    let recorder = match (recorder, &unrecorded) {
        (Ok(recorder), _) => Some(Arc::new(recorder)),
        (Err(error), Some(unrecorded)) => {
            unrecorded.begin(&error);
            None
        }
        (Err(error), None) => return Err(EngineError::Recording(error)),
    };
    let blobs = match (Blobs::open(&options.blobs), &unrecorded) {
        (Ok(blobs), _) => Some(blobs),
        (Err(error), Some(unrecorded)) => {
            unrecorded.begin(&error);
            None
        }
        (Err(error), None) => return Err(EngineError::Storing(error)),
    };
    if let Some(recorder) = &recorder {
        options.observer.opened(recorder);
    }
    let chronicle = Chronicle {
        recorder,
        blobs,
        unrecorded,
    };
    let clock = Clock(Arc::clone(&options.recorder.clock));
    let spending = spending.unwrap_or_else(|| {
        let budget = options.budget.or(workflow.budget);
        Arc::new(Spending::new(Arc::clone(&options.prices), budget))
    });
    let started = resume.as_ref().and_then(|resume| resume.history.first_at);
    let facts = RunFacts {
        name: workflow.name.clone(),
        started: started.unwrap_or_else(|| clock.now()),
        clock,
        inputs,
        dir: options.root.clone(),
        user: options.user.clone(),
        hostname: hostname(),
        places: directories(options, workflow.pack.as_deref()),
        run_id,
    };
    let mut run = Run {
        options: Arc::clone(options),
        facts: Arc::new(facts),
        chronicle,
        history: None,
        spending,
        counts: Counts::default(),
        stack,
        verdict: None,
        plugins: options.plugins.clone(),
        plugins_end: CancellationToken::new().drop_guard(),
        starter: user,
        workflow,
    };
    run.write_beginning(parent.is_some(), resume.as_ref())
        .map_err(broken)?;
    if let Some(resume) = resume {
        for (step, times) in &resume.history.asked {
            options.agents.pass_over(step, *times);
        }
        run.spending.add_past(&resume.history.spending);
        run.verdict = resume.verdict;
        run.history = Some(resume.history);
    }
    Ok(run)
}

/// Only a transcript that cannot be written stops a run that has not begun.
fn broken(stop: Stop) -> EngineError {
    match stop {
        Stop::Broken(error) => error,
        Stop::Cancelled | Stop::Paused(_) | Stop::Budget(_) | Stop::Circle(_) => {
            EngineError::Environment("the run was stopped before it began".to_owned())
        }
    }
}

/// The values of `awf.prompts_dir` and the like.
fn directories(options: &EngineOptions, pack: Option<&str>) -> BTreeMap<String, String> {
    let value = |name: &&str| Some(((*name).to_owned(), options.places.awf(name, pack)?));
    Places::AWF.iter().filter_map(value).collect()
}

fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

impl Run {
    /// Starts the plugins that the workflow names or uses.
    async fn open_plugins(&mut self) -> Result<(), String> {
        let mut names = self.workflow.plugins.clone();
        for step in self.workflow.steps.values() {
            let used = match &step.action {
                Action::Custom(custom) => self
                    .plugins
                    .of_step(&custom.kind)
                    .map(|plugin| plugin.name.as_str()),
                Action::Operation(operation) => operation.operation.text.split('.').next(),
                _ => None,
            };
            let is_found = |name: &&str| self.plugins.found().any(|plugin| plugin.name == *name);
            if let Some(name) = used.filter(is_found)
                && !names.values().any(|known| known == name)
            {
                names.insert(name.to_owned(), name.to_owned());
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let ends = CancellationToken::new();
        self.plugins_end = ends.clone().drop_guard();
        Box::pin(self.plugins.open(&names, &ends))
            .await
            .map_err(|error| error.to_string())
    }

    pub(super) fn tell(&self, news: News<'_>) {
        self.options.observer.tell(&self.facts.run_id, news);
    }

    /// A complaint with its place in the workflow file.
    pub(super) fn at_place(&self, at: At, what: &str) -> String {
        match at.line {
            0 => what.to_owned(),
            line => format!(
                "{}:{line}:{}: {what}",
                self.workflow.file.display(),
                at.column
            ),
        }
    }

    fn named(&self) -> NamedStep {
        NamedStep::new(self.workflow.name.clone(), StepKind::Workflow)
    }

    fn write_beginning(&self, is_child: bool, resume: Option<&Resume>) -> Result<(), Stop> {
        if let Some(resume) = resume {
            self.close_interrupted(&resume.history)?;
        }
        let mut extra = json!({
            "workflow_file": absolute(&self.workflow.file),
            "workflow_sha256": self.workflow.digest,
            "workflow_version": self.workflow.version,
            "inputs": self.facts.inputs,
            "user": self.starter,
            "dir": self.facts.dir,
        });
        if is_child {
            extra["is_child"] = true.into();
        }
        if let Some(resume) = resume {
            let mut how =
                json!({ "by": self.facts.user, "execution": resume.history.executions + 1 });
            if !resume.discards.is_empty() {
                how["discards"] = json!(resume.discards);
            }
            if let Some(first) = resume.discards_from {
                how["discards_from"] = first.into();
            }
            if let Some(from) = &resume.from {
                how["from"] = json!(from);
                how["discarded_steps"] = json!(resume.discarded);
            }
            extra["resume"] = how;
        }
        let body = Body::RunStarted(Some(self.named()));
        self.chronicle
            .record(&Place::run(), body, with_extra(&extra))?;
        Ok(())
    }

    /// Writes down the end of an execution that could not do so itself.
    fn close_interrupted(&self, history: &History) -> Result<(), Stop> {
        if history.last_end != LastEnd::Interrupted {
            return Ok(());
        }
        let error = "interrupted: the process ended before the step did";
        for open in &history.open {
            let end = End {
                child: open.child.clone(),
                interrupted: true,
                ..End::default()
            };
            let state = StepState::failed(error);
            self.chronicle
                .completed(&open.place, open.step.clone(), &state, &end)?;
        }
        let mut end = self
            .named()
            .failed("interrupted: the process ended before the run did");
        end.result = quipu_model::Json::of(&json!({ "status": "interrupted" })).ok();
        self.chronicle.record(
            &Place::run(),
            Body::RunCompleted(Some(end)),
            Annotations::default(),
        )?;
        Ok(())
    }

    /// Goes through the workflow from its first step.
    async fn drive(
        self: &Arc<Self>,
        context: &mut Context,
        cancel: &CancellationToken,
    ) -> Result<Ending, Stop> {
        for name in &self.workflow.env {
            if std::env::var_os(&name.text).is_none() {
                let what = format!("the environment variable {} is not set", name.text);
                return Ok(Ending::failed(self.at_place(name.at, &what), None));
            }
        }
        if let Err(failed) = self.first_hooks(context, cancel).await? {
            return Ok(failed);
        }
        let mut frame = Frame::default();
        let mut name = self.workflow.initial.text.clone();
        loop {
            let Some(step) = self.workflow.steps.get(&name) else {
                return Ok(Ending::failed(
                    format!("step {name} does not exist"),
                    Some(&name),
                ));
            };
            self.step(context, &mut frame, step, cancel).await?;
            if let Some(ending) = is_terminal(step, context) {
                return Ok(ending);
            }
            name = match self.next(context, step, false)? {
                Next::Goto(next) => next,
                Next::End(ending) => return Ok(ending),
                Next::Nowhere => {
                    let error = nowhere(step, context);
                    return Ok(Ending::failed(error, Some(&step.name)));
                }
            };
        }
    }

    /// Where the run goes after a step: the transitions first, then what the step says for success and failure.
    ///
    /// In the body of a loop, a failure that would end the run fails the loop, which says where the run goes.
    pub(super) fn next(&self, context: &Context, step: &Step, in_body: bool) -> Result<Next, Stop> {
        let Some(state) = context.states.get(&step.name) else {
            return Ok(Next::Nowhere);
        };
        if let Some(outside) = &state.leads_to {
            return Ok(Next::Goto(outside.clone()));
        }
        for transition in &step.transitions {
            let holds = match &transition.when {
                None => true,
                Some(when) => {
                    match Expression::parse(when).and_then(|when| when.eval_bool(context)) {
                        Ok(holds) => holds,
                        Err(error) => {
                            let error = self.at_place(error.at, &error.to_string());
                            return Ok(Next::End(Ending::failed(error, Some(&step.name))));
                        }
                    }
                }
            };
            if holds {
                return Ok(Next::Goto(transition.goto.text.clone()));
            }
        }
        if state.is_ok() || step.continue_on_error {
            let to = super::loops::on_complete(step).or(step.on_success.as_ref());
            return Ok(to.map_or(Next::Nowhere, |to| Next::Goto(to.text.clone())));
        }
        Ok(match &step.on_failure {
            None => Next::Nowhere,
            Some(OnFailure::Step(to)) => Next::Goto(to.text.clone()),
            Some(OnFailure::Inline { .. }) if in_body => Next::Nowhere,
            Some(OnFailure::Inline { message, status }) => {
                Next::End(self.inline_end(context, step, message.as_ref(), *status)?)
            }
        })
    }

    /// Ends the run as a step says for its failure. It is a terminal step without a name of its own, and is on the
    /// record like one.
    fn inline_end(
        &self,
        context: &Context,
        step: &Step,
        message: Option<&Text>,
        status: u8,
    ) -> Result<Ending, Stop> {
        let mut context = context.clone();
        let state = context.states.get(&step.name).cloned().unwrap_or_default();
        let error = state.error.clone().unwrap_or_default();
        context.error = Some(Arc::new(ErrorFacts {
            message: error.clone(),
            state: step.name.clone(),
            exit_code: state.exit_code.unwrap_or(1),
            kind: "execution".to_owned(),
        }));
        let filler = Filler {
            run: self,
            context: &context,
        };
        let said = match message.map(|message| filler.text(message)).transpose() {
            Ok(said) => said,
            Err(wrong) => Some(wrong),
        };
        let name = format!("__inline_error_{}", step.name);
        let named = NamedStep::new(name.clone(), StepKind::Terminal);
        let mut place = Place::step(name);
        if let Some(history) = &self.history {
            place.attempt = history.next_attempt(&place, 1);
        }
        self.chronicle
            .started(&place, named.clone(), None, "", None)?;
        let mut end = StepState::said(said.clone().unwrap_or_default());
        end.exit_code = Some(i32::from(status));
        self.chronicle
            .completed(&place, named, &end, &End::default())?;
        Ok(Ending {
            status: RunStatus::Failed,
            exit_code: status,
            error: Some(said.clone().unwrap_or(error)),
            message: said,
            step: Some(step.name.clone()),
            pause: None,
        })
    }

    async fn first_hooks(
        self: &Arc<Self>,
        context: &Context,
        cancel: &CancellationToken,
    ) -> Result<Result<(), Ending>, Stop> {
        // They belong to the beginning of a run, not of each execution of it.
        if self.history.is_some() {
            return Ok(Ok(()));
        }
        for hook in &self.workflow.hooks.workflow_start {
            if let Err(error) = self.hook(context, &Place::run(), hook, cancel).await {
                let error = format!("a hook before the first step failed: {error}");
                return Ok(Err(Ending::failed(error, None)));
            }
        }
        Ok(Ok(()))
    }

    /// Runs the hooks of the run's end. What they change is nothing; a transcript that breaks is said by `close`.
    async fn last_hooks(self: &Arc<Self>, context: &mut Context, ending: Ending) -> Ending {
        let hooks = &self.workflow.hooks;
        let hooks = match ending.status {
            RunStatus::Succeeded => &hooks.workflow_end,
            RunStatus::Failed => &hooks.workflow_error,
            RunStatus::Cancelled => &hooks.workflow_cancel,
            RunStatus::Paused => return ending,
        };
        if ending.status == RunStatus::Failed {
            context.error = Some(Arc::new(ErrorFacts {
                message: ending.error.clone().unwrap_or_default(),
                state: ending.step.clone().unwrap_or_default(),
                exit_code: i32::from(ending.exit_code),
                kind: "execution".to_owned(),
            }));
        }
        // A run that was cancelled still says good-bye, in bounded time.
        let own = CancellationToken::new();
        let limit = Duration::from_secs(if ending.status == RunStatus::Cancelled {
            10
        } else {
            300
        });
        let place = Place::run();
        let running = self.hooks(context, &place, hooks, &own);
        tokio::pin!(running);
        tokio::select! {
            _ = &mut running => {}
            () = tokio::time::sleep(limit) => {
                own.cancel();
                running.await.ok();
            }
        }
        ending
    }

    fn outcome(&self, ending: &Ending, took: Duration) -> Outcome {
        let spent = self.spending.sum();
        Outcome {
            run_id: self.facts.run_id.clone(),
            workflow: self.workflow.name.clone(),
            status: ending.status,
            exit_code: ending.exit_code,
            message: ending.message.clone(),
            error: ending.error.clone(),
            took,
            dollars: spent.dollars,
            unpriced: spent.unpriced,
            tokens: spent.tokens,
            steps: self.counts.steps.load(Ordering::Relaxed),
            answered: self.counts.answered.load(Ordering::Relaxed),
            pause: ending.pause.clone(),
        }
    }

    /// Writes down the end of the run, and closes its transcript.
    fn close(&self, outcome: &Outcome) -> Result<(), EngineError> {
        let mut result = Map::new();
        result.insert("status".to_owned(), outcome.status.as_str().into());
        result.insert("exit_code".to_owned(), outcome.exit_code.into());
        if let Some(message) = &outcome.message {
            result.insert("message".to_owned(), message.clone().into());
        }
        if outcome.tokens > 0 {
            result.insert("tokens".to_owned(), outcome.tokens.into());
            result.insert("cost_usd".to_owned(), dollars(outcome.dollars).into());
        }
        if outcome.unpriced > 0 {
            result.insert("calls_without_price".to_owned(), outcome.unpriced.into());
        }
        if outcome.answered > 0 {
            result.insert(
                "answered_from_transcript".to_owned(),
                outcome.answered.into(),
            );
        }
        if let Some(pause) = &outcome.pause {
            result.insert("waits_for".to_owned(), pause.path.clone().into());
        }
        let mut end = match &outcome.error {
            Some(error) => self.named().failed(error.clone()),
            None => self.named().succeeded(None),
        };
        end.result = quipu_model::Json::of(&result).ok();
        let mut annotations = Annotations::default();
        annotations.duration_ms = Some(super::chronicle::millis(outcome.took));
        self.chronicle
            .record(&Place::run(), Body::RunCompleted(Some(end)), annotations)
            .map_err(broken)?;
        let closed = match &self.chronicle.recorder {
            Some(recorder) => recorder.close().map_err(Stop::recording),
            None => Ok(()),
        };
        self.chronicle.unless_unrecorded(closed).map_err(broken)
    }

    /// Writes down how many steps answered from the transcript since it was last said.
    pub(super) fn say_answered(&self, place: &Place) -> Result<(), Stop> {
        match self.counts.unsaid.swap(0, Ordering::Relaxed) {
            0 => Ok(()),
            steps => self.note(
                place,
                "cache",
                "answered_from_transcript",
                &json!({ "steps": steps }),
            ),
        }
    }

    /// Says that a limit was met, without a warning on the display.
    pub(super) fn note(
        &self,
        place: &Place,
        category: &str,
        name: &str,
        attributes: &Value,
    ) -> Result<(), Stop> {
        self.chronicle
            .harness(place, category, name, Severity::Info, attributes)?;
        Ok(())
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Why a run ends at a step that says nothing of what comes after it.
fn nowhere(step: &Step, context: &Context) -> String {
    let error = context
        .states
        .get(&step.name)
        .and_then(|state| state.error.clone());
    match error {
        Some(error) => format!("step {} failed: {error}", step.name),
        None => format!(
            "step {} succeeded, but says no step that follows it; give it on_success or transitions",
            step.name
        ),
    }
}
