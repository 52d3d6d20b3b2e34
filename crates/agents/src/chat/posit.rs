//! Posit Assistant: the messages of the model a line, the tree they form in a document beside them.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp, Usage};
use serde::{Deserialize, Serialize};

use crate::openai_chat::message;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, time};

const LINE: &[&str] = &["id", "message"];
const MESSAGE: &[&str] = &["role", "content", "providerOptions"];

/// Reads the messages of a conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Posit {
    session: Session,
    /// Each message's id and the numbers of its first and its last event: what is given up is told of
    /// only beside the log.
    given: Vec<(u64, u64, u64)>,
}

impl Posit {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let above: Vec<&str> = origin.above().take(3).collect();
        let mut session = Session::default();
        match *above.as_slice() {
            [own, "subagents", parent] => {
                session.id = Some(format!("{parent}.{own}"));
                session.parent = Some(parent.to_owned());
            }
            [own, ..] if origin.stem() == Some("lm-messages") => session.id = Some(own.to_owned()),
            _ => {}
        }
        Self {
            session,
            given: Vec::new(),
        }
    }

    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("line", record, LINE);
        let Some(message) = record.get("message") else {
            return;
        };
        out.check("message", message, MESSAGE);
        let id = record
            .get("id")
            .map(|id| id.raw().get())
            .unwrap_or_default();
        let metadata = message
            .path(&["providerOptions", "providerMetadata"])
            .and_then(|providers| providers.fields().next())
            .map(|(_, metadata)| metadata);
        let at = metadata.and_then(|metadata| time::field(metadata, "timestamp"));
        let model = metadata.and_then(|metadata| metadata.text("modelId"));
        let mut counted = metadata
            .and_then(|metadata| metadata.get("usage"))
            .and_then(usage);
        let role = message.text("role").unwrap_or_default();
        let first = out.next_seq();
        let mut put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.at = at;
            entry.native_id = Some(Cow::Owned(id.to_owned()));
            if role == "assistant" {
                entry.model = model.as_deref().map(|model| Cow::Owned(model.to_owned()));
                entry.usage = counted.take();
            }
            out.push(entry);
        };
        let who = match &*role {
            "user" => What::User,
            "assistant" | "tool" => What::Assistant,
            "system" => What::System,
            _ => {
                out.unknown_type("role", &role);
                return put(Entry::keep(NoteKind::UnknownRecord, record), out);
            }
        };
        let content = message.get("content");
        if content.is_some_and(|content| content.kind() == Kind::String) {
            message::parts(content, who, out, &mut put);
        }
        for part in content.into_iter().flat_map(Node::items) {
            let entry = part_of(part, who, out);
            put(entry, out);
        }
        if content.is_none_or(|content| out.next_seq() == first && !content.is_null()) {
            put(Entry::keep(NoteKind::ModelCall, record), out);
        }
        if let Some(id) = record.get("id").and_then(|id| id.as_u64())
            && out.next_seq() > first
        {
            self.given.push((id, first, out.next_seq()));
        }
        out.skip(Dropped::Empty);
    }

    /// The tree of the conversation: what is not on its active branch no longer counts.
    fn tree(&self, document: Node<'_>, out: &mut Out<'_>) {
        let messages = document.get("messages").into_iter().flat_map(Node::items);
        for message in messages {
            if message.get("isActive").and_then(|n| n.as_bool()) != Some(false) {
                continue;
            }
            let ids = message
                .get("lmMessageIds")
                .into_iter()
                .flat_map(Node::items);
            for id in ids.filter_map(|id| id.as_u64()) {
                if let Some((_, from, to)) = self.given.iter().find(|(given, ..)| *given == id) {
                    out.push(Entry {
                        voids: Some(*from..*to),
                        native_id: message.text("id"),
                        ..Entry::note(NoteKind::Rewind, "another branch was taken")
                    });
                }
            }
        }
    }
}

/// A part of a message, as the AI SDK has them.
fn part_of<'a>(part: Node<'a>, who: fn(Text<'a>) -> What<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let kind = part.text("type").unwrap_or_default();
    let text = || part.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
    let mut attachments = Vec::new();
    let what = match &*kind {
        "text" => who(text()),
        "reasoning" => {
            let text = text();
            return Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            };
        }
        "tool-call" => What::Call {
            name: part.text("toolName").unwrap_or_default(),
            id: part.text("toolCallId").unwrap_or_default(),
            input: part
                .get("input")
                .or(part.get("args"))
                .map(|input| out.value(input, &mut attachments)),
        },
        "tool-result" => return result(part, out),
        "image" | "file" => return message::part_media(part, out),
        _ => {
            out.unknown_type("content", &kind);
            return Entry::keep(NoteKind::UnknownRecord, part);
        }
    };
    Entry {
        attachments,
        ..Entry::new(what)
    }
}

fn result<'a>(part: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let given = part.get("output").or(part.get("result"));
    let kind = given
        .and_then(|given| given.text("type"))
        .unwrap_or_default();
    let value = given.map(|given| given.get("value").unwrap_or(given));
    let status = match &*kind {
        "execution-denied" => Status::Denied,
        "error-text" | "error-json" => Status::Error,
        _ => Status::Ok,
    };
    let (output, error) = match (value, status) {
        (value, Status::Ok) => {
            let output = value.map(|value| match Text::of(value) {
                Some(text) => Value::Text(text),
                None => out.value(value, &mut attachments),
            });
            (output, None)
        }
        (Some(value), _) => {
            let said = Text::of(value).unwrap_or(Text::from(value.raw().get()));
            (None, Some(said))
        }
        (None, _) => (None, Some(Text::from(kind))),
    };
    Entry {
        status: Some(status),
        attachments,
        ..Entry::new(What::Result {
            name: part.text("toolName").unwrap_or_default(),
            id: part.text("toolCallId").unwrap_or_default(),
            output,
            error,
        })
    }
}

/// Token counts, which are disjoint: the total is the sum of all four.
fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheWriteTokens"),
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: count("reasoningTokens"),
    };
    (!usage.is_empty()).then_some(usage)
}

impl Reader for Posit {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        crate::capture::records(record, out, |record, out| self.line(record, out));
    }

    fn sidecar(&mut self, _name: &str, document: Node<'_>, out: &mut Out<'_>) {
        learn(&mut self.session.cwd, || document.text("path"));
        let Some(root) = document.get("root") else {
            return;
        };
        learn(&mut self.session.id, || root.text("id"));
        update(&mut self.session.title, root.text("title"));
        let branch = root.path(&["metadata", "gitBranch"]);
        learn(&mut self.session.branch, || branch?.as_str());
        let began = time::field(root, "timestamp").map(Timestamp::as_millisecond);
        self.session.started_at = self.session.started_at.or(began);
        self.tree(document, out);
    }

    crate::state::keeps_session!();
}
