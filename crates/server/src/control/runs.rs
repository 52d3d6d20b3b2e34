//! The runs of this process.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_flow::engine::{
    EngineError, Line, News, Observer, Outcome, Person, Question, RunStatus, Saying, Secrets,
};
use quipu_model::{Money, Place, RunId, Timestamp};
use quipu_record::Clock;
use rustc_hash::FxBuildHasher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::body::StubBody;
use crate::problem::Problem;

/// How many runs that have ended are remembered.
const RECENT: usize = 256;

/// How much of a question is shown.
const QUESTION: usize = 64 << 10;

/// What is known of a run before it begins.
pub(super) struct About {
    pub(super) workflow: String,
    pub(super) file: PathBuf,
    pub(super) root: PathBuf,
    /// As they may be shown.
    pub(super) inputs: Vec<(String, String)>,
    pub(super) secrets: Secrets,
    pub(super) starter: String,
    pub(super) started_at: Timestamp,
    /// What earlier executions cost.
    pub(super) spent: (Money, u64),
    pub(super) stub: Option<StubBody>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Starting,
    Running,
    Ended,
}

/// How a run ended.
pub(super) enum End {
    /// As its transcript says.
    Said(Box<Outcome>),
    /// It did not begin.
    Refused(EngineError),
    /// It was cut off, and its transcript does not say how it ended.
    Lost(String),
}

/// A step that runs.
#[derive(Debug, Clone)]
pub(super) struct Stepping {
    pub(super) place: Place,
    pub(super) kind: String,
    pub(super) since: Timestamp,
}

/// A question that waits.
pub(super) struct Waiting {
    number: u64,
    pub(super) path: String,
    pub(super) text: String,
    pub(super) since: Timestamp,
    answer: oneshot::Sender<Line>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) steps: Vec<Stepping>,
    pub(super) questions: Vec<Waiting>,
    asked: u64,
    pub(super) dollars: Money,
    pub(super) tokens: u64,
    pub(super) end: Option<End>,
    pub(super) ended_at: Option<Timestamp>,
    /// How long the transcript was when the run ended here. A longer one was resumed elsewhere.
    length: Option<u64>,
}

/// A run of this process.
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) about: About,
    pub(super) cancel: CancellationToken,
    transcript: PathBuf,
    clock: Arc<dyn Clock>,
    phase: watch::Sender<Phase>,
    state: Mutex<State>,
}

impl Run {
    pub(super) fn new(
        id: RunId,
        about: About,
        transcript: PathBuf,
        clock: Arc<dyn Clock>,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        let state = State {
            dollars: about.spent.0,
            tokens: about.spent.1,
            ..State::default()
        };
        Arc::new(Self {
            id,
            about,
            cancel,
            transcript,
            clock,
            phase: watch::Sender::new(Phase::Starting),
            state: Mutex::new(state),
        })
    }

    /// Looks at how it is.
    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock())
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.phase.borrow() == Phase::Ended
    }

    /// Waits until its beginning is recorded, or it has ended.
    pub(super) async fn begun(&self) {
        self.reached(Phase::Running).await;
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&self) {
        self.reached(Phase::Ended).await;
    }

    /// Waits until it has ended, but not longer than this.
    pub(super) async fn ends_within(&self, most: Duration) -> bool {
        tokio::time::timeout(most, self.ended()).await.is_ok()
    }

    async fn reached(&self, phase: Phase) {
        let mut now = self.phase.subscribe();
        // The sender is in `self`, so it is there.
        drop(now.wait_for(|now| *now >= phase).await);
    }

    fn finish(&self, end: End) {
        let length = std::fs::metadata(&self.transcript).ok();
        let mut state = self.state.lock();
        state.steps.clear();
        state.questions.clear();
        if let End::Said(outcome) = &end {
            (state.dollars, state.tokens) = (outcome.dollars, outcome.tokens);
        }
        state.end = Some(end);
        state.ended_at = Some(self.clock.now());
        state.length = length.map(|about| about.len());
        drop(state);
        self.phase.send_replace(Phase::Ended);
    }

    /// Whether what is known here is all there is: nobody else has gone on with it.
    pub(super) fn is_current(&self) -> bool {
        if !self.has_ended() {
            return true;
        }
        let now = std::fs::metadata(&self.transcript).ok();
        let state = self.state.lock();
        state.length.is_some() && state.length == now.map(|about| about.len())
    }

    /// Answers a question: the only one, or that of a step.
    ///
    /// # Errors
    ///
    /// When nobody waits, or several do.
    pub(super) fn answer(&self, step: Option<&str>, line: Line) -> Result<(), Problem> {
        let mut state = self.state.lock();
        let mut waiting = state.questions.iter().enumerate();
        let found = match step {
            Some(step) => waiting.find(|(_, one)| one.path == step),
            None if state.questions.len() > 1 => {
                let paths: Vec<&str> = state.questions.iter().map(|one| &*one.path).collect();
                return Err(Problem::conflict("several steps wait for an answer")
                    .hint(format!("name one in `step`: {}", paths.join(", "))));
            }
            None => waiting.next(),
        };
        let nobody = || Problem::conflict("no step of this run waits for an answer");
        let at = found.map(|(at, _)| at).ok_or_else(nobody)?;
        let asked = state.questions.remove(at);
        drop(state);
        // The step may have given up in this moment.
        asked.answer.send(line).map_err(|_| nobody())
    }
}

