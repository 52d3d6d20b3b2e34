//! Values as cells hold them.

use quipu_model::json::Tape;
use quipu_model::{Attachment, Block, Content, Fidelity, Json, Timestamp};

use crate::loss::Loss;

/// How half surrogate pairs are counted: a column of text cannot hold them.
pub(super) const HALF: &str = "half surrogate pairs, as U+FFFD";

/// Counts what a time has below a microsecond, which the column has no place for.
pub(super) fn micros(at: Timestamp, seq: u64, loss: &mut Loss) {
    if at.subsec_nanosecond() % 1_000 != 0 {
        loss.dropped("time below a microsecond", seq);
    }
}

/// Whether a value is anything but a string.
pub(super) fn is_json(value: &Json) -> bool {
    !value.get().starts_with('"')
}

/// Writes what a string says, and any other value as JSON. `false` when the string is no text.
pub(super) fn plain(value: &Json, to: &mut Vec<u8>) -> bool {
    if is_json(value) {
        to.extend_from_slice(value.get().as_bytes());
        return true;
    }
    if let Some(text) = value.as_str() {
        to.extend_from_slice(text.as_bytes());
        return true;
    }
    let mut tape = Tape::new();
    let read = tape.read(value.get(), 1).ok();
    if let Some(text) = read.and_then(|node| node.as_raw_str()) {
        to.extend_from_slice(text.to_text_lossy().as_bytes());
    }
    false
}

pub(super) fn text_of(block: &Block) -> Option<&str> {
    match &block.content {
        Content::Text(text) => Some(text),
        _ => None,
    }
}

pub(super) fn thought_of(block: &Block) -> Option<&str> {
    match &block.content {
        Content::Thinking(text) => Some(text),
        _ => None,
    }
}

/// Writes texts with a line end between them.
pub(super) fn join<'a>(texts: impl Iterator<Item = &'a str>, to: &mut Vec<u8>) {
    for (n, text) in texts.enumerate() {
        if n > 0 {
            to.push(b'\n');
        }
        to.extend_from_slice(text.as_bytes());
    }
}

/// Writes the blocks of a message as a JSON list, with the names that the exchange format has.
pub(super) fn blocks(blocks: &[Block], to: &mut Vec<u8>) {
    to.push(b'[');
    for (n, block) in blocks.iter().enumerate() {
        if n > 0 {
            to.push(b',');
        }
        to.extend_from_slice(b"{\"type\":\"");
        to.extend_from_slice(
            block
                .block_type()
                .map_or("unknown", quipu_model::BlockType::as_str)
                .as_bytes(),
        );
        to.push(b'"');
        match &block.content {
            Content::Text(text)
            | Content::Thinking(text)
            | Content::Command(text)
            | Content::Stream(text) => field("text", text, to),
            Content::ToolUse { name, id, input } => {
                field("name", name, to);
                field("id", id, to);
                json("input", input.as_ref(), to);
            }
            Content::ToolResult { id, content } => {
                field("id", id, to);
                json("content", content.as_ref(), to);
            }
            Content::Unknown(whole) => json("value", Some(whole), to),
        }
        if block.fidelity == Fidelity::Router {
            field("fidelity", Fidelity::Router.as_str(), to);
        }
        to.push(b'}');
    }
    to.push(b']');
}

/// Writes what is known of attachments as a JSON list.
pub(super) fn attachments(all: &[Attachment], to: &mut Vec<u8>) {
    to.push(b'[');
    for (n, it) in all.iter().enumerate() {
        let lead: &[u8] = if n == 0 { b"{" } else { b",{" };
        to.extend_from_slice(lead);
        to.extend_from_slice(b"\"bytes\":");
        to.extend_from_slice(itoa::Buffer::new().format(it.bytes).as_bytes());
        field("mime", &it.mime, to);
        field("sha256", &it.sha256, to);
        to.push(b'}');
    }
    to.push(b']');
}

fn field(name: &str, text: &str, to: &mut Vec<u8>) {
    json(name, Some(&Json::string(text)), to);
}

fn json(name: &str, value: Option<&Json>, to: &mut Vec<u8>) {
    if let Some(value) = value {
        to.extend_from_slice(b",\"");
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b"\":");
        to.extend_from_slice(value.get().as_bytes());
    }
}
