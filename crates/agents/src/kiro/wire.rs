//! What stands in lines and documents.

/// Every field that lines of the older form have been seen to have.
pub(super) const FIELDS: &[&str] = &["version", "kind", "data"];

/// Every field that their data has been seen to have.
pub(super) const DATA_FIELDS: &[&str] = &[
    "message_id",
    "messageId",
    "content",
    "meta",
    "results",
    "summary",
    "timestamp",
    "model_id",
    "request_id",
];

/// Every field that lines of the newer form have been seen to have.
pub(super) const EVENT_FIELDS: &[&str] = &[
    "id",
    "parentId",
    "timestamp",
    "payload",
    "version",
    "sessionId",
    "executionId",
    "type",
];

/// Every field that conversations have been seen to have.
pub(super) const CONVERSATION_FIELDS: &[&str] = &[
    "conversation_id",
    "history",
    "next_message",
    "valid_history_range",
    "transcript",
    "tools",
    "context_manager",
    "context_message_length",
    "latest_summary",
    "model",
    "model_info",
    "file_line_tracker",
    "checkpoint_manager",
    "mcp_enabled",
    "user_turn_metadata",
    "tangent_state",
];

/// Every field that turns have been seen to have.
pub(super) const TURN_FIELDS: &[&str] = &["user", "assistant", "request_metadata"];

/// Every field that executions have been seen to have.
pub(super) const CHAT_FIELDS: &[&str] = &[
    "executionId",
    "actionId",
    "context",
    "validations",
    "chat",
    "metadata",
];
