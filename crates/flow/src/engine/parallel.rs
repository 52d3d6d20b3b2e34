//! Several steps at once.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Stop;
use super::context::Context;
use super::frame::Frame;
use super::run::Run;
use super::state::StepState;
use super::step::{Doing, Done, cancelled};
use crate::definition::{Action, Step, Strategy, Text};

/// What a branch left, for branches that depend on it: `None` until it has ended.
type Ending = watch::Receiver<Option<Option<Arc<StepState>>>>;

/// A branch that has ended.
struct Branch {
    index: usize,
    result: Result<(), Stop>,
    context: Context,
    high: u64,
}

impl Doing<'_> {
    /// Runs the branches of a parallel step, each with values of its own.
    pub(super) async fn parallel(
        &self,
        context: &mut Context,
        frame: &mut Frame,
    ) -> Result<Done, Stop> {
        let Action::Parallel(parallel) = &self.step.action else {
            return Ok(Done::default());
        };
        let mut steps: Vec<Step> = Vec::new();
        for name in &parallel.branches {
            let Some(step) = self.run.workflow.steps.get(&name.text) else {
                let what = format!("step {} does not exist", name.text);
                return Ok(StepState::failed(self.run.at_place(name.at, &what)).into());
            };
            steps.push(step.clone());
        }
        if let Some(name) = circle(&steps) {
            let error = format!("the branch {name} depends on itself, through depends_on");
            return Ok(StepState::failed(error).into());
        }
        let siblings = self.cancel.child_token();
        let running = self.start(context, frame, &steps, &siblings, parallel.max_concurrent);
        let mut gathered = Gathered::default();
        let ended = gathered
            .all(running, &steps, parallel.strategy, &siblings)
            .await;
        gathered.branches.sort_by_key(|branch| branch.index);
        for branch in &gathered.branches {
            frame.saw_inside(&self.step.name, branch.high);
            // A branch may itself have steps inside; their values are those of the branch.
            for (step, state) in &branch.context.states {
                let known = context.states.get(step);
                if known.is_none_or(|known| !Arc::ptr_eq(known, state)) {
                    context.states.insert(step.clone(), Arc::clone(state));
                }
            }
        }
        ended?;
        if self.cancel.is_cancelled() {
            return Ok(cancelled("cancelled").into());
        }
        Ok(gathered.state(&steps, parallel.strategy).into())
    }

    fn start(
        &self,
        context: &Context,
        frame: &Frame,
        steps: &[Step],
        cancel: &CancellationToken,
        at_once: Option<usize>,
    ) -> JoinSet<Branch> {
        let room = Arc::new(Semaphore::new(
            at_once.unwrap_or(Semaphore::MAX_PERMITS).max(1),
        ));
        let endings: Vec<(watch::Sender<_>, Ending)> =
            steps.iter().map(|_| watch::channel(None)).collect();
        let by_name: HashMap<String, Ending> = steps
            .iter()
            .zip(&endings)
            .map(|(step, (_, ending))| (step.name.clone(), ending.clone()))
            .collect();
        let base = frame.inner(&self.step.name);
        let mut running = JoinSet::new();
        for ((index, step), (ended, _)) in steps.iter().enumerate().zip(endings) {
            let awaited = step.depends_on.iter();
            let awaited = awaited
                .filter_map(|other| Some((other.text.clone(), by_name.get(&other.text)?.clone())));
            let branch = BranchStart {
                run: Arc::clone(self.run),
                context: context.clone(),
                frame: frame.inside(&self.step.name, None, base),
                cancel: cancel.clone(),
                room: Arc::clone(&room),
                step: step.clone(),
                awaited: awaited.collect(),
            };
            running.spawn(async move {
                let name = branch.step.name.clone();
                let branch = branch.run(index).await;
                let state = branch.context.states.get(&name).cloned();
                // Nobody may be waiting.
                ended
                    .send(Some(state.filter(|_| branch.result.is_ok())))
                    .ok();
                branch
            });
        }
        running
    }
}

/// A branch that waits for itself, if there is one.
fn circle(steps: &[Step]) -> Option<&str> {
    let by_name: HashMap<&str, &Step> = steps
        .iter()
        .map(|step| (step.name.as_str(), step))
        .collect();
    steps.iter().map(|step| step.name.as_str()).find(|name| {
        let mut todo: Vec<&str> = vec![name];
        let mut seen: Vec<&str> = Vec::new();
        while let Some(at) = todo.pop() {
            let Some(step) = by_name.get(at) else {
                continue;
            };
            for Text { text, .. } in &step.depends_on {
                if text == name {
                    return true;
                }
                if !seen.contains(&text.as_str()) {
                    seen.push(text);
                    todo.push(text);
                }
            }
        }
        false
    })
}

