//! What a line of a session means.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{DATA_FIELDS, EVENT_FIELDS, FIELDS};
use crate::common::Common;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, blocks, time};

/// Reads a session of either form.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Lines {
    session: Session,
}

impl Lines {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        // Lines do not name the session. Its file does, or its directory.
        let stem = origin.stem();
        let id = match stem {
            Some("messages" | "events" | "session") => origin.above().next(),
            stem => stem,
        };
        Self {
            session: Session {
                id: id.map(str::to_owned),
                ..Session::default()
            },
        }
    }
}

/// A line of the older form.
fn message(kind: &str, record: Node<'_>, out: &mut Out<'_>) {
    out.check("line", record, FIELDS);
    let Some(data) = record.get("data") else {
        return;
    };
    out.check("data", data, DATA_FIELDS);
    let stamp = data.path(&["meta", "timestamp"]).or(data.get("timestamp"));
    let common: Common<'_> = Common {
        at: stamp.and_then(time::of),
        id: data.text("message_id").or(data.text("messageId")),
        model: data.text("model_id"),
        ..Common::default()
    };
    // What came back from tools may carry the id of the message it answers.
    if let Some(id) = &common.id
        && !out.unit(&format!("{kind} {id}"))
    {
        return;
    }
    let note = match kind {
        "Prompt" | "AssistantMessage" | "ToolResults" => {
            let content = data.get("content");
            let mut is_empty = true;
            for block in content.into_iter().flat_map(Node::items) {
                is_empty = false;
                let entry = self::block(kind, block, out);
                common.put(entry, out);
            }
            if let Some(text) = content.and_then(Text::of) {
                common.put(Entry::new(said(kind, text)), out);
            } else if is_empty && content.is_some() {
                out.skip(Dropped::Empty);
            }
            return;
        }
        "Compaction" | "Summary" => NoteKind::Compaction,
        "Clear" | "ResetTo" | "Rewind" => NoteKind::Rewind,
        "CancelledPrompt" => NoteKind::Error,
        _ => {
            out.unknown_type("", kind);
            NoteKind::UnknownRecord
        }
    };
    let entry = Entry::new(What::Note {
        kind: note,
        text: data.get("summary").and_then(Text::of),
        raw: Some(blocks::without(record, &[])),
    });
    common.put(entry, out);
}

fn said<'a>(kind: &str, text: Text<'a>) -> What<'a> {
    if kind == "AssistantMessage" {
        What::Assistant(text)
    } else {
        What::User(text)
    }
}

/// A block of a message of the older form.
fn block<'a>(kind: &str, block: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let what = block.text("kind").unwrap_or_default();
    let data = block.get("data");
    let field = |key: &str| data.and_then(|data| data.get(key));
    let text = |key: &str| data.and_then(|data| data.text(key)).unwrap_or_default();
    let mut attachments = Vec::new();
    match &*what {
        "text" => {
            let text = data.and_then(Text::of).unwrap_or(Text::EMPTY);
            Entry::new(said(kind, text))
        }
        "thinking" | "reasoning" => {
            let text = data
                .and_then(|data| Text::of(data).or_else(|| Text::of(data.get("text")?)))
                .unwrap_or(Text::EMPTY);
            Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            }
        }
        "toolUse" => {
            let input = field("input").map(|input| out.value(input, &mut attachments));
            Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: text("name"),
                    id: text("toolUseId"),
                    input,
                })
            }
        }
        "toolResult" => {
            let status = match &*text("status") {
                "error" => Some(Status::Error),
                "denied" | "rejected" | "cancelled" => Some(Status::Denied),
                _ => None,
            };
            let content = field("content");
            let only = content.and_then(only_text);
            let (output, error) = match (only, status) {
                (Some(text), Some(_)) => (None, Some(text)),
                (Some(text), None) => (Some(crate::Value::Text(text)), None),
                (None, status) => (
                    content.map(|content| out.value(content, &mut attachments)),
                    status.map(|_| Text::from("failed")),
                ),
            };
            Entry {
                status,
                attachments,
                ..Entry::new(What::Result {
                    name: Cow::Borrowed(""),
                    id: text("toolUseId"),
                    output,
                    error,
                })
            }
        }
        "image" | "document" => match data {
            Some(data) => blocks::attachment(data, out),
            None => Entry::keep(NoteKind::Attachment, block),
        },
        _ => {
            out.unknown_type("content", &what);
            blocks::kept(NoteKind::UnknownRecord, block, out)
        }
    }
}

