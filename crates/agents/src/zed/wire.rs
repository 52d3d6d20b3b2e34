//! The lines of a thread, and their fields.

/// What the lines are filed under: the row of a thread, a message, and the rest of the document.
pub(super) const THREAD: &str = "zed_thread";
pub(super) const MESSAGE: &str = "zed_message";
pub(super) const DOCUMENT: &str = "zed_document";

/// Every column of a thread but its document.
pub(super) const COLUMNS: &[&str] = &[
    "id",
    "parent_id",
    "folder_paths",
    "folder_paths_order",
    "summary",
    "created_at",
    "updated_at",
    "data_type",
];

/// Every field of the document but its messages.
pub(super) const FIELDS: &[&str] = &[
    "title",
    "summary",
    "updated_at",
    "detailed_summary",
    "detailed_summary_state",
    "initial_project_snapshot",
    "cumulative_token_usage",
    "request_token_usage",
    "exceeded_window_error",
    "completion_mode",
    "tool_use_limit_reached",
    "model",
    "profile",
    "imported",
    "subagent_context",
    "speed",
    "thinking_enabled",
    "thinking_effort",
    "version",
];

/// Every field of what a person says, of what the agent says, of a call and of a result.
pub(super) const USER: &[&str] = &["id", "content"];
pub(super) const AGENT: &[&str] = &["content", "tool_results", "reasoning_details"];
pub(super) const CALL: &[&str] = &[
    "id",
    "name",
    "raw_input",
    "input",
    "is_input_complete",
    "thought_signature",
];
pub(super) const RESULT: &[&str] = &["tool_use_id", "tool_name", "is_error", "content", "output"];

/// Every field of a message as it was before.
pub(super) const OLD: &[&str] = &[
    "id",
    "role",
    "segments",
    "tool_uses",
    "tool_results",
    "context",
    "creases",
    "is_hidden",
];
