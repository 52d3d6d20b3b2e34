//! What stands in a line, and in the settings beside the log.

use quipu_model::Usage;
use quipu_model::json::Node;

/// Every field that lines of a session have been seen to have.
pub(super) const FIELDS: &[&str] = &[
    "type",
    "id",
    "parentId",
    "timestamp",
    "sessionId",
    // The beginning.
    "title",
    "sessionTitle",
    "isSessionTitleManuallySet",
    "sessionTitleAutoStage",
    "owner",
    "version",
    "cwd",
    "workspace_root",
    "created_at",
    "session",
    "hostId",
    "callingSessionId",
    "callingToolUseId",
    "parentSessionId",
    // The rest.
    "message",
    "metadata",
    "compactionSummaryId",
    "todos",
    "messageIndex",
    "summary",
    "summaryText",
    "summaryKind",
    "summaryTokens",
    "anchorMessage",
    "removedCount",
    "systemInfo",
    "reason",
];

/// Every field that messages have been seen to have.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "role",
    "content",
    "model",
    "visibility",
    "hookEventName",
    "hookResults",
    "hookCommand",
    "id",
    "openaiMessageId",
    "openaiEncryptedContent",
    "openaiReasoningId",
    "chatCompletionReasoningField",
    "chatCompletionReasoningContent",
];

/// Every field that lines of a stream have been seen to have.
pub(super) const STREAM_FIELDS: &[&str] = &[
    "type",
    "subtype",
    "id",
    "session_id",
    "sessionId",
    "timestamp",
    "cwd",
    "model",
    "tools",
    "reasoning_effort",
    "role",
    "text",
    "messageId",
    "toolCallId",
    "toolId",
    "toolName",
    "parameters",
    "isError",
    "value",
    "error",
    "finalText",
    "numTurns",
    "durationMs",
    "usage",
    "source",
    "message",
];

/// The tokens of a session, from the settings beside it.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let mut usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheCreationTokens"),
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: count("thinkingTokens"),
    };
    // Some models' thinking is counted apart from what they say. More thinking than output tells.
    if usage.reasoning > usage.output {
        let sum = usage
            .output
            .unwrap_or(0)
            .saturating_add(usage.reasoning.unwrap_or(0));
        usage.output = Some(sum);
    }
    (!usage.is_empty()).then_some(usage)
}

/// The session that a line is of.
pub(super) fn session(record: Node<'_>) -> Option<std::borrow::Cow<'_, str>> {
    record.text("session_id").or(record.text("sessionId"))
}
