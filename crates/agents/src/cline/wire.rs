//! What stands in the documents.

use quipu_model::Usage;
use quipu_model::json::Node;

use crate::Text;

/// The conversation with the model.
pub(super) const HISTORY_FILE: &str = "api_conversation_history.json";
/// What was shown to the person.
pub(super) const SHOWN_FILE: &str = "ui_messages.json";
/// The same, as it was called at first.
pub(super) const OLD_SHOWN_FILE: &str = "claude_messages.json";
/// Which models and files were used.
pub(super) const META_FILE: &str = "task_metadata.json";
/// What a list of tasks shows of it.
pub(super) const ITEM_FILE: &str = "history_item.json";
/// What is written before all of these: which there are.
pub(super) const TASK_FILE: &str = "task";

/// Every file that lines are of.
pub(super) const FILES: &[&str] = &[TASK_FILE, HISTORY_FILE, SHOWN_FILE, META_FILE];

/// Every field that messages of the conversation have been seen to have.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "role",
    "content",
    "ts",
    "id",
    "type",
    "modelInfo",
    "metrics",
    "isSummary",
    "condenseId",
    "condenseParent",
    "truncationId",
    "truncationParent",
    "isTruncationMarker",
    "reasoning_details",
    "reasoning_content",
    "summary",
    "encrypted_content",
];

/// Every field that what was shown has been seen to have.
pub(super) const SHOWN_FIELDS: &[&str] = &[
    "ts",
    "type",
    "say",
    "ask",
    "text",
    "reasoning",
    "images",
    "files",
    "partial",
    "commandCompleted",
    "lastCheckpointHash",
    "isCheckpointCheckedOut",
    "isOperationOutsideWorkspace",
    "conversationHistoryIndex",
    "conversationHistoryDeletedRange",
    "modelInfo",
    "checkpoint",
    "progressStatus",
    "contextCondense",
    "contextTruncation",
    "isProtected",
    "apiProtocol",
    "isAnswered",
    "metadata",
    "mcpServerUse",
    "multiCommandState",
];

/// Every field of what is said of a request.
pub(super) const REQUEST_FIELDS: &[&str] = &[
    "request",
    "tokensIn",
    "tokensOut",
    "cacheWrites",
    "cacheReads",
    "cost",
    "cancelReason",
    "streamingFailedMessage",
    "retryStatus",
    "apiProtocol",
    "usageMissing",
    "inferenceProvider",
];

/// Every field that documents of the newer kind have been seen to have.
pub(super) const SESSION_FIELDS: &[&str] = &[
    "version",
    "updated_at",
    "agent",
    "sessionId",
    "taskType",
    "origin",
    "messages",
    "system_prompt",
    // What lies beside it.
    "session_id",
    "source",
    "pid",
    "started_at",
    "ended_at",
    "exit_code",
    "status",
    "interactive",
    "provider",
    "model",
    "cwd",
    "workspace_root",
    "team_name",
    "enable_tools",
    "enable_spawn",
    "enable_teams",
    "metadata",
    "messages_path",
    "prompt",
    "parent_session_id",
    "parent_agent_id",
    "agent_id",
    "conversation_id",
    "is_subagent",
];

/// Every field that messages of the newer kind have been seen to have.
pub(super) const SESSION_MESSAGE_FIELDS: &[&str] = &[
    "id",
    "role",
    "content",
    "ts",
    "modelInfo",
    "metrics",
    "metadata",
];

/// Some name Roo Code's requests before the whole prompt was counted: it was released on 1 November 2025.
const WHOLE_PROMPT_SINCE_MS: i64 = 1_761_955_200_000;

/// Providers whose prompts Cline counts with what came from the cache.
const WHOLE_PROMPT: [&str; 9] = [
    "openai",
    "litellm",
    "doubao",
    "fireworks",
    "hicap",
    "lmstudio",
    "qwen",
    "xai",
    "zai",
];

/// The tokens of a request that was shown, and whether there are any yet. What `tokensIn` means depends
/// on who wrote it, and when.
pub(super) fn request_usage(
    request: Node<'_>,
    ts: Option<i64>,
    protocol: Option<&str>,
    provider: Option<&str>,
) -> Option<Usage> {
    let count = |key: &str| request.get(key).and_then(|n| n.as_u64());
    let (read, written) = (count("cacheReads"), count("cacheWrites"));
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let told = count("tokensIn");
    let is_whole = match (protocol, provider) {
        // Only Roo Code and its kin name the protocol.
        (Some("anthropic"), _) => ts.is_none_or(|ts| ts >= WHOLE_PROMPT_SINCE_MS),
        (Some(_), _) => true,
        (None, Some(provider)) => WHOLE_PROMPT.contains(&provider),
        (None, None) => false,
    };
    let input = match told {
        Some(told) if is_whole && told >= cached => Some(told - cached),
        told => told,
    };
    let usage = Usage {
        input,
        cache_read: read,
        cache_write: written,
        cache_write_1h: None,
        output: count("tokensOut"),
        reasoning: None,
    };
    (!usage.is_empty()).then_some(usage)
}

/// The tokens of a message of the newer kind, where the whole prompt is counted.
pub(super) fn metrics_usage(metrics: Node<'_>) -> Option<Usage> {
    let count = |key: &str| metrics.get(key).and_then(|n| n.as_u64());
    let (read, written) = (count("cacheReadTokens"), count("cacheWriteTokens"));
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let usage = Usage {
        input: count("inputTokens").map(|all| all.saturating_sub(cached)),
        cache_read: read,
        cache_write: written,
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: None,
    };
    (!usage.is_empty()).then_some(usage)
}

/// Whether a message has what only these agents tell a model.
pub(super) fn is_told(message: Node<'_>) -> bool {
    const MARKS: [&str; 4] = [
        "<task>",
        "<environment_details>",
        "<user_message>",
        "[TASK RESUMPTION]",
    ];
    let is_marked = |text: Text<'_>| MARKS.iter().any(|mark| text.starts_with(mark));
    let Some(content) = message.get("content") else {
        return false;
    };
    Text::of(content).is_some_and(is_marked)
        || content
            .items()
            .filter_map(|block| block.get("text").and_then(Text::of))
            .any(is_marked)
}
