//! What each kind of step does.

use std::sync::Arc;

use quipu_model::{RunId, StepKind};
use serde_json::Value;

use super::context::Context;
use super::frame::Frame;
use super::prepare::{Prepared, Until};
use super::run::Ending;
use super::state::StepState;
use super::step::{Boxed, Doing, Done, cancelled};
use super::{RunStatus, Stop};
use crate::definition::{Action, Step};
use crate::operation::{OperationContext, OperationError, OperationOutput};

/// The kind of a step, as transcripts name it.
pub fn kind_of(action: &Action) -> StepKind {
    match action {
        Action::Agent(_) => StepKind::Agent,
        Action::Command(_) => StepKind::Command,
        Action::Operation(_) => StepKind::Operation,
        Action::Terminal(_) => StepKind::Terminal,
        Action::Parallel(_) => StepKind::Parallel,
        Action::ForEach(_) => StepKind::ForEach,
        Action::While(_) => StepKind::While,
        Action::CallWorkflow(_) => StepKind::CallWorkflow,
        Action::Approval(_) => StepKind::from("approval"),
        Action::Set(_) => StepKind::from("set"),
        Action::Wait(_) => StepKind::from("wait"),
        Action::Custom(custom) => StepKind::from(custom.kind.as_str()),
    }
}

/// How the run ends at a step, if the step ends it.
pub(super) fn is_terminal(step: &Step, context: &Context) -> Option<Ending> {
    let Action::Terminal(terminal) = &step.action else {
        return None;
    };
    let state = context.states.get(&step.name).cloned().unwrap_or_default();
    let message = Some(state.output.clone()).filter(|message| !message.is_empty());
    // A terminal step whose message cannot be worked out ends the run as well.
    if terminal.failure || state.error.is_some() {
        let failure = || format!("the run ended at step {}", step.name);
        let error = state
            .error
            .clone()
            .or_else(|| message.clone())
            .unwrap_or_else(failure);
        let code = state.exit_code.and_then(|code| u8::try_from(code).ok());
        return Some(Ending {
            exit_code: code.filter(|code| *code > 0).unwrap_or(1),
            message,
            ..Ending::failed(error, Some(&step.name))
        });
    }
    Some(Ending {
        status: RunStatus::Succeeded,
        exit_code: state
            .exit_code
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(0),
        message,
        error: None,
        step: Some(step.name.clone()),
        ended_by: None,
        pause: None,
    })
}

impl Doing<'_> {
    /// Does what the step says.
    pub(super) fn act<'a>(
        &'a self,
        context: &'a mut Context,
        frame: &'a mut Frame,
        prepared: &'a Prepared,
        child: Option<&'a RunId>,
    ) -> Boxed<'a, Result<Done, Stop>> {
        Box::pin(async move {
            match prepared {
                Prepared::Command(command) => self.command(command).await,
                Prepared::Agent(agent) => Box::pin(self.agent(context, agent)).await,
                Prepared::Operation { name, inputs } => self.operation(name, inputs).await,
                Prepared::Terminal {
                    message, exit_code, ..
                } => {
                    let mut state = StepState::said(message.clone().unwrap_or_default());
                    state.exit_code = Some(i32::from(*exit_code));
                    Ok(state.into())
                }
                Prepared::Parallel => self.parallel(context, frame).await,
                Prepared::ForEach { items, limit } => {
                    self.for_each(context, frame, items, *limit).await
                }
                Prepared::While { limit } => self.while_true(context, frame, *limit).await,
                Prepared::Call(call) => self.call(call, child).await,
                Prepared::Approval { message } => self.approval(message).await,
                Prepared::Set { values } => {
                    let mut state = StepState::said(Value::Object(values.clone()).to_string());
                    state.data.clone_from(values);
                    Ok(state.into())
                }
                Prepared::Wait { until } => self.wait(until).await,
                Prepared::Custom { kind, config } => {
                    let done = Box::pin(self.run.plugins.step(kind, config, self.cancel)).await;
                    Ok(outcome_of(done).into())
                }
            }
        })
    }

    async fn operation(
        &self,
        name: &str,
        inputs: &serde_json::Map<String, Value>,
    ) -> Result<Done, Stop> {
        let context = OperationContext {
            root: self.run.options.root.clone(),
        };
        let mut all = self.run.options.operations.clone();
        all.push(self.run.plugins.operations());
        let has = all
            .iter()
            .find(|some| some.names().iter().any(|known| known == name));
        // The first one knows what to say of a name that nobody has.
        let done = match has.or(all.first()) {
            Some(operations) => {
                Arc::clone(operations)
                    .run(name, inputs, &context, self.cancel)
                    .await
            }
            None => Err(OperationError::Unknown {
                name: name.to_owned(),
                like: None,
            }),
        };
        Ok(outcome_of(done).into())
    }

    async fn wait(&self, until: &Until) -> Result<Done, Stop> {
        let now = self.run.facts.clock.now();
        let after = match until {
            Until::After(after) => *after,
            // A time that has passed is not waited for.
            Until::At(at) => at.duration_since(now).try_into().unwrap_or_default(),
        };
        tokio::select! {
            () = self.cancel.cancelled() => Ok(cancelled("cancelled while waiting").into()),
            () = tokio::time::sleep(after) => {
                Ok(StepState::said(format!("waited {}", super::step::spoken(after))).into())
            }
        }
    }
}

/// The state after an operation or a step of a plugin.
fn outcome_of(done: Result<OperationOutput, OperationError>) -> StepState {
    match done {
        Ok(OperationOutput { response }) => {
            let lines: Vec<String> = response
                .iter()
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                })
                .collect();
            let mut state = StepState::said(lines.join("\n"));
            state.response = Some(Value::Object(response));
            state
        }
        Err(OperationError::Cancelled) => cancelled("cancelled"),
        Err(error) => StepState::failed(error.to_string()),
    }
}
