//! Runs as documents.

use std::collections::BTreeMap;

use quipu_api::execution::{
    Execution, ExecutionCost, ExecutionLinks, ExecutionOutcome, ExecutionPause, ExecutionQuestion,
    ExecutionRow, ExecutionStatus, ExecutionStep,
};
use quipu_api::{Time, Usd};
use quipu_flow::engine::{Glance, Outcome, Pause, RunStatus, Secrets, Survey};
use quipu_model::RunId;

use super::launch::surveyed;
use super::others::Standing;
use super::runs::{End, Run, State};
use crate::App;
use crate::problem::Problem;

pub(super) fn links(id: &RunId) -> ExecutionLinks {
    ExecutionLinks {
        execution: format!("/api/v1/executions/{id}"),
        transcript: format!("/api/v1/transcripts/{id}"),
        stream: format!("/api/v1/transcripts/{id}/stream"),
    }
}

/// A run as it is now. Whoever may not write does not see the token of an approval.
///
/// # Errors
///
/// When there is no such run.
pub(super) async fn view(app: &App, id: &RunId, may_write: bool) -> Result<Execution, Problem> {
    let here = app.control().runs.get(id).filter(|run| run.is_current());
    let mut execution = if let Some(run) = here {
        of_run(&run)
    } else {
        let (survey, standing) = surveyed(app, id).await?;
        if survey.workflow_file.is_none() {
            let why = format!("{id} is not a run of a workflow");
            return Err(
                Problem::not_found(why).hint(format!("/api/v1/transcripts/{id} is its transcript"))
            );
        }
        of_survey(survey, standing)
    };
    if let (false, Some(pause)) = (may_write, &mut execution.pause) {
        pause.token = None;
    }
    Ok(execution)
}

fn status_of(state: &State) -> ExecutionStatus {
    match &state.end {
        None => ExecutionStatus::Running,
        Some(End::Said(outcome)) => match outcome.status {
            RunStatus::Succeeded => ExecutionStatus::Succeeded,
            RunStatus::Failed => ExecutionStatus::Failed,
            RunStatus::Cancelled => ExecutionStatus::Cancelled,
            RunStatus::Paused => ExecutionStatus::Paused,
        },
        Some(End::Refused(_) | End::Lost(_)) => ExecutionStatus::Lost,
    }
}

fn of_run(run: &Run) -> Execution {
    let about = &run.about;
    run.look(|state| Execution {
        id: run.id.to_string(),
        workflow: about.workflow.clone(),
        workflow_file: Some(about.file.display().to_string()),
        status: status_of(state),
        started_by: about.starter.clone(),
        started_at: Time::of(about.started_at),
        ended_at: state.ended_at.map(Time::of),
        root: Some(about.root.display().to_string()),
        inputs: about.inputs.iter().cloned().collect(),
        here: true,
        pid: None,
        steps: steps(state),
        pause: match &state.end {
            Some(End::Said(outcome)) => outcome.pause.as_ref().map(|it| pause(it, &about.secrets)),
            _ => None,
        },
        questions: questions(state),
        cost: ExecutionCost {
            dollars: Usd::of(state.dollars),
            calls_without_price: match &state.end {
                Some(End::Said(outcome)) => Some(outcome.unpriced),
                _ => None,
            },
            tokens: state.tokens,
        },
        outcome: state.end.as_ref().and_then(|end| match end {
            End::Said(outcome) => outcome_of(outcome, &about.secrets),
            End::Refused(_) => None,
            End::Lost(why) => Some(ExecutionOutcome {
                exit_code: None,
                message: None,
                error: Some(about.secrets.hide(why)),
            }),
        }),
        links: links(&run.id),
    })
}

fn steps(state: &State) -> Vec<ExecutionStep> {
    let step = |step: &super::runs::Stepping| ExecutionStep {
        path: step.place.label(),
        kind: step.kind.clone(),
        started_at: Time::of(step.since),
    };
    state.steps.iter().map(step).collect()
}

fn questions(state: &State) -> Vec<ExecutionQuestion> {
    let question = |one: &super::runs::Waiting| ExecutionQuestion {
        path: one.path.clone(),
        text: one.text.clone(),
        asked_at: Time::of(one.since),
    };
    state.questions.iter().map(question).collect()
}

