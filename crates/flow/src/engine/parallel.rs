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
use super::step::{Doing, Done};
use crate::definition::{Action, Step, Strategy};

/// How a branch ended, for branches that depend on it.
type Ending = watch::Receiver<Option<bool>>;

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
        let siblings = self.cancel.child_token();
        let running = self.start(context, frame, &steps, &siblings, parallel.max_concurrent);
        let mut gathered = Gathered::default();
        let ended = gathered
            .all(running, &steps, parallel.strategy, &siblings)
            .await;
        gathered.branches.sort_by_key(|branch| branch.index);
        for branch in &gathered.branches {
            let name = &steps[branch.index].name;
            // A branch may itself have steps inside; their values are those of the branch.
            for (step, state) in &branch.context.states {
                let is_new = context
                    .states
                    .get(step)
                    .is_none_or(|known| !Arc::ptr_eq(known, state));
                if step == name || is_new {
                    context.states.insert(step.clone(), Arc::clone(state));
                }
            }
        }
        let inner = gathered.branches.iter().map(|branch| branch.high).max();
        ended?;
        Ok(Done {
            state: gathered.state(&steps, parallel.strategy),
            inner: inner.unwrap_or_default(),
            is_final: false,
        })
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
        let endings: Vec<(watch::Sender<Option<bool>>, Ending)> =
            steps.iter().map(|_| watch::channel(None)).collect();
        let by_name: HashMap<String, Ending> = steps
            .iter()
            .zip(&endings)
            .map(|(step, (_, ending))| (step.name.clone(), ending.clone()))
            .collect();
        let mut running = JoinSet::new();
        for ((index, step), (ended, _)) in steps.iter().enumerate().zip(endings) {
            // Branches beside it are waited for here; the others have ended.
            let mut step = step.clone();
            let mut awaited = Vec::new();
            step.depends_on
                .retain(|other| match by_name.get(&other.text) {
                    Some(ending) if other.text != step.name => {
                        awaited.push((other.text.clone(), ending.clone()));
                        false
                    }
                    _ => true,
                });
            let branch = BranchStart {
                run: Arc::clone(self.run),
                context: context.clone(),
                frame: frame.inside(&self.step.name, None),
                cancel: cancel.clone(),
                room: Arc::clone(&room),
                step,
                awaited,
            };
            running.spawn(async move {
                let branch = branch.run(index).await;
                // Nobody may be waiting.
                ended.send(Some(branch.is_ok())).ok();
                branch
            });
        }
        running
    }
}

struct BranchStart {
    run: Arc<Run>,
    context: Context,
    frame: Frame,
    cancel: CancellationToken,
    room: Arc<Semaphore>,
    step: Step,
    awaited: Vec<(String, Ending)>,
}

impl BranchStart {
    async fn run(mut self, index: usize) -> Branch {
        let mut failed = None;
        for (name, ending) in &mut self.awaited {
            let ended = tokio::select! {
                () = self.cancel.cancelled() => None,
                ended = ending.wait_for(Option::is_some) => ended.ok().and_then(|ended| *ended),
            };
            if ended != Some(true) && failed.is_none() {
                failed = Some(name.clone());
            }
        }
        if let Some(name) = failed {
            // The step itself says that what it depends on has not succeeded.
            self.step
                .depends_on
                .insert(0, crate::definition::Text::new(name));
        }
        let result = tokio::select! {
            biased;
            permit = self.room.acquire() => match permit {
                Ok(_permit) => {
                    self.run.step(&mut self.context, &mut self.frame, &self.step, &self.cancel).await
                }
                Err(_) => Err(Stop::Cancelled),
            },
            () = self.cancel.cancelled() => Err(Stop::Cancelled),
        };
        Branch {
            index,
            result,
            high: self.frame.high(),
            context: self.context,
        }
    }
}

impl Branch {
    fn is_ok(&self) -> bool {
        self.result.is_ok()
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
        let failed: Vec<String> = self
            .branches
            .iter()
            .filter(|branch| self.ended.contains(&(branch.index, false)))
            .map(|branch| {
                let name = &steps[branch.index].name;
                let state = branch.context.states.get(name);
                let error = state.and_then(|state| state.error.as_deref());
                format!(
                    "branch {name} failed: {}",
                    error.unwrap_or("it did not end")
                )
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
        state
    }
}
