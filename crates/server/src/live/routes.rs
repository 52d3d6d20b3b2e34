//! The endpoints: what is asked for, and where a stream begins.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use quipu_model::RunId;
use quipu_record::Storage;
use quipu_store::facade::Project;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::client::{Begin, Client, Subscription, Wanted};
use super::journal::Cursor;
use super::source::Source;
use crate::App;
use crate::access::MayRead;
use crate::api::Path;
use crate::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(transcript))
        .routes(routes!(everything))
}

/// The header in which a client that reconnects says what it has had.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Asks for what comes from now on.
const NOW: &str = "now";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfOne {
    /// The first event that is wanted, or `now` for those that are added from now on. 1 if it is left out. A header
    /// `Last-Event-ID` counts instead, where there is one.
    #[param(example = "1")]
    from: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfEverything {
    /// The cursor (`id`) behind which to begin, or `now`, which is what happens if it is left out. A header `Last-Event-ID`
    /// counts instead, where there is one.
    from: Option<String>,
    /// Whether to send the events themselves; if not, only which of them were added.
    events: Option<bool>,
    /// Only transcripts of agents whose name begins so.
    agent: Option<String>,
    /// Only transcripts of this directory, by its path or a part of it.
    project: Option<String>,
    /// Only this transcript: its id, the beginning of one, or `last`.
    transcript: Option<String>,
}

/// One transcript, live: its events so far, then those that are added.
///
/// Server-sent events. The `id` of each is its number in the transcript, `event` its type, and `data` its line of the exchange
/// format; of a recorded run the very bytes of its file. A client that reconnects with `Last-Event-ID` goes on behind that
/// event. What has no `id` is about the stream: `connected`, `heartbeat`, `missed`, `again`, `gone`, `ended`, `bad`.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/stream",
    operation_id = "streamTranscript",
    tag = "live",
    params(
        ("id" = String, Path, description = "Its id, the beginning of one, or `last`"),
        OfOne,
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that the client has had"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 400, body = Problem),
        (status = 404, body = Problem),
        (status = 503, description = "All live streams are in use", body = Problem),
    )
)]
pub(crate) async fn transcript(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    query: Result<Query<OfOne>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(asked) = query.map_err(|rejection| bad_query(&rejection))?;
    let begin = match (last_event_id(&headers)?, asked.from.as_deref()) {
        (Some(id), _) => {
            let place = id.parse().map_err(|_| {
                Problem::bad_request(
                    "Last-Event-ID: on the stream of a transcript it is the number of an event",
                )
            });
            match place? {
                // It has had nothing yet.
                0 => Begin::At(1),
                place => Begin::Behind(place),
            }
        }
        (None, None) => Begin::At(1),
        (None, Some(NOW)) => Begin::Now,
        (None, Some(from)) => match from.parse() {
            Ok(from) if from > 0 => Begin::At(from),
            _ => {
                let why = "it is the number of an event, from 1 on, or now";
                return Err(Problem::bad_parameter("from", why));
            }
        },
    };
    let (name, source) = find(&app, id).await?;
    let subscription = app.live().join(&app, source)?;
    subscription.hub.ready().await?;
    let end = end_of(&app, &subscription, begin).await;
    Ok(stream(subscription, begin, end, Some(&name), None))
}

