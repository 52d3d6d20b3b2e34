//! Lines of transcripts, as documented: one for what is said, one for each tool.
//!
//! The document's own fields come first and hold what it says they hold. What is added behind them is for who
//! reads the session back.

use quipu_model::{Block, Content, Json, Status, Timestamp, ToolCall, ToolResult};

use crate::flow::time;

/// Adds a field to a line.
fn field(to: &mut Vec<u8>, key: &str, value: &str) {
    to.extend_from_slice(b", \"");
    to.extend_from_slice(key.as_bytes());
    to.extend_from_slice(b"\": ");
    to.extend_from_slice(value.as_bytes());
}

/// Adds a field that is a text.
fn text(to: &mut Vec<u8>, key: &str, value: &str) {
    field(to, key, "");
    // Writing to memory does not fail.
    _ = serde_json::to_writer(to, value);
}

fn begin(to: &mut Vec<u8>, at: Timestamp, role: &str) {
    to.extend_from_slice(b"{\"timestamp\": \"");
    to.extend_from_slice(time::format(at).as_bytes());
    to.extend_from_slice(b"\"");
    text(to, "role", role);
}

/// A message of text.
pub(in crate::flow) fn message(to: &mut Vec<u8>, at: Timestamp, role: &str, content: &str) {
    begin(to, at, role);
    text(to, "content", content);
    to.extend_from_slice(b"}\n");
}

/// A block of a message. Blocks that are no text have a `kind`.
pub(super) fn block(to: &mut Vec<u8>, at: Timestamp, role: &str, block: &Block) {
    begin(to, at, role);
    match &block.content {
        Content::Text(said) => text(to, "content", said),
        Content::Thinking(said) | Content::Command(said) | Content::Stream(said) => {
            text(to, "content", said);
            text(
                to,
                "kind",
                block
                    .block_type()
                    .map_or("unknown", quipu_model::BlockType::as_str),
            );
        }
        Content::ToolUse { name, id, input } => {
            text(to, "content", "");
            text(to, "kind", "tool_use");
            text(to, "tool_name", name);
            if let Some(input) = input {
                field(to, "tool_input", input.get());
            }
            text(to, "call_id", id);
        }
        Content::ToolResult { id, content } => {
            text(to, "content", "");
            text(to, "kind", "tool_result");
            if let Some(content) = content {
                field(to, "tool_output", content.get());
            }
            text(to, "call_id", id);
        }
        Content::Unknown(whole) => text(to, "content", whole.get()),
    }
    to.extend_from_slice(b"}\n");
}

/// A tool's call, without the end of its line: that is for its result.
pub(super) fn call(to: &mut Vec<u8>, at: Timestamp, call: &ToolCall) {
    begin(to, at, "tool");
    text(to, "tool_name", &call.name);
    match &call.input {
        Some(input) if is_object(input) => field(to, "tool_input", input.get()),
        Some(input) => {
            field(to, "tool_input", &format!("{{\"value\": {}}}", input.get()));
            text(to, "input_is", "value");
        }
        None => {
            field(to, "tool_input", "{}");
            text(to, "input_is", "none");
        }
    }
    text(to, "call_id", &call.call_id);
}

/// A result whose call is not there, up to where the result itself begins.
pub(super) fn orphan(to: &mut Vec<u8>, at: Timestamp, result: &ToolResult) {
    begin(to, at, "tool");
    text(to, "tool_name", &result.name);
    field(to, "tool_input", "{}");
    text(to, "input_is", "missing");
    text(to, "call_id", &result.call_id);
}

/// The result of a tool, behind its call.
pub(super) fn result(
    to: &mut Vec<u8>,
    at: Timestamp,
    result: &ToolResult,
    status: Option<Status>,
    duration_ms: Option<u64>,
) {
    // What a file holds is content, as documented; what a tool says is output.
    let is_file = result.name == "Read" && result.error.is_none();
    match (&result.output, &result.error) {
        (Some(output), _) => {
            if let Some(said) = output.as_str() {
                text(to, if is_file { "content" } else { "tool_output" }, &said);
            } else {
                text(to, "tool_output", output.get());
                text(to, "output_is", "json");
            }
        }
        (None, Some(error)) => {
            text(to, "tool_output", error);
            text(to, "output_is", "error");
        }
        (None, None) => {}
    }
    if let Some(error) = &result.error {
        text(to, "error", error);
    }
    text(to, "completed_at", &time::format(at));
    if let Some(duration_ms) = duration_ms {
        field(to, "duration_ms", &duration_ms.to_string());
    }
    if let Some(status) = status {
        text(to, "status", status.as_str());
    }
}

/// Whether a value is an object, which it begins as.
pub(super) fn is_object(json: &Json) -> bool {
    json.get().starts_with('{')
}
