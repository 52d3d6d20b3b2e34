//! What `cursor-agent -p --output-format stream-json` prints.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status, Usage};
use serde::{Deserialize, Serialize};

use super::normalize::{answered, asked};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::Common;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, time};

/// Reads the stream.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Stream {
    session: Session,
    model: Option<String>,
    /// Reasoning that has not ended.
    thinking: String,
    /// A message of which only pieces were there so far.
    pieces: String,
}

/// Every field of a line.
const FIELDS: &[&str] = &[
    "type",
    "subtype",
    "session_id",
    "timestamp_ms",
    "model_call_id",
    "message",
    "call_id",
    "tool_call",
    "text",
    "apiKeySource",
    "cwd",
    "model",
    "permissionMode",
    "duration_ms",
    "duration_api_ms",
    "is_error",
    "result",
    "request_id",
    "usage",
];

impl Stream {
    /// Hands over a message of which the whole did not come.
    fn flush(&mut self, out: &mut Out<'_>) {
        if !self.pieces.is_empty() {
            let text = std::mem::take(&mut self.pieces);
            answered(Cow::Owned(text), |mut entry| {
                entry.model = self.model.as_deref().map(Cow::Borrowed);
                out.push(entry);
            });
        }
    }

    fn message(&mut self, record: Node<'_>, speaker: Speaker, out: &mut Out<'_>) {
        let content = record.path(&["message", "content"]);
        let Some(content) = content else {
            return;
        };
        let has = |key: &str| record.get(key).is_some_and(|n| !n.is_null());
        // With a time and without a call it is a piece; what has neither, or both, is whole.
        let is_piece = has("timestamp_ms") && !has("model_call_id");
        if speaker == Speaker::Assistant && is_piece {
            let text = content.items().filter_map(|block| block.text("text"));
            text.for_each(|text| self.pieces.push_str(&text));
            return out.skip(Dropped::StreamDelta);
        }
        self.pieces.clear();
        let common: Common<'_> = Common {
            at: time::field(record, "timestamp_ms"),
            call: record.text("model_call_id"),
            model: self
                .model
                .as_deref()
                .filter(|_| speaker == Speaker::Assistant)
                .map(Cow::Borrowed),
            ..Common::default()
        };
        let mut nothing = true;
        for block in content.items() {
            let entry = blocks::entry(block, speaker, ResultFacts::default(), out);
            match entry.as_ref().map(|entry| &entry.what) {
                Some(What::User(_)) => {
                    asked(block.text("text").unwrap_or_default(), |entry| {
                        common.put(entry, out);
                    });
                }
                Some(What::Assistant(text)) if text.is_empty() => continue,
                Some(What::Assistant(_)) => {
                    answered(block.text("text").unwrap_or_default(), |entry| {
                        common.put(entry, out);
                    });
                }
                Some(_) => {
                    if let Some(entry) = entry {
                        common.put(entry, out);
                    }
                }
                None => {
                    out.unknown_type("content", &block.text("type").unwrap_or_default());
                    common.put(Entry::keep(NoteKind::UnknownRecord, block), out);
                }
            }
            nothing = false;
        }
        if nothing {
            out.skip(Dropped::Empty);
        }
    }

    fn thinking(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if let Some(text) = record.text("text") {
            self.thinking.push_str(&text);
        }
        if !record
            .get("subtype")
            .is_some_and(|subtype| subtype.is("completed"))
        {
            return out.skip(Dropped::StreamDelta);
        }
        let text = std::mem::take(&mut self.thinking);
        out.push(Entry {
            at: time::field(record, "timestamp_ms"),
            model: self.model.as_deref().map(Cow::Borrowed),
            opaque: text.is_empty(),
            ..Entry::new(What::Reasoning(text.into()))
        });
    }

    fn result(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let count = |key: &str| record.path(&["usage", key]).and_then(|n| n.as_u64());
        let usage = Usage {
            input: count("inputTokens"),
            cache_read: count("cacheReadTokens"),
            cache_write: count("cacheWriteTokens"),
            cache_write_1h: None,
            output: count("outputTokens"),
            reasoning: count("reasoningTokens"),
        };
        let usage = (usage.total() > 0).then_some(usage);
        if let Some(usage) = &usage {
            let mut sum: Usage = self.session.vendor_usage.unwrap_or_default().into();
            sum.add(usage);
            self.session.vendor_usage = Some(sum.into());
        }
        let failed = record.get("is_error").and_then(|n| n.as_bool()) == Some(true);
        let kind = if failed {
            NoteKind::Error
        } else {
            NoteKind::Session
        };
        out.push(Entry {
            usage,
            model: self.model.as_deref().map(Cow::Borrowed),
            duration_ms: record.get("duration_ms").and_then(|n| n.as_u64()),
            ..Entry::new(What::Note {
                kind,
                text: record.get("result").and_then(Text::of).filter(|_| failed),
                raw: Some(record.into()),
            })
        });
    }
}

