//! What is known of an event beside what it says, as attributes of ours: `quipu.…`.

use quipu_model::{Block, Body, Event, Fidelity, Flags, Place};

use super::facts::Facts;
use super::json::Attrs;

/// What a span or its convention says already, so that it is not said twice.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpanFacts<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) model_call: Option<&'a str>,
    pub(super) stop_reason: Option<&'a str>,
}

/// Writes what is known of an event.
pub(super) fn write(event: &Event, facts: &Facts, said: SpanFacts<'_>, attrs: &mut Attrs) {
    let notes = &event.annotations;
    attrs.count("quipu.seq", event.seq);
    attrs.text_if("quipu.native_id", notes.native_id.as_deref());
    attrs.text_if("quipu.parent_id", notes.parent_id.as_deref());
    attrs.text_if("quipu.subagent_id", notes.subagent_id.as_deref());
    if notes.model.as_deref() != said.model {
        attrs.text_if("quipu.model", notes.model.as_deref());
    }
    if notes.model_call.as_deref() != said.model_call {
        attrs.text_if("quipu.model_call", notes.model_call.as_deref());
    }
    if notes.stop_reason.as_deref() != said.stop_reason {
        attrs.text_if("quipu.stop_reason", notes.stop_reason.as_deref());
    }
    attrs.count_if("quipu.duration_ms", notes.duration_ms);
    attrs.text_if(
        "quipu.status",
        notes.status.map(quipu_model::Status::as_str),
    );
    let child = notes.child.as_ref();
    attrs.text_if("quipu.child_run_id", child.map(quipu_model::RunId::as_str));
    if event.parent_run_id != facts.parent_run {
        let parent = event.parent_run_id.as_ref();
        attrs.text_if(
            "quipu.parent_run_id",
            parent.map(quipu_model::RunId::as_str),
        );
    }
    place(&event.place, attrs);
    if is_of_router(&event.body) {
        attrs.text("quipu.fidelity", Fidelity::Router.as_str());
    }
    if let Some(source) = &notes.source {
        if facts.log_path.as_deref() != Some(source.file.as_str()) {
            attrs.text("quipu.source.file", &source.file);
        }
        attrs.count("quipu.source.line", source.line);
        attrs.count("quipu.source.offset", source.offset);
    }
    flags(notes.flags, attrs);
    if !notes.attachments.is_empty() {
        let told: Vec<String> = notes
            .attachments
            .iter()
            .map(|it| format!("{};bytes={};sha256={}", it.mime, it.bytes, it.sha256))
            .collect();
        attrs.texts("quipu.attachments", told.iter().map(String::as_str));
    }
}

/// Writes where in a workflow something happened.
fn place(place: &Place, attrs: &mut Attrs) {
    if !place.path.is_empty() {
        attrs.text("quipu.path", &place.path);
    }
    if place.iteration() > 0 {
        attrs.count("quipu.iteration", place.iteration());
    }
}

fn flags(flags: Flags, attrs: &mut Attrs) {
    let all = [
        (flags.opaque, "opaque"),
        (flags.synthetic, "synthetic"),
        (flags.superseded, "superseded"),
        (flags.undated, "undated"),
        (flags.dangling, "dangling"),
    ];
    if all.iter().any(|(set, _)| *set) {
        let set = all.iter().filter(|(set, _)| *set);
        attrs.texts("quipu.flags", set.map(|(_, word)| *word));
    }
}

fn is_of_router(body: &Body) -> bool {
    let seen = |blocks: &[Block]| blocks.iter().any(|it| it.fidelity == Fidelity::Router);
    match body {
        Body::UserMessage(blocks)
        | Body::AssistantMessage(blocks)
        | Body::SystemMessage(blocks) => seen(blocks),
        Body::ToolCall(call) => call.fidelity == Fidelity::Router,
        Body::ToolResult(result) => result.fidelity == Fidelity::Router,
        _ => false,
    }
}
