//! The events of a transcript, page by page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use quipu_api::serve::EventPage;
use quipu_model::{Body, Event};
use quipu_prices::Prices;
use quipu_store::Store;
use quipu_store::catalogue::TranscriptRow;
use quipu_store::documents::Normalized;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::query::{Params, Path, first, limit};
use super::transcripts::find;
use crate::App;
use crate::access::MayRead;
use crate::answer::{JSON, Ready};
use crate::problem::Problem;

/// In which shape events are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// As in the exchange format (docs/formats/exchange.md).
    #[default]
    Exchange,
    /// As in `events` of a normalized transcript (docs/formats/normalized.md), which is what exported pages hold.
    Normalized,
}

/// Which events, and how much of them.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The first event, by its seq; 1 unless told. A link to an event is `from` with `limit=1`: it holds while the log grows.
    #[param(minimum = 1)]
    from: Option<u64>,
    /// How many at most: 1 to 1,000, 200 unless told.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// In which shape: `exchange` unless told, or `normalized`, as a normalized transcript and an exported page have them. Pages
    /// and filters are the same: `type` means the types of the exchange format.
    #[param(inline)]
    form: Form,
    /// Only these types, such as `tool.call`; several with commas. `tool` means all that begin with `tool.`.
    r#type: Option<String>,
    /// Only what these say: `user`, `assistant`, `system`, `tool`; several with commas.
    role: Option<String>,
    /// Only calls and results of this tool.
    tool: Option<String>,
    /// Only this step and those below it, by its path.
    step: Option<String>,
    /// Only events with this text in them, in any case.
    text: Option<String>,
    /// Only these fields of each event, such as `seq,type,timestamp`; several with commas.
    fields: Option<String>,
    /// Texts longer than this many characters are cut, and end with `…`.
    cut: Option<usize>,
}

impl Wanted {
    fn is_filtered(&self) -> bool {
        let filters = [&self.r#type, &self.role, &self.tool, &self.step, &self.text];
        filters.iter().any(|filter| filter.is_some())
    }

    fn is_trimmed(&self) -> bool {
        self.fields.is_some() || self.cut.is_some()
    }

    /// Whether all events are wanted, as they are kept.
    fn is_plain(&self) -> bool {
        self.form == Form::Exchange && !self.is_filtered() && !self.is_trimmed()
    }
}

/// Events are looked through so many at a time.
const STEP: u64 = 512;

/// A request looks through so many events at most; the next page goes on behind them.
const MOST: u64 = 20_000;

/// A page ends behind the event with which it has so many bytes. The next one goes on there.
pub(super) const LONGEST: usize = 8 << 20;

/// Some events of a transcript, in order. A page has fewer than `limit` where events are long; `next` says where to go on.
#[utoipa::path(
    get,
    path = "/api/v1/transcripts/{id}/events",
    operation_id = "getEvents",
    tag = "transcripts",
    params(("id" = String, Path, description = "Its id, the beginning of one, or `last`"), Wanted),
    responses((status = 200, body = EventPage), (status = 404, body = Problem))
)]
pub(crate) async fn page(
    State(app): State<App>,
    _: MayRead,
    Path(id): Path<String>,
    uri: http::Uri,
    Params(wanted): Params<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = limit(wanted.limit, 200, 1000)?;
    if wanted.is_plain() {
        return plain(&app, id, &wanted, limit, &headers).await;
    }
    let version = app.freshness().number();
    let question = format!("events {id} {}", uri.query().unwrap_or_default());
    if let Some(ready) = app.cache().get(&question, version) {
        return Ok(ready.respond(&headers));
    }
    let prices = app.prices().clone();
    let ready = app
        .read(move |store| {
            let row = find(store, &id)?;
            read(store, &row, &wanted, limit, &prices)
        })
        .await?;
    app.cache().put(&question, version, &ready);
    Ok(ready.respond(&headers))
}

