//! Muse: what its runtime records, one event a line.
//!
//! What the agent does are tasks, each told of at every step. A tool's call is told of by its name and id;
//! what it was given is not in the log.

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, capture, time};

/// Reads the events of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Muse {
    session: Session,
    model: Option<String>,
    /// The run whose prompt was given.
    asked: Option<String>,
    /// What the model is saying.
    saying: String,
    /// What it said last, to know it again at the end of the run.
    said: u64,
    /// The kinds of the tasks that have not ended.
    tasks: BTreeMap<String, String>,
}

impl Muse {
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("record", record, wire::MUSE);
        let stream = record.path(&["stream", "id"]);
        // Records are numbered anew in every stream.
        if let Some(id) = capture::id(record, "id") {
            let of = stream.and_then(|stream| stream.as_str());
            if !out.unit(&format!("{} {id}", of.unwrap_or_default())) {
                return;
            }
        }
        learn(&mut self.session.id, || stream?.as_str());
        let Some(payload) = record.get("payload") else {
            return;
        };
        let kind = record.text("payload_type").unwrap_or_default();
        let nothing = match &*kind {
            "turn.input.user" | "run.lifecycle.started" => self.asked(record, payload, out),
            "run.output.delta" => {
                self.saying
                    .push_str(&payload.text("text").unwrap_or_default());
                Some(Dropped::StreamDelta)
            }
            "run.model.configured" => {
                update(&mut self.model, payload.text("model_id"));
                put(Entry::keep(NoteKind::ModelChange, record), record, out);
                None
            }
            "tool.result" => {
                self.flush(record, out);
                put(result(payload), record, out);
                None
            }
            "session.run.linked" | "task.stream.linked" | "runtime.command.accepted" => {
                Some(Dropped::KeepAlive)
            }
            _ if kind.starts_with("task.lifecycle.") => self.task(record, payload, out),
            _ if kind.starts_with("run.terminal.") => self.ended(record, payload, out),
            _ => {
                out.unknown_type("payload", &kind);
                None
            }
        };
        capture::skip(nothing, out);
    }

    /// A prompt, which is told of when it comes and when its run begins.
    fn asked(&mut self, record: Node<'_>, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let run = payload.text("command_id").unwrap_or_default();
        if self.asked.as_deref() == Some(&*run) {
            return Some(Dropped::RepeatedChannel);
        }
        self.asked = Some(run.into_owned());
        let prompt = payload.get("prompt").and_then(Text::of)?;
        put(Entry::new(What::User(prompt)), record, out);
        None
    }

    /// Gives what the model said.
    fn flush(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let text = std::mem::take(&mut self.saying);
        if text.is_empty() {
            return;
        }
        self.said = crate::hash(text.as_bytes());
        let entry = Entry {
            model: self.model.clone().map(Cow::Owned),
            ..Entry::new(What::Assistant(Text::from(text)))
        };
        put(entry, record, out);
    }

    fn task(&mut self, record: Node<'_>, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        let event = payload.get("event")?;
        let id = event.text("task_id").unwrap_or_default();
        let step = event.text("kind").unwrap_or_default();
        let kind = self.tasks.get(&*id).cloned().unwrap_or_default();
        match &*step {
            "proposed" => {
                let kind = event.text("task_kind").unwrap_or_default();
                self.tasks.insert(id.into_owned(), kind.into_owned());
                Some(Dropped::KeepAlive)
            }
            "scheduled" => {
                let key = event.text("idempotency_key").unwrap_or_default();
                let (Some(call), Some(tool)) =
                    (key.strip_prefix("tool:"), kind.strip_prefix("tool."))
                else {
                    return Some(Dropped::KeepAlive);
                };
                self.flush(record, out);
                let entry = Entry {
                    model: self.model.clone().map(Cow::Owned),
                    ..Entry::new(What::Call {
                        name: Cow::Borrowed(tool),
                        id: Cow::Borrowed(call),
                        input: None,
                    })
                };
                put(entry, record, out);
                None
            }
            "accepted" | "started" | "side_effect_intent" => Some(Dropped::KeepAlive),
            // What a tool writes while it runs is in its result.
            "output" if kind.starts_with("tool.") => Some(Dropped::StreamDelta),
            "completed" => {
                self.tasks.remove(&*id);
                if kind.starts_with("model.") {
                    self.flush(record, out);
                }
                Some(Dropped::KeepAlive)
            }
            "failed" | "rejected" | "cancelled" => {
                self.tasks.remove(&*id);
                // A tool that fails says so in its result.
                if kind.starts_with("tool.") {
                    return Some(Dropped::RepeatedChannel);
                }
                let note = if kind.starts_with("model.") && step == "failed" {
                    NoteKind::Error
                } else {
                    NoteKind::Progress
                };
                self.flush(record, out);
                let entry = Entry::new(What::Note {
                    kind: note,
                    text: event.get("reason").and_then(Text::of),
                    raw: Some(record.into()),
                });
                put(entry, record, out);
                None
            }
            "status" | "output" => {
                let details = event.path(&["details", "facets"]);
                let call = details.into_iter().flat_map(Node::items).find_map(|facet| {
                    let detail = facet.get("detail")?;
                    capture::id(detail, "response_id")
                });
                let entry = Entry {
                    model_call: call,
                    ..Entry::new(What::Note {
                        kind: NoteKind::Progress,
                        text: event.get("message").and_then(Text::of),
                        raw: Some(record.into()),
                    })
                };
                put(entry, record, out);
                None
            }
            _ => {
                out.unknown_type("task", &step);
                None
            }
        }
    }

    /// The end of a run, which repeats what was said last.
    fn ended(&mut self, record: Node<'_>, payload: Node<'_>, out: &mut Out<'_>) -> Option<Dropped> {
        self.flush(record, out);
        let text = payload.text("text").unwrap_or_default();
        if !text.is_empty() && crate::hash(text.as_bytes()) != self.said {
            let entry = Entry {
                model: self.model.clone().map(Cow::Owned),
                ..Entry::new(What::Assistant(Text::from(text)))
            };
            put(entry, record, out);
        }
        let how = payload.text("terminal").unwrap_or_default();
        let kind = match &*how {
            "completed" => NoteKind::Turn,
            _ => NoteKind::Error,
        };
        let why = payload.get("reason").and_then(Text::of);
        put(
            Entry::new(What::Note {
                kind,
                text: why.or(Some(Text::from(how))),
                raw: None,
            }),
            record,
            out,
        );
        None
    }
}