/// A question is withdrawn when nobody waits for its answer any more.
struct Withdraw<'a> {
    run: &'a Run,
    number: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let mut state = self.run.state.lock();
        state.questions.retain(|one| one.number != self.number);
    }
}

impl Person for Run {
    fn line<'a>(&'a self, question: Question<'a>) -> Saying<'a, Line> {
        Box::pin(async move {
            let (answer, said) = oneshot::channel();
            let mut text = self.about.secrets.hide(question.text);
            if text.len() > QUESTION {
                let mut most = QUESTION;
                while !text.is_char_boundary(most) {
                    most -= 1;
                }
                text.truncate(most);
            }
            let number = {
                let mut state = self.state.lock();
                state.asked += 1;
                let number = state.asked;
                state.questions.push(Waiting {
                    number,
                    path: question.place.label(),
                    text,
                    since: self.clock.now(),
                    answer,
                });
                number
            };
            let _withdraw = Withdraw { run: self, number };
            said.await.ok()
        })
    }

    /// Approvals pause the run: whoever consents does so with the token.
    fn consents<'a>(&'a self, _: Question<'a>) -> Saying<'a, bool> {
        Box::pin(async { None })
    }
}

impl Observer for Run {
    fn tell(&self, run: &RunId, news: News<'_>) {
        let own = *run == self.id;
        match news {
            News::RunStarted { .. } if own => {
                self.phase.send_replace(Phase::Running);
            }
            News::StepStarted { place, kind } if own => {
                let since = self.clock.now();
                let step = Stepping {
                    place: place.clone(),
                    kind: kind.as_str().to_owned(),
                    since,
                };
                self.state.lock().steps.push(step);
            }
            News::StepEnded { place, .. } | News::StepPaused { place } if own => {
                self.state.lock().steps.retain(|step| step.place != *place);
            }
            News::Spent { dollars, tokens } => {
                let mut state = self.state.lock();
                (state.dollars, state.tokens) = (dollars, tokens);
            }
            _ => {}
        }
    }
}

/// The runs of this process.
pub(super) struct Runs {
    table: Mutex<Table>,
    permits: Arc<Semaphore>,
    most: usize,
}

#[derive(Default)]
struct Table {
    runs: HashMap<RunId, Arc<Run>, FxBuildHasher>,
    /// Those that have ended, the oldest first.
    ended: VecDeque<RunId>,
}

impl Runs {
    pub(super) fn new(most: usize) -> Self {
        Self {
            table: Mutex::default(),
            permits: Arc::new(Semaphore::new(most)),
            most,
        }
    }