/// A page of all events, from lines that are kept where they are.
async fn plain(
    app: &App,
    id: String,
    wanted: &Wanted,
    limit: usize,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let from = first(wanted.from)?;
    let known = app.row(&id);
    let kept = known
        .as_ref()
        .and_then(|row| Some((app.lines().kept(row, from, limit)?, Arc::clone(row))));
    let (slice, row) = if let Some(kept) = kept {
        kept
    } else {
        let inner = app.clone();
        app.read(move |store| {
            let row = inner.row_of(store, &id)?;
            let slice = inner.lines().read(store, &row, from, limit)?;
            Ok((slice, row))
        })
        .await?
    };
    if app.lines().begins_to_wait() {
        let app = app.clone();
        tokio::spawn(async move { app.lines().give_up().await });
    }
    let mut page = Vec::with_capacity(slice.bytes.len() + 160);
    begin(&mut page, &row);
    page.extend_from_slice(&slice.bytes);
    end(&mut page, (slice.next, slice.total, slice.bad));
    Ok(Ready::bytes(page, JSON).respond(headers))
}

fn read(
    store: &Store,
    row: &TranscriptRow,
    wanted: &Wanted,
    limit: usize,
    prices: &Prices,
) -> Result<Ready, Problem> {
    let filter = EventFilter::new(wanted);
    let from = first(wanted.from)?;
    let mut page = Page::new(store, row, wanted)?;
    // A log does not say what its price makes of it; a document does.
    let prices = page.normalized.is_some().then_some(prices);
    let (mut next, mut total, mut bad) = (from, 0, 0);
    loop {
        let step = if wanted.is_filtered() {
            STEP
        } else {
            (limit - page.count) as u64
        };
        let some = next..=next.saturating_add(step - 1);
        let given = store.each_event(row, &some, prices, &mut |event| {
            if filter.has(&event) {
                page.put(event);
            }
            page.count < limit && page.bytes.len() < LONGEST && page.failed.is_none()
        })?;
        total = total.max(given.len);
        bad += given.bad;
        next = given.next.max(next);
        let full = page.count == limit || page.bytes.len() >= LONGEST;
        if full || page.failed.is_some() || next > total || next - from >= MOST {
            break;
        }
    }
    page.end((next, total, bad))
}

fn begin(page: &mut Vec<u8>, row: &TranscriptRow) {
    page.extend_from_slice(b"{\"transcript\":");
    page.extend(serde_json::to_vec(&row.address).unwrap_or_default());
    page.extend_from_slice(b",\"events\":[");
}

fn end(page: &mut Vec<u8>, (next, total, bad): (u64, u64, u64)) {
    let more = next <= total;
    let rest = format!("],\"next\":{next},\"more\":{more},\"total\":{total},\"bad_lines\":{bad}}}");
    page.extend_from_slice(rest.as_bytes());
}

/// A page that is being made. Events are put in as they are written, without being taken apart again unless they are trimmed.
struct Page<'w> {
    wanted: &'w Wanted,
    normalized: Option<Normalized>,
    bytes: Vec<u8>,
    count: usize,
    failed: Option<Problem>,
}

impl<'w> Page<'w> {
    fn new(store: &Store, row: &TranscriptRow, wanted: &'w Wanted) -> Result<Self, Problem> {
        let normalized = match wanted.form {
            Form::Exchange => None,
            Form::Normalized => Some(Normalized::of(store, row)?),
        };
        let mut bytes = Vec::with_capacity(1 << 12);
        begin(&mut bytes, row);
        Ok(Self {
            wanted,
            normalized,
            bytes,
            count: 0,
            failed: None,
        })
    }

