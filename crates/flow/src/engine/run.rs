//! A run: from opening its transcript to closing it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use quipu_model::{Annotations, Body, Money, Place, RunId, Severity, Step as NamedStep, StepKind};
use quipu_record::{Journal, Recorder};
use quipu_store::blobs::Blobs;
use serde_json::{Map, Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::action::is_terminal;
use super::audit::{Audit, AuditEnd};
use super::chronicle::{Chronicle, End, HowEnded, Unrecorded, dollars, with_extra};
use super::clock::Clock;
use super::context::{Context, ErrorFacts, RunFacts};
use super::frame::Frame;
use super::history::{History, LastEnd, key};
use super::mask;
use super::prepare::Filler;
use super::resume::open_journal;
use super::spending::{Spending, Sum, Worth};
use super::state::StepState;
use super::{EngineError, EngineOptions, News, Outcome, Pause, RunStatus, Stop, Verdict};
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
    /// A person's answer, until the step that asked has it.
    pub(super) verdict: Arc<Mutex<Option<Verdict>>>,
    pub(super) starter: String,
    /// What this run cost, without the runs that it called.
    pub(super) own: Mutex<Sum>,
    /// What steps with a budget cost.
    by_step: Mutex<HashMap<(String, Vec<u64>), Money>>,
    /// Values that are not to be seen: those of this run and of its callers.
    pub(super) secrets: Vec<String>,
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
    /// The end of the step whose failure ended the run.
    pub(super) ended_by: Option<u64>,
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
            ended_by: None,
            pause: None,
        }
    }
}

