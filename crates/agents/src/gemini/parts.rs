//! Parts of a content of the Gemini API, which Gemini CLI and Qwen Code both keep.

use quipu_model::json::{Kind, Node};
use quipu_model::{Attachment, NoteKind};

use crate::blocks::Speaker;
use crate::{Entry, Out, Text, Value, What};

/// One part as an entry, with its fields that have no place of their own. `None` for a kind of part that is not known.
pub(crate) fn entry<'a>(part: Node<'a>, speaker: Speaker, out: &mut Out<'_>) -> Option<Entry<'a>> {
    let mut entry = bare(part, speaker, out)?;
    if !entry.keeps(part) {
        entry.extra.rest("part", part, PART_MAPPED);
    }
    Some(entry)
}

/// Fields of a part that have a place of their own.
const PART_MAPPED: &[&str] = &[
    "text",
    "thought",
    "functionCall",
    "functionResponse",
    "inlineData",
];

fn bare<'a>(part: Node<'a>, speaker: Speaker, out: &mut Out<'_>) -> Option<Entry<'a>> {
    let said = |text: Text<'a>| match speaker {
        Speaker::User => What::User(text),
        Speaker::Assistant => What::Assistant(text),
    };
    if let Some(text) = Text::of(part) {
        return Some(Entry::new(said(text)));
    }
    if let Some(call) = part.get("functionCall") {
        return Some(function_call(call, out));
    }
    if let Some(response) = part.get("functionResponse") {
        return Some(function_response(response, out));
    }
    if let Some(data) = part.get("inlineData") {
        return Some(inline_data(data, out));
    }
    let is_thought = part.get("thought").and_then(|n| n.as_bool()) == Some(true);
    if let Some(text) = part.get("text").and_then(Text::of) {
        if !is_thought {
            return Some(Entry::new(said(text)));
        }
        return Some(Entry {
            opaque: text.is_empty(),
            ..Entry::new(What::Reasoning(text))
        });
    }
    if part.get("thoughtSignature").is_some() || is_thought {
        return Some(Entry {
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        });
    }
    if part.get("fileData").is_some() {
        return Some(Entry::keep(NoteKind::Attachment, part));
    }
    // The model's own interpreter: there is no id by which its two halves could be paired.
    if part.get("executableCode").is_some() || part.get("codeExecutionResult").is_some() {
        return Some(Entry::keep(NoteKind::Context, part));
    }
    None
}

fn function_call<'a>(call: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let input = call
        .get("args")
        .map(|args| out.value(args, &mut attachments));
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: call.text("name").unwrap_or_default(),
            id: call.text("id").unwrap_or_default(),
            input,
        })
    }
}

/// What a function gave back: its output, or why it failed, or an object of its own.
pub(crate) fn function_response<'a>(node: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let response = node.get("response");
    let field = |key: &str| response.and_then(|r| r.get(key)).filter(|n| !n.is_null());
    let error = field("error").map(|error| match Text::of(error) {
        Some(text) => text,
        None => error.raw().get().into(),
    });
    let output = match (field("output"), response) {
        (Some(output), _) => Some(value(output, &mut attachments, out)),
        (None, Some(response)) if error.is_none() => Some(value(response, &mut attachments, out)),
        _ => None,
    };
    // Images come beside the response.
    for part in node.get("parts").into_iter().flat_map(Node::items) {
        attachments.extend(detach(part, out));
    }
    Entry {
        attachments,
        ..Entry::new(What::Result {
            name: node.text("name").unwrap_or_default(),
            id: node.text("id").unwrap_or_default(),
            output,
            error,
        })
    }
}

/// The content of a part that holds it as base64.
pub(crate) fn detach(part: Node<'_>, out: &mut Out<'_>) -> Option<Attachment> {
    let data = part.get("inlineData")?;
    let mime = data.text("mimeType").unwrap_or_default();
    out.detach(&mime, &data.text("data")?)
}

fn inline_data<'a>(data: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mime = data.text("mimeType").unwrap_or_default();
    let inside = data
        .text("data")
        .and_then(|base64| out.detach(&mime, &base64));
    match inside {
        Some(attachment) => Entry {
            attachments: vec![attachment],
            ..Entry::note(NoteKind::Attachment, mime)
        },
        None => Entry::keep(NoteKind::Attachment, data),
    }
}

/// A value: a text where it is a string.
pub(crate) fn value<'a>(
    node: Node<'a>,
    attachments: &mut Vec<Attachment>,
    out: &mut Out<'_>,
) -> Value<'a> {
    match Text::of(node) {
        Some(text) => Value::Text(text),
        None => out.value(node, attachments),
    }
}

/// The items of a list, or a single value as the only one.
pub(crate) fn each(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let single = (node.kind() != Kind::List && !node.is_null()).then_some(node);
    single.into_iter().chain(node.items())
}
