//! What stands in a thread.

use quipu_model::Usage;
use quipu_model::json::Node;

/// Every field that threads have been seen to have.
pub(super) const FIELDS: &[&str] = &[
    "v",
    "id",
    "title",
    "created",
    "updatedAt",
    "agentMode",
    "creatorUserID",
    "pinned",
    "archived",
    "openExpiresAt",
    "env",
    "meta",
    "activatedSkills",
    "messages",
    "nextMessageId",
    "queuedMessages",
    "pendingSkills",
    "draft",
    "autoSubmitDraft",
    "relationships",
    "originThreadID",
    "parentThreadID",
    "mainThreadID",
    "forkedFromThreadID",
    "summaryThreads",
    "debug",
    "~debug",
    "reasoningEffort",
    "cacheControl",
];

/// Every field that messages have been seen to have.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "messageId",
    "protocolMessageID",
    "protocolMessageVersion",
    "dtwMessageID",
    "role",
    "content",
    "readAt",
    "meta",
    "userState",
    "state",
    "usage",
    "agentMode",
    "interrupted",
    "fileMentions",
    "discoveredGuidanceFiles",
    "parentToolUseId",
    "parentToolUseID",
    "turnElapsedMs",
    "reasoningEffort",
];

/// Every field of a usage.
pub(super) const USAGE_FIELDS: &[&str] = &[
    "model",
    "maxInputTokens",
    "inputTokens",
    "outputTokens",
    "cacheCreationInputTokens",
    "cacheReadInputTokens",
    "totalInputTokens",
    "thinkingBudget",
    "timestamp",
    "credits",
];

/// The tokens of a call. What GPT models read without a cache is reported as written to one.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let mut usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_write: count("cacheCreationInputTokens"),
        cache_write_1h: None,
        output: count("outputTokens"),
        reasoning: None,
    };
    let is_gpt = node
        .text("model")
        .is_some_and(|model| model.starts_with("gpt-"));
    if is_gpt && let Some(written) = usage.cache_write.take() {
        usage.input = Some(usage.input.unwrap_or(0).saturating_add(written));
    }
    (!usage.is_empty()).then_some(usage)
}
