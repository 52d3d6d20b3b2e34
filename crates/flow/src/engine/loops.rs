//! Loops.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Stop;
use super::context::{Context, Pass};
use super::frame::Frame;
use super::run::Next;
use super::state::StepState;
use super::step::{Doing, Done};
use crate::definition::{Action, LoopBody, Step, Text};
use crate::expression::Expression;

/// Where the run goes after a loop.
pub(super) fn on_complete(step: &Step) -> Option<&Text> {
    match &step.action {
        Action::ForEach(each) => each.body.on_complete.as_ref(),
        Action::While(looped) => looped.body.on_complete.as_ref(),
        _ => None,
    }
}

/// How one pass ended.
enum PassEnd {
    /// All of its steps are done.
    Done,
    /// It leaves the loop for another step of the workflow.
    Leaves(String),
    /// A step failed, and nothing takes that up.
    Failed(String),
}

impl Doing<'_> {
    /// Runs the body for each item.
    pub(super) async fn for_each(
        &self,
        context: &mut Context,
        frame: &mut Frame,
        items: &[Value],
        limit: Option<u64>,
    ) -> Result<Done, Stop> {
        let Action::ForEach(each) = &self.step.action else {
            return Ok(Done::default());
        };
        let most = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        if items.len() > most {
            let text = format!(
                "{} of {} items are left out: max_iterations is {most}",
                items.len() - most,
                items.len()
            );
            let attributes = json!({ "items": items.len(), "max_iterations": most });
            self.run.warn(
                self.place,
                "guardrail",
                "items_left_out",
                &text,
                &attributes,
            )?;
        }
        let count = items.len().min(most);
        let mut passes = Passes {
            base: frame.inner(&self.step.name),
            ..Passes::default()
        };
        for (index, item) in (0_u64..).zip(&items[..count]) {
            let pass = Pass {
                item: item.clone(),
                index,
                length: Some(count as u64),
                parent: context.pass.clone(),
            };
            if self
                .pass(context, frame, &each.body, pass, &mut passes)
                .await?
            {
                break;
            }
        }
        Ok(passes.done())
    }

    /// Runs the body while the condition holds.
    pub(super) async fn while_true(
        &self,
        context: &mut Context,
        frame: &mut Frame,
        limit: u64,
    ) -> Result<Done, Stop> {
        let Action::While(looped) = &self.step.action else {
            return Ok(Done::default());
        };
        let condition = match Expression::parse(&looped.condition) {
            Ok(condition) => condition,
            Err(error) => {
                let error = self.run.at_place(error.at, &error.to_string());
                return Ok(StepState::failed(error).into());
            }
        };
        let mut passes = Passes {
            base: frame.inner(&self.step.name),
            ..Passes::default()
        };
        loop {
            match condition.eval_bool(context) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    passes.failed = Some(self.run.at_place(error.at, &error.to_string()));
                    break;
                }
            }
            if passes.count == limit {
                let text = format!(
                    "the loop ended after {limit} passes (max_iterations); its condition still holds"
                );
                let attributes = json!({ "max_iterations": limit });
                self.run.warn(
                    self.place,
                    "guardrail",
                    "max_iterations",
                    &text,
                    &attributes,
                )?;
                if passes.had_failures && looped.body.on_complete.is_none() {
                    passes.failed = Some(text);
                }
                break;
            }
            let pass = Pass {
                item: Value::Null,
                index: passes.count,
                length: None,
                parent: context.pass.clone(),
            };
            if self
                .pass(context, frame, &looped.body, pass, &mut passes)
                .await?
            {
                break;
            }
        }
        Ok(passes.done())
    }

    /// Runs one pass; whether it is the last.
    async fn pass(
        &self,
        context: &mut Context,
        frame: &mut Frame,
        body: &LoopBody,
        pass: Pass,
        passes: &mut Passes,
    ) -> Result<bool, Stop> {
        let outer = context.pass.replace(Arc::new(pass));
        let mut inside = frame.inside(&self.step.name, Some(passes.count), passes.base);
        let ended = self.body(context, &mut inside, body, passes).await;
        frame.saw_inside(&self.step.name, inside.high());
        passes.count += 1;
        let ended = match ended {
            Ok(ended) => ended,
            Err(stop) => {
                context.pass = outer;
                return Err(stop);
            }
        };
        let is_last = match ended {
            PassEnd::Done => self.breaks(context, body)?,
            PassEnd::Leaves(step) => {
                passes.leads_to = Some(step);
                true
            }
            PassEnd::Failed(error) => {
                passes.failed = Some(error);
                true
            }
        };
        context.pass = outer;
        Ok(is_last)
    }

    /// Whether the loop ends after this pass. A condition that cannot be worked out is said, and does not end it.
    fn breaks(&self, context: &Context, body: &LoopBody) -> Result<bool, Stop> {
        let Some(when) = &body.break_when else {
            return Ok(false);
        };
        match Expression::parse(when).and_then(|when| when.eval_bool(context)) {
            Ok(breaks) => Ok(breaks),
            Err(error) => {
                let text = self.run.at_place(error.at, &format!("break_when: {error}"));
                let attributes = json!({ "error": text });
                self.run.warn(
                    self.place,
                    "guardrail",
                    "break_when_failed",
                    &text,
                    &attributes,
                )?;
                Ok(false)
            }
        }
    }

    async fn body(
        &self,
        context: &mut Context,
        frame: &mut Frame,
        body: &LoopBody,
        passes: &mut Passes,
    ) -> Result<PassEnd, Stop> {
        let mut at = 0;
        while let Some(name) = body.steps.get(at) {
            let Some(step) = self.run.workflow.steps.get(&name.text) else {
                return Ok(PassEnd::Failed(format!(
                    "step {} does not exist",
                    name.text
                )));
            };
            // It ends the run, not the pass: the run goes there.
            if matches!(step.action, Action::Terminal(_)) {
                return Ok(PassEnd::Leaves(step.name.clone()));
            }
            self.run.step(context, frame, step, self.cancel).await?;
            let state = context.states.get(&step.name).cloned().unwrap_or_default();
            let failed = !state.is_ok() && !step.continue_on_error;
            passes.had_failures |= !state.is_ok();
            let failure = || {
                let error = state.error.as_deref().unwrap_or("failed");
                PassEnd::Failed(format!("step {} failed: {error}", step.name))
            };
            let next = match self.run.next(context, step, true)? {
                Next::Goto(next) => next,
                Next::End(ending) => return Ok(PassEnd::Failed(ending.error.unwrap_or_default())),
                Next::Nowhere if failed => return Ok(failure()),
                Next::Nowhere => String::new(),
            };
            match body.steps.iter().position(|member| member.text == next) {
                Some(member) => at = member,
                None if next.is_empty() || next == self.step.name => at += 1,
                // A step that failed does not lead out of the loop: the loop has failed.
                None if failed => return Ok(failure()),
                None if self.run.workflow.steps.contains_key(&next) => {
                    return Ok(PassEnd::Leaves(next));
                }
                None => {
                    let text = format!("step {next} does not exist; the loop goes on");
                    let attributes = json!({ "step": next });
                    self.run
                        .warn(self.place, "guardrail", "unknown_step", &text, &attributes)?;
                    at += 1;
                }
            }
        }
        Ok(PassEnd::Done)
    }
}

/// The passes of a loop so far.
#[derive(Default)]
struct Passes {
    count: u64,
    /// Attempts inside have higher numbers.
    base: u64,
    had_failures: bool,
    leads_to: Option<String>,
    failed: Option<String>,
}

impl Passes {
    fn done(self) -> Done {
        let mut state = StepState::said(format!("completed {} iterations", self.count));
        state.leads_to = self.leads_to;
        state.error = self.failed;
        Done {
            state,
            is_final: false,
        }
    }
}
