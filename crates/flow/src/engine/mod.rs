//! The engine: goes through a workflow and writes down what happens.
//!
//! ```text
//!  Engine::run ─┐                       ┌─ command, agent, operation, …   (one file per kind of step)
//!               ├─► Run::drive ─► step ─┤
//!  ::resume ────┘      │          │     └─ parallel, loops, call  ─► step, with a frame of their own
//!    History answers ◄─┘          └─► Chronicle ─► transcripts/<run-id>.jsonl
//! ```
//!
//! * **The transcript is the state.** A resumed run goes through its workflow again; steps that ended answer from the
//!   transcript (`history.rs`).
//! * **Every execution of a step has a place of its own**: path, passes through the loops around it, attempt.
//! * **Each branch and each pass has its own values** (`context.rs`).
//! * **A run that cannot be written down stops**, before the next side effect, unless the user said otherwise.

mod action;
mod agent;
mod approval;
mod audit;
mod call;
mod cancel;
mod chronicle;
mod clock;
mod command;
mod context;
mod frame;
mod history;
mod loops;
mod mask;
mod parallel;
mod preflight;
mod prepare;
mod resume;
mod run;
mod spending;
mod state;
mod step;
mod survey;
mod text;
mod tooling;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use quipu_model::{Money, Place, RunId, StepKind};
use quipu_record::{Recorder, RecorderOptions, Storage};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentOptions, Agents};
use crate::definition::places::Places;
use crate::definition::{Budget, Workflow};
use crate::operation::{Builtin, Operations};
use crate::plugin::Plugins;

pub use action::kind_of;
pub use cancel::Cancelling;
pub use mask::Secrets;
pub use preflight::preflight;
pub use run::new_run_id;
pub use state::{StepState, StepStatus, StepTokens};
pub use survey::{Glance, OpenRequest, OpenStep, RecordedEnd, Survey, last_event};

/// What the engine needs from the program around it.
#[derive(Clone)]
pub struct EngineOptions {
    /// Where transcripts are.
    pub storage: Storage,
    /// Where blobs are.
    pub blobs: PathBuf,
    /// Where the audit file is; `None` to write none.
    pub audit: Option<PathBuf>,
    /// How runs are recorded.
    pub recorder: RecorderOptions,
    /// Whether a run that cannot be recorded goes on.
    pub go_on_unrecorded: bool,
    /// Where workflows, prompts, roles and skills are.
    pub places: Places,
    /// The directory that steps begin in, and that tools and operations may not leave.
    pub root: PathBuf,
    /// Who answers agent steps.
    pub agents: Agents,
    /// Operations, in the order in which names are looked up.
    pub operations: Vec<Arc<dyn Operations>>,
    /// Plugins.
    pub plugins: Plugins,
    /// The program and arguments that connect an agent's standard input and output to a socket; the path of the
    /// socket is added. Without it, CLI agents are not given tools.
    pub connector: Option<Vec<String>>,
    /// What tokens cost.
    pub prices: Arc<quipu_prices::Prices>,
    /// What a run may cost, in place of what its workflow says.
    pub budget: Option<Budget>,
    /// Who starts, resumes and approves.
    pub user: String,
    /// Told what happens.
    pub observer: Arc<dyn Observer>,
    /// Whom to ask when a step needs a person; `None` when nobody is there.
    pub person: Option<Arc<dyn Person>>,
    /// How deep workflows may call each other.
    pub max_depth: usize,
    /// How often a step may run in one pass before the run is taken to go round in circles.
    pub max_visits: u32,
}

