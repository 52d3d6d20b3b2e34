//! What stands in a body, and in an event.

/// Every field of a response.
pub(super) const MESSAGE: &[&str] = &[
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "container",
    "context_management",
];

/// Every field of a usage.
pub(super) const USAGE: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens_details",
    "service_tier",
    "server_tool_use",
    "iterations",
    "inference_geo",
    "fallback_credit",
    "speed",
];

/// Every field of an event.
pub(super) const EVENT: &[&str] = &[
    "type",
    "message",
    "index",
    "content_block",
    "delta",
    "usage",
    "context_management",
];

/// Every field of a block, whatever its kind.
pub(super) const BLOCK: &[&str] = &[
    "type",
    "text",
    "citations",
    "thinking",
    "signature",
    "data",
    "id",
    "name",
    "input",
    "caller",
    "server_name",
    "tool_use_id",
    "content",
    "is_error",
    "cache_control",
    "source",
    "title",
    "context",
    "encrypted_content",
    "from",
    "to",
    "trigger",
    "file_id",
];

/// Every field of a request that is no setting.
pub(super) const CONVERSATION: &[&str] = &["messages", "system"];

/// Fields of a response that have a place of their own, or are kept with its end.
pub(super) const MESSAGE_MAPPED: &[&str] = &[
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "usage",
    "stop_sequence",
    "stop_details",
    "container",
    "context_management",
];

/// Fields of a usage that have a place of their own, or are kept with the end of the response.
pub(super) const USAGE_MAPPED: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens_details",
    "server_tool_use",
    "iterations",
    "fallback_credit",
];

/// What a response says of its end beside why.
pub(super) const END: &[&str] = &[
    "stop_sequence",
    "stop_details",
    "container",
    "context_management",
    "server_tool_use",
    "iterations",
    "fallback_credit",
];
