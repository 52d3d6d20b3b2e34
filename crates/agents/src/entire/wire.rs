//! The fields of a line.

/// Every field of a line.
pub(super) const LINE: &[&str] = &[
    "v",
    "type",
    "agent",
    "cli_version",
    "ts",
    "id",
    "input_tokens",
    "output_tokens",
    "content",
];

/// Every field of a tool call.
pub(super) const CALL: &[&str] = &["type", "id", "name", "input", "result"];

/// Every field of its result.
pub(super) const RESULT: &[&str] = &["output", "status", "file", "matchCount"];
