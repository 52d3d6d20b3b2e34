//! All routes together.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode};
use tower_http::compression::CompressionLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::{Caller, gate};
use crate::{
    App, Problem, api, control, flow_studio, health, ingest, listen, live, page, submissions,
};

/// What is about the document as a whole is in `openapi`.
#[derive(OpenApi)]
struct Document;

/// The native interface, with what its handlers say of themselves.
pub(crate) fn documented() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(api::routes())
        .merge(live::routes())
        .merge(control::routes())
        .routes(routes!(index))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

/// Everything that is served.
pub fn router(app: &App) -> Router {
    let (routes, _) = documented().split_for_parts();
    let takes = submissions::routes().merge(ingest::routes());
    let takes = takes.route_layer(from_fn_with_state(app.clone(), not_among_samples));
    routes
        .merge(takes)
        .merge(page::routes())
        .merge(flow_studio::routes(app))
        .fallback(listen::nowhere)
        .method_not_allowed_fallback(listen::not_allowed)
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(app.clone(), gate))
        .layer(from_fn_with_state(app.clone(), measure))
        .with_state(app.clone())
}

/// Where to begin: the page for a browser, a list of addresses for a program.
#[utoipa::path(
    get,
    path = "/",
    operation_id = "getIndex",
    tag = "server",
    responses((status = 200, description = "Addresses, by what they are for", body = serde_json::Value))
)]
async fn index(state: State<App>, headers: http::HeaderMap) -> Response {
    if page::is_wanted(&headers) {
        return page::shell(state, headers).await;
    }
    let index = axum::Json(serde_json::json!({
        "name": "quipu",
        "version": env!("CARGO_PKG_VERSION"),
        "openapi": "/api/v1/openapi.json",
        "transcripts": "/api/v1/transcripts",
        "search": "/api/v1/search?q=",
        "stats": "/api/v1/stats",
        "status": "/api/v1/status",
        "stream": "/api/v1/stream",
    }));
    ([(http::header::VARY, "accept")], index).into_response()
}

/// Refuses what is handed over to a server of the samples: among them, nobody would find it again. Whoever sends telemetry tries
/// again later.
async fn not_among_samples(State(app): State<App>, request: Request, next: Next) -> Response {
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if reads || !app.options().samples {
        return next.run(request).await;
    }
    Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "samples",
        "This server shows samples",
    )
    .detail("what is sent would be lost among the samples, so it is not taken")
    .hint("`quipu up --no-samples` serves the home also while nothing is in it")
    .header(http::header::RETRY_AFTER, HeaderValue::from_static("5"))
    .into_response()
}

/// Counts and times a request.
async fn measure(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = method_name(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    app.metrics().answered(route, method, status, took);
    log(method, route, &response, took);
    response
}

/// The method, if it is one that HTTP knows. Clients can make up any number of others, and each would be a series of its own.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "other",
    }
}

/// Says what was asked for, by the pattern of its route: paths and queries hold ids, words that people search for, and
/// now and then a key that somebody put in the wrong place.
fn log(method: &'static str, route: &str, response: &Response, took: Duration) {
    let status = response.status();
    let who = response.extensions().get::<Caller>();
    let who = who.map_or("nobody", Caller::name);
    let ms = took.as_millis();
    let changes = !matches!(method, "GET" | "HEAD" | "OPTIONS") && status.is_success();
    let refused = matches!(status.as_u16(), 401 | 403 | 421 | 429);
    if status.is_server_error() {
        tracing::warn!(target: "quipu", method, route, status = status.as_u16(), who, ms, "failed");
    } else if changes || refused {
        let what = if refused { "refused" } else { "changed" };
        tracing::info!(target: "quipu", method, route, status = status.as_u16(), who, ms, "{what}");
    } else {
        tracing::debug!(target: "quipu", method, route, status = status.as_u16(), who, ms, "answered");
    }
}

#[cfg(test)]
mod tests {
    use crate::testkit::Served;

    #[test]
    fn methods_that_clients_make_up_are_counted_together() {
        let served = Served::empty();
        for n in 0..50 {
            served.send(&format!("METHOD{n}"), "/healthz", &[], b"");
        }
        let metrics = served.get("/metrics").text();
        assert!(!metrics.contains("METHOD"), "{metrics}");
        assert!(
            metrics.contains(r#"method="other",status="405"} 50"#),
            "{metrics}"
        );
    }
}
