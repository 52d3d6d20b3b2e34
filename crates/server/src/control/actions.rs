//! What changes a run that is there: cancel, approve, deny, answer, resume.

use std::path::PathBuf;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use quipu_api::execution::{Execution, ExecutionStatus};
use quipu_flow::engine::{Line, Verdict};
use quipu_model::RunId;
use quipu_record::Storage;
use serde::Deserialize;

use super::body::{AnswerBody, EmptyBody, JsonBody, ResumeBody, TokenBody, query};
use super::executions::answer as answered;
use super::launch::{self, Resume, blocking, id_of, survey, surveyed};
use super::others::{is_locked, stop};
use super::view::view;
use crate::App;
use crate::access::{Caller, MayWrite};
use crate::api::Path;
use crate::problem::Problem;

/// How long a caller waits for a run to end, and at most. A program has 2 seconds between being asked to end and being made to;
/// hooks for the end of a run have 10.
pub(crate) const WAIT: u64 = 15;
const MOST_WAIT: u64 = 60;

/// How often it is looked whether another process has let go of a run, while somebody waits for that.
const LOOK: Duration = Duration::from_millis(25);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patience {
    wait: Option<u64>,
}

/// Cancels a run. With 200, its processes are gone and its end is recorded. With 202, it is still ending.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/cancel",
    operation_id = "cancelExecution",
    tag = "runs",
    params(
        ("id" = String, Path, description = "The id of the run"),
        ("wait" = Option<u64>, Query, description = "How many seconds to wait for its end, at most 60; 15 unless it is given")
    ),
    responses(
        (status = 200, body = Execution), (status = 202, body = Execution),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    Path(id): Path<String>,
    uri: Uri,
    JsonBody(EmptyBody {}, _): JsonBody<EmptyBody>,
) -> Result<Response, Problem> {
    let Patience { wait } = query(&uri)?;
    let wait = wait.unwrap_or(WAIT);
    if wait > MOST_WAIT {
        return Err(Problem::bad_parameter(
            "wait",
            format!("give 0 to {MOST_WAIT} seconds"),
        ));
    }
    let (id, wait) = (id_of(&id)?, Duration::from_secs(wait));
    let status = match end(&app, &caller, &id, wait).await? {
        Ended::Before | Ended::Now => StatusCode::OK,
        Ended::Soon => StatusCode::ACCEPTED,
    };
    Ok(answered(status, &view(&app, &id, true).await?))
}

/// What became of a run that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had ended before.
    Before,
    /// It has ended.
    Now,
    /// It still ends.
    Soon,
}

/// Cancels a run, for somebody who may, and waits so long for its end.
///
/// # Errors
///
/// When there is no such run, or it cannot be cancelled from here.
pub(crate) async fn end(
    app: &App,
    caller: &Caller,
    id: &RunId,
    wait: Duration,
) -> Result<Ended, Problem> {
    let soon = |is_done: bool| if is_done { Ended::Now } else { Ended::Soon };
    let here = app.control().runs.get(id);
    if let Some(run) = here.filter(|run| !run.has_ended()) {
        run.cancel.cancel();
        return Ok(soon(run.ends_within(wait).await));
    }
    let (survey, standing) = surveyed(app, id).await?;
    match standing.status {
        ExecutionStatus::Running => {
            let path = Storage::at(app.home()).path_of(id);
            Ok(soon(cancel_other(path, &survey.run_id, wait).await?))
        }
        // No process runs; what is left to do is to say so.
        ExecutionStatus::Paused | ExecutionStatus::Lost => {
            let user = app.control().user_of(caller);
            launch::record_cancelled(app, user, id).await?;
            Ok(Ended::Now)
        }
        ExecutionStatus::Succeeded | ExecutionStatus::Failed | ExecutionStatus::Cancelled => {
            Ok(Ended::Before)
        }
    }
}

/// Asks the process that runs a run to end it, and waits until it let go of the transcript.
async fn cancel_other(path: PathBuf, id: &RunId, wait: Duration) -> Result<bool, Problem> {
    let at = path.clone();
    let told = blocking(move || Ok(stop(&at))).await?;
    told.map_err(|why| {
        Problem::conflict(format!("{id} cannot be cancelled from here: {why}"))
            .hint("cancel it where it was started")
    })?;
    let gone = async {
        while is_locked(&path) {
            tokio::time::sleep(LOOK).await;
        }
    };
    Ok(tokio::time::timeout(wait, gone).await.is_ok())
}

