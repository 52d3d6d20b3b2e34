//! The native interface: `/api/v1`.

mod analysis;
pub(crate) mod annotations;
mod blobs;
mod cord;
mod events;
mod exports;
mod figures;
mod keys;
mod lines;
mod query;
mod search;
mod status;
mod transcripts;
mod tree;

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod tests;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::App;
use crate::access::MayRead;
use crate::answer::Ready;
use crate::problem::Problem;

pub(crate) use lines::Lines;
pub(crate) use query::Path;
pub(crate) use transcripts::find;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(transcripts::list))
        .routes(routes!(transcripts::one))
        .routes(routes!(events::page))
        .routes(routes!(cord::cord))
        .routes(routes!(cord::me))
        .routes(routes!(tree::tree))
        .routes(routes!(analysis::timeline))
        .routes(routes!(analysis::context))
        .routes(routes!(analysis::tools))
        .routes(routes!(analysis::tools_over))
        .routes(routes!(analysis::blocks))
        .routes(routes!(annotations::labels))
        .routes(routes!(annotations::list))
        .routes(routes!(annotations::add_label, annotations::remove_label))
        .routes(routes!(annotations::add_note))
        .routes(routes!(annotations::edit_note, annotations::delete_note))
        .routes(routes!(figures::cost))
        .routes(routes!(figures::stats))
        .routes(routes!(figures::waste))
        .routes(routes!(figures::budgets))
        .routes(routes!(search::search))
        .routes(routes!(blobs::blob))
        .routes(routes!(exports::formats))
        .routes(routes!(exports::export))
        .routes(routes!(exports::report))
        .routes(routes!(exports::preview))
        .routes(routes!(status::status))
        .routes(routes!(status::doctor))
        .routes(routes!(status::expiring))
        .routes(routes!(keys::list, keys::make))
        .routes(routes!(keys::revoke))
        .routes(routes!(document))
}

/// This document.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    operation_id = "getOpenApi",
    tag = "server",
    responses((status = 200, description = "The OpenAPI 3.1 document of this server", body = serde_json::Value))
)]
async fn document(
    State(app): State<App>,
    _: MayRead,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    const QUESTION: &str = "openapi";
    if let Some(ready) = app.cache().get(QUESTION, 0) {
        return Ok(ready.respond(&headers));
    }
    let ready = Ready::json(&crate::openapi())?;
    app.cache().put(QUESTION, 0, &ready);
    Ok(ready.respond(&headers))
}
