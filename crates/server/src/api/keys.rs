//! The keys of this home, for whoever may change things.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_api::keys::{Key, NewKey};
use quipu_search::when;
use quipu_store::documents;
use quipu_submit::KeyStore;
use quipu_submit::keys::{self, KeyId, KeyStoreError, Scope, Scopes};
use serde::Deserialize;
use utoipa::ToSchema;

use super::annotations::{Small, body};
use super::query::Path;
use crate::App;
use crate::access::MayWrite;
use crate::answer::json;
use crate::problem::Problem;

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WantedKey {
    /// What it is for: one line.
    #[serde(default)]
    label: String,
    /// What it may do: `submit`, `read`, `admin`. Only `submit` unless told.
    #[serde(default)]
    scopes: Vec<String>,
    /// After how long it is accepted no more, such as `90d`. Never unless told.
    expires: Option<String>,
}

fn store(app: &App) -> KeyStore {
    KeyStore::at(app.home().join("keys.jsonl")).with_clock(app.clock().clone())
}

/// Reads or writes the file of keys, off the threads that serve sockets.
async fn with_keys<T: Send + 'static>(
    app: &App,
    act: impl FnOnce(&App, &KeyStore) -> Result<T, KeyStoreError> + Send + 'static,
) -> Result<T, Problem> {
    let inner = app.clone();
    app.work(move |_| Ok(act(&inner, &store(&inner))?)).await
}

impl From<KeyStoreError> for Problem {
    fn from(error: KeyStoreError) -> Self {
        match error {
            KeyStoreError::NoSuchKey(_) => Self::not_found(error),
            KeyStoreError::Label => Self::bad_parameter("label", error),
            KeyStoreError::Expiry => Self::bad_parameter("expires", error),
            error => Self::store(error),
        }
    }
}

/// All keys, in the order in which they were made; never the secret of one. Only for whoever may change things.
#[utoipa::path(
    get,
    path = "/api/v1/keys",
    operation_id = "listKeys",
    tag = "server",
    responses((status = 200, body = Vec<Key>))
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: MayWrite,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let entries = with_keys(&app, |_, keys| keys.list()).await?;
    let keys: Vec<Key> = entries.iter().map(documents::key).collect();
    json(&keys, &headers)
}

/// Makes a key. It is in the answer, and never shown again: only a hash of it is kept.
#[utoipa::path(
    post,
    path = "/api/v1/keys",
    operation_id = "makeKey",
    tag = "server",
    request_body = WantedKey,
    responses((status = 201, body = NewKey), (status = 400, body = Problem), (status = 401, body = Problem), (status = 409, description = "This server shows samples", body = Problem))
)]
pub(crate) async fn make(
    State(app): State<App>,
    _: MayWrite,
    headers: HeaderMap,
    Small(bytes): Small,
) -> Result<Response, Problem> {
    let wanted: WantedKey = body(&headers, &bytes)?;
    if app.options().samples {
        return Err(Problem::conflict(
            "this server shows samples, and its keys would go with them",
        ));
    }
    let scopes = wanted.scopes.iter().map(|word| word.parse::<Scope>());
    let scopes: Vec<Scope> = scopes
        .collect::<Result<_, _>>()
        .map_err(|error| Problem::bad_parameter("scopes", error))?;
    let expires_at = match &wanted.expires {
        Some(age) => Some(end(age, app.clock().now())?),
        None => None,
    };
    let (entry, key) = with_keys(&app, move |app, store| {
        let new = keys::NewKey {
            label: &wanted.label,
            scopes: Scopes::new(scopes),
            expires_at,
        };
        store.make(new, &**app.clock())
    })
    .await?;
    let made = NewKey {
        entry: documents::key(&entry),
        key: key.expose(),
    };
    let mut response = (StatusCode::CREATED, axum::Json(made)).into_response();
    // Nobody keeps it but whoever asked.
    let once = HeaderValue::from_static("no-store");
    response.headers_mut().insert(CACHE_CONTROL, once);
    Ok(response)
}

/// So long from now on.
fn end(age: &str, now: Timestamp) -> Result<Timestamp, Problem> {
    let zone = TimeZone::system();
    let ago = when::age(age, &when::Clock { now, zone })
        .map_err(|error| Problem::bad_parameter("expires", &error).hint(error.hint()))?;
    now.checked_add(now.duration_since(ago))
        .map_err(|_| Problem::bad_parameter("expires", format!("{age:?} is too far ahead")))
}

/// Revokes a key: it counts no more, from the next request on. What came with it stays.
#[utoipa::path(
    delete,
    path = "/api/v1/keys/{id}",
    operation_id = "revokeKey",
    tag = "server",
    params(("id" = String, Path, description = "Its whole id: `key_` and 12 hex digits")),
    responses((status = 200, body = Key), (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem))
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    _: MayWrite,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    // A few digits may soon mean another key.
    let id = KeyId::parse(&id)
        .ok_or_else(|| Problem::bad_parameter("id", "it is not the whole id of a key"))?;
    let entry = with_keys(&app, move |app, keys| {
        keys.revoke(&id.to_string(), &**app.clock())
    })
    .await?;
    json(&documents::key(&entry), &HeaderMap::new())
}
