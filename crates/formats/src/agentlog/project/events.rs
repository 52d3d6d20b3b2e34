//! Events that are one record each: chunks, harness events, blobs and errors, both ways.
//!
//! The format's words are a closed list and its fields are required, while an event may have any word, or none. So a
//! record says as much as it can; where that is not all, `meta.quipu.fields` has the fields of the event as a text of
//! JSON, and reading gives back the same event.

use std::borrow::Cow;

use quipu_model::json::{Node, Tape};
use quipu_model::{
    Attachment, Body, Chunk, EventType, Failure, Fidelity, HarnessEvent, Json, Severity, Timestamp,
};

use super::out::{self, Making};
use super::text::{Object, is_object};
use super::view::View;
use crate::agentlog::verify::{self, CATEGORIES, ERROR_SOURCES};
use crate::agentlog::{Canon, Kind, LIMITS};
use crate::loss::Loss;
use quipu_exchange::{fields_json, from_fields};

/// The kind of record that an event is; `None` when it is not one record.
pub(super) fn kind(body: &Body) -> Option<Kind> {
    Some(match body {
        Body::Chunk(_) => Kind::Chunk,
        Body::Harness(_) => Kind::HarnessEvent,
        Body::Error(_) => Kind::Error,
        // A reference has to be a hash.
        Body::Blob(blob) if is_hash(&blob.sha256) => Kind::BlobRef,
        _ => return None,
    })
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The fields of each kind of record that events have a place for.
pub fn mapped(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Chunk => &["chunk_index", "time_unix_nano", "delta", "is_final"],
        Kind::HarnessEvent => &["category", "name", "severity", "attributes"],
        Kind::Error => &["source", "code", "message", "retriable"],
        Kind::BlobRef => &["mime", "size_bytes", "blob_id"],
        _ => &[],
    }
}

/// A chunk as a record: its place among the chunks of its response, and a time that is not before that of the chunk
/// before.
pub(super) fn chunk(chunk: &Chunk, index: usize, at: Timestamp) -> Object {
    let delta = match &chunk.delta {
        Some(delta) if is_object(delta.get()) => Cow::Borrowed(delta.get()),
        Some(delta) => Object::new().raw("value", delta.get()).end().into(),
        None => Object::new().text("text", &chunk.text).end().into(),
    };
    Object::new()
        .number("chunk_index", index)
        .number("time_unix_nano", at.as_nanosecond().max(0))
        .raw("delta", &delta)
        .flag("is_final", chunk.is_last)
}

/// The record of a harness event, an error or a blob.
pub(super) fn making(kind: Kind, view: &View<'_>, body: &Body, loss: &mut Loss) -> Making {
    let payload = match body {
        Body::Harness(event) => harness(event),
        Body::Error(failure) => error(failure),
        Body::Blob(blob) => {
            if blob.mime.is_empty() {
                loss.inferred("blob_ref.mime", view.seq);
            }
            Object::new()
                .text("mime", out::mime(blob))
                .number("size_bytes", blob.bytes)
                .text("blob_id", &format!("sha256:{}", blob.sha256))
        }
        _ => Object::new(),
    };
    let (payload, marks) = complete(kind, payload, body, view.notes.extra.as_ref(), |what| {
        loss.dropped(what, view.seq);
    });
    let making = Making::of(kind, view.seq, view.at, view.notes, payload);
    Making {
        marks: making.marks.and(&marks),
        ..making
    }
}

/// A payload with the further fields of the record that the event was read from, and what is said beside it so that
/// reading gives back the same event.
pub(super) fn complete(
    kind: Kind,
    payload: Object,
    body: &Body,
    extra: Option<&Json>,
    mut drop: impl FnMut(String),
) -> (String, Object) {
    let mut tape = Tape::new();
    let extra = extra.and_then(|extra| tape.read(extra.get(), LIMITS.max_depth).ok());
    let mut payload = payload;
    let own = mapped(kind);
    for (key, value) in extra.into_iter().flat_map(Node::fields) {
        let key = key.to_text_lossy();
        // What stood beside a payload is not part of it.
        let names_other = |blob: &Attachment| {
            key == "uri"
                && !value
                    .as_str()
                    .is_some_and(|uri| uri.ends_with(&blob.sha256))
        };
        let fits = key != "meta"
            && !own.contains(&&*key)
            && !matches!(body, Body::Blob(blob) if names_other(blob));
        if fits && verify::is_field(kind, &key, value) {
            payload = payload.raw(&key, value.raw().get());
        } else {
            drop(format!("extra field of {kind}"));
        }
    }
    let payload = payload.end();
    let mut marks = Object::new().text("event", body.type_word());
    let mut tape = Tape::new();
    let node = tape.read(&payload, LIMITS.max_depth).ok();
    // What has no canonical form is changed when it is written.
    let lasts = node.is_some_and(|node| Canon::new().id(node).is_ok());
    let again = node.filter(|_| lasts).and_then(|node| read(kind, node));
    if again.as_ref() != Some(body)
        && let Some(fields) = fields_json(body)
    {
        // As a text, because a trace may not hold all that JSON can say.
        marks = marks.text("fields", fields.get());
    }
    (payload, marks)
}

