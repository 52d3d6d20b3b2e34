//! What keys objects have: type, whether they have to be there, and since which version 1.x.

use crate::shape::Wanted;

/// The keys of an object.
pub(super) type Shape = [Field];

/// A key.
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) kind: Wanted,
    pub(super) required: bool,
    pub(super) since: u32,
}

const fn must(key: &'static str, kind: Wanted) -> Field {
    Field {
        key,
        kind,
        required: true,
        since: 0,
    }
}

const fn may(key: &'static str, kind: Wanted) -> Field {
    since(0, key, kind)
}

const fn since(since: u32, key: &'static str, kind: Wanted) -> Field {
    Field {
        key,
        kind,
        required: false,
        since,
    }
}

pub(super) const TRAJECTORY: &Shape = &[
    must("schema_version", Wanted::Text),
    may("session_id", Wanted::Text),
    since(7, "trajectory_id", Wanted::Text),
    must("agent", Wanted::Object),
    must("steps", Wanted::List),
    may("notes", Wanted::Text),
    may("final_metrics", Wanted::Object),
    may("continued_trajectory_ref", Wanted::Text),
    since(1, "extra", Wanted::Object),
    since(7, "subagent_trajectories", Wanted::List),
];

pub(super) const AGENT: &Shape = &[
    must("name", Wanted::Text),
    must("version", Wanted::Text),
    may("model_name", Wanted::Text),
    since(5, "tool_definitions", Wanted::List),
    may("extra", Wanted::Object),
];

pub(super) const STEP: &Shape = &[
    must("step_id", Wanted::Count),
    may("timestamp", Wanted::Text),
    must("source", Wanted::Text),
    must("message", Wanted::TextOrList),
    may("extra", Wanted::Object),
    may("is_copied_context", Wanted::Bool),
    since(7, "llm_call_count", Wanted::Count),
    may("observation", Wanted::Object),
    may("model_name", Wanted::Text),
    may("reasoning_effort", Wanted::TextOrNumber),
    may("reasoning_content", Wanted::Text),
    may("tool_calls", Wanted::List),
    may("metrics", Wanted::Object),
];

/// The keys of a step that only an agent's may have.
pub(super) const AGENT_ONLY: &[&str] = &[
    "model_name",
    "reasoning_effort",
    "reasoning_content",
    "tool_calls",
    "metrics",
];

pub(super) const TOOL_CALL: &Shape = &[
    must("tool_call_id", Wanted::Text),
    must("function_name", Wanted::Text),
    must("arguments", Wanted::Object),
    since(7, "extra", Wanted::Object),
];

pub(super) const OBSERVATION: &Shape = &[must("results", Wanted::List)];

pub(super) const RESULT: &Shape = &[
    may("source_call_id", Wanted::Text),
    may("content", Wanted::TextOrList),
    may("subagent_trajectory_ref", Wanted::List),
    since(7, "extra", Wanted::Object),
];

pub(super) const REF: &Shape = &[
    since(7, "trajectory_id", Wanted::Text),
    may("trajectory_path", Wanted::Text),
    may("session_id", Wanted::Text),
    may("extra", Wanted::Object),
];

pub(super) const METRICS: &Shape = &[
    may("prompt_tokens", Wanted::Count),
    may("completion_tokens", Wanted::Count),
    may("cached_tokens", Wanted::Count),
    may("cost_usd", Wanted::Number),
    since(4, "prompt_token_ids", Wanted::List),
    since(3, "completion_token_ids", Wanted::List),
    may("logprobs", Wanted::List),
    may("extra", Wanted::Object),
];

pub(super) const FINAL_METRICS: &Shape = &[
    may("total_prompt_tokens", Wanted::Count),
    may("total_completion_tokens", Wanted::Count),
    may("total_cached_tokens", Wanted::Count),
    may("total_cost_usd", Wanted::Number),
    may("total_steps", Wanted::Count),
    may("extra", Wanted::Object),
];

pub(super) const TEXT: &Shape = &[must("type", Wanted::Text), must("text", Wanted::Text)];

pub(super) const MEDIA: &Shape = &[must("type", Wanted::Text), must("source", Wanted::Object)];

pub(super) const IMAGE: &Shape = &[must("media_type", Wanted::Text), must("path", Wanted::Text)];

pub(super) const AUDIO: &Shape = &[
    must("media_type", Wanted::Text),
    must("path", Wanted::Text),
    may("duration_sec", Wanted::Number),
];

/// The media types that images may have.
pub(super) const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
