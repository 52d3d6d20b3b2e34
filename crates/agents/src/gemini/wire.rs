//! What stands in a session.

use quipu_model::Usage;
use quipu_model::json::Node;

/// Every field that a document, or the first line of a journal, has been seen to have.
pub(super) const SESSION_FIELDS: &[&str] = &[
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "messages",
    "kind",
    "summary",
    "directories",
    "activeExtensionName",
    "memoryScratchpad",
];

/// Every field of a message.
pub(super) const MESSAGE_FIELDS: &[&str] = &[
    "id",
    "timestamp",
    "type",
    "content",
    "displayContent",
    "thoughts",
    "tokens",
    "model",
    "toolCalls",
];

/// Every field of a tool call.
pub(super) const CALL_FIELDS: &[&str] = &[
    "id",
    "name",
    "args",
    "result",
    "status",
    "timestamp",
    "agentId",
    "displayName",
    "description",
    "resultDisplay",
    "renderOutputAsMarkdown",
];

/// Every field of token counts.
pub(super) const TOKEN_FIELDS: &[&str] =
    &["input", "output", "cached", "thoughts", "tool", "total"];

/// The kinds of message.
pub(super) const MESSAGE_TYPES: [&str; 5] = ["user", "gemini", "info", "error", "warning"];

/// Token counts of a message: what was cached is part of the input, thoughts come on top of the output,
/// and what tools put into the prompt comes on top of the input.
pub(super) fn tokens(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    disjoint(&Counts {
        prompt: count("input"),
        cached: count("cached"),
        candidates: count("output"),
        thoughts: count("thoughts"),
        tool: count("tool"),
    })
}

/// Token counts in the terms of the Gemini API.
pub(super) struct Counts {
    /// The prompt, with what was cached of it.
    pub(super) prompt: Option<u64>,
    /// What of the prompt was cached.
    pub(super) cached: Option<u64>,
    /// The answer, without thoughts.
    pub(super) candidates: Option<u64>,
    /// The thoughts.
    pub(super) thoughts: Option<u64>,
    /// What tools of the vendor put into the prompt.
    pub(super) tool: Option<u64>,
}

/// The counts in buckets that do not overlap.
pub(super) fn disjoint(counts: &Counts) -> Option<Usage> {
    let cached = counts.cached.unwrap_or(0);
    let input = counts
        .prompt
        .map(|prompt| prompt.saturating_sub(cached))
        .map(|input| input.saturating_add(counts.tool.unwrap_or(0)));
    let output = match (counts.candidates, counts.thoughts) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let usage = Usage {
        input,
        cache_read: counts.cached,
        cache_write: None,
        cache_write_1h: None,
        output,
        reasoning: counts.thoughts,
    };
    (!usage.is_empty()).then_some(usage)
}

/// Fields of a message that have a place of their own.
pub(super) const MESSAGE_MAPPED: &[&str] = &[
    "id",
    "timestamp",
    "type",
    "content",
    "thoughts",
    "toolCalls",
    "tokens",
    "model",
];

/// Counts that have a place of their own.
pub(super) const TOKENS_MAPPED: &[&str] = &["input", "output", "cached", "thoughts", "tool"];

/// Fields of a call that have a place of their own, with it or with its result.
pub(super) const CALL_MAPPED: &[&str] = &[
    "id",
    "name",
    "args",
    "result",
    "resultDisplay",
    "timestamp",
    "agentId",
];