    /// Leave to run one more.
    ///
    /// # Errors
    ///
    /// When there are too many, or the server ends.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|error| match error {
                TryAcquireError::Closed => Problem::busy("the server ends"),
                TryAcquireError::NoPermits => Problem::new(
                    http::StatusCode::TOO_MANY_REQUESTS,
                    "too_many_runs",
                    "Too many runs",
                )
                .detail(format!("{} workflows run at once at most", self.most))
                .hint("wait until one has ended, or cancel one")
                .header(
                    http::header::RETRY_AFTER,
                    http::HeaderValue::from_static("5"),
                ),
            })
    }

    /// The run of an id, if it is or was here.
    pub(super) fn get(&self, id: &RunId) -> Option<Arc<Run>> {
        self.table.lock().runs.get(id).cloned()
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Run>> {
        self.table.lock().runs.values().cloned().collect()
    }

    /// Puts a run into the table. An entry of the same id that has ended gives way, and is handed back.
    ///
    /// # Errors
    ///
    /// The run that is there: it runs, or its id begins with what nobody else's may begin with.
    pub(super) fn put(
        &self,
        run: &Arc<Run>,
        alone: Option<&str>,
    ) -> Result<Option<Arc<Run>>, Arc<Run>> {
        let mut table = self.table.lock();
        let mut there = table.runs.values();
        if let Some(alone) = alone
            && let Some(there) = there.find(|there| there.id.as_str().starts_with(alone))
        {
            return Err(Arc::clone(there));
        }
        if let Some(there) = table.runs.get(&run.id)
            && !there.has_ended()
        {
            return Err(Arc::clone(there));
        }
        table.ended.retain(|id| *id != run.id);
        Ok(table.runs.insert(run.id.clone(), Arc::clone(run)))
    }

    /// A run, of whatever end, whose id begins so.
    pub(super) fn beginning(&self, prefix: &str) -> Option<RunId> {
        let table = self.table.lock();
        let mut ids = table.runs.keys();
        ids.find(|id| id.as_str().starts_with(prefix)).cloned()
    }

    /// Takes a run that did not begin out of the table again; what was there before comes back.
    pub(super) fn take_back(&self, run: &Arc<Run>, before: Option<Arc<Run>>) {
        let mut table = self.table.lock();
        table.ended.retain(|id| *id != run.id);
        match before {
            Some(before) => {
                table.ended.push_back(before.id.clone());
                table.runs.insert(before.id.clone(), before);
            }
            None => drop(table.runs.remove(&run.id)),
        }
    }

    /// Runs it. It counts as running until its work is done, however that ends.
    pub(super) fn spawn(
        app: crate::App,
        run: Arc<Run>,
        permit: OwnedSemaphorePermit,
        work: impl Future<Output = Result<Outcome, EngineError>> + Send + 'static,
    ) {
        tokio::spawn(async move {
            // A task of its own: a panic ends that task, and nothing else.
            let done = tokio::spawn(work).await;
            // Whoever was told that a run has ended may start another one.
            drop(permit);
            let has_begun = *run.phase.borrow() > Phase::Starting;
            run.finish(match done {
                Ok(Ok(outcome)) => End::Said(Box::new(outcome)),
                Ok(Err(error)) if has_begun => End::Lost(with_source(&error)),
                Ok(Err(error)) => End::Refused(error),
                Err(_) => End::Lost("a defect of the server cut the run off".to_owned()),
            });
            app.control().runs.ended(&run);
            app.freshness().bump();
        });
    }

    /// Forgets a run that has ended: its transcript says more than is known here.
    pub(super) fn forget(&self, id: &RunId) {
        let mut table = self.table.lock();
        if table.runs.get(id).is_some_and(|run| run.has_ended()) {
            table.runs.remove(id);
            table.ended.retain(|ended| ended != id);
        }
    }

    fn ended(&self, run: &Arc<Run>) {
        let mut table = self.table.lock();
        let is_there = |there: &Arc<Run>| Arc::ptr_eq(there, run);
        if table.runs.get(&run.id).is_some_and(is_there) {
            table.ended.push_back(run.id.clone());
        }
        // What it was asked to approve is known only here, so paused runs stay as long as there is room.
        while table.ended.len() > RECENT {
            let is_paused = |id: &RunId| {
                let run = table.runs.get(id);
                run.is_some_and(|run| run.look(State::is_paused))
            };
            let oldest = table.ended.iter().position(|id| !is_paused(id));
            if let Some(id) = table.ended.remove(oldest.unwrap_or(0)) {
                table.runs.remove(&id);
            }
        }
    }

    /// Lets none begin any more, cancels those that run, and gives them.
    pub(super) fn end(&self) -> Vec<Arc<Run>> {
        self.permits.close();
        let mut running = self.all();
        running.retain(|run| !run.has_ended());
        for run in &running {
            run.cancel.cancel();
        }
        running
    }
}

impl State {
    fn is_paused(&self) -> bool {
        matches!(&self.end, Some(End::Said(outcome)) if outcome.status == RunStatus::Paused)
    }
}

/// An error with what caused it.
pub(super) fn with_source(error: &EngineError) -> String {
    use std::error::Error as _;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
