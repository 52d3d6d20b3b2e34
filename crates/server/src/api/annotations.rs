//! Labels and notes of people. They are kept beside transcripts, never inside.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use http_body_util::LengthLimitError;
use quipu_api::annotations::{Annotations, Label, LabelCount, PersonNote};
use quipu_store::Store;
use quipu_store::annotations::{AnnotationError, Target, Who};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::query::Path;
use super::transcripts::find;
use crate::App;
use crate::access::{MayRead, MayWrite};
use crate::answer::json;
use crate::problem::Problem;

/// The longest body that is read here.
pub(crate) const LONGEST: usize = 64 << 10;

/// A small body. What is longer is not read.
#[derive(Debug)]
pub(crate) struct Small(pub(crate) Bytes);

impl FromRequest<App> for Small {
    type Rejection = Problem;

    async fn from_request(request: Request, _app: &App) -> Result<Self, Problem> {
        use std::error::Error as _;
        let read = axum::body::to_bytes(request.into_body(), LONGEST).await;
        read.map(Self).map_err(|error| {
            let too_long = |it: &(dyn std::error::Error + 'static)| it.is::<LengthLimitError>();
            if error.source().is_some_and(too_long) {
                Problem::too_large(LONGEST as u64)
            } else {
                Problem::bad_request("the body did not arrive whole")
            }
        })
    }
}

/// Reads a small JSON body. Unknown fields are rejected.
pub(crate) fn body<T: DeserializeOwned>(headers: &HeaderMap, bytes: &Bytes) -> Result<T, Problem> {
    let kind = headers.get(http::header::CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // Forms of other sites can send text, but not JSON.
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_type",
            "The body has the wrong type",
        )
        .detail("send it with Content-Type: application/json"));
    }
    if bytes.len() > LONGEST {
        return Err(Problem::too_large(LONGEST as u64));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::bad_request(format!("the body cannot be read: {error}")))
}

impl From<AnnotationError> for Problem {
    fn from(error: AnnotationError) -> Self {
        match error {
            AnnotationError::NoLabel { .. } | AnnotationError::NoNote { .. } => {
                Self::not_found(error)
            }
            AnnotationError::TooMany => Self::conflict(error),
            AnnotationError::Full(_) => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "full",
                "There is no room for more",
            )
            .detail(error.to_string()),
            AnnotationError::Io { .. } => Self::store(error),
            error => Self::bad_request(error),
        }
    }
}

impl From<quipu_store::facade::ListError> for Problem {
    fn from(error: quipu_store::facade::ListError) -> Self {
        use quipu_store::facade::ListError;
        match error {
            ListError::Catalogue(error) => error.into(),
            ListError::Annotations(error) => error.into(),
        }
    }
}

/// A label for a transcript, or for an event of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLabel {
    /// Letters, digits and `-_.:/+`, at most 64.
    label: String,
    /// The seq of the event; the transcript as a whole without one.
    seq: Option<u64>,
}

/// A note on a transcript, or on an event of it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewNote {
    /// What it says: at most 16 KiB.
    text: String,
    /// The seq of the event; the transcript as a whole without one.
    seq: Option<u64>,
}

/// What a note says from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditedNote {
    /// What it says: at most 16 KiB.
    text: String,
}

/// Changes what people wrote on a transcript. An event that is not there yet cannot be annotated.
async fn change<T: Send + 'static>(
    app: &App,
    may: MayWrite,
    id: String,
    seq: Option<u64>,
    act: impl FnOnce(&Store, &str, Who<'_>) -> Result<T, AnnotationError> + Send + 'static,
) -> Result<T, Problem> {
    let now = app.clock().now();
    let done = app
        .read(move |store| {
            let row = find(store, &id)?;
            if let Some(seq) = seq {
                let there = store.events(&row)?.len()?;
                if seq > there {
                    let why = format!("the transcript has {there} events");
                    return Err(Problem::bad_parameter("seq", why));
                }
            }
            let who = Who {
                by: may.0.name(),
                now,
            };
            Ok(act(store, &row.address, who)?)
        })
        .await?;
    app.freshness().bump();
    Ok(done)
}

fn created(value: &impl serde::Serialize) -> Result<Response, Problem> {
    let response = json(value, &HeaderMap::new())?;
    Ok((StatusCode::CREATED, response).into_response())
}

/// All labels, and how often they are there.
#[utoipa::path(
    get,
    path = "/api/v1/labels",
    operation_id = "listLabels",
    tag = "annotations",
    responses((status = 200, body = Vec<LabelCount>))
)]
pub(crate) async fn labels(
    State(app): State<App>,
    _: MayRead,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let labels = app.read(|store| Ok(store.annotations().labels()?)).await?;
    json(&labels, &headers)
}

