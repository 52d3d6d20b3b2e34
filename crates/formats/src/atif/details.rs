//! What is known of an event beyond what a step has fields for.

use quipu_model::{Block, Body, Event, Fidelity, Notes, Timestamp};

use super::attach::Gallery;
use super::json::{Object, comma};

/// The first and the last second of which every reader of dates has a notion.
const DATES: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_207_200;

/// The time of a step, in as many digits as readers of dates take, and whether it is all that the event says.
pub(super) fn stamp(event: &Event) -> Option<(String, bool)> {
    let at = event.timestamp;
    if event.annotations.flags.undated || !DATES.contains(&at.as_second()) {
        return None;
    }
    if at.subsec_nanosecond() % 1000 == 0 {
        return Some((at.to_string(), true));
    }
    let short = Timestamp::from_microsecond(at.as_microsecond()).ok()?;
    Some((short.to_string(), false))
}

/// What a step says already of each of its events.
#[derive(Clone, Copy, Default)]
pub(super) struct StepFacts<'s> {
    /// When it happened.
    pub(super) time: Option<&'s str>,
    /// The model.
    pub(super) model: Option<&'s str>,
    /// The call to the model.
    pub(super) call: Option<&'s str>,
}

/// Appends the fields of an event to an object that is open.
pub(super) fn fields(
    event: &Event,
    said: StepFacts<'_>,
    gallery: &Gallery<'_>,
    object: &mut Object<'_>,
) {
    let notes: &Notes = &event.annotations;
    object.number("seq", event.seq);
    object.text("type", event.body.type_word());
    let is_said = said.time.is_some_and(|time| {
        let short = stamp(event);
        short.is_some_and(|(text, exact)| exact && text == time)
    });
    if !is_said && !notes.flags.undated {
        object.text("time", &event.timestamp.to_string());
    }
    object.maybe("native_id", notes.native_id.as_deref());
    object.maybe("parent_id", notes.parent_id.as_deref());
    object.maybe(
        "model",
        notes.model.as_deref().filter(|it| said.model != Some(it)),
    );
    let call = notes.model_call.as_deref();
    object.maybe("model_call", call.filter(|it| said.call != Some(it)));
    object.maybe("stop_reason", notes.stop_reason.as_deref());
    if let Some(duration) = notes.duration_ms {
        object.number("duration_ms", duration);
    }
    object.maybe("status", notes.status.map(quipu_model::Status::as_str));
    object.maybe(
        "child",
        notes.child.as_ref().map(quipu_model::RunId::as_str),
    );
    let parent = event.parent_run_id.as_ref();
    object.maybe("parent_run_id", parent.map(quipu_model::RunId::as_str));
    if event.place != quipu_model::Place::run() {
        object.text("path", &event.place.path);
        object.number("iteration", event.place.iteration());
    }
    fidelity(&event.body, object);
    for (name, set) in [
        ("opaque", notes.flags.opaque),
        ("synthetic", notes.flags.synthetic),
        ("superseded", notes.flags.superseded),
        ("undated", notes.flags.undated),
        ("dangling", notes.flags.dangling),
    ] {
        object.mark(name, set);
    }
    attachments(notes, gallery, object);
    if let Some(extra) = &notes.extra {
        object.raw("extra", extra.get().as_bytes());
    }
    if let Some(source) = &notes.source {
        let mut inside = Object::begin(object.key("source"));
        inside.text("file", &source.file);
        inside.number("offset", source.offset);
        inside.number("line", source.line);
        inside.end();
    }
}

fn attachments(notes: &Notes, gallery: &Gallery<'_>, object: &mut Object<'_>) {
    if notes.attachments.is_empty() {
        return;
    }
    let mut list = Vec::new();
    for attachment in &notes.attachments {
        comma(&mut list);
        let mut item = Object::begin(&mut list);
        item.text("mime", &attachment.mime);
        item.number("bytes", attachment.bytes);
        item.text("sha256", &attachment.sha256);
        item.maybe("path", gallery.path(&attachment.sha256));
        item.end();
    }
    object.around("attachments", *b"[]", &list);
}

/// Who saw it, where that is not the agent alone: one word, or one for each block.
fn fidelity(body: &Body, object: &mut Object<'_>) {
    let blocks = match body {
        Body::ToolCall(call) => return one(call.fidelity, object),
        Body::ToolResult(result) => return one(result.fidelity, object),
        Body::UserMessage(blocks)
        | Body::AssistantMessage(blocks)
        | Body::SystemMessage(blocks) => blocks.as_slice(),
        _ => &[],
    };
    let is_router = |block: &Block| block.fidelity == Fidelity::Router;
    if !blocks.iter().any(is_router) {
        return;
    }
    let mut list = Vec::new();
    for block in blocks {
        comma(&mut list);
        super::json::string(block.fidelity.as_str(), &mut list);
    }
    object.around("fidelity", *b"[]", &list);
}

fn one(fidelity: Fidelity, object: &mut Object<'_>) {
    if fidelity == Fidelity::Router {
        object.text("fidelity", fidelity.as_str());
    }
}