impl EngineOptions {
    /// What most programs need: transcripts, blobs and the audit file in `home`, steps in `root`, nobody to ask and
    /// nobody who listens.
    pub fn new(home: &Path, root: &Path, places: Places) -> Self {
        let plugins = Plugins::discover(&places.plugins);
        Self {
            storage: Storage::at(home),
            blobs: home.join("blobs"),
            audit: Some(home.join("audit.jsonl")),
            recorder: RecorderOptions::default(),
            go_on_unrecorded: false,
            places,
            root: root.to_owned(),
            agents: Agents::new(AgentOptions::default()),
            operations: vec![Arc::new(Builtin::default())],
            plugins,
            connector: None,
            prices: Arc::new(quipu_prices::Prices::builtin()),
            budget: None,
            user: String::new(),
            observer: Arc::new(NoObserver),
            person: None,
            max_depth: 10,
            max_visits: 1000,
        }
    }
}

/// Told what happens, for a display. Called from many threads; must be quick.
pub trait Observer: Send + Sync {
    /// Something happened in a run.
    fn tell(&self, run: &RunId, news: News<'_>);
    /// The recorder of a run is open. Whoever wants every event follows it.
    fn opened(&self, _recorder: &Arc<Recorder>) {}
}

/// Does not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn tell(&self, _run: &RunId, _news: News<'_>) {}
}

/// What an observer is told.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub enum News<'a> {
    /// A run begins, or goes on.
    RunStarted {
        workflow: &'a str,
        resumed: bool,
        parent: Option<&'a RunId>,
    },
    /// A step begins.
    StepStarted {
        place: &'a Place,
        kind: &'a StepKind,
    },
    /// A step has ended.
    StepEnded {
        place: &'a Place,
        kind: &'a StepKind,
        error: Option<&'a str>,
        took: Duration,
    },
    /// Steps will run again, although they ended.
    Discarded { steps: &'a [String] },
    /// A step waits for a person.
    StepPaused { place: &'a Place },
    /// A step answered from the transcript.
    StepAnswered { place: &'a Place },
    /// A step is tried again.
    Retrying {
        place: &'a Place,
        after: Duration,
        error: &'a str,
    },
    /// An agent says something.
    Said { place: &'a Place, text: &'a str },
    /// A command prints something.
    Printed {
        place: &'a Place,
        bytes: &'a [u8],
        is_error: bool,
    },
    /// A hook says something.
    Log { place: &'a Place, text: &'a str },
    /// Something needs a look.
    Warning { place: &'a Place, text: &'a str },
    /// What the run has cost so far, and the tokens it used.
    Spent { dollars: Money, tokens: u64 },
    /// A run has ended.
    RunEnded { outcome: &'a Outcome },
}

/// A question to a person.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The run whose step asks.
    pub run: &'a RunId,
    /// The step.
    pub place: &'a Place,
    /// What is asked: the agent's last answer, or the message of an approval.
    pub text: &'a str,
}

/// What a person said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The text.
    pub text: String,
    /// Who said it; `None` for whoever runs the program.
    pub by: Option<String>,
}

/// What a person says, as soon as they do. It is dropped when nobody waits for it any more: the run was cancelled, or
/// the time of the step was up.
pub type Saying<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// A person who can be asked.
pub trait Person: Send + Sync {
    /// The next line of a conversation; `None` when the person ends it.
    fn line<'a>(&'a self, question: Question<'a>) -> Saying<'a, Line>;
    /// Whether the person consents; `None` when the person does not say.
    fn consents<'a>(&'a self, question: Question<'a>) -> Saying<'a, bool>;
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// As it should.
    Succeeded,
    /// It did not get to a good end.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It waits for an approval.
    Paused,
}

impl RunStatus {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// How it ended.
    pub status: RunStatus,
    /// The exit code for the process.
    pub exit_code: u8,
    /// What the terminal step says.
    pub message: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// How long this execution took.
    pub took: Duration,
    /// What the run cost, as far as it is known, all executions and child runs included.
    pub dollars: Money,
    /// How many calls have no known price.
    pub unpriced: u64,
    /// The tokens it used.
    pub tokens: u64,
    /// How many steps ran in this execution.
    pub steps: u64,
    /// How many steps answered from the transcript.
    pub answered: u64,
    /// What it waits for.
    pub pause: Option<Pause>,
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// The step.
    pub path: String,
    /// What is asked.
    pub message: String,
    /// Who may consent; anybody when it is empty.
    pub approvers: Vec<String>,
    /// What whoever consents has to name. It is not in the transcript.
    pub token: String,
    /// Why an answer was not taken.
    pub refused: Option<String>,
}

/// A person's answer to a paused run.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The token that was given out.
    pub token: String,
    /// Whether the person consents.
    pub consents: bool,
}

