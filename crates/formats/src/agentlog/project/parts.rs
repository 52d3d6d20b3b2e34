//! Blocks of messages as parts of content, and values as the format wants them.

use quipu_model::json::{Node, Tape};
use quipu_model::{Attachment, Content, Json, Usage};

use super::mend;
use super::out::blob_uri;
use super::text::{Object, is_object, is_string, list};
use super::view::Part;
use crate::agentlog::{Kind, LIMITS};
use crate::loss::Loss;

/// A part of content that says something.
pub(super) fn text_part(text: &str) -> String {
    Object::new().text("type", "text").text("text", text).end()
}

pub(super) fn tool_use_part(id: &str, name: &str, input: &str) -> String {
    Object::new()
        .text("type", "tool_use")
        .text("id", id)
        .text("name", name)
        .raw("input", input)
        .end()
}

pub(super) fn tool_result_part(id: &str, content: &str, is_error: bool) -> String {
    Object::new()
        .text("type", "tool_result")
        .text("tool_use_id", id)
        .raw("content", content)
        .flag_if("is_error", is_error)
        .end()
}

/// A block as a part of content.
pub(super) fn part(part: Part<'_>, seq: u64, loss: &mut Loss) -> String {
    match part {
        Part::Known(Content::Text(text)) => text_part(text),
        Part::Known(Content::Thinking(text)) => Object::new()
            .text("type", "thinking")
            .text("text", text)
            .end(),
        Part::Known(Content::ToolUse { name, id, input }) => {
            tool_use_part(id, name, &object(input.as_ref(), "input", seq, loss))
        }
        Part::Known(Content::ToolResult { id, content }) => {
            tool_result_part(id, &said(content.as_ref()), false)
        }
        Part::Known(Content::Command(text)) => {
            loss.wrapped("command blocks, as text", seq);
            text_part(text)
        }
        Part::Known(Content::Stream(text)) => {
            loss.wrapped("stream blocks, as text", seq);
            text_part(text)
        }
        Part::Unknown(json) | Part::Known(Content::Unknown(json)) if is_object(json.get()) => {
            loss.wrapped("blocks that are not known, as they are", seq);
            json.get().to_owned()
        }
        Part::Unknown(json) | Part::Known(Content::Unknown(json)) => {
            loss.wrapped("blocks that are not known, as text", seq);
            text_part(json.get())
        }
    }
}

/// A part that stands for what is kept outside.
pub(super) fn attachment_part(attachment: &Attachment) -> String {
    let kind = if attachment.mime.starts_with("image/") {
        "image"
    } else {
        "document"
    };
    let source = Object::new()
        .text("type", "blob")
        .text("media_type", &attachment.mime)
        .text("uri", &blob_uri(attachment))
        .end();
    Object::new()
        .text("type", kind)
        .raw("source", &source)
        .end()
}

/// A message: what is only one text is that text.
pub(super) fn message(role: &str, parts: &[String], only: Option<&str>) -> String {
    let message = Object::new().text("role", role);
    match only {
        Some(text) => message.text("content", text),
        None => message.raw("content", &list(parts.iter().map(String::as_str))),
    }
    .end()
}

/// A value where the format wants an object.
pub(super) fn object(value: Option<&Json>, key: &str, seq: u64, loss: &mut Loss) -> String {
    match value {
        None => "{}".to_owned(),
        Some(json) if json.is_null() => "{}".to_owned(),
        Some(json) if is_object(json.get()) => json.get().to_owned(),
        Some(json) => {
            loss.wrapped("arguments that are no object", seq);
            Object::new().raw(key, json.get()).end()
        }
    }
}

/// A value where the format wants a string or an object.
pub(super) fn output(
    value: Option<&Json>,
    error: Option<&str>,
    seq: u64,
    loss: &mut Loss,
) -> String {
    let value = value.filter(|json| !json.is_null());
    match (value, error) {
        (None, error) => Json::string(error.unwrap_or_default()).get().to_owned(),
        (Some(json), None) if is_object(json.get()) || is_string(json.get()) => {
            json.get().to_owned()
        }
        (Some(json), None) => {
            loss.wrapped("outputs that are neither text nor an object, as text", seq);
            Json::string(json.get()).get().to_owned()
        }
        (Some(json), Some(error)) => {
            loss.wrapped("outputs with an error beside them", seq);
            Object::new()
                .raw("output", json.get())
                .text("error", error)
                .end()
        }
    }
}

/// An output as a model is given it: text.
pub(super) fn said(value: Option<&Json>) -> String {
    match value {
        None => "\"\"".to_owned(),
        Some(json) if is_string(json.get()) => json.get().to_owned(),
        Some(json) => Json::string(json.get()).get().to_owned(),
    }
}

/// The payload of a chunk with this place among the chunks of its answer: as it is, unless others are missing.
pub(super) fn renumbered(payload: &str, index: usize) -> String {
    let mut tape = Tape::new();
    let node = tape.read(payload, LIMITS.max_depth).ok();
    let is_right =
        |node: &Node<'_>| node.get("chunk_index").and_then(|n| n.as_u64()) == Some(index as u64);
    let Some(node) = node.filter(|node| !is_right(node)) else {
        return payload.to_owned();
    };
    let own = Object::new().number("chunk_index", index);
    let others = node.fields().filter(|(key, _)| !key.is("chunk_index"));
    others
        .fold(own, |made, (key, value)| {
            made.raw(&key.to_text_lossy(), value.raw().get())
        })
        .end()
}

/// Fields of responses that only their recorder can know.
const OF_RESPONSES: &[&str] = &[
    "batch",
    "logprobs",
    "service_tier",
    "stop_sequence",
    "stream_timings",
    "system_fingerprint",
];

/// What a note on a response says of it that responses have a field for. A record of an agent is not that. What cannot
/// be written in its field is counted.
pub(super) fn fields_of_response(
    raw: Option<&Json>,
    seq: u64,
    loss: &mut Loss,
) -> Vec<(String, String)> {
    let mut tape = Tape::new();
    let raw = raw.and_then(|raw| tape.read(raw.get(), LIMITS.max_depth).ok());
    let fields = raw.filter(|raw| raw.get("type").is_none() && raw.get("payload").is_none());
    let mut found = Vec::new();
    for (key, value) in fields.into_iter().flat_map(Node::fields) {
        let Some(key) = OF_RESPONSES.iter().find(|known| key.is(known)) else {
            continue;
        };
        let (json, whole) = mend::fit(Kind::ChatResponse, key, value);
        if !whole {
            loss.dropped(format!("chat_response.{key} that breaks its format"), seq);
        }
        found.extend(json.map(|json| ((*key).to_owned(), json)));
    }
    found
}

/// Counts of tokens. What is not known is not there.
pub(super) fn usage(usage: &Usage) -> String {
    let mut object = Object::new()
        .number_if("input_tokens", usage.input)
        .number_if("output_tokens", usage.output)
        .number_if("thinking_tokens", usage.reasoning)
        .number_if("cache_read_input_tokens", usage.cache_read)
        .number_if("cache_creation_input_tokens", usage.cache_write);
    if let Some(hour) = usage.cache_write_1h {
        let kept = Object::new()
            .number("ephemeral_1h_input_tokens", hour)
            .end();
        object = object.raw("cache_creation", &kept);
    }
    object.end()
}
