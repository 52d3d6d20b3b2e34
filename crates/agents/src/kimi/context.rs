//! What a line of the context of Kimi CLI means: messages as the model is given them.

use std::borrow::Cow;

use quipu_model::NoteKind;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use super::discover::named;
use super::wire::{Side, part, parts};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, capture};

/// Reads the context.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Context {
    session: Session,
}

impl Context {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: named(origin).0,
                ..Session::default()
            },
        }
    }
}

fn contents(content: Option<Node<'_>>, side: Side, out: &mut Out<'_>) {
    for item in content.into_iter().flat_map(parts) {
        let entry = part(item, side, out).unwrap_or_else(|| {
            let kind = item.text("type").unwrap_or_default();
            out.unknown_type("part", &kind);
            Entry::keep(NoteKind::UnknownRecord, item)
        });
        if !entry.what.is_blank() {
            out.push(entry);
        }
    }
}

fn calls(message: Node<'_>, out: &mut Out<'_>) {
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
}

fn outcome(message: Node<'_>, out: &mut Out<'_>) {
    let mut attachments = Vec::new();
    let output = message.get("content").map(|content| {
        let mut each = parts(content);
        let one = each.next().filter(|_| each.next().is_none());
        let only = one.and_then(|one| Text::of(one).or_else(|| one.get("text").and_then(Text::of)));
        match only {
            Some(text) => Value::Text(text),
            None => out.value(content, &mut attachments),
        }
    });
    // Failures are told to the model in words.
    let failed = match &output {
        Some(Value::Text(text)) if text.starts_with("<system>ERROR") => Some(text.clone()),
        _ => None,
    };
    out.push(Entry {
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: message.text("tool_call_id").unwrap_or_default(),
            output: output.filter(|_| failed.is_none()),
            error: failed,
        })
    });
}

impl Reader for Context {
    fn record(&mut self, message: Node<'_>, out: &mut Out<'_>) {
        let role = message.text("role").unwrap_or_default();
        let content = message.get("content");
        match &*role {
            "user" => contents(content, Side::Prompt, out),
            "assistant" => {
                contents(content, Side::Model, out);
                calls(message, out);
            }
            "tool" => outcome(message, out),
            "system" | "_system_prompt" => contents(content, Side::Injected, out),
            // How full the context is, which is no usage of a call.
            "_usage" => out.skip(Dropped::RepeatedUsage),
            "_checkpoint" => out.skip(Dropped::KeepAlive),
            other => return out.unknown_type("context", other),
        }
        out.skip(Dropped::Empty);
    }

    crate::state::keeps_session!();
}
