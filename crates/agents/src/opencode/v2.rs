//! Messages of the second kind, which hold all that is in them: one row each, and no parts.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Timestamp};

use super::normalize::{Core, between, detached, error_text, how_it_failed};
use crate::session::learn;
use crate::{Entry, Out, Text, Value, What, time};

/// Every field of a message.
const FIELDS: &[&str] = &[
    "id",
    "type",
    "metadata",
    "time",
    "agent",
    "model",
    "text",
    "files",
    "agents",
    "references",
    "sessionID",
    "callID",
    "command",
    "output",
    "content",
    "snapshot",
    "finish",
    "cost",
    "tokens",
    "error",
    "reason",
    "summary",
    "recent",
];

/// What a message says of all that is in it.
struct Common<'a> {
    id: Option<Cow<'a, str>>,
    at: Option<Timestamp>,
    model: Option<Cow<'a, str>>,
}

impl<'a> Common<'a> {
    /// Hands over an entry: of the message, or of a part of it.
    fn put(&self, mut entry: Entry<'a>, part: Option<Cow<'a, str>>, out: &mut Out<'_>) {
        if part.is_some() {
            entry.parent_id.clone_from(&self.id);
        }
        entry.native_id = part.or_else(|| self.id.clone());
        entry.at = entry.at.or(self.at);
        // A call without a part is one that a person made.
        if entry.parent_id.is_some()
            && matches!(
                entry.what,
                What::Assistant(_) | What::Reasoning(_) | What::Call { .. }
            )
        {
            entry.model.clone_from(&self.model);
            entry.model_call.clone_from(&self.id);
        }
        out.push(entry);
    }
}

/// Reads a row of such messages.
pub(super) fn message(core: &mut Core, row: Node<'_>, out: &mut Out<'_>) {
    let Some(data) = row.get("data") else {
        return;
    };
    out.check("session_message", data, FIELDS);
    let id = row.text("id").or(data.text("id"));
    if id.as_deref().is_some_and(|id| !out.unit(id)) {
        return;
    }
    learn(&mut core.session.id, || row.text("session_id"));
    let kind = row.text("type").or(data.text("type")).unwrap_or_default();
    let model = data.get("model");
    let common = Common {
        id,
        at: data
            .path(&["time", "created"])
            .or(row.get("time_created"))
            .and_then(time::of),
        model: model.and_then(|model| {
            let named = model.text("id").or(model.text("modelID"));
            named.or(model.as_str())
        }),
    };
    let text = data.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
    let note = |kind: NoteKind| Entry::keep(kind, data);
    match &*kind {
        "user" => {
            common.put(Entry::new(What::User(text)), None, out);
            for file in data.get("files").into_iter().flat_map(Node::items) {
                let entry = match detached(file, out) {
                    Some(attachment) => Entry {
                        attachments: vec![attachment],
                        ..Entry::note(
                            NoteKind::Attachment,
                            file.text("name").or(file.text("mime")).unwrap_or_default(),
                        )
                    },
                    None => Entry::keep(NoteKind::Attachment, file),
                };
                common.put(entry, None, out);
            }
        }
        "synthetic" | "system" => {
            let entry = Entry {
                synthetic: true,
                ..Entry::new(What::System(text))
            };
            common.put(entry, None, out);
        }
        "shell" => shell(data, &common, out),
        "assistant" => assistant(core, data, &common, out),
        "compaction" => {
            let summary = data.get("summary").and_then(Text::of);
            let entry = Entry::new(What::Note {
                kind: NoteKind::Compaction,
                text: summary,
                raw: Some(data.into()),
            });
            common.put(entry, None, out);
        }
        "agent-switched" => common.put(note(NoteKind::Mode), None, out),
        "model-switched" => common.put(note(NoteKind::ModelChange), None, out),
        other => {
            out.unknown_type("session_message", other);
            common.put(note(NoteKind::UnknownRecord), None, out);
        }
    }
}

/// A command that a person ran from the prompt.
fn shell<'a>(data: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let id = data
        .text("callID")
        .or_else(|| common.id.clone())
        .unwrap_or_default();
    let call = Entry::new(What::Call {
        name: Cow::Borrowed("shell"),
        id: id.clone(),
        input: data.get("command").map(Into::into),
    });
    common.put(call, None, out);
    let ended = data.path(&["time", "completed"]);
    if ended.is_none() {
        return;
    }
    let span = |key: &str| data.path(&["time", key]).and_then(|n| n.as_i64());
    let result = Entry {
        at: ended.and_then(time::of),
        duration_ms: between(span("created"), span("completed")),
        ..Entry::new(What::Result {
            name: Cow::Borrowed("shell"),
            id,
            output: data.get("output").map(Into::into),
            error: None,
        })
    };
    common.put(result, None, out);
}

