//! Where the time went, what filled the window, how tools fared, and the windows of subscriptions.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use jiff::tz::TimeZone;
use quipu_api::blocks::Blocks;
use quipu_api::context::ContextTurns;
use quipu_api::timeline::Timeline;
use quipu_api::tools::ToolLedger;
use quipu_store::Store;
use quipu_store::analysis::{MOST, Window};
use quipu_store::catalogue::TranscriptRow;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::query::{Params, Path, Which, first, limit};
use super::transcripts::{directories, find};
use crate::App;
use crate::access::MayRead;
use crate::answer::{Ready, json};
use crate::problem::Problem;

/// Which part of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// From this event on, by its seq; 1 unless told.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// How many at most: 1 to 5,000, 1,000 unless told.
    #[param(minimum = 1, maximum = 5000)]
    limit: Option<usize>,
}

impl Part {
    fn window(&self) -> Result<Window, Problem> {
        Ok(Window {
            from: first(self.from)?,
            limit: limit(self.limit, 1000, MOST)?,
        })
    }
}

/// Works something out of a whole transcript, once for each state of it.
pub(super) async fn worked_out<T: Serialize + Send + 'static>(
    app: &App,
    question: String,
    id: String,
    headers: &HeaderMap,
    work: impl FnOnce(&Store, &TranscriptRow) -> Result<T, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let version = app.freshness().number();
    if let Some(ready) = app.cache().get(&question, version) {
        return Ok(ready.respond(headers));
    }
    let ready = app
        .work(move |store| {
            let row = find(store, &id)?;
            Ready::json(&work(store, &row)?)
        })
        .await?;
    app.cache().put(&question, version, &ready);
    Ok(ready.respond(headers))
}

/// Steps, tool calls, model calls and sub-agents as spans, with overlaps, gaps and the critical path.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/timeline",
    operation_id = "getTimeline",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Part),
    responses((status = 200, body = Timeline), (status = 404, body = Problem))
)]
pub(crate) async fn timeline(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    Params(part): Params<Part>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let window = part.window()?;
    let question = format!("timeline {id} {} {}", window.from, window.limit);
    worked_out(&app, question, id, &headers, move |store, row| {
        Ok(store.timeline(row, &window)?)
    })
    .await
}

/// What filled the model's window at each call, and where it was compacted.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/context",
    operation_id = "getContext",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Part),
    responses((status = 200, body = ContextTurns), (status = 404, body = Problem))
)]
pub(crate) async fn context(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    Params(part): Params<Part>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let window = part.window()?;
    let question = format!("context {id} {} {}", window.from, window.limit);
    worked_out(&app, question, id, &headers, move |store, row| {
        Ok(store.context(row, &window)?)
    })
    .await
}

/// Each tool of a transcript: calls, failures, how long they took, and where to look.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/tools",
    operation_id = "getTools",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = ToolLedger), (status = 404, body = Problem))
)]
pub(crate) async fn tools(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = format!("tools {id}");
    worked_out(&app, question, id, &headers, |store, row| {
        Ok(store.tools(row)?)
    })
    .await
}

/// Each tool, over the transcripts that filters mean.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    operation_id = "getAllTools",
    tag = "figures",
    params(Which),
    responses((status = 200, body = ToolLedger), (status = 400, body = Problem))
)]
pub(crate) async fn tools_over(
    State(app): State<App>,
    _: MayRead,
    Params(which): Params<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let listing = which.listing(app.clock().now(), &TimeZone::system())?;
    let ledger = app
        .read(move |store| {
            let directories = directories(store, &listing)?;
            Ok(store.tools_over(&listing.filter, directories.as_deref())?)
        })
        .await?;
    json(&ledger, &headers)
}

/// Which blocks. A block is of all that was done in its time, so there is no filter by model.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BlocksWanted {
    /// Only these agents, by name or the beginning of it; several with commas. Those with subscriptions unless told.
    agent: Option<String>,
    /// Only this directory and those below it, or directories with this name in their path.
    project: Option<String>,
    /// Only this branch.
    branch: Option<String>,
    /// Only titles with this in them.
    title: Option<String>,
    /// Only blocks that ended after this: a date, RFC 3339, or an age such as `7d`.
    since: Option<String>,
    /// Only blocks that began before the end of this.
    until: Option<String>,
    /// Count what others submitted as well. Without this, only one's own sessions are counted.
    received: bool,
}

/// The 5-hour windows of subscriptions: what was used in each, and what is left of the one at hand.
#[utoipa::path(
    get,
    path = "/api/v1/stats/blocks",
    operation_id = "getBlocks",
    tag = "figures",
    params(BlocksWanted),
    responses((status = 200, body = Blocks), (status = 400, body = Problem))
)]
pub(crate) async fn blocks(
    State(app): State<App>,
    _: MayRead,
    Params(wanted): Params<BlocksWanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = app.clock().now();
    let which = Which {
        agent: wanted.agent,
        project: wanted.project,
        branch: wanted.branch,
        model: None,
        title: wanted.title,
        since: wanted.since,
        until: wanted.until,
        received: wanted.received,
    };
    let listing = which.listing(now, &TimeZone::system())?;
    let prices = app.prices().clone();
    let blocks = app
        .read(move |store| {
            let directories = directories(store, &listing)?;
            Ok(store.blocks_over(&listing.filter, directories.as_deref(), &prices, now)?)
        })
        .await?;
    json(&blocks, &headers)
}
