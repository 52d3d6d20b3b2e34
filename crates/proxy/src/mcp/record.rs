//! What passes, in a run's transcript.

use std::sync::Arc;
use std::time::Duration;

use quipu_model::{
    Body, Draft, Fidelity, HarnessEvent, Json, Note, NoteKind, Place, Severity, ToolCall,
    ToolResult,
};
use quipu_record::{Error, Recorder};
use serde_json::{Value, json};

use super::{Call, Observer, Seen};

/// An observer that records calls and results as events of a run. Who makes the run, and says that it begins and ends,
/// is its caller.
///
/// A recorder that fails does not hold up the conversation: see [`error`](Self::error).
pub struct Recording {
    recorder: Arc<Recorder>,
    place: Place,
    error: Option<Error>,
    lost: u64,
}

impl Recording {
    /// Records into a run, at a place of it.
    pub fn new(recorder: Arc<Recorder>, place: Place) -> Self {
        Self {
            recorder,
            place,
            error: None,
            lost: 0,
        }
    }

    /// Why events could not be recorded: the first reason, and how many events.
    pub fn error(&self) -> Option<(&Error, u64)> {
        self.error.as_ref().map(|error| (error, self.lost))
    }

    fn record(&mut self, body: Body, took: Option<Duration>) {
        let mut draft = Draft::new(self.place.clone(), body);
        if let Some(took) = took {
            draft.annotations.duration_ms = u64::try_from(took.as_millis()).ok();
        }
        if let Err(error) = self.recorder.record(&draft) {
            self.lost += 1;
            self.error.get_or_insert(error);
        }
    }

    fn harness(&mut self, name: &str, severity: Severity, attributes: &Value) {
        let body = Body::Harness(HarnessEvent {
            category: "tool_lifecycle".to_owned(),
            name: name.to_owned(),
            severity: Some(severity),
            attributes: Json::of(attributes).ok(),
        });
        self.record(body, None);
    }
}

impl Observer for Recording {
    fn seen(&mut self, seen: &Seen<'_>) {
        match seen {
            Seen::Call(call) => self.record(
                Body::ToolCall(ToolCall {
                    name: call.name.clone(),
                    call_id: call.call_id.clone(),
                    input: call.input.as_deref().map(json_of),
                    fidelity: Fidelity::Router,
                }),
                None,
            ),
            Seen::Result {
                call,
                output,
                error,
                took,
            } => self.record(
                Body::ToolResult(ToolResult {
                    name: call.name.clone(),
                    call_id: call.call_id.clone(),
                    input: None,
                    output: Some(json_of(output)),
                    error: error.clone(),
                    fidelity: Fidelity::Router,
                }),
                Some(*took),
            ),
            Seen::Cancelled { call, reason } => {
                let attributes = about(call, json!({"reason": reason}));
                self.harness("cancelled", Severity::Warning, &attributes);
            }
            Seen::Unanswered(call) => {
                let attributes = about(call, json!({}));
                self.harness("unanswered", Severity::Warning, &attributes);
            }
            Seen::About {
                from,
                method,
                is_answer,
                message,
            } => {
                let what = if *is_answer { "answer to " } else { "" };
                let text = format!("MCP {}: {what}{method}", from.as_str());
                let note = Note {
                    kind: NoteKind::Context,
                    text: Some(text),
                    raw: Some(json_of(message)),
                };
                self.record(Body::Note(note), None);
            }
            Seen::Odd {
                from,
                why,
                bytes,
                start,
            } => {
                let attributes =
                    json!({"from": from.as_str(), "why": why, "bytes": bytes, "start": start});
                self.harness("odd_line", Severity::Warning, &attributes);
            }
            Seen::TooLong { from, bytes } => {
                let attributes = json!({"from": from.as_str(), "bytes": bytes});
                self.harness("line_too_long", Severity::Warning, &attributes);
            }
        }
    }
}

/// What was sent as JSON. What is nested too deep for that is kept as text.
fn json_of(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::string(text))
}

fn about(call: &Call, mut attributes: Value) -> Value {
    attributes["tool"] = call.name.clone().into();
    attributes["call_id"] = call.call_id.as_str().into();
    attributes
}