fn assistant<'a>(core: &mut Core, data: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let counts = data
        .get("tokens")
        .and_then(|tokens| core.counts(tokens, out));
    if let Some(counts) = &counts {
        core.count(counts);
    }
    let cost = counts.and_then(|_| core.charge(data, common.model.as_deref()));
    let span = |key: &str| data.path(&["time", key]).and_then(|n| n.as_i64());
    // What is in the message becomes events; all else of it is kept here.
    let call = Entry {
        usage: counts.map(|counts| counts.usage),
        stop_reason: data.text("finish"),
        cost,
        model: common.model.clone(),
        model_call: common.id.clone(),
        duration_ms: between(span("created"), span("completed")),
        ..Entry::new(What::Note {
            kind: NoteKind::ModelCall,
            text: None,
            raw: Some(crate::blocks::without(data, &["content"])),
        })
    };
    common.put(call, None, out);
    for item in data.get("content").into_iter().flat_map(Node::items) {
        let id = item.text("id");
        let is = |key: &str| item.get(key).and_then(|n| n.as_bool()) == Some(true);
        let text = item.get("text").and_then(Text::of).unwrap_or(Text::EMPTY);
        let kind = item.text("type").unwrap_or_default();
        match &*kind {
            "text" if is("synthetic") || is("ignored") => {
                let entry = Entry {
                    synthetic: true,
                    ..Entry::new(What::System(text))
                };
                common.put(entry, id, out);
            }
            "text" if text.is_empty() => {}
            "text" => common.put(Entry::new(What::Assistant(text)), id, out),
            "reasoning" => {
                let entry = Entry {
                    opaque: text.is_empty(),
                    ..Entry::new(What::Reasoning(text))
                };
                common.put(entry, id, out);
            }
            "tool" => tool(item, common, out),
            other => {
                out.unknown_type("session_message.content", other);
                common.put(Entry::keep(NoteKind::UnknownRecord, item), id, out);
            }
        }
    }
    if let Some(error) = data.get("error").filter(|error| !error.is_null()) {
        common.put(Entry::note(NoteKind::Error, error_text(error)), None, out);
    }
}

fn tool<'a>(item: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    let (name, id) = (item.text("name"), item.text("id"));
    let span = |key: &str| item.path(&["time", key]);
    let state = item.get("state");
    let field = |key: &str| {
        state
            .and_then(|state| state.get(key))
            .filter(|n| !n.is_null())
    };
    let mut attachments = Vec::new();
    let input = field("input").map(|input| out.value(input, &mut attachments));
    let child = ["sessionID", "sessionId"]
        .iter()
        .find_map(|key| field("structured")?.text(key));
    let call = Entry {
        at: span("ran").or(span("created")).and_then(time::of),
        attachments,
        child: child.filter(|_| name.as_deref() == Some("task")),
        ..Entry::new(What::Call {
            name: name.clone().unwrap_or_default(),
            id: id.clone().unwrap_or_default(),
            input,
        })
    };
    common.put(call, id.clone(), out);
    let failed = match field("status")
        .and_then(|status| status.as_str())
        .as_deref()
    {
        Some("completed") => false,
        Some("error") => true,
        _ => return,
    };
    let mut attachments = Vec::new();
    let output = output(field("content"), &mut attachments, out)
        .or_else(|| field("result").map(|result| out.value(result, &mut attachments)));
    let error = failed.then(|| field("error").map_or("failed".to_owned(), error_text));
    let error = error.map(Text::from);
    let count = |key: &str| span(key).and_then(|n| n.as_i64());
    let result = Entry {
        at: span("completed").and_then(time::of),
        duration_ms: between(count("ran").or(count("created")), count("completed")),
        status: error.as_ref().map(how_it_failed),
        attachments,
        ..Entry::new(What::Result {
            name: name.unwrap_or_default(),
            id: id.clone().unwrap_or_default(),
            output,
            error,
        })
    };
    common.put(result, id, out);
}

/// What a tool gave back: its text, when that is all there is.
fn output<'a>(
    content: Option<Node<'a>>,
    attachments: &mut Vec<quipu_model::Attachment>,
    out: &mut Out<'_>,
) -> Option<Value<'a>> {
    let content = content?;
    let mut items = content.items();
    let (first, more) = (items.next(), items.next());
    if content.kind() == Kind::List && first.is_none() {
        return None;
    }
    match (
        first.and_then(|first| first.get("text")).and_then(Text::of),
        more,
    ) {
        (Some(text), None) => Some(Value::Text(text)),
        _ => Some(out.value(content, attachments)),
    }
}
