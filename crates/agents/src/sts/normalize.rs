//! What a line means.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, NoteKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, Value, What, time};

/// Reads the lines of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Lines {
    session: Session,
}

/// What a message says of all entries it becomes.
struct Common<'a> {
    at: Option<Timestamp>,
    model: Option<Cow<'a, str>>,
}

impl<'a> Common<'a> {
    fn put(&self, what: What<'a>, out: &mut Out<'_>) {
        let mut entry = Entry::new(what);
        entry.at = self.at;
        entry.model.clone_from(&self.model);
        out.push(entry);
    }

    fn keep(&self, kind: NoteKind, node: Node<'a>, out: &mut Out<'_>) {
        let mut entry = Entry::keep(kind, node);
        entry.at = self.at;
        out.push(entry);
    }
}

impl Lines {
    fn header(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("session", record, wire::HEADER);
        learn(&mut self.session.id, || record.text("id"));
        learn(&mut self.session.agent, || record.text("harness"));
        learn(&mut self.session.title, || record.text("name"));
        out.push(Entry::keep(NoteKind::Session, record));
    }
}

fn message<'a>(record: Node<'a>, message: Node<'a>, out: &mut Out<'_>) {
    out.check("line", record, wire::LINE);
    out.check("message", message, wire::MESSAGE);
    let common = Common {
        at: time::field(message, "timestamp"),
        model: message.text("model"),
    };
    let role = message.text("role").unwrap_or_default();
    let content = message.get("content").filter(|content| !content.is_null());
    match &*role {
        "user" => said(content, What::User, &common, out),
        "system" => said(content, What::System, &common, out),
        "tool" => common.put(
            What::Result {
                name: Cow::Borrowed(""),
                id: message.text("toolCallId").unwrap_or_default(),
                output: content.map(|content| match Text::of(content) {
                    Some(text) => Value::Text(text),
                    None => content.into(),
                }),
                error: None,
            },
            out,
        ),
        "assistant" => {
            if let Some(text) = message.get("reasoningContent").and_then(Text::of) {
                common.put(What::Reasoning(text), out);
            }
            let calls = message
                .get("toolCalls")
                .filter(|calls| calls.kind() == Kind::List);
            // Beside calls or reasoning, no text is no message.
            let alone = calls.is_none() && message.get("reasoningContent").is_none();
            let content = content.filter(|content| alone || !content.is(""));
            said(content, What::Assistant, &common, out);
            for call in calls.into_iter().flat_map(Node::items) {
                called(call, &common, out);
            }
            out.skip(Dropped::Empty);
        }
        _ => {
            out.unknown_type("message", &role);
            common.keep(NoteKind::UnknownRecord, record, out);
        }
    }
}

/// A text, or several.
fn said<'a>(
    content: Option<Node<'a>>,
    what: impl Fn(Text<'a>) -> What<'a>,
    common: &Common<'a>,
    out: &mut Out<'_>,
) {
    let Some(content) = content else {
        return;
    };
    if let Some(text) = Text::of(content) {
        return common.put(what(text), out);
    }
    if content.kind() != Kind::List {
        return common.keep(NoteKind::UnknownRecord, content, out);
    }
    for part in content.items() {
        match part.get("text").and_then(Text::of) {
            Some(text) => common.put(what(text), out),
            None => common.keep(NoteKind::Attachment, part, out),
        }
    }
}

fn called<'a>(call: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let Some(function) = call.get("function").filter(|it| it.kind() == Kind::Object) else {
        return common.keep(NoteKind::UnknownRecord, call, out);
    };
    out.check("call", call, wire::CALL);
    let arguments = function.get("arguments").filter(|it| !it.is_null());
    let input = arguments.map(|arguments| {
        let inside = arguments.as_str().and_then(|text| Json::parse(&text).ok());
        inside.map_or_else(|| arguments.into(), Value::Owned)
    });
    let what = What::Call {
        name: function.text("name").unwrap_or_default(),
        id: call.text("id").unwrap_or_default(),
        input,
    };
    common.put(what, out);
}

impl Reader for Lines {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        match (&*kind, record.get("message")) {
            ("session", _) => self.header(record, out),
            ("message", Some(said)) if said.kind() == Kind::Object => message(record, said, out),
            _ => {
                out.unknown_type("line", &kind);
                out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        }
    }

    crate::state::keeps_session!();
}
