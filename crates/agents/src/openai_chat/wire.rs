//! What stands in a body, and in a chunk.

/// Every field of a response.
pub(super) const COMPLETION: &[&str] = &[
    "id",
    "object",
    "created",
    "model",
    "choices",
    "usage",
    "service_tier",
    "system_fingerprint",
    "obfuscation",
    "usage_breakdown",
    "x_groq",
    "prompt_filter_results",
    "provider",
    "citations",
    "metadata",
    "error",
    "timings",
];

/// Every field of a choice.
pub(super) const CHOICE: &[&str] = &[
    "index",
    "message",
    "delta",
    "text",
    "finish_reason",
    "native_finish_reason",
    "logprobs",
    "content_filter_results",
    "stop_reason",
];

/// Every field of a message.
pub(super) const MESSAGE: &[&str] = &[
    "role",
    "content",
    "name",
    "refusal",
    "annotations",
    "audio",
    "images",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "cache_control",
    "prefix",
];

/// Every field of a usage.
pub(super) const USAGE: &[&str] = &[
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "cached_tokens",
    "queue_time",
    "prompt_time",
    "completion_time",
    "total_time",
    "num_sources_used",
    "cost_in_usd_ticks",
    "cost",
    "cost_details",
    "is_byok",
    "latency_checkpoint",
];

/// Every field of a request that is no setting.
pub(super) const CONVERSATION: &[&str] = &["messages"];

/// Fields of a response that have a place of their own.
pub(super) const COMPLETION_MAPPED: &[&str] = &["id", "created", "model", "choices", "usage"];

/// Fields of a choice that have a place of their own.
pub(super) const CHOICE_MAPPED: &[&str] = &["message", "finish_reason"];

/// The other fields of a choice. They are kept of the first; of others they are counted.
pub(super) const CHOICE_REST: &[&str] = &[
    "index",
    "logprobs",
    "native_finish_reason",
    "stop_reason",
    "content_filter_results",
];

/// Fields of a usage that have a place of their own.
pub(super) const USAGE_MAPPED: &[&str] = &["prompt_tokens", "completion_tokens"];

/// Fields of a piece of a stream that reach no event.
pub(super) const CHUNK_REST: &[&str] = &[
    "obfuscation",
    "system_fingerprint",
    "usage_breakdown",
    "x_groq",
    "prompt_filter_results",
    "provider",
    "citations",
    "metadata",
    "timings",
];

/// Fields of a usage in a stream that reach no event.
pub(super) const USAGE_REST: &[&str] = &[
    "prompt_cache_miss_tokens",
    "queue_time",
    "prompt_time",
    "completion_time",
    "total_time",
    "num_sources_used",
    "cost_details",
    "is_byok",
    "latency_checkpoint",
];