/// A tool call: the only field that is named after the tool, `shellToolCall`.
fn tool(call: Node<'_>) -> (Cow<'_, str>, Option<Node<'_>>) {
    for (key, value) in call.fields() {
        let key = key.to_text_lossy();
        if key == "function" {
            return (value.text("name").unwrap_or_default(), Some(value));
        }
        if let Some(name) = key.strip_suffix("ToolCall") {
            // A tool of a server is named by its arguments.
            let named = value
                .path(&["args", "toolName"])
                .and_then(|name| name.as_str());
            return (
                named.unwrap_or_else(|| Cow::Owned(name.to_owned())),
                Some(value),
            );
        }
    }
    (Cow::Borrowed(""), None)
}

fn tool_call(record: Node<'_>, model: Option<&str>, out: &mut Out<'_>) {
    let (name, value) = match record.get("tool_call") {
        Some(call) => tool(call),
        None => (Cow::Borrowed(""), None),
    };
    let id = record.text("call_id").unwrap_or_default();
    let at = time::field(record, "timestamp_ms");
    let mut attachments = Vec::new();
    match record.text("subtype").as_deref() {
        Some("started") => {
            let input = value.and_then(|value| value.get("args").or(value.get("arguments")));
            let input = input.map(|input| out.value(input, &mut attachments));
            out.push(Entry {
                at,
                model: model.map(Cow::Borrowed),
                model_call: record.text("model_call_id"),
                attachments,
                ..Entry::new(What::Call { name, id, input })
            });
        }
        Some("completed") => {
            let result = value
                .and_then(|value| value.get("result"))
                .filter(|r| !r.is_null());
            let output = result.map(|result| {
                let inner = result.get("success").unwrap_or(result);
                out.value(inner, &mut attachments)
            });
            let status = result.map_or(Status::Ok, outcome);
            let error = match status {
                Status::Ok => None,
                _ => Some(result.and_then(why).unwrap_or(Text::from("failed"))),
            };
            out.push(Entry {
                at,
                status: Some(status),
                attachments,
                ..Entry::new(What::Result {
                    name,
                    id,
                    output,
                    error,
                })
            });
        }
        other => {
            out.unknown_type("tool_call", other.unwrap_or_default());
            out.push(Entry::keep(NoteKind::UnknownRecord, record));
        }
    }
}

/// How a call ended, by the field that its result has.
fn outcome(result: Node<'_>) -> Status {
    let has = |keys: &[&str]| keys.iter().any(|key| result.get(key).is_some());
    if has(&["rejected", "permissionDenied"]) {
        Status::Denied
    } else if has(&["timeout"]) {
        Status::Timeout
    } else if has(&["error", "failure", "fileNotFound", "spawnError"]) {
        Status::Error
    } else {
        let exit = result
            .path(&["success", "exitCode"])
            .and_then(|n| n.as_i64());
        match exit {
            Some(code) if code != 0 => Status::Error,
            _ => Status::Ok,
        }
    }
}

/// Why a call failed.
fn why(result: Node<'_>) -> Option<Text<'_>> {
    let (_, inner) = result.fields().next()?;
    if let Some(text) = Text::of(inner) {
        return Some(text);
    }
    ["error", "errorMessage", "message", "reason", "stderr"]
        .iter()
        .filter_map(|key| inner.get(key).and_then(Text::of))
        .find(|text| !text.is_empty())
}

impl Reader for Stream {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("stream", record, FIELDS);
        learn(&mut self.session.id, || record.text("session_id"));
        let kind = record.text("type").unwrap_or_default();
        if !matches!(&*kind, "assistant" | "thinking") {
            self.flush(out);
        }
        match &*kind {
            "system" => {
                learn(&mut self.session.cwd, || record.text("cwd"));
                learn(&mut self.model, || record.text("model"));
                out.push(Entry::keep(NoteKind::Session, record));
            }
            "user" => self.message(record, Speaker::User, out),
            "assistant" => self.message(record, Speaker::Assistant, out),
            "thinking" => self.thinking(record, out),
            "tool_call" => tool_call(record, self.model.as_deref(), out),
            "result" => self.result(record, out),
            other => out.unknown_type("stream", other),
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) {
        if !self.thinking.is_empty() {
            let text = std::mem::take(&mut self.thinking);
            out.push(Entry::new(What::Reasoning(text.into())));
        }
        self.flush(out);
    }

    crate::state::keeps_session!();
}