fn harness(event: &HarnessEvent) -> Object {
    let category = event.category.as_str();
    let known = CATEGORIES.contains(&category);
    let name = match event.name.as_str() {
        "" => "unknown",
        name => name,
    };
    let object = Object::new()
        .text("category", if known { category } else { "tool_lifecycle" })
        .text("name", name)
        .text(
            "severity",
            event.severity.unwrap_or(Severity::Info).as_str(),
        );
    match &event.attributes {
        Some(all) if is_object(all.get()) => object.raw("attributes", all.get()),
        Some(one) => object.raw("attributes", &Object::new().raw("value", one.get()).end()),
        None => object,
    }
}

fn error(failure: &Failure) -> Object {
    let source = failure.source.as_deref();
    let source = source.filter(|source| ERROR_SOURCES.contains(source));
    Object::new()
        .text("source", source.unwrap_or("sdk"))
        .text("code", failure.code.as_deref().unwrap_or("unknown"))
        .text("message", &failure.message)
        .flag("retriable", failure.retryable.unwrap_or(false))
}

/// The event that a record is. `marks` is what Quipu wrote beside it. `None` for records of other kinds, for those
/// that do not have what their kind wants, and for notes that Quipu wrote as such a record.
pub fn event_of(kind: Kind, payload: Node<'_>, marks: Option<Node<'_>>) -> Option<Body> {
    let Some(marks) = marks else {
        return read(kind, payload);
    };
    let event_type = EventType::from_word(&marks.text("event")?)?;
    match marks.text("fields") {
        Some(fields) => from_fields(event_type, Json::parse(&fields).ok()?.as_raw()),
        None => read(kind, payload),
    }
}

fn read(kind: Kind, payload: Node<'_>) -> Option<Body> {
    let text = |key: &str| payload.text(key).map(Cow::into_owned);
    // What is there and is something else does not fit.
    let flag = |key: &str| match payload.get(key) {
        Some(value) if !value.is_null() => value.as_bool().map(Some),
        _ => Some(None),
    };
    Some(match kind {
        Kind::Chunk => {
            let delta = payload.get("delta")?;
            let nanos = payload.get("time_unix_nano")?.as_u64()?;
            Body::Chunk(Chunk {
                index: payload.get("chunk_index")?.as_u64()?,
                text: text_of(delta).unwrap_or_default().into_owned(),
                delta: Some(delta.raw().into()),
                arrived_at: Some(Timestamp::from_nanosecond(nanos.into()).ok()?),
                is_last: flag("is_final")?.unwrap_or(false),
                fidelity: Fidelity::AgentEmitted,
            })
        }
        Kind::HarnessEvent => {
            let attributes = payload.get("attributes").filter(|it| !it.is_null());
            Body::Harness(HarnessEvent {
                category: text("category")?,
                name: text("name")?,
                severity: match payload.get("severity").filter(|it| !it.is_null()) {
                    Some(severity) => Some(Severity::from_word(&severity.as_str()?)?),
                    None => None,
                },
                attributes: attributes.map(|it| it.raw().into()),
            })
        }
        Kind::Error => Body::Error(Failure {
            source: text("source"),
            code: text("code"),
            message: text("message")?,
            retryable: flag("retriable")?,
        }),
        Kind::BlobRef => {
            let id = text("blob_id")?;
            let sha256 = id.strip_prefix("sha256:")?.to_ascii_lowercase();
            Body::Blob(Attachment {
                mime: text("mime").unwrap_or_default(),
                bytes: payload.get("size_bytes")?.as_u64()?,
                sha256: Some(sha256).filter(|hash| is_hash(hash))?,
            })
        }
        _ => return None,
    })
}

/// The text that a chunk adds, where a provider is known to put it.
fn text_of(delta: Node<'_>) -> Option<Cow<'_, str>> {
    let choice = || delta.get("choices")?.items().next()?.get("delta");
    let inner = delta.get("delta").or_else(choice);
    let places = [Some(delta), inner].into_iter().flatten();
    places.into_iter().find_map(|place| {
        let said = place.get("text").or_else(|| place.get("content"));
        said?.as_str()
    })
}