struct BranchStart {
    run: Arc<Run>,
    context: Context,
    frame: Frame,
    cancel: CancellationToken,
    room: Arc<Semaphore>,
    step: Step,
    /// The branches beside it that it depends on. The step itself says when one of them has not succeeded.
    awaited: Vec<(String, Ending)>,
}

impl BranchStart {
    async fn run(mut self, index: usize) -> Branch {
        for (name, ending) in &mut self.awaited {
            let ended = tokio::select! {
                () = self.cancel.cancelled() => None,
                ended = ending.wait_for(Option::is_some) => ended.ok().and_then(|ended| ended.clone()),
            };
            if let Some(Some(state)) = ended {
                self.context.states.insert(name.clone(), state);
            }
        }
        let room = Arc::clone(&self.room);
        let cancel = self.cancel.clone();
        let result = tokio::select! {
            biased;
            permit = room.acquire_owned() => match permit {
                Ok(_permit) => self.step().await,
                Err(_) => Err(Stop::Cancelled),
            },
            () = cancel.cancelled() => Err(Stop::Cancelled),
        };
        Branch {
            index,
            result,
            high: self.frame.high(),
            context: self.context,
        }
    }

    async fn step(&mut self) -> Result<(), Stop> {
        // It ends the run, not the branch: the run goes there.
        if matches!(self.step.action, Action::Terminal(_)) {
            let state = StepState {
                leads_to: Some(self.step.name.clone()),
                ..StepState::default()
            };
            let name = self.step.name.clone();
            self.context.states.insert(name, Arc::new(state));
            return Ok(());
        }
        self.run
            .step(&mut self.context, &mut self.frame, &self.step, &self.cancel)
            .await
    }
}

#[derive(Default)]
struct Gathered {
    branches: Vec<Branch>,
    /// The branches that ended by themselves, and whether they succeeded.
    ended: Vec<(usize, bool)>,
}

impl Gathered {
    /// Waits for all branches. A branch that breaks the run breaks it when the others have ended.
    async fn all(
        &mut self,
        mut running: JoinSet<Branch>,
        steps: &[Step],
        strategy: Strategy,
        siblings: &CancellationToken,
    ) -> Result<(), Stop> {
        let mut stop = None;
        while let Some(branch) = running.join_next().await {
            let mut branch = match branch {
                Ok(branch) => branch,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            };
            match std::mem::replace(&mut branch.result, Ok(())) {
                Ok(()) => {
                    let step = &steps[branch.index];
                    let state = branch.context.states.get(&step.name);
                    let ok = step.continue_on_error || state.is_some_and(|state| state.is_ok());
                    self.ended.push((branch.index, ok));
                    match strategy {
                        Strategy::AllSucceed if !ok => siblings.cancel(),
                        Strategy::AnySucceed if ok => siblings.cancel(),
                        _ => {}
                    }
                }
                Err(Stop::Cancelled) => {}
                Err(other) => {
                    siblings.cancel();
                    stop.get_or_insert(other);
                }
            }
            self.branches.push(branch);
        }
        match stop {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }

    fn state(&self, steps: &[Step], strategy: Strategy) -> StepState {
        let succeeded = self.ended.iter().filter(|(_, ok)| *ok).count();
        let state_of = |branch: &Branch| {
            branch
                .context
                .states
                .get(&steps[branch.index].name)
                .cloned()
        };
        let failed: Vec<String> = self
            .branches
            .iter()
            .filter(|branch| self.ended.contains(&(branch.index, false)))
            .map(|branch| {
                let name = &steps[branch.index].name;
                let error = state_of(branch).and_then(|state| state.error.clone());
                let error = error.unwrap_or_else(|| "it did not end".to_owned());
                format!("branch {name} failed: {error}")
            })
            .collect();
        let mut state =
            StepState::said(format!("{succeeded} of {} branches succeeded", steps.len()));
        let is_ok = match strategy {
            Strategy::AllSucceed => succeeded == steps.len(),
            Strategy::AnySucceed => succeeded > 0 || steps.is_empty(),
            Strategy::BestEffort => true,
        };
        if !is_ok {
            state.error = Some(match failed.as_slice() {
                [] => "no branch succeeded".to_owned(),
                failed => failed.join("; "),
            });
        }
        // The first branch that leads out of the parallel step decides where the run goes.
        state.leads_to = self
            .branches
            .iter()
            .find_map(|branch| state_of(branch)?.leads_to.clone());
        state
    }
}
