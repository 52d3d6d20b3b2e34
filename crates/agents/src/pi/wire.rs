//! What stands in a line.

use std::borrow::Cow;

use quipu_model::Usage;
use quipu_model::json::Node;

/// Every field that lines have been seen to have.
pub(super) const FIELDS: &[&str] = &[
    "type",
    "id",
    "parentId",
    "timestamp",
    // The header, and the line before it.
    "version",
    "cwd",
    "additionalDirectories",
    "parentSession",
    "branchedFrom",
    "previousSessionFiles",
    "providerPromptCacheKey",
    "title",
    "titleSource",
    "v",
    "updatedAt",
    "pad",
    "source",
    // Entries.
    "message",
    "provider",
    "modelId",
    "model",
    "role",
    "resolvedModelIsFallback",
    "thinkingLevel",
    "configured",
    "serviceTier",
    "mode",
    "data",
    "customType",
    "content",
    "display",
    "details",
    "attribution",
    "summary",
    "shortSummary",
    "firstKeptEntryId",
    "firstKeptEntryIndex",
    "tokensBefore",
    "tokensAfter",
    "retainedTail",
    "method",
    "providerReplayThroughEntryId",
    "preserveData",
    "fromExtension",
    "fromHook",
    "fromId",
    "warning",
    "usage",
    "purpose",
    "api",
    "stopReason",
    "errorMessage",
    "name",
    "label",
    "targetId",
    "archived",
    "previousTitle",
    "trigger",
    "injectedRules",
    "hash",
    "schemaVersion",
    "transformerName",
    "patch",
    "messages",
    // The beginning of a sub-agent.
    "systemPrompt",
    "task",
    "tools",
    "agent",
    "modelRole",
    "resolvedModel",
    "retryFallback",
    "readOnly",
    "readSummarize",
    "outputSchema",
    "outputSchemaMode",
    "restrictToolNames",
    "spawns",
    "advisor",
    "compactionThreshold",
    "isolated",
    "workPoolYieldItems",
];

/// Every field that messages have been seen to have.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "role",
    "content",
    "timestamp",
    "api",
    "provider",
    "model",
    "responseModel",
    "responseId",
    "usage",
    "stopReason",
    "errorMessage",
    "errorStatus",
    "errorId",
    "diagnostics",
    "duration",
    "ttft",
    "contextSnapshot",
    "providerPayload",
    "toolCallId",
    "toolName",
    "isError",
    "details",
    "prunedAt",
    "command",
    "code",
    "output",
    "exitCode",
    "cancelled",
    "truncated",
    "fullOutputPath",
    "excludeFromContext",
    "images",
    "meta",
    "customType",
    "display",
    "summary",
    "fromId",
    "tokensBefore",
    "files",
    "attribution",
    "synthetic",
    "steering",
    "attachments",
];

/// Every field of a usage.
pub(super) const USAGE_FIELDS: &[&str] = &[
    "input",
    "output",
    "cacheRead",
    "cacheWrite",
    "cacheWrite1h",
    "reasoning",
    "reasoningTokens",
    "orchestration",
    "premiumRequests",
    "cttl",
    "server",
    "totalTokens",
    "cost",
];

/// Token counts, which are disjoint already; reasoning is inside the output.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("input"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        cache_write_1h: None,
        output: count("output"),
        reasoning: count("reasoning").or(count("reasoningTokens")),
    };
    (!usage.is_empty()).then_some(usage)
}

/// The id of the session that a file is of: what comes after the time in its name, or all of it.
pub(super) fn session_of(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    let id = stem.split_once('_').map_or(stem, |(_, id)| id);
    (!id.is_empty()).then_some(id)
}

/// The id in the name of a directory that is named like a session: `<time>_<id>`.
pub(super) fn session_of_directory(name: &str) -> Option<&str> {
    let (time, id) = name.split_once('_')?;
    let is_time = time.len() >= 19
        && time.ends_with('Z')
        && time
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'T' | b'Z'));
    (is_time && !id.is_empty()).then_some(id)
}

/// The model that a line says it changed to.
pub(super) fn model(record: Node<'_>) -> Option<Cow<'_, str>> {
    let model = record.text("modelId").or(record.text("model"))?;
    Some(match record.text("provider") {
        Some(provider) => Cow::Owned(format!("{provider}/{model}")),
        None => model,
    })
}

/// The whole part of a count that may have a fraction.
pub(super) fn whole(node: Node<'_>) -> Option<u64> {
    let text = node.raw().get();
    text.split('.').next().unwrap_or(text).parse().ok()
}