    fn put(&mut self, event: Event) {
        if self.count > 0 {
            self.bytes.push(b',');
        }
        let begun = self.bytes.len();
        match &self.normalized {
            Some(normalized) => normalized.write(event, &mut self.bytes),
            None => quipu_exchange::encode_log(&event, &mut self.bytes),
        }
        while self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        }
        if self.wanted.is_trimmed() {
            let trimmed = serde_json::from_slice(&self.bytes[begun..]).and_then(|value| {
                self.bytes.truncate(begun);
                serde_json::to_writer(&mut self.bytes, &trimmed(value, self.wanted))
            });
            if trimmed.is_err() {
                self.failed = Some(Problem::internal());
            }
        }
        self.count += 1;
    }

    fn end(mut self, place: (u64, u64, u64)) -> Result<Ready, Problem> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        end(&mut self.bytes, place);
        Ok(Ready::bytes(self.bytes, JSON))
    }
}

fn trimmed(mut value: Value, wanted: &Wanted) -> Value {
    if let (Some(fields), Value::Object(event)) = (&wanted.fields, &mut value) {
        event.retain(|name, _| fields.split(',').any(|field| field.trim() == name));
    }
    if let Some(most) = wanted.cut {
        cut(&mut value, most);
    }
    value
}

/// Shortens all texts of a value. Values nest no deeper than lines may.
fn cut(value: &mut Value, most: usize) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, most)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut(value, most)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Which events are wanted.
struct EventFilter<'w> {
    types: Option<Vec<&'w str>>,
    roles: Option<Vec<&'w str>>,
    tool: Option<&'w str>,
    step: Option<&'w str>,
    text: Option<String>,
}

impl<'w> EventFilter<'w> {
    fn new(wanted: &'w Wanted) -> Self {
        let list = |text: &'w Option<String>| -> Option<Vec<&'w str>> {
            let all = text.as_deref()?.split(',').map(str::trim);
            Some(all.collect())
        };
        Self {
            types: list(&wanted.r#type),
            roles: list(&wanted.role),
            tool: wanted.tool.as_deref(),
            step: wanted.step.as_deref(),
            text: wanted.text.as_deref().map(str::to_lowercase),
        }
    }

    fn has(&self, event: &Event) -> bool {
        let body = &event.body;
        let is_of = |types: &Vec<&str>| {
            let own = body.type_word();
            let begins = |kind: &&str| {
                own.strip_prefix(*kind)
                    .is_some_and(|rest| rest.starts_with('.'))
            };
            types.iter().any(|kind| own == *kind || begins(kind))
        };
        let below = |step: &str| {
            let path = &event.place.path;
            path == step
                || path
                    .strip_prefix(step)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        self.types.as_ref().is_none_or(is_of)
            && self
                .roles
                .as_ref()
                .is_none_or(|roles| role(body).is_some_and(|own| roles.contains(&own)))
            && self
                .tool
                .is_none_or(|tool| tool_of(body).is_some_and(|own| own.eq_ignore_ascii_case(tool)))
            && self.step.is_none_or(below)
            && self.text.as_ref().is_none_or(|text| says(event, text))
    }
}

fn role(body: &Body) -> Option<&'static str> {
    Some(match body {
        Body::UserMessage(_) => "user",
        Body::AssistantMessage(_) => "assistant",
        Body::SystemMessage(_) => "system",
        Body::ToolCall(_) | Body::ToolResult(_) => "tool",
        _ => return None,
    })
}

fn tool_of(body: &Body) -> Option<&str> {
    match body {
        Body::ToolCall(call) => Some(&call.name),
        Body::ToolResult(result) => Some(&result.name),
        _ => None,
    }
}

/// Whether a text is in an event, as it is written: escapes of JSON are undone first.
fn says(event: &Event, text: &str) -> bool {
    let mut line = Vec::new();
    quipu_exchange::encode_log(event, &mut line);
    let value: Value = serde_json::from_slice(&line).unwrap_or_default();
    any(&value["payload"], text)
}

/// Whether any text of a value has another one in it. Values nest no deeper than lines may.
fn any(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own.to_lowercase().contains(text),
        Value::Array(values) => values.iter().any(|value| any(value, text)),
        Value::Object(fields) => fields.values().any(|value| any(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
