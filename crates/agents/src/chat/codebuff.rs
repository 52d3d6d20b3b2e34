//! Codebuff: the messages of a chat in one list, each with the blocks that a person is shown.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, capture, time};

const MESSAGE: &[&str] = &[
    "id",
    "variant",
    "content",
    "timestamp",
    "parentId",
    "credits",
    "metadata",
    "blocks",
    "userError",
    "validationErrors",
    "attachments",
    "textAttachments",
    "fileAttachments",
    "isComplete",
    "completionTime",
    "isCompletion",
    "agent",
];

/// How deep the blocks of sub-agents are followed.
const DEPTH: usize = 32;

/// Reads the messages of a chat.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Codebuff {
    session: Session,
}

/// What a message says of all its entries.
struct Common<'a> {
    id: Option<Cow<'a, str>>,
    at: Option<Timestamp>,
}

impl Common<'_> {
    fn put(&self, mut entry: Entry<'_>, subagent: Option<&str>, out: &mut Out<'_>) {
        entry.at = self.at;
        entry.native_id = self.id.as_deref().map(|id| Cow::Owned(id.to_owned()));
        entry.subagent = subagent.map(|agent| Cow::Owned(agent.to_owned()));
        out.push(entry);
    }

    fn block(&self, block: Node<'_>, subagent: Option<&str>, depth: usize, out: &mut Out<'_>) {
        let kind = block.text("type").unwrap_or_default();
        let text = || {
            block
                .get("content")
                .and_then(Text::of)
                .unwrap_or(Text::EMPTY)
        };
        let entry = match &*kind {
            "text" if text().is_empty() => return,
            "text" if block.get("textType").is_some_and(|t| t.is("reasoning")) => {
                Entry::new(What::Reasoning(text()))
            }
            "text" => Entry::new(What::Assistant(text())),
            "tool" => return self.tool(block, subagent, out),
            "agent" if depth < DEPTH => {
                let agent = capture::id(block, "agentId");
                let note = Entry {
                    child: None,
                    ..Entry::note(
                        NoteKind::Subagent,
                        block
                            .text("agentName")
                            .or(block.text("agentType"))
                            .unwrap_or_default(),
                    )
                };
                self.put(note, agent.as_deref().or(subagent), out);
                let within = block.get("blocks").into_iter().flat_map(Node::items);
                for inner in within {
                    self.block(inner, agent.as_deref().or(subagent), depth + 1, out);
                }
                return;
            }
            "plan" => Entry::note(NoteKind::Todo, text()),
            "mode-divider" => Entry::keep(NoteKind::Mode, block),
            "ask-user" => Entry::keep(NoteKind::Permission, block),
            "image" => crate::blocks::attachment(block, out),
            "agent" | "agent-list" | "sponsored-proposal" => Entry::keep(NoteKind::Context, block),
            _ => {
                out.unknown_type("block", &kind);
                Entry::keep(NoteKind::UnknownRecord, block)
            }
        };
        self.put(entry, subagent, out);
    }

    /// A tool's call, with its result where it has ended.
    fn tool(&self, block: Node<'_>, subagent: Option<&str>, out: &mut Out<'_>) {
        let mut attachments = Vec::new();
        let input = block
            .get("input")
            .map(|input| out.value(input, &mut attachments));
        let call = Entry {
            attachments,
            ..Entry::new(What::Call {
                name: block.text("toolName").unwrap_or_default(),
                id: block.text("toolCallId").unwrap_or_default(),
                input,
            })
        };
        self.put(call, subagent, out);
        if let Some(output) = block.get("output").filter(|output| !output.is_null()) {
            let mut attachments = Vec::new();
            let output = match Text::of(output) {
                Some(text) => Value::Text(text),
                None => out.value(output, &mut attachments),
            };
            let result = Entry {
                attachments,
                ..Entry::new(What::Result {
                    name: Cow::Borrowed(""),
                    id: block.text("toolCallId").unwrap_or_default(),
                    output: Some(output),
                    error: None,
                })
            };
            self.put(result, subagent, out);
        }
    }
}

impl Codebuff {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let named = origin.stem() == Some("chat-messages");
        Self {
            session: Session {
                id: origin.above().next().filter(|_| named).map(str::to_owned),
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
        let common = Common {
            id,
            at: time::field(message, "timestamp"),
        };
        let variant = message.text("variant").unwrap_or_default();
        let content = message.get("content").and_then(Text::of);
        let content = content.filter(|text| !text.is_empty());
        let blocks = message
            .get("blocks")
            .filter(|blocks| blocks.items().next().is_some());
        match (&*variant, content, blocks) {
            ("user", content, _) => {
                if let Some(text) = content {
                    common.put(Entry::new(What::User(text)), None, out);
                }
                for key in ["attachments", "textAttachments", "fileAttachments"] {
                    for item in message.get(key).into_iter().flat_map(Node::items) {
                        common.put(Entry::keep(NoteKind::Attachment, item), None, out);
                    }
                }
            }
            ("ai" | "agent", _, Some(blocks)) => {
                for block in blocks.items() {
                    common.block(block, None, 0, out);
                }
            }
            ("ai" | "agent", Some(text), None) => {
                common.put(Entry::new(What::Assistant(text)), None, out);
            }
            ("error", Some(text), _) => common.put(Entry::note(NoteKind::Error, text), None, out),
            ("ai" | "agent" | "error", None, None) => {}
            _ => {
                out.unknown_type("variant", &variant);
                common.put(Entry::keep(NoteKind::UnknownRecord, message), None, out);
            }
        }
        let failed = message.get("userError").and_then(Text::of);
        if let Some(text) = failed.filter(|text| !text.is_empty()) {
            common.put(Entry::note(NoteKind::Error, text), None, out);
        }
        out.skip(Dropped::Empty);
    }
}

impl Reader for Codebuff {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if record.kind() == Kind::List {
            capture::records(record, out, Self::message);
        }
    }

    crate::state::keeps_session!();
}
