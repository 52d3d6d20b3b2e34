//! Conversations as `ChatGPT` and Claude.ai export them.
//!
//! `ChatGPT` keeps a tree: every edit and every second answer is a branch. The active one leads from
//! `current_node` to the root; the others are kept and do not count.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use crate::blocks::{self, ResultFacts, Speaker};
use crate::openai_chat::message;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, capture, time};

/// Reads one conversation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Exports {
    session: Session,
}

impl Exports {
    pub(super) fn conversation(&mut self, conversation: Node<'_>, out: &mut Out<'_>) {
        let id = ["conversation_id", "id", "uuid"]
            .iter()
            .find_map(|key| capture::id(conversation, key));
        learn(&mut self.session.id, || id);
        learn(&mut self.session.title, || {
            conversation.text("title").or(conversation.text("name"))
        });
        let began = time::field(conversation, "create_time")
            .or_else(|| time::field(conversation, "created_at"));
        self.session.started_at = began.map(Timestamp::as_millisecond);
        match (
            conversation.get("mapping"),
            conversation.get("chat_messages"),
        ) {
            (Some(mapping), _) => tree(conversation, mapping, out),
            (None, Some(messages)) => {
                for message in messages.items() {
                    claude(message, out);
                }
            }
            (None, None) => {}
        }
        out.skip(Dropped::Empty);
    }
}

/// The active branch of a tree, and then what is not on it.
fn tree(conversation: Node<'_>, mapping: Node<'_>, out: &mut Out<'_>) {
    let nodes: HashMap<Cow<'_, str>, Node<'_>> = mapping
        .fields()
        .map(|(key, node)| (key.to_text_lossy(), node))
        .collect();
    let mut path = Vec::new();
    let mut on_path = HashSet::new();
    let mut at = conversation.text("current_node");
    while let Some(id) = at {
        let Some(node) = nodes.get(&id) else {
            break;
        };
        at = node.text("parent");
        // A tree that bites its tail ends there.
        if !on_path.insert(id) {
            break;
        }
        path.push(*node);
    }
    let mut call = None;
    for node in path.iter().rev() {
        chatgpt(*node, &mut call, out);
    }
    let first = out.next_seq();
    let mut call = None;
    for (key, node) in mapping.fields() {
        if !on_path.contains(&key.to_text_lossy()) {
            chatgpt(node, &mut call, out);
        }
    }
    if out.next_seq() > first {
        out.push(Entry {
            voids: Some(first..out.next_seq()),
            ..Entry::note(NoteKind::Rewind, "other branches of the conversation")
        });
    }
}

/// A message of `ChatGPT`. `call` is the last one that went to a tool.
fn chatgpt<'a>(node: Node<'a>, call: &mut Option<Cow<'a, str>>, out: &mut Out<'_>) {
    let Some(said) = node.get("message").filter(|message| !message.is_null()) else {
        return;
    };
    let id = capture::id(said, "id");
    let role = said
        .path(&["author", "role"])
        .and_then(|n| n.as_str())
        .unwrap_or_default();
    let metadata = said.get("metadata");
    let model = metadata.and_then(|metadata| capture::id(metadata, "model_slug"));
    let at = time::field(said, "create_time");
    let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
        entry.at = at;
        entry.native_id = id.as_deref().map(|id| Cow::Owned(id.to_owned()));
        if role == "assistant" {
            entry.model = model.as_deref().map(|model| Cow::Owned(model.to_owned()));
        }
        out.push(entry);
    };
    let Some(content) = said.get("content") else {
        return;
    };
    let kind = content.text("content_type").unwrap_or_default();
    let text = content.get("text").and_then(Text::of);
    let recipient = said.text("recipient").unwrap_or(Cow::Borrowed("all"));
    if role == "assistant" && recipient != "all" {
        let given = text.or_else(|| content.get("parts")?.items().next().and_then(Text::of));
        let mut attachments = Vec::new();
        let input = given.map(|given| capture::arguments(given, out, &mut attachments));
        call.clone_from(&id);
        let entry = Entry {
            attachments,
            ..Entry::new(What::Call {
                name: recipient,
                id: id.clone().unwrap_or_default(),
                input,
            })
        };
        return put(entry, out);
    }
    if role == "tool" {
        let name = said.path(&["author", "name"]).and_then(|n| n.as_str());
        let output = match text {
            Some(text) => Some(Value::Text(text)),
            None => Some(content.into()),
        };
        let entry = Entry::new(What::Result {
            name: name.unwrap_or_default(),
            id: call.take().unwrap_or_default(),
            output,
            error: None,
        });
        return put(entry, out);
    }
    match &*kind {
        "thoughts" => {
            let thoughts = content.get("thoughts").into_iter().flat_map(Node::items);
            for thought in thoughts {
                let text = thought
                    .get("content")
                    .and_then(Text::of)
                    .unwrap_or(Text::EMPTY);
                let entry = Entry {
                    opaque: text.is_empty(),
                    ..Entry::new(What::Reasoning(text))
                };
                put(entry, out);
            }
        }
        "reasoning_recap" => {
            let text = content
                .get("content")
                .and_then(Text::of)
                .unwrap_or(Text::EMPTY);
            put(Entry::note(NoteKind::Summary, text), out);
        }
        "system_error" => put(Entry::keep(NoteKind::Error, content), out),
        "user_editable_context" | "model_editable_context" => {
            put(Entry::keep(NoteKind::Context, content), out);
        }
        _ => {
            let who = match &*role {
                "assistant" => What::Assistant,
                "user" => What::User,
                _ => What::System,
            };
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                put(Entry::new(who(text)), out);
            }
            for part in content.get("parts").into_iter().flat_map(Node::items) {
                match Text::of(part) {
                    Some(text) if text.is_empty() => {}
                    Some(text) => put(Entry::new(who(text)), out),
                    None => put(Entry::keep(NoteKind::Attachment, part), out),
                }
            }
        }
    }
}

/// A message of Claude.ai.
fn claude(message: Node<'_>, out: &mut Out<'_>) {
    let id = capture::id(message, "uuid");
    let at = time::field(message, "created_at");
    let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
        if !entry.what.is_blank() {
            entry.at = at;
            entry.native_id = id.as_deref().map(|id| Cow::Owned(id.to_owned()));
            out.push(entry);
        }
    };
    let person = message
        .get("sender")
        .is_some_and(|sender| sender.is("human"));
    let speaker = if person {
        Speaker::User
    } else {
        Speaker::Assistant
    };
    let content = message
        .get("content")
        .filter(|content| content.items().next().is_some());
    if content.is_none() {
        let who = if person { What::User } else { What::Assistant };
        message::parts(message.get("text"), who, out, &mut |entry, out| {
            put(entry, out);
        });
    }
    for block in content.into_iter().flat_map(Node::items) {
        let entry = blocks::entry(block, speaker, ResultFacts::default(), out);
        let entry = entry.unwrap_or_else(|| {
            let kind = block.text("type").unwrap_or_default();
            out.unknown_type("content", &kind);
            Entry::keep(NoteKind::UnknownRecord, block)
        });
        put(entry, out);
    }
    for key in ["attachments", "files", "files_v2"] {
        for item in message.get(key).into_iter().flat_map(Node::items) {
            put(Entry::keep(NoteKind::Attachment, item), out);
        }
    }
}

impl Reader for Exports {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if record.kind() == Kind::Object || record.kind() == Kind::List {
            capture::records(record, out, |record, out| self.conversation(record, out));
        }
    }

    crate::state::keeps_session!();
}
