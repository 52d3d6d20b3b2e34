//! What keys objects have: type, whether they have to be there, and since which version 1.x.

/// The keys of an object.
pub(super) type Shape = [Field];

/// A key.
pub(super) struct Field {
    pub(super) key: &'static str,
    pub(super) kind: Type,
    pub(super) required: bool,
    pub(super) since: u32,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Count,
    Number,
    Bool,
    List,
    Object,
    /// A text, or parts.
    Content,
    /// A word or a number.
    Effort,
}

impl Type {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Count => "a count",
            Self::Number => "a number",
            Self::Bool => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Content => "a text or a list of parts",
            Self::Effort => "a text or a number",
        }
    }
}

const fn must(key: &'static str, kind: Type) -> Field {
    Field {
        key,
        kind,
        required: true,
        since: 0,
    }
}

const fn may(key: &'static str, kind: Type) -> Field {
    since(0, key, kind)
}

const fn since(since: u32, key: &'static str, kind: Type) -> Field {
    Field {
        key,
        kind,
        required: false,
        since,
    }
}

pub(super) const TRAJECTORY: &Shape = &[
    must("schema_version", Type::Text),
    may("session_id", Type::Text),
    since(7, "trajectory_id", Type::Text),
    must("agent", Type::Object),
    must("steps", Type::List),
    may("notes", Type::Text),
    may("final_metrics", Type::Object),
    may("continued_trajectory_ref", Type::Text),
    since(1, "extra", Type::Object),
    since(7, "subagent_trajectories", Type::List),
];

pub(super) const AGENT: &Shape = &[
    must("name", Type::Text),
    must("version", Type::Text),
    may("model_name", Type::Text),
    since(5, "tool_definitions", Type::List),
    may("extra", Type::Object),
];

pub(super) const STEP: &Shape = &[
    must("step_id", Type::Count),
    may("timestamp", Type::Text),
    must("source", Type::Text),
    must("message", Type::Content),
    may("extra", Type::Object),
    may("is_copied_context", Type::Bool),
    since(7, "llm_call_count", Type::Count),
    may("observation", Type::Object),
    may("model_name", Type::Text),
    may("reasoning_effort", Type::Effort),
    may("reasoning_content", Type::Text),
    may("tool_calls", Type::List),
    may("metrics", Type::Object),
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
    must("tool_call_id", Type::Text),
    must("function_name", Type::Text),
    must("arguments", Type::Object),
    since(7, "extra", Type::Object),
];

pub(super) const OBSERVATION: &Shape = &[must("results", Type::List)];

pub(super) const RESULT: &Shape = &[
    may("source_call_id", Type::Text),
    may("content", Type::Content),
    may("subagent_trajectory_ref", Type::List),
    since(7, "extra", Type::Object),
];

pub(super) const REF: &Shape = &[
    since(7, "trajectory_id", Type::Text),
    may("trajectory_path", Type::Text),
    may("session_id", Type::Text),
    may("extra", Type::Object),
];

pub(super) const METRICS: &Shape = &[
    may("prompt_tokens", Type::Count),
    may("completion_tokens", Type::Count),
    may("cached_tokens", Type::Count),
    may("cost_usd", Type::Number),
    since(4, "prompt_token_ids", Type::List),
    since(3, "completion_token_ids", Type::List),
    may("logprobs", Type::List),
    may("extra", Type::Object),
];

pub(super) const FINAL_METRICS: &Shape = &[
    may("total_prompt_tokens", Type::Count),
    may("total_completion_tokens", Type::Count),
    may("total_cached_tokens", Type::Count),
    may("total_cost_usd", Type::Number),
    may("total_steps", Type::Count),
    may("extra", Type::Object),
];

pub(super) const TEXT: &Shape = &[must("type", Type::Text), must("text", Type::Text)];

pub(super) const MEDIA: &Shape = &[must("type", Type::Text), must("source", Type::Object)];

pub(super) const IMAGE: &Shape = &[must("media_type", Type::Text), must("path", Type::Text)];

pub(super) const AUDIO: &Shape = &[
    must("media_type", Type::Text),
    must("path", Type::Text),
    may("duration_sec", Type::Number),
];

/// The media types that images may have.
pub(super) const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
