//! What stands in a line, as far as it takes to know it.

use quipu_model::json::Node;

/// The fields of lines with a role.
pub(super) const ROLE: &[&str] = &[
    "timestamp",
    "role",
    "content",
    "tool_name",
    "tool_input",
    "tool_output",
    "kind",
    "call_id",
    "completed_at",
    "duration_ms",
    "status",
    "success",
    "error",
    "input_is",
    "output_is",
];

/// The fields of lines with a type.
pub(super) const TYPE: &[&str] = &[
    "timestamp",
    "type",
    "role",
    "content",
    "tool",
    "input",
    "success",
    "output",
    "usage",
    "error",
];

/// Whether an object has no other fields.
pub(super) fn only(record: Node<'_>, known: &[&str]) -> bool {
    record
        .fields()
        .all(|(key, _)| known.iter().any(|known| key.is(known)))
}
