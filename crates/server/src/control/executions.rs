//! Starting runs, listing them, and looking at one.

use std::collections::HashSet;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{HeaderName, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use quipu_api::execution::{Execution, ExecutionPage, ExecutionRow, ExecutionStatus};
use quipu_flow::engine::Glance;
use quipu_model::{RunId, Timestamp};
use serde::Deserialize;

use super::body::{JsonBody, StartBody, query};
use super::launch::{blocking, id_of, start as begin};
use super::others;
use super::view::{row_of_glance, row_of_run, view};
use crate::App;
use crate::access::{MayRead, MayWrite};
use crate::answer::json;
use crate::api::Path;
use crate::problem::Problem;

/// The header that makes a retry find the run that it started.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How many runs a page has, and at most.
const PAGE: usize = 50;
const MOST: usize = 200;

/// A run as the answer to what was asked for.
pub(super) fn answer(status: StatusCode, execution: &Execution) -> Response {
    let location = execution.links.execution.clone();
    let no_store = [
        (http::header::CACHE_CONTROL, "no-store".to_owned()),
        (LOCATION, location),
    ];
    (status, no_store, axum::Json(execution)).into_response()
}

/// Starts a workflow. The answer comes when its beginning is recorded; the run goes on.
#[utoipa::path(
    post,
    path = "/api/v1/executions",
    operation_id = "startExecution",
    tag = "runs",
    params(("idempotency-key" = Option<String>, Header,
        description = "A retry with the same key and the same body finds the run that it started")),
    request_body = StartBody,
    responses(
        (status = 202, body = Execution, headers(("location" = String, description = "The run"))),
        (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
        (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem)
    )
)]
pub(crate) async fn start(
    State(app): State<App>,
    MayWrite(caller): MayWrite,
    headers: HeaderMap,
    JsonBody(body, bytes): JsonBody<StartBody>,
) -> Result<Response, Problem> {
    let key = match headers.get(&IDEMPOTENCY_KEY) {
        None => None,
        Some(key) => {
            let key = key.to_str().ok();
            let key = key.filter(|key| (1..=255).contains(&key.len()));
            let wrong = || Problem::bad_parameter("idempotency-key", "give 1 to 255 characters");
            Some(key.ok_or_else(wrong)?)
        }
    };
    let user = app.control().user_of(&caller);
    let id = begin(&app, user, key, body, &bytes).await?;
    Ok(answer(StatusCode::ACCEPTED, &view(&app, &id, true).await?))
}

/// A run: how far it came, and what it waits for.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}",
    operation_id = "getExecution",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, body = Execution), (status = 404, body = Problem))
)]
pub(crate) async fn one(
    State(app): State<App>,
    MayRead(caller): MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let execution = view(&app, &id_of(&id)?, caller.may_write()).await?;
    json(&execution, &headers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    status: Option<ExecutionStatus>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// The place in a list: when a run began, and its id.
type Place = (Timestamp, RunId);

fn place_of(cursor: &str) -> Result<Place, Problem> {
    let parse = || {
        let (at, id) = cursor.split_once('_')?;
        Some((at.parse().ok()?, RunId::new(id).ok()?))
    };
    let wrong = || Problem::bad_parameter("cursor", "not one that this server gave out");
    parse().ok_or_else(wrong)
}

/// All runs of workflows, whoever ran them; the newest first. Runs that other runs called are not listed.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    operation_id = "listExecutions",
    tag = "runs",
    params(
        ("status" = Option<ExecutionStatus>, Query, description = "Only those of this status"),
        ("limit" = Option<usize>, Query, description = "How many, at most 200; 50 unless it is given"),
        ("cursor" = Option<String>, Query, description = "What the page before said as `next`")
    ),
    responses((status = 200, body = ExecutionPage), (status = 400, body = Problem))
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: MayRead,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let which: Which = query(&uri)?;
    let limit = which.limit.unwrap_or(PAGE);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_parameter("limit", format!("give 1 to {MOST}")));
    }
    let after = which.cursor.as_deref().map(place_of).transpose()?;
    let page = blocking(move || {
        let mut found = all(&app);
        found.retain(|(_, row)| which.status.is_none_or(|status| status == row.status));
        found.sort_by(|a, b| b.0.cmp(&a.0));
        let found = found.into_iter();
        let mut found = found.filter(|(place, _)| after.as_ref().is_none_or(|after| place < after));
        let items: Vec<(Place, ExecutionRow)> = found.by_ref().take(limit).collect();
        let next = match (items.last(), found.next()) {
            (Some(((at, id), _)), Some(_)) => Some(format!("{at}_{id}")),
            _ => None,
        };
        let items = items.into_iter().map(|(_, row)| row).collect();
        Ok(ExecutionPage { items, next })
    })
    .await?;
    json(&page, &headers)
}

fn all(app: &App) -> Vec<(Place, ExecutionRow)> {
    let control = app.control();
    let mut runs = control.runs.all();
    runs.retain(|run| run.is_current());
    let mut found: Vec<(Place, ExecutionRow)> = runs
        .iter()
        .map(|run| ((run.about.started_at, run.id.clone()), row_of_run(run)))
        .collect();
    let here: HashSet<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    for (path, mut glance) in control.others.all(&app.home().join("transcripts")) {
        if !here.contains(&glance.run_id) {
            let mut status = others::status(&path, glance.end.as_ref());
            if status == ExecutionStatus::Lost
                && let Some(again) = Glance::at(&path)
            {
                // It may have ended between the two looks.
                glance = again;
                status = others::status(&path, glance.end.as_ref());
            }
            let place = (glance.started_at, glance.run_id.clone());
            found.push((place, row_of_glance(&glance, status)));
        }
    }
    found
}
