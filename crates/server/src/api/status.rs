//! What the server does, and whether what is kept is sound.

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use quipu_api::Time;
use quipu_api::doctor::Doctor;
use quipu_api::home::Expiring;
use quipu_api::serve::{Census, Status};
use quipu_store::catalogue::Filter;
use quipu_store::documents;
use quipu_store::facade::{Diagnosis, Examine};
use quipu_store::import::RECORDED;
use serde::Deserialize;
use utoipa::IntoParams;

use super::query::Params;
use crate::App;
use crate::access::MayRead;
use crate::answer::{Ready, json};
use crate::problem::Problem;

/// What the server does, what the import did last, and how much is kept.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    operation_id = "getStatus",
    tag = "server",
    responses((status = 200, body = Status))
)]
pub(crate) async fn status(
    State(app): State<App>,
    _: MayRead,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let transcripts = app
        .read(|store| {
            let census = store.census()?;
            let recorded = Filter {
                agents: vec![RECORDED.to_owned()],
                subagents: true,
                ..Filter::default()
            };
            let runs = store.by_agent(&recorded)?;
            Ok(Census {
                sessions: census.sessions,
                subagents: census.subagents,
                copies: census.copies,
                runs: runs.iter().map(|sum| sum.transcripts).sum(),
            })
        })
        .await?;
    let status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: Time::of(app.started_at()),
        home: app.home().display().to_string(),
        samples: app.options().samples,
        import: app.importer().state(),
        transcripts,
    };
    json(&status, &headers)
}

/// How closely to look.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Closely {
    /// Read everything that is kept, not only look whether it is there. This takes long.
    check: bool,
}

/// Whether what is kept is sound, and what to do where it is not.
#[utoipa::path(
    get,
    path = "/api/v1/doctor",
    operation_id = "getDoctor",
    tag = "server",
    params(Closely),
    responses((status = 200, body = Doctor))
)]
pub(crate) async fn doctor(
    State(app): State<App>,
    _: MayRead,
    Params(closely): Params<Closely>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let inner = app.clone();
    let found = app
        .work(move |store| {
            let examine = Examine {
                all: closely.check,
                named: true,
                also: Vec::new(),
            };
            let of = || Ok(Some(store.clone()));
            let found = Diagnosis::of(inner.home(), inner.host(), examine, of);
            Ok(documents::doctor(&found, inner.home()))
        })
        .await?;
    json(&found, &headers)
}

/// Logs of this machine that their agents delete soon and that are not kept yet. They are looked for at most every five minutes,
/// and only where this server imports.
#[utoipa::path(
    get,
    path = "/api/v1/expiring",
    operation_id = "getExpiring",
    tag = "server",
    responses((status = 200, body = Expiring))
)]
pub(crate) async fn expiring(
    State(app): State<App>,
    _: MayRead,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let version = app.freshness().number();
    let now = app.clock().now();
    let inner = app.clone();
    let known = app
        .work(move |store| {
            let Some(looked) = inner.importer().expiring(inner.host(), now) else {
                return Ready::json(&Expiring {
                    looked_at: None,
                    agents: Vec::new(),
                    logs: Vec::new(),
                    more: 0,
                });
            };
            let question = format!("expiring {}", looked.at);
            if let Some(ready) = inner.cache().get(&question, version) {
                return Ok(ready);
            }
            let found = store.expiring(looked.expiry, &looked.logs)?;
            let ready = Ready::json(&documents::expiring(&found, looked.at, now))?;
            inner.cache().put(&question, version, &ready);
            Ok(ready)
        })
        .await?;
    Ok(known.respond(&headers))
}