/// What people wrote on a transcript and on its events.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/annotations",
    operation_id = "getAnnotations",
    tag = "annotations",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    responses((status = 200, body = Annotations), (status = 404, body = Problem))
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let all = app
        .read(move |store| {
            let row = find(store, &id)?;
            Ok(store.annotations().list(&row.address)?)
        })
        .await?;
    json(&all, &headers)
}

/// Adds a label. One that is there already stays.
#[utoipa::path(
    post,
    path = "/api/v1/transcripts/{id}/labels",
    operation_id = "addLabel",
    tag = "annotations",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    request_body = NewLabel,
    responses((status = 201, body = Label), (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem), (status = 507, description = "There is no room for more labels and notes", body = Problem, content_type = "application/problem+json"))
)]
pub(crate) async fn add_label(
    State(app): State<App>,
    may: MayWrite,
    Path(id): Path<String>,
    headers: HeaderMap,
    Small(bytes): Small,
) -> Result<Response, Problem> {
    let new: NewLabel = body(&headers, &bytes)?;
    let label = change(&app, may, id, new.seq, move |store, transcript, who| {
        let seq = new.seq;
        let on = Target { transcript, seq };
        store.annotations().add_label(on, &new.label, who)
    })
    .await?;
    created(&label)
}

/// Removes a label.
#[utoipa::path(
    delete,
    path = "/api/v1/transcripts/{id}/labels",
    operation_id = "removeLabel",
    tag = "annotations",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    request_body = NewLabel,
    responses((status = 204, description = "It is gone"), (status = 401, body = Problem), (status = 404, body = Problem))
)]
pub(crate) async fn remove_label(
    State(app): State<App>,
    may: MayWrite,
    Path(id): Path<String>,
    headers: HeaderMap,
    Small(bytes): Small,
) -> Result<Response, Problem> {
    let new: NewLabel = body(&headers, &bytes)?;
    change(&app, may, id, None, move |store, transcript, who| {
        let seq = new.seq;
        let on = Target { transcript, seq };
        store.annotations().remove_label(on, &new.label, who)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Writes a note.
#[utoipa::path(
    post,
    path = "/api/v1/transcripts/{id}/notes",
    operation_id = "addNote",
    tag = "annotations",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`")),
    request_body = NewNote,
    responses((status = 201, body = PersonNote), (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem), (status = 507, description = "There is no room for more labels and notes", body = Problem, content_type = "application/problem+json"))
)]
pub(crate) async fn add_note(
    State(app): State<App>,
    may: MayWrite,
    Path(id): Path<String>,
    headers: HeaderMap,
    Small(bytes): Small,
) -> Result<Response, Problem> {
    let new: NewNote = body(&headers, &bytes)?;
    let note = change(&app, may, id, new.seq, move |store, transcript, who| {
        let seq = new.seq;
        let on = Target { transcript, seq };
        store.annotations().add_note(on, &new.text, who)
    })
    .await?;
    created(&note)
}

/// Changes what a note says.
#[utoipa::path(
    put,
    path = "/api/v1/transcripts/{id}/notes/{note}",
    operation_id = "editNote",
    tag = "annotations",
    params(
        ("id" = String, Path, description = "The id of the transcript, the beginning of one, or `last`"),
        ("note" = String, Path, description = "The id of the note")
    ),
    request_body = EditedNote,
    responses((status = 200, body = PersonNote), (status = 400, body = Problem), (status = 401, body = Problem), (status = 404, body = Problem), (status = 507, description = "There is no room for more labels and notes", body = Problem, content_type = "application/problem+json"))
)]
pub(crate) async fn edit_note(
    State(app): State<App>,
    may: MayWrite,
    Path((id, note)): Path<(String, String)>,
    headers: HeaderMap,
    Small(bytes): Small,
) -> Result<Response, Problem> {
    let edited: EditedNote = body(&headers, &bytes)?;
    let note = change(&app, may, id, None, move |store, transcript, who| {
        store
            .annotations()
            .edit_note(transcript, &note, &edited.text, who)
    })
    .await?;
    json(&note, &HeaderMap::new())
}

/// Deletes a note.
#[utoipa::path(
    delete,
    path = "/api/v1/transcripts/{id}/notes/{note}",
    operation_id = "deleteNote",
    tag = "annotations",
    params(
        ("id" = String, Path, description = "The id of the transcript, the beginning of one, or `last`"),
        ("note" = String, Path, description = "The id of the note")
    ),
    responses((status = 204, description = "It is gone"), (status = 401, body = Problem), (status = 404, body = Problem))
)]
pub(crate) async fn delete_note(
    State(app): State<App>,
    may: MayWrite,
    Path((id, note)): Path<(String, String)>,
) -> Result<Response, Problem> {
    change(&app, may, id, None, move |store, transcript, who| {
        store.annotations().delete_note(transcript, &note, who)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
