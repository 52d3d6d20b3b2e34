//! `QwenPaw`: the memory of an agent in one document, each message beside its marks.

use std::borrow::Cow;

use quipu_model::NoteKind;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::blocks::{self, ResultFacts, Speaker};
use crate::openai_chat::message;
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, What, capture, time};

const MESSAGE: &[&str] = &[
    "id",
    "name",
    "role",
    "content",
    "metadata",
    "timestamp",
    "invocation_id",
];

/// Reads the memory of an agent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct QwenPaw {
    session: Session,
}

impl QwenPaw {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: origin.stem().map(str::to_owned),
                ..Session::default()
            },
        }
    }

    fn message(message: Node<'_>, out: &mut Out<'_>) {
        out.check("message", message, MESSAGE);
        let id = capture::id(message, "id");
        if let Some(id) = &id
            && !out.unit(id)
        {
            return;
        }
        let at = time::field(message, "timestamp");
        let role = message.text("role").unwrap_or_default();
        let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.at = at;
            entry.native_id = id.as_deref().map(|id| Cow::Owned(id.to_owned()));
            out.push(entry);
        };
        let said = |text| match &*role {
            "assistant" => What::Assistant(text),
            "user" => What::User(text),
            _ => What::System(text),
        };
        let content = message.get("content");
        if let Some(text) = content.and_then(Text::of).filter(|text| !text.is_empty()) {
            put(Entry::new(said(text)), out);
        }
        for block in content.into_iter().flat_map(Node::items) {
            let kind = block.text("type").unwrap_or_default();
            let entry = match &*kind {
                "text" => {
                    let text = block.get("text").and_then(Text::of);
                    text.map(|text| Entry::new(said(text)))
                }
                // Results have their content under another name.
                "tool_result" => Some(message::result(
                    capture::id(block, "id"),
                    block.text("name"),
                    block.get("output").or(block.get("content")),
                    out,
                )),
                _ => blocks::entry(block, Speaker::Assistant, ResultFacts::default(), out),
            };
            let entry = entry.unwrap_or_else(|| {
                out.unknown_type("content", &kind);
                Entry::keep(NoteKind::UnknownRecord, block)
            });
            put(entry, out);
        }
        out.skip(Dropped::Empty);
    }
}

impl Reader for QwenPaw {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let memory = record.path(&["agent", "memory", "content"]);
        for pair in memory.into_iter().flat_map(Node::items) {
            // A message and its marks; older versions have the message alone.
            let message = pair.items().next().unwrap_or(pair);
            out.within(message, |out, message| Self::message(message, out));
        }
    }

    crate::state::keeps_session!();
}
