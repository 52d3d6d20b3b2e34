//! Events of runs that Quipu recorded, as the events of Flow Studio.

use std::fmt::Write as _;

use quipu_flow::engine::RecordedEnd;
use quipu_model::{Body, Event, Json, Place, Step, StepEnd};
use serde_json::{Value, json};

use super::record::{Id, Record};

/// The flow of a run that does not say what its workflow is called.
const NAMELESS: &str = "workflow";

/// What has to be known of the events before.
#[derive(Debug)]
pub(super) struct Own {
    flow: String,
}

impl Default for Own {
    fn default() -> Self {
        let flow = NAMELESS.to_owned();
        Self { flow }
    }
}

impl Own {
    /// The event on a line.
    pub(super) fn take(&mut self, text: &str) -> Option<Record> {
        let (event, _) = quipu_exchange::decode_text(text).ok()?;
        if let Body::RunStarted(Some(step)) = &event.body
            && !step.name.is_empty()
        {
            self.flow.clone_from(&step.name);
        }
        let (kind, payload) = told(&event);
        let is_run = event.place.path.is_empty();
        let agent = event.annotations.subagent_id.as_ref();
        Some(Record {
            id: Id::default(),
            seq: Some(event.seq),
            event_id: None,
            run_id: event.run_id.as_str().to_owned(),
            at: Some(event.timestamp),
            ts: None,
            kind,
            flow: Some(self.flow.clone()),
            step: (!is_run).then(|| step_id(&event.place)),
            agent: agent.map(ToString::to_string),
            payload,
        })
    }
}

/// What a step is called, as in the names of its files: `build_lint`, `build_lint__i2`, `build_lint__i2__a3`.
fn step_id(place: &Place) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut id: String = place.path.chars().map(plain).collect();
    let passes = place
        .iterations
        .iter()
        .map(|pass| pass.saturating_add(1).to_string());
    let passes: Vec<String> = passes.collect();
    // Writing to a text does not fail.
    if !passes.is_empty() {
        _ = write!(id, "__i{}", passes.join("_"));
    }
    if place.attempt > 1 {
        _ = write!(id, "__a{}", place.attempt);
    }
    id
}

fn value(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or_default()
}

fn begun(step: Option<&Step>) -> Value {
    json!({
        "name": step.map(|step| &step.name),
        "step_kind": step.map(|step| step.kind.as_str()),
    })
}

/// How a run of ours ended whose process was killed, as the execution after that says.
pub(super) const INTERRUPTED: &str = "interrupted";

/// How a run of ours ended, in the words of Flow Studio. One that is paused or was interrupted is not over.
pub(super) fn word(end: &RecordedEnd) -> &'static str {
    match end.status.as_str() {
        "cancelled" => "canceled",
        "paused" => "paused",
        INTERRUPTED => INTERRUPTED,
        "failed" => "failed",
        _ if end.error.is_some() => "failed",
        _ => "succeeded",
    }
}

/// The end of a run: its status is that of the run, which need not have failed where it says an error.
fn run_ended(end: Option<&StepEnd>, event: &Event) -> Value {
    let said = RecordedEnd::of(event).unwrap_or_default();
    with(ended(end, event), "status", word(&said))
}

fn ended(end: Option<&StepEnd>, event: &Event) -> Value {
    let error = end.and_then(|end| end.error.as_deref());
    json!({
        "name": end.map(|end| &end.step.name),
        "step_kind": end.map(|end| end.step.kind.as_str()),
        "status": if error.is_some() { "failed" } else { "succeeded" },
        "error": error,
        "duration_ms": event.annotations.duration_ms,
        "result": value(end.and_then(|end| end.result.as_ref())),
    })
}

/// With a field more.
fn with(mut payload: Value, name: &str, more: impl Into<Value>) -> Value {
    if let Value::Object(fields) = &mut payload {
        fields.insert(name.to_owned(), more.into());
    }
    payload
}

fn message(event: &Event, role: &str) -> Value {
    let texts: Vec<&str> = event.body.texts().collect();
    json!({ "role": role, "message": texts.join("\n") })
}

/// The kind of an event, and what it says.
fn told(event: &Event) -> (String, Value) {
    let (kind, payload) = match &event.body {
        Body::RunStarted(step) => ("run_started", begun(step.as_ref())),
        Body::RunCompleted(end) => ("run_completed", run_ended(end.as_ref(), event)),
        Body::StepStarted(step) => ("step_start", begun(Some(step))),
        Body::StepCompleted(end) => ("step_end", ended(Some(end), event)),
        Body::CallStarted { child_run_id, step } => {
            let payload = with(begun(Some(step)), "child_run_id", child_run_id.as_str());
            ("step_start", payload)
        }
        Body::CallCompleted { child_run_id, end } => {
            let payload = with(
                ended(Some(end), event),
                "child_run_id",
                child_run_id.as_str(),
            );
            ("step_end", payload)
        }
        Body::UserMessage(_) => ("user_message", message(event, "user")),
        Body::AssistantMessage(_) => ("assistant_message", message(event, "assistant")),
        Body::SystemMessage(_) => ("log", message(event, "system")),
        Body::ToolCall(call) => (
            "tool_start",
            json!({
                "tool": call.name,
                "input": value(call.input.as_ref()),
                "tool_use_id": call.call_id.as_str(),
            }),
        ),
        Body::ToolResult(result) => (
            "tool_end",
            json!({
                "tool": result.name,
                "success": result.error.is_none(),
                "output": value(result.output.as_ref()),
                "error": result.error,
                "duration_ms": event.annotations.duration_ms,
                "tool_use_id": result.call_id.as_str(),
            }),
        ),
        Body::ModelCall(call) => (
            "model_call",
            json!({
                "provider": call.provider,
                "model": event.annotations.model,
                "error": call.error,
                "duration_ms": event.annotations.duration_ms,
            }),
        ),
        Body::Chunk(chunk) => (
            "chunk",
            json!({ "index": chunk.index, "text": chunk.text, "is_last": chunk.is_last }),
        ),
        Body::Harness(harness) => (
            "harness",
            json!({
                "category": harness.category,
                "name": harness.name,
                "attributes": value(harness.attributes.as_ref()),
            }),
        ),
        Body::Error(error) => (
            "error",
            json!({ "source": error.source, "code": error.code, "message": error.message }),
        ),
        Body::Note(note) => ("log", json!({ "message": note.text })),
        Body::Blob(_) => ("blob", Value::Object(serde_json::Map::new())),
        Body::Unknown(unknown) => {
            let kind = unknown.event_type.replace(['.', ':'], "_");
            return (kind, value(Some(&unknown.payload)));
        }
    };
    (kind.to_owned(), payload)
}
