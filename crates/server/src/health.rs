//! `/healthz`, `/readyz` and `/metrics`.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::App;
use crate::access::MayRead;
use crate::problem::Problem;

/// Whether the process is there.
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "getHealth",
    tag = "server",
    responses((status = 200, description = "It is there", content_type = "text/plain", body = String))
)]
pub(crate) async fn live() -> Response {
    ([(CACHE_CONTROL, "no-store")], "ok\n").into_response()
}

/// Whether the archive answers.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "getReadiness",
    tag = "server",
    responses((status = 200, description = "It does", content_type = "text/plain", body = String))
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    app.read(|store| {
        store.count(&quipu_store::facade::Listing::default())?;
        Ok(())
    })
    .await?;
    Ok(([(CACHE_CONTROL, "no-store")], "ready\n").into_response())
}

/// Figures of the server itself, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "getMetrics",
    tag = "server",
    responses((status = 200, description = "OpenMetrics text", content_type = "application/openmetrics-text", body = String))
)]
pub(crate) async fn metrics(State(app): State<App>, _: MayRead) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    (
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")],
        app.metrics().text(),
    )
        .into_response()
}
