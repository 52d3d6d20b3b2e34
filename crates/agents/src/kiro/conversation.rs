//! What a conversation of the database, or an execution in the editor, means.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{CHAT_FIELDS, CONVERSATION_FIELDS, TURN_FIELDS};
use crate::session::learn;
use crate::{Entry, Out, Reader, Session, Text, Value, What, blocks, time};

/// Reads a conversation, whole or turn by turn, or an execution.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Conversation {
    session: Session,
    model: Option<String>,
}

impl Conversation {
    /// All of a conversation but its turns.
    fn facts(&mut self, conversation: Node<'_>, out: &mut Out<'_>) {
        out.check("conversation", conversation, CONVERSATION_FIELDS);
        self.learn(conversation);
        out.push(Entry::new(What::Note {
            kind: NoteKind::Session,
            text: None,
            raw: Some(blocks::without(
                conversation,
                &["history", "transcript", "tools"],
            )),
        }));
    }

    fn learn(&mut self, conversation: Node<'_>) {
        learn(&mut self.session.id, || {
            conversation.text("conversation_id")
        });
        learn(&mut self.model, || {
            conversation
                .path(&["model_info", "model_id"])
                .or(conversation.get("model"))
                .and_then(|model| model.as_str())
        });
    }

    /// What the database says of a conversation.
    fn row(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        self.learn(row);
        learn(&mut self.session.cwd, || row.text("key"));
        let began = time::field(row, "created_at");
        let session = &mut self.session;
        session.started_at = session.started_at.or(began.map(Timestamp::as_millisecond));
        out.push(Entry::keep(NoteKind::Session, row));
    }

    /// What was put to the model, and what it said.
    fn turn<'a>(&mut self, turn: Node<'a>, out: &mut Out<'_>) {
        out.check("turn", turn, TURN_FIELDS);
        let user = turn.get("user");
        let at = user.and_then(|user| time::field(user, "timestamp"));
        learn(&mut self.session.cwd, || {
            user?
                .path(&["env_context", "env_state", "current_working_directory"])?
                .as_str()
        });
        if let Some(content) = user.and_then(|user| user.get("content")) {
            told(content, at, out);
        }
        let images = user.and_then(|user| user.get("images"));
        for image in images.into_iter().flat_map(Node::items) {
            let entry = blocks::attachment(image, out);
            out.push(Entry { at, ..entry });
        }
        let ended = turn
            .path(&["request_metadata", "stream_end_timestamp_ms"])
            .and_then(time::of);
        let request = turn.get("request_metadata");
        let model = request
            .and_then(|request| request.text("model_id"))
            .map(Cow::into_owned)
            .or_else(|| self.model.clone());
        let Some(reply) = turn.get("assistant") else {
            return;
        };
        let (kind, reply) = match reply.fields().next() {
            Some((kind, reply)) => (kind.to_text_lossy(), reply),
            None => return,
        };
        if !matches!(&*kind, "Response" | "ToolUse") {
            out.unknown_type("assistant", &kind);
        }
        let id = reply.text("message_id");
        let put = |entry: Entry<'a>, out: &mut Out<'_>| {
            out.push(Entry {
                at: ended.or(at),
                native_id: id.clone(),
                model: model.clone().map(Cow::Owned),
                model_call: id.clone(),
                ..entry
            });
        };
        let text = reply.get("content").and_then(Text::of);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            put(Entry::new(What::Assistant(text)), out);
        }
        for call in reply.get("tool_uses").into_iter().flat_map(Node::items) {
            let mut attachments = Vec::new();
            let input = call
                .get("args")
                .map(|input| out.value(input, &mut attachments));
            let what = What::Call {
                name: call.text("name").unwrap_or_default(),
                id: call.text("id").unwrap_or_default(),
                input,
            };
            put(
                Entry {
                    attachments,
                    ..Entry::new(what)
                },
                out,
            );
        }
    }

    /// An execution in the editor.
    fn execution(&mut self, document: Node<'_>, out: &mut Out<'_>) {
        out.check("execution", document, CHAT_FIELDS);
        let meta = document.get("metadata");
        learn(&mut self.session.id, || document.text("executionId"));
        learn(&mut self.model, || meta?.text("modelId"));
        let began = meta.and_then(|meta| time::field(meta, "startTime"));
        self.session.started_at = began.map(Timestamp::as_millisecond);
        out.push(Entry {
            at: began,
            native_id: document.text("executionId"),
            ..Entry::new(What::Note {
                kind: NoteKind::Session,
                text: None,
                raw: Some(blocks::without(document, &["chat", "context"])),
            })
        });
    }

    fn chat(&self, message: Node<'_>, is_first: bool, out: &mut Out<'_>) {
        let text = message.get("content").and_then(Text::of);
        let Some(text) = text else {
            return;
        };
        let role = message.text("role").unwrap_or_default();
        let entry = match &*role {
            // The editor begins with what it tells the model to be.
            "human"
                if is_first || text.starts_with("<identity>") || text.starts_with("# System") =>
            {
                injected(text)
            }
            "human" => Entry::new(What::User(text)),
            "bot" => Entry {
                model: self.model.clone().map(Cow::Owned),
                ..Entry::new(What::Assistant(text))
            },
            // What a tool gave back; nothing says which.
            "tool" => injected(text),
            _ => {
                out.unknown_type("chat", &role);
                blocks::kept(NoteKind::UnknownRecord, message, out)
            }
        };
        out.push(entry);
    }
}

