//! What stands in a trajectory.

use quipu_model::Usage;
use quipu_model::json::{Kind, Node};

/// The lists that are read item by item.
pub(super) const LISTS: &[&str] = &["steps", "subagent_trajectories"];

/// Every field of a trajectory.
pub(super) const TRAJECTORY: &[&str] = &[
    "schema_version",
    "session_id",
    "trajectory_id",
    "agent",
    "steps",
    "notes",
    "final_metrics",
    "continued_trajectory_ref",
    "extra",
    "subagent_trajectories",
];

/// Every field of the agent.
pub(super) const AGENT: &[&str] = &["name", "version", "model_name", "tool_definitions", "extra"];

/// Every field of a step.
pub(super) const STEP: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "message",
    "extra",
    "is_copied_context",
    "llm_call_count",
    "observation",
    "model_name",
    "reasoning_effort",
    "reasoning_content",
    "tool_calls",
    "metrics",
];

/// The fields of a step that become something; what is left is kept in a note.
pub(super) const READ: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "message",
    "is_copied_context",
    "llm_call_count",
    "observation",
    "model_name",
    "reasoning_content",
    "tool_calls",
    "metrics",
    "extra",
];

/// Every field of a call.
pub(super) const CALL: &[&str] = &["tool_call_id", "function_name", "arguments", "extra"];

/// Every field of a result.
pub(super) const RESULT: &[&str] = &[
    "source_call_id",
    "content",
    "subagent_trajectory_ref",
    "extra",
];

/// Every field of the counts.
pub(super) const METRICS: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cost_usd",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "extra",
];

/// The counts that become something.
const COUNTS: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cost_usd",
];

/// The counts beside them that become something.
const MORE_COUNTS: &[&str] = &[
    "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens",
    "reasoning_tokens",
];

/// The minor version: 7 for 1.7.
pub(super) fn version(text: &str) -> Option<u32> {
    text.strip_prefix("ATIF-v1.")?.parse().ok()
}

/// The tokens of a step. Before 1.2, what was read from a cache was no part of the prompt.
pub(super) fn usage(metrics: Node<'_>, version: u32) -> Option<Usage> {
    let count = |key: &str| metrics.get(key).and_then(|n| n.as_u64());
    let more = |key: &str| metrics.path(&["extra", key]).and_then(|n| n.as_u64());
    let cached = count("cached_tokens");
    let written = more("cache_creation_input_tokens");
    let inside = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let usage = Usage {
        input: count("prompt_tokens").map(|prompt| {
            if version < 2 {
                prompt
            } else {
                prompt.saturating_sub(inside)
            }
        }),
        cache_read: cached,
        cache_write: written,
        cache_write_1h: more("cache_creation_1h_input_tokens"),
        output: count("completion_tokens"),
        reasoning: more("reasoning_tokens"),
    };
    (!usage.is_empty()).then_some(usage)
}

/// Whether the counts hold something that no usage has a place for.
pub(super) fn says_more(metrics: Node<'_>) -> bool {
    metrics.kind() != Kind::Object
        || metrics.fields().any(|(key, value)| {
            if key.is("extra") && value.kind() == Kind::Object {
                let mut inside = value.fields();
                inside.any(|(key, _)| !MORE_COUNTS.iter().any(|known| key.is(known)))
            } else {
                !value.is_null() && !COUNTS.iter().any(|known| key.is(known))
            }
        })
}

/// Whether a step was copied from an earlier trajectory.
pub(super) fn is_copied(step: Node<'_>) -> bool {
    step.get("is_copied_context").and_then(|it| it.as_bool()) == Some(true)
}

/// What Quipu itself put there.
pub(super) fn own(node: Node<'_>) -> Option<Node<'_>> {
    node.path(&["extra", "quipu"])
}

/// Whether Quipu set this mark.
pub(super) fn marked(own: Option<Node<'_>>, key: &str) -> bool {
    own.and_then(|own| own.get(key))
        .and_then(|mark| mark.as_bool())
        == Some(true)
}

/// Whether there is something under `extra` besides these.
pub(super) fn has_extra(node: Node<'_>, known: &[&str]) -> bool {
    node.get("extra").is_some_and(|extra| match extra.kind() {
        Kind::Object => extra
            .fields()
            .any(|(key, _)| !known.iter().any(|known| key.is(known))),
        Kind::Null => false,
        _ => true,
    })
}