/// What a run begins with.
pub(super) struct Beginning {
    pub(super) workflow: Arc<Workflow>,
    pub(super) inputs: IndexMap<String, Value>,
    pub(super) run_id: RunId,
    pub(super) parent: Option<RunId>,
    /// The transcript, where it is open already.
    pub(super) journal: Option<Journal>,
    /// Secrets of the callers.
    pub(super) secrets: Vec<String>,
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
    pub(super) verdict: Arc<Mutex<Option<Verdict>>>,
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
    run_id: RunId,
    workflow: Arc<Workflow>,
    inputs: IndexMap<String, Value>,
    cancel: &CancellationToken,
) -> Result<Outcome, EngineError> {
    let beginning = Beginning {
        stack: vec![workflow.name.clone()],
        workflow,
        inputs,
        run_id,
        parent: None,
        journal: None,
        secrets: Vec::new(),
        spending: None,
        resume: None,
        user: options.user.clone(),
    };
    let (outcome, _) = Box::pin(execute(options, beginning, cancel)).await?;
    Ok(outcome)
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
    let parent = beginning.parent.clone();
    let (mut run, resume) = open(options, beginning)?;
    // The audit file comes first: a run that cannot be put there does not begin.
    let audit = Audit::open(options, &run.secrets)?;
    if let Some(audit) = &audit {
        audit.started(&run.facts)?;
    }
    run.begin_record(parent.is_some(), resume).map_err(broken)?;
    run.tell(News::RunStarted {
        workflow: &run.workflow.name,
        resumed: is_resumed,
        parent: parent.as_ref(),
    });
    let opened = tokio::select! {
        opened = Box::pin(run.open_plugins()) => opened.map_err(Some),
        () = cancel.cancelled() => Err(None),
    };
    let run = Arc::new(run);
    let mut context = Context::new(Arc::clone(&run.facts));
    let ended = match opened {
        Ok(()) => run.drive(&mut context, cancel).await,
        Err(Some(error)) => Ok(Ending::failed(error, None)),
        Err(None) => Err(Stop::Cancelled),
    };
    let ending = match ended {
        Ok(ending) => ending,
        Err(Stop::Cancelled) => Ending {
            status: RunStatus::Cancelled,
            exit_code: super::cancel::EXIT_CODE,
            message: None,
            error: Some("cancelled".to_owned()),
            step: None,
            ended_by: None,
            pause: None,
        },
        Err(Stop::Paused(pause)) => Ending {
            status: RunStatus::Paused,
            exit_code: 1,
            message: Some(format!("waits for an approval of step {}", pause.path)),
            error: None,
            step: Some(pause.path.clone()),
            ended_by: None,
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
    let ending = run.last_hooks(&mut context, ending, cancel).await;
    let outcome = run.outcome(&ending, began.elapsed());
    let closed = run.close(&outcome, ending.ended_by);
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

/// Opens what a run needs. Nothing is written yet.
fn open(
    options: &Arc<EngineOptions>,
    beginning: Beginning,
) -> Result<(Run, Option<Resume>), EngineError> {
    let Beginning {
        workflow,
        inputs,
        run_id,
        parent,
        journal,
        mut secrets,
        spending,
        stack,
        resume,
        user,
    } = beginning;
    secrets.extend(mask::secrets(&inputs));
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut how = options.recorder.clone();
    how.masker = how.masker.map(|rules| mask::masker(secrets.clone(), rules));
    let journal = match journal {
        Some(journal) => Some(journal),
        None => open_journal(options, &run_id)?,
    };
    let unrecorded = options
        .go_on_unrecorded
        .then(|| Unrecorded::new(run_id.clone(), Arc::clone(&options.observer)));
    if let (None, Some(unrecorded)) = (&journal, &unrecorded)
        && let Err(error) = Journal::open(&options.storage.path_of(&run_id), &run_id, how.limits)
    {
        unrecorded.begin(&error);
    }
    let recorder = journal.map(|journal| Recorder::start(journal, parent, how.clone()));
    let recorder = match (recorder.transpose(), &unrecorded) {
        (Ok(recorder), _) => recorder.map(Arc::new),
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
        masker: how.masker,
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
        user: user.clone(),
        hostname: hostname(),
        places: directories(options, workflow.pack.as_deref()),
        run_id,
    };
    let run = Run {
        options: Arc::clone(options),
        facts: Arc::new(facts),
        chronicle,
        history: None,
        spending,
        own: Mutex::default(),
        by_step: Mutex::default(),
        secrets,
        counts: Counts::default(),
        stack,
        verdict: Arc::default(),
        plugins: options.plugins.clone(),
        plugins_end: CancellationToken::new().drop_guard(),
        starter: user,
        workflow,
    };
    Ok((run, resume))
}

/// Only a transcript that cannot be written stops a run that has not begun.
pub(super) fn broken(stop: Stop) -> EngineError {
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

    /// Closes what a killed execution left open, writes down the beginning, and takes what is known over.
    fn begin_record(&mut self, is_child: bool, resume: Option<Resume>) -> Result<(), Stop> {
        if let Some(resume) = &resume {
            self.close_interrupted(&resume.history)?;
        }
        self.write_beginning(is_child, resume.as_ref())?;
        if let Some(resume) = resume {
            for (step, times) in &resume.history.asked {
                self.options.agents.pass_over(step, *times);
            }
            for event in &resume.history.spending {
                let added = self.spending.worth(&event.annotations, event.timestamp);
                self.add_own(added);
            }
            if resume.from.is_some() {
                self.tell(News::Discarded {
                    steps: &resume.discarded,
                });
            }
            self.verdict = resume.verdict;
            self.history = Some(resume.history);
        }
        Ok(())
    }

    /// Adds what a call of a step with a budget cost, and gives what the step has cost in all, over its attempts and
    /// executions.
    pub(super) fn add_to_step(&self, place: &Place, added: Worth) -> Money {
        let mut by_step = self.by_step.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = by_step.entry(key(place)).or_insert_with(|| {
            let past = self.history.iter().flat_map(|history| &history.spending);
            past.filter(|event| key(&event.place) == key(place))
                .filter_map(|event| {
                    let worth = self.spending.worth(&event.annotations, event.timestamp);
                    worth.dollars
                })
                .sum()
        });
        *sum += added.dollars.unwrap_or(Money::ZERO);
        *sum
    }

    pub(super) fn add_own(&self, added: Worth) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.add(added);
    }

    fn write_beginning(&self, is_child: bool, resume: Option<&Resume>) -> Result<(), Stop> {
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
        if self.chronicle.masker.is_some() {
            extra["is_masked"] = true.into();
        }
        if let Some(budget) = self.spending.budget() {
            extra["budget"] = json!({ "usd": budget.usd, "enforce": budget.enforce });
        }
        if let Some(resume) = resume {
            let mut how =
                json!({ "by": self.options.user, "execution": resume.history.executions + 1 });
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
        close_steps(&self.chronicle, history)?;
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
        // The end of the last step, if it failed.
        let mut failed = None;
        loop {
            let Some(step) = self.workflow.steps.get(&name) else {
                return Ok(Ending::failed(
                    format!("step {name} does not exist"),
                    Some(&name),
                ));
            };
            self.step(context, &mut frame, step, cancel).await?;
            if let Some(ending) = is_terminal(step, context) {
                return Ok(Ending {
                    ended_by: failed,
                    ..ending
                });
            }
            let state = context.states.get(&step.name);
            failed = state.filter(|state| !state.is_ok()).map(|state| state.seq);
            name = match self.next(context, step, false)? {
                Next::Goto(next) => next,
                Next::End(ending) => {
                    return Ok(Ending {
                        ended_by: failed,
                        ..ending
                    });
                }
                Next::Nowhere => {
                    let error = nowhere(step, context);
                    return Ok(Ending {
                        ended_by: failed,
                        ..Ending::failed(error, Some(&step.name))
                    });
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
            .started(&place, named.clone(), None, "", &[])?;
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
            ended_by: None,
            pause: None,
        })
    }

    async fn first_hooks(
        self: &Arc<Self>,
        context: &Context,
        cancel: &CancellationToken,
    ) -> Result<Result<(), Ending>, Stop> {
        // They belong to the beginning of a run, not of each execution of it.
        let hooks = &self.workflow.hooks.workflow_start;
        let are_done = self
            .history
            .as_ref()
            .is_some_and(|history| history.start_hooks_done);
        if hooks.is_empty() || are_done {
            return Ok(Ok(()));
        }
        for hook in hooks {
            if let Err(error) = self.hook(context, &Place::run(), hook, cancel).await {
                let error = format!("a hook before the first step failed: {error}");
                return Ok(Err(Ending::failed(error, None)));
            }
        }
        self.note(
            &Place::run(),
            "tool_lifecycle",
            "start_hooks_done",
            &json!({ "hooks": hooks.len() }),
        )?;
        Ok(Ok(()))
    }

    /// Runs the hooks of the run's end. What they change is nothing; a transcript that breaks is said by `close`.
    async fn last_hooks(
        self: &Arc<Self>,
        context: &mut Context,
        ending: Ending,
        cancel: &CancellationToken,
    ) -> Ending {
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
            () = cancel.cancelled(), if ending.status != RunStatus::Cancelled => {
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
    fn close(&self, outcome: &Outcome, ended_by: Option<u64>) -> Result<(), EngineError> {
        let mut result = Map::new();
        result.insert("status".to_owned(), outcome.status.as_str().into());
        result.insert("exit_code".to_owned(), outcome.exit_code.into());
        if let Some(message) = &outcome.message {
            result.insert("message".to_owned(), message.clone().into());
        }
        let own = *self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.tokens > 0 {
            result.insert("tokens".to_owned(), own.tokens.into());
            result.insert("cost_usd".to_owned(), dollars(own.dollars).into());
        }
        if own.unpriced > 0 {
            result.insert("calls_without_price".to_owned(), own.unpriced.into());
        }
        if outcome.answered > 0 {
            result.insert(
                "answered_from_transcript".to_owned(),
                outcome.answered.into(),
            );
        }
        if let Some(seq) = ended_by {
            result.insert("ended_by".to_owned(), seq.into());
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

/// Writes down the ends of steps that a killed execution left open.
pub(super) fn close_steps(chronicle: &Chronicle, history: &History) -> Result<(), Stop> {
    let error = "interrupted: the process ended before the step did";
    for open in &history.open {
        let end = End {
            child: open.child.clone(),
            how: HowEnded::Interrupted,
            ..End::default()
        };
        let state = StepState::failed(error);
        chronicle.completed(&open.place, open.step.clone(), &state, &end)?;
    }
    Ok(())
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