/// Consents to what a paused run asks. The run goes on.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/approve",
    operation_id = "approveExecution",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    request_body = TokenBody,
    responses(
        (status = 202, body = Execution), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(crate) async fn approve(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    Path(id): Path<String>,
    JsonBody(body, _): JsonBody<TokenBody>,
) -> Result<Response, Problem> {
    let user = app.control().user_of(&caller);
    decide(&app, user, &id_of(&id)?, body, true).await
}

/// Does not consent to what a paused run asks. The step fails, and the run goes on as its workflow says.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/deny",
    operation_id = "denyExecution",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    request_body = TokenBody,
    responses(
        (status = 202, body = Execution), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem)
    )
)]
pub(crate) async fn deny(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    Path(id): Path<String>,
    JsonBody(body, _): JsonBody<TokenBody>,
) -> Result<Response, Problem> {
    let user = app.control().user_of(&caller);
    decide(&app, user, &id_of(&id)?, body, false).await
}

async fn decide(
    app: &App,
    user: String,
    id: &RunId,
    body: TokenBody,
    consents: bool,
) -> Result<Response, Problem> {
    let how = Resume {
        inputs: body.inputs,
        verdict: Some(Verdict {
            token: body.token,
            consents,
        }),
        ..Resume::default()
    };
    go_on(app, user, id, how).await
}

/// Goes on with a run. An answer of somebody who may not give it is recorded as refused, and said.
async fn go_on(app: &App, user: String, id: &RunId, how: Resume) -> Result<Response, Problem> {
    let mut refusal = None;
    if let Some(verdict) = &how.verdict {
        let survey = survey(app, id).await?;
        match survey.may_consent(&verdict.token, &user) {
            Some(may) => refusal = may.err(),
            None => {
                return Err(Problem::conflict(format!("{id} does not wait for an answer to this token"))
                    .hint("the token is in `pause` of the run; resuming the run asks again, with a new one"));
            }
        }
    }
    let run = launch::resume(app, user, id, how).await?;
    if let Some(why) = refusal {
        // The step that asks is the first that runs, so this is soon.
        run.ends_within(Duration::from_secs(WAIT)).await;
        return Err(
            Problem::forbidden(why).hint("the run still waits for somebody who may approve")
        );
    }
    Ok(answered(StatusCode::ACCEPTED, &view(app, id, true).await?))
}

/// Answers a step that waits for what a person says.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/answer",
    operation_id = "answerExecution",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    request_body = AnswerBody,
    responses((status = 202, body = Execution), (status = 404, body = Problem), (status = 409, body = Problem))
)]
pub(crate) async fn answer(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    Path(id): Path<String>,
    JsonBody(body, _): JsonBody<AnswerBody>,
) -> Result<Response, Problem> {
    let id = id_of(&id)?;
    let Some(run) = app.control().runs.get(&id).filter(|run| !run.has_ended()) else {
        let now = view(&app, &id, true).await?;
        return Err(match (now.status, now.pid) {
            (ExecutionStatus::Running, Some(pid)) => {
                Problem::conflict(format!("process {pid} runs {id}; answer it there"))
            }
            (ExecutionStatus::Running, None) => {
                Problem::conflict(format!("another process runs {id}; answer it there"))
            }
            _ => Problem::conflict(format!(
                "{id} is not running, so no step waits for an answer"
            )),
        });
    };
    let by = Some(app.control().user_of(&caller));
    let text = body.text;
    run.answer(body.step.as_deref(), Line { text, by })?;
    Ok(answered(
        StatusCode::ACCEPTED,
        &view(&app, &id, true).await?,
    ))
}

/// Goes on with a run that ended, waits or was lost. Steps that ended answer from its transcript.
#[utoipa::path(
    post,
    path = "/api/v1/executions/{id}/resume",
    operation_id = "resumeExecution",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    request_body = ResumeBody,
    responses(
        (status = 202, body = Execution), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 429, body = Problem)
    )
)]
pub(crate) async fn resume(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    Path(id): Path<String>,
    JsonBody(body, _): JsonBody<ResumeBody>,
) -> Result<Response, Problem> {
    let user = app.control().user_of(&caller);
    let how = Resume {
        from: body.from,
        inputs: body.inputs,
        verdict: body.approve.map(|token| Verdict {
            token,
            consents: true,
        }),
        stub: body.stub,
        budget_usd: body.budget_usd,
    };
    go_on(&app, user, &id_of(&id)?, how).await
}