fn put(mut entry: Entry<'_>, record: Node<'_>, out: &mut Out<'_>) {
    entry.at = time::field(record, "recorded_at");
    entry.native_id = record.text("id").map(|id| Cow::Owned(id.into_owned()));
    out.push(entry);
}

fn result(payload: Node<'_>) -> Entry<'_> {
    let facts = payload.get("correlation_facts");
    let fact = |key: &str| facts.and_then(|facts| facts.text(key));
    let text = payload.get("text").and_then(Text::of);
    let outcome = fact("outcome").unwrap_or_default();
    let status = match &*outcome {
        "success" | "" => Status::Ok,
        "denied" | "rejected" => Status::Denied,
        "timeout" | "timed_out" => Status::Timeout,
        _ => Status::Error,
    };
    let (output, error) = match status {
        Status::Ok => (text.map(Value::Text), None),
        _ => (None, text.or(Some(Text::from(outcome)))),
    };
    Entry {
        status: Some(status),
        ..Entry::new(What::Result {
            name: fact("tool_name").unwrap_or_default(),
            id: payload.text("call_id").unwrap_or_default(),
            output,
            error,
        })
    }
}

impl Reader for Muse {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        capture::records(record, out, |record, out| self.line(record, out));
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        let text = std::mem::take(&mut self.saying);
        if !text.is_empty() {
            out.push(Entry {
                model: self.model.clone().map(Cow::Owned),
                ..Entry::new(What::Assistant(Text::from(text)))
            });
        }
    }

    crate::state::keeps_session!();
}
