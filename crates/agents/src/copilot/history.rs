//! What the first versions of Copilot CLI kept: the messages as the model was given them.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::gemini::parts;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, capture, time};

/// Reads the document.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct History {
    session: Session,
}

fn message(out: &mut Out<'_>, message: Node<'_>) {
    let role = message.text("role").unwrap_or_default();
    let content = message.get("content").filter(|content| !content.is_null());
    match &*role {
        "user" | "assistant" | "system" | "developer" => {
            for item in content.into_iter().flat_map(parts::each) {
                let text = Text::of(item).or_else(|| item.get("text").and_then(Text::of));
                let entry = match (text, &*role) {
                    (Some(text), _) if text.is_empty() => continue,
                    (Some(text), "user") => Entry::new(What::User(text)),
                    (Some(text), "assistant") => Entry::new(What::Assistant(text)),
                    (Some(text), _) => Entry {
                        synthetic: true,
                        ..Entry::new(What::System(text))
                    },
                    (None, _) => crate::blocks::kept(NoteKind::Attachment, item, out),
                };
                out.push(entry);
            }
        }
        "tool" => {
            let mut attachments = Vec::new();
            let output = content.map(|content| parts::value(content, &mut attachments, out));
            out.push(Entry {
                attachments,
                ..Entry::new(What::Result {
                    name: Cow::Borrowed(""),
                    id: message.text("tool_call_id").unwrap_or_default(),
                    output,
                    error: None,
                })
            });
        }
        other => return out.unknown_type("chatMessages", other),
    }
    for call in message.get("tool_calls").into_iter().flat_map(Node::items) {
        let function = call.get("function").unwrap_or(call);
        let mut attachments = Vec::new();
        let input = function
            .get("arguments")
            .map(|input| match Text::of(input) {
                Some(text) => capture::arguments(text, out, &mut attachments),
                None => out.value(input, &mut attachments),
            });
        out.push(Entry {
            attachments,
            ..Entry::new(What::Call {
                name: function.text("name").unwrap_or_default(),
                id: call.text("id").unwrap_or_default(),
                input,
            })
        });
    }
    out.skip(Dropped::Empty);
}

impl Reader for History {
    fn record(&mut self, document: Node<'_>, out: &mut Out<'_>) {
        learn(&mut self.session.id, || document.text("sessionId"));
        let started = time::field(document, "startTime");
        self.session.started_at = started.map(Timestamp::as_millisecond);
        let messages = document
            .get("chatMessages")
            .filter(|m| m.kind() == Kind::List);
        for item in messages.into_iter().flat_map(Node::items) {
            out.within(item, message);
        }
        // The timeline tells the same for the eye.
        for item in document.get("timeline").into_iter().flat_map(Node::items) {
            out.within(item, |out, _| out.skip(Dropped::RepeatedChannel));
        }
    }

    crate::state::keeps_session!();
}