/// How a run is resumed.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// The step to run again from, by its path.
    pub from: Option<String>,
    /// The answer to a run that waits for one.
    pub verdict: Option<Verdict>,
    /// Inputs that were masked in the transcript, or are to be changed.
    pub inputs: IndexMap<String, String>,
    /// The directory that steps begin in; the one that the run began in unless it is given.
    pub root: Option<PathBuf>,
    /// The workflow's file, where it is not where it was.
    pub workflow: Option<Arc<Workflow>>,
}

/// Why a run did not begin or could not be written down.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The transcript could not be opened or written.
    #[error("cannot record the run")]
    Recording(#[source] quipu_record::Error),
    /// Another process runs it.
    #[error("{0} is still running, in another process")]
    Running(RunId),
    /// There is a run of this id already.
    #[error("there is a run {0} already")]
    Taken(RunId),
    /// A blob could not be kept.
    #[error("cannot keep the output of a step")]
    Storing(#[source] quipu_store::blobs::BlobError),
    /// The audit file could not be written.
    #[error("cannot write {path}", path = path.display())]
    Audit {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is nothing to resume, or not in this way.
    #[error("{0}")]
    Resume(String),
    /// The workflow needs what is not there.
    #[error("{0}")]
    Environment(String),
}

/// Why a run goes no further, from inside it.
#[derive(Debug)]
enum Stop {
    /// It was cancelled. Who was running has written that down.
    Cancelled,
    /// It waits for a person.
    Paused(Pause),
    /// It has spent what it may.
    Budget(String),
    /// It goes round in circles.
    Circle(String),
    /// It cannot be written down.
    Broken(EngineError),
}

impl Stop {
    fn recording(error: quipu_record::Error) -> Self {
        Self::Broken(EngineError::Recording(error))
    }

    fn storing(error: quipu_store::blobs::BlobError) -> Self {
        Self::Broken(EngineError::Storing(error))
    }
}

/// Runs workflows.
#[derive(Clone)]
pub struct Engine {
    options: Arc<EngineOptions>,
}

impl Engine {
    /// An engine.
    pub fn new(options: EngineOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    /// Runs a workflow from its beginning. Cancelling `cancel` ends it with everything that it started.
    ///
    /// # Errors
    ///
    /// When the run cannot be recorded. A run that fails is not an error: the outcome says so.
    pub async fn run(
        &self,
        workflow: Arc<Workflow>,
        inputs: IndexMap<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, EngineError> {
        self.run_as(new_run_id()?, workflow, inputs, cancel).await
    }

    /// The same, under an id that the caller has chosen ([`new_run_id`]), so that others can be told it beforehand.
    ///
    /// # Errors
    ///
    /// As [`Engine::run`]; and when there is a run of this id already.
    pub async fn run_as(
        &self,
        run_id: RunId,
        workflow: Arc<Workflow>,
        inputs: IndexMap<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<Outcome, EngineError> {
        if self.options.storage.path_of(&run_id).exists() {
            return Err(EngineError::Taken(run_id));
        }
        run::begin(&self.options, run_id, workflow, inputs, cancel).await
    }

    /// Goes on with a run. Steps that ended answer from its transcript.
    ///
    /// # Errors
    ///
    /// When there is no such run, when it has succeeded, or as [`Engine::run`].
    pub async fn resume(
        &self,
        run_id: &RunId,
        how: ResumeOptions,
        cancel: &CancellationToken,
    ) -> Result<Outcome, EngineError> {
        resume::resume(&self.options, run_id, how, cancel).await
    }
}
