//! What stands in the messages of each.

/// Every field of a message of Vibe.
pub(super) const VIBE: &[&str] = &[
    "role",
    "content",
    "message_id",
    "tool_calls",
    "tool_call_id",
    "name",
    "reasoning_content",
    "reasoning_state",
    "reasoning_message_id",
    "reasoning_signature",
    "injected",
    "images",
];

/// Every field of a message of gptme.
pub(super) const GPTME: &[&str] = &[
    "role",
    "content",
    "timestamp",
    "metadata",
    "pinned",
    "hide",
    "quiet",
    "files",
    "file_hashes",
    "call_id",
];

/// Every field of a message of Hermes, and of a row of its messages.
pub(super) const HERMES: &[&str] = &[
    "id",
    "session_id",
    "role",
    "content",
    "timestamp",
    "token_count",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
    "platform_message_id",
    "observed",
    "active",
];

/// Every field of a session of Hermes.
pub(super) const HERMES_SESSION: &[&str] = &[
    "session_id",
    "model",
    "base_url",
    "platform",
    "session_start",
    "last_updated",
    "cwd",
    "system_prompt",
    "tools",
    "message_count",
    "messages",
];

/// Every field of a record of Muse.
pub(super) const MUSE: &[&str] = &[
    "schema_version",
    "id",
    "stream",
    "sequence",
    "recorded_at",
    "record_type",
    "durability",
    "causation_id",
    "payload_type",
    "payload_schema_version",
    "payload",
];

/// Every field of an event of `OpenHands`.
pub(super) const OPENHANDS: &[&str] = &[
    "id",
    "timestamp",
    "source",
    "kind",
    "llm_message",
    "llm_response_id",
    "activated_skills",
    "activated_microagents",
    "extended_content",
    "sender",
    "thought",
    "reasoning_content",
    "thinking_blocks",
    "responses_reasoning_item",
    "action",
    "tool_name",
    "tool_call_id",
    "tool_call",
    "security_risk",
    "critic_result",
    "summary",
    "observation",
    "action_id",
    "error",
    "rejection_reason",
    "rejection_source",
    "system_prompt",
    "dynamic_context",
    "tools",
    "key",
    "value",
    "code",
    "detail",
    "forgotten_event_ids",
    "summary_offset",
];