/// Everything, live: what is added to any transcript.
///
/// Server-sent events. The `id` of each is a cursor over all transcripts, which holds across restarts of the server; `data` is its
/// line of the exchange format, of a recorded run the very bytes of its file, and `event` its type. Of which transcript the next
/// events are is said by `transcript` with `{"transcript", "run_id"}`, which has no `id`, when the stream begins to send events and
/// whenever it changes. With `events=false` only `advance` with `{"transcript", "from", "to"}` is sent. A client that reconnects with
/// `Last-Event-ID` goes on behind it, or is told by `missed` with `"reload": true` that it has to look at everything.
#[utoipa::path(
    get,
    path = "/api/v1/stream",
    operation_id = "streamEverything",
    tag = "live",
    params(
        OfEverything,
        ("Last-Event-ID" = Option<String>, Header, description = "The last cursor that the client has had"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 400, body = Problem),
        (status = 404, body = Problem),
        (status = 503, description = "All live streams are in use", body = Problem),
    )
)]
pub(crate) async fn everything(
    State(app): State<App>,
    _: MayRead,
    query: Result<Query<OfEverything>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(asked) = query.map_err(|rejection| bad_query(&rejection))?;
    let not_a_cursor = "it is the id of something that this stream sent, or now";
    let cursor = match (last_event_id(&headers)?, asked.from.as_deref()) {
        (Some(id), _) => Some(
            id.parse::<Cursor>()
                .map_err(|()| Problem::bad_request(format!("Last-Event-ID: {not_a_cursor}")))?,
        ),
        (None, None | Some(NOW)) => None,
        (None, Some(from)) => {
            let cursor = from.parse::<Cursor>();
            Some(cursor.map_err(|()| Problem::bad_parameter("from", not_a_cursor))?)
        }
    };
    let wanted = wanted(&app, &asked).await?;
    let events = asked.events.unwrap_or(true);
    let subscription = app.live().join(&app, Source::Everything { events })?;
    subscription.hub.ready().await?;
    let begin = match cursor {
        None => Begin::Now,
        Some(cursor) => {
            let span = app.read(|store| Ok(store.catalogue().advances_span()?));
            if cursor.is_within(&span.await?) {
                Begin::Behind(cursor.place)
            } else {
                Begin::Lost
            }
        }
    };
    let end = end_of(&app, &subscription, begin).await;
    Ok(stream(subscription, begin, end, None, wanted))
}

fn bad_query(rejection: &QueryRejection) -> Problem {
    Problem::bad_request(rejection.body_text())
}

/// What the client has had. Clients that have had nothing may send an empty header.
fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let text = value.to_str();
    let text = text.map_err(|_| Problem::bad_request("Last-Event-ID: it is not plain text"))?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}

/// The transcript that is meant, and where its events are. A run that was only just begun may not be known yet.
async fn find(app: &App, id: String) -> Result<(String, Source), Problem> {
    let home = app.home().to_owned();
    app.read(move |store| {
        let mut found = store.find(&id);
        if found.is_err() {
            drop(store.try_refresh_runs()?);
            found = store.find(&id);
        }
        let problem = match found {
            Ok(row) => {
                let name = if row.address.is_empty() {
                    row.run_id.clone()
                } else {
                    row.address.clone()
                };
                let source = if row.recorded {
                    Source::Run(row.path)
                } else {
                    Source::Kept(Box::new(row))
                };
                return Ok((name, source));
            }
            Err(problem) => Problem::from(problem),
        };
        // While something else writes to the catalogue, a new run is known by its file alone.
        let run = RunId::new(&id).ok();
        let path = run.and_then(|run| Storage::at(&home).find(&run));
        path.map(|path| (id, Source::Run(path))).ok_or(problem)
    })
    .await
}

/// Which transcripts are meant, if not all are.
async fn wanted(app: &App, asked: &OfEverything) -> Result<Option<Wanted>, Problem> {
    let transcript = match asked.transcript.clone() {
        Some(id) => Some(find(app, id).await?.0),
        None => None,
    };
    let project = asked
        .project
        .as_deref()
        .map(|text| Project::new(text, None));
    let project = project.transpose();
    let project = project.map_err(|why| Problem::bad_parameter("project", why))?;
    let agent = asked.agent.clone();
    let is_all = transcript.is_none() && project.is_none() && agent.is_none();
    Ok((!is_all).then_some(Wanted {
        agent,
        project,
        transcript,
    }))
}

/// The place behind the last that there is, where a client has had more than whoever follows for all of them: it may have read
/// ahead. 0 otherwise.
async fn end_of(app: &App, subscription: &Subscription, begin: Begin) -> u64 {
    let hub = &subscription.hub;
    match begin {
        Begin::At(place) | Begin::Behind(place) if place >= hub.state().ring.next() => {
            let source = hub.source.clone();
            let last = app.read(move |store| source.last(store)).await;
            last.map_or(0, |last| last.saturating_add(1))
        }
        Begin::Now | Begin::At(_) | Begin::Behind(_) | Begin::Lost => 0,
    }
}

fn stream(
    subscription: Subscription,
    begin: Begin,
    end: u64,
    name: Option<&str>,
    wanted: Option<Wanted>,
) -> Response {
    let client = Client::new(subscription, begin, end, name, wanted);
    let frames = futures_util::stream::unfold(client, |mut client| async move {
        let bytes = client.advance().await?;
        Some((Ok::<_, Infallible>(bytes), client))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that collect answers would hold events back.
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}