fn pause(pause: &Pause, secrets: &Secrets) -> ExecutionPause {
    ExecutionPause {
        path: pause.path.clone(),
        message: secrets.hide(&pause.message),
        approvers: pause.approvers.clone(),
        token: Some(pause.token.clone()),
        refused: pause.refused.clone(),
    }
}

/// How a run ended. One that waits has not.
fn outcome_of(outcome: &Outcome, secrets: &Secrets) -> Option<ExecutionOutcome> {
    let hide = |text: &Option<String>| text.as_deref().map(|text| secrets.hide(text));
    (outcome.status != RunStatus::Paused).then(|| ExecutionOutcome {
        exit_code: Some(outcome.exit_code.into()),
        message: hide(&outcome.message),
        error: hide(&outcome.error),
    })
}

fn of_survey(survey: Survey, standing: Standing) -> Execution {
    let Standing { status, pid } = standing;
    let is_over = !matches!(status, ExecutionStatus::Running | ExecutionStatus::Lost);
    // A run that was not started here may have been recorded without a mask.
    let secrets = Secrets::of(&survey.inputs.clone().into_iter().collect());
    let hide = |text: String| secrets.hide(&text);
    let inputs: BTreeMap<String, String> = survey
        .inputs
        .iter()
        .map(|(name, value)| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), secrets.shown(name, &text))
        })
        .collect();
    let is_running = status == ExecutionStatus::Running;
    let steps = survey.open.iter().filter(|_| is_running);
    let asked = survey.requests.last();
    Execution {
        id: survey.run_id.to_string(),
        workflow: survey.workflow,
        workflow_file: survey.workflow_file.map(|file| file.display().to_string()),
        status,
        started_by: survey.starter,
        started_at: Time::of(survey.started_at),
        ended_at: is_over.then(|| Time::of(survey.last_at)),
        root: survey.dir.map(|dir| dir.display().to_string()),
        inputs,
        here: false,
        pid: pid.map(Into::into),
        steps: steps
            .map(|open| ExecutionStep {
                path: open.place.label(),
                kind: open.kind.as_str().to_owned(),
                started_at: Time::of(open.started_at),
            })
            .collect(),
        pause: asked
            .filter(|_| status == ExecutionStatus::Paused)
            .map(|asked| ExecutionPause {
                path: asked.path.clone(),
                message: secrets.hide(&asked.message),
                approvers: asked.approvers.clone(),
                token: None,
                refused: None,
            }),
        questions: Vec::new(),
        cost: ExecutionCost {
            dollars: Usd::of(survey.dollars),
            calls_without_price: Some(survey.unpriced),
            tokens: survey.tokens,
        },
        outcome: survey
            .end
            .filter(|_| is_over && status != ExecutionStatus::Paused)
            .map(|end| ExecutionOutcome {
                exit_code: end.exit_code.map(Into::into),
                message: end.message.map(hide),
                error: end.error.map(hide),
            }),
        links: links(&survey.run_id),
    }
}

/// A run of this process in a list.
pub(super) fn row_of_run(run: &Run) -> ExecutionRow {
    let about = &run.about;
    run.look(|state| ExecutionRow {
        id: run.id.to_string(),
        workflow: about.workflow.clone(),
        status: status_of(state),
        started_by: about.starter.clone(),
        started_at: Time::of(about.started_at),
        ended_at: state.ended_at.map(Time::of),
        here: true,
        links: links(&run.id),
    })
}

/// A run of another process in a list.
pub(super) fn row_of_glance(glance: &Glance, status: ExecutionStatus) -> ExecutionRow {
    let is_open = matches!(status, ExecutionStatus::Running | ExecutionStatus::Lost);
    let ended = glance.last_at.filter(|_| !is_open);
    ExecutionRow {
        id: glance.run_id.to_string(),
        workflow: glance.workflow.clone(),
        status,
        started_by: glance.starter.clone(),
        started_at: Time::of(glance.started_at),
        ended_at: ended.map(Time::of),
        here: false,
        links: links(&glance.run_id),
    }
}
