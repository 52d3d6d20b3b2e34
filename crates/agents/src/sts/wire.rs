//! What stands in a line.

/// Every field of the first line.
pub(super) const HEADER: &[&str] = &["type", "harness", "id", "name"];

/// Every field of another line.
pub(super) const LINE: &[&str] = &["type", "message"];

/// Every field of a message.
pub(super) const MESSAGE: &[&str] = &[
    "role",
    "content",
    "reasoningContent",
    "toolCalls",
    "toolCallId",
    "timestamp",
    "model",
];

/// Every field of a call.
pub(super) const CALL: &[&str] = &["id", "type", "function"];