/// The text of a result that is nothing else.
fn only_text(content: Node<'_>) -> Option<Text<'_>> {
    if content.kind() == Kind::String {
        return Text::of(content);
    }
    let mut items = content.items();
    match (items.next(), items.next()) {
        (Some(one), None) if one.get("kind").is_some_and(|kind| kind.is("text")) => {
            Text::of(one.get("data")?)
        }
        _ => None,
    }
}

/// A line of the newer form.
fn event<'a>(record: Node<'a>, payload: Node<'a>, out: &mut Out<'_>) {
    out.check("line", record, EVENT_FIELDS);
    let common: Common<'_> = Common {
        at: time::field(record, "timestamp"),
        id: record.text("id"),
        model: payload.text("reasoningModelId").or(payload.text("modelId")),
        ..Common::default()
    };
    if let Some(id) = &common.id
        && !out.unit(id)
    {
        return;
    }
    let kind = payload.text("type").unwrap_or_default();
    let text = payload.get("content").and_then(Text::of);
    let id = payload.text("toolCallId").unwrap_or_default();
    let mut attachments = Vec::new();
    let entry = match (&*kind, text) {
        ("user", Some(text)) => Entry::new(What::User(text)),
        ("assistant", Some(text)) => Entry::new(What::Assistant(text)),
        ("reasoning" | "thinking", text) => {
            let text = text.unwrap_or(Text::EMPTY);
            Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            }
        }
        ("tool_call", _) => {
            let input = payload
                .get("args")
                .map(|input| out.value(input, &mut attachments));
            Entry {
                attachments,
                ..Entry::new(What::Call {
                    name: payload.text("toolName").unwrap_or_default(),
                    id,
                    input,
                })
            }
        }
        ("tool_result", text) => {
            let failed = payload.get("isError").and_then(|n| n.as_bool()) == Some(true)
                || payload.get("success").and_then(|n| n.as_bool()) == Some(false);
            let (output, error) = match text {
                Some(text) if failed => (None, Some(text)),
                _ => (
                    payload
                        .get("content")
                        .map(|content| out.value(content, &mut attachments)),
                    failed.then(|| Text::from("failed")),
                ),
            };
            Entry {
                attachments,
                ..Entry::new(What::Result {
                    name: payload.text("toolName").unwrap_or_default(),
                    id,
                    output,
                    error,
                })
            }
        }
        _ => {
            out.unknown_type("", &kind);
            blocks::kept(NoteKind::UnknownRecord, record, out)
        }
    };
    common.put(entry, out);
}

impl Reader for Lines {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        learn(&mut self.session.id, || record.text("sessionId"));
        if let Some(payload) = record.get("payload") {
            return event(record, payload, out);
        }
        let kind = record.text("kind").unwrap_or_default();
        message(&kind, record, out);
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, _out: &mut Out<'_>) {
        let session = &mut self.session;
        update(&mut session.id, document.text("session_id"));
        update(&mut session.title, document.text("title"));
        learn(&mut session.cwd, || {
            document.text("cwd").or_else(|| {
                let mut paths = document.get("workspacePaths")?.items();
                paths.next()?.as_str()
            })
        });
        learn(&mut session.parent, || document.text("parent_session_id"));
        let began = time::field(document, "created_at").or(time::field(document, "createdAt"));
        session.started_at = session.started_at.or(began.map(Timestamp::as_millisecond));
    }

    crate::state::keeps_session!();
}