fn injected(text: Text<'_>) -> Entry<'_> {
    Entry {
        synthetic: true,
        ..Entry::new(What::System(text))
    }
}

/// What was put to the model: a prompt, or what tools gave back.
fn told<'a>(content: Node<'a>, at: Option<Timestamp>, out: &mut Out<'_>) {
    let put = |entry: Entry<'a>, out: &mut Out<'_>| out.push(Entry { at, ..entry });
    for (kind, value) in content.fields() {
        let prompt = value.get("prompt").and_then(Text::of);
        match (&*kind.to_text_lossy(), prompt) {
            ("Prompt", Some(text)) => put(Entry::new(What::User(text)), out),
            (kind @ ("ToolUseResults" | "CancelledToolUses"), prompt) => {
                let is_cancelled = kind == "CancelledToolUses";
                let results = value.get("tool_use_results").into_iter();
                for result in results.flat_map(Node::items) {
                    let entry = result_of(result, is_cancelled, out);
                    put(entry, out);
                }
                if let Some(text) = prompt {
                    put(Entry::new(What::User(text)), out);
                }
            }
            (kind, _) => {
                out.unknown_type("user", kind);
                let entry = blocks::kept(NoteKind::UnknownRecord, value, out);
                put(entry, out);
            }
        }
    }
}

fn result_of<'a>(result: Node<'a>, is_cancelled: bool, out: &mut Out<'_>) -> Entry<'a> {
    let status = match result.text("status").as_deref() {
        _ if is_cancelled => Some(Status::Denied),
        Some("Error" | "error") => Some(Status::Error),
        _ => None,
    };
    let content = result.get("content");
    let only = content.and_then(|content| {
        let mut items = content.items();
        let text = Text::of(items.next()?.get("Text")?);
        text.filter(|_| items.next().is_none())
    });
    let mut attachments = Vec::new();
    let (output, error) = match (only, status) {
        (Some(text), Some(_)) => (None, Some(text)),
        (Some(text), None) => (Some(Value::Text(text)), None),
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
            id: result.text("tool_use_id").unwrap_or_default(),
            output,
            error,
        })
    }
}

impl Reader for Conversation {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            let Some(row) = record.get("row") else {
                return;
            };
            return match record.text("table").as_deref() {
                Some("kiro_conversation") => self.row(row, out),
                Some("kiro_turn") => self.turn(row, out),
                Some("kiro_value") => out.push(Entry::keep(NoteKind::MalformedLine, row)),
                other => out.unknown_type("table", other.unwrap_or_default()),
            };
        }
        if let Some(chat) = record.get("chat") {
            out.within(record, |out, record| self.execution(record, out));
            for (index, message) in chat.items().enumerate() {
                out.within(message, |out, message| self.chat(message, index == 0, out));
            }
            return;
        }
        out.within(record, |out, record| self.facts(record, out));
        for turn in record.get("history").into_iter().flat_map(Node::items) {
            out.within(turn, |out, turn| self.turn(turn, out));
        }
    }

    crate::state::keeps_session!();
}
