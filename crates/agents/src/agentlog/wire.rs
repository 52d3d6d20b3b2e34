//! What stands in a record.

use std::borrow::Cow;

use quipu_model::Usage;
use quipu_model::json::{Kind, Node};

use crate::openai_chat::message;

/// Every field of an envelope.
pub(super) const ENVELOPE: &[&str] = &["version", "id", "kind", "ts", "parent", "meta", "payload"];

/// Every field of each kind of payload.
pub(super) const METADATA: &[&str] = &[
    "sdk",
    "tags",
    "runtime",
    "baseline_of",
    "imported_from",
    "partial_replay",
    "agent_card",
    "a2a_events",
];
pub(super) const REQUEST: &[&str] = &["model", "messages", "params", "tools", "system_fingerprint"];
pub(super) const RESPONSE: &[&str] = &[
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "usage",
    "latency_ms",
    "stream_timings",
    "batch",
];
pub(super) const USAGE: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "cached_input_tokens",
    "cached_write_5m_tokens",
    "cached_write_1h_tokens",
    "service_tier",
];
pub(super) const CALL: &[&str] = &["tool_name", "tool_call_id", "arguments"];
pub(super) const RESULT: &[&str] = &[
    "tool_call_id",
    "output",
    "is_error",
    "latency_ms",
    "tool_name",
];
pub(super) const ERROR: &[&str] = &["source", "code", "message", "retriable", "upstream_status"];
pub(super) const REPLAY: &[&str] = &[
    "baseline_trace_id",
    "backend_id",
    "input_count",
    "output_count",
    "error_count",
    "duration_ms",
    "branch_at",
    "prefix_turn_count",
];
pub(super) const CHUNK: &[&str] = &["chunk_index", "time_unix_nano", "delta", "is_final"];
pub(super) const HARNESS: &[&str] = &["category", "name", "severity", "attributes"];
pub(super) const BLOB: &[&str] = &["mime", "size_bytes", "blob_id", "uri", "phash", "embedding"];

/// What of a response becomes events of its own, or is put on them.
pub(super) const TOLD: &[&str] = &[
    "model",
    "content",
    "stop_reason",
    "usage",
    "latency_ms",
    "batch",
    "role",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "refusal",
    "tool_calls",
    "function_call",
];

/// A line, taken apart.
#[derive(Default)]
pub(super) struct Record<'a> {
    pub(super) id: Option<Node<'a>>,
    pub(super) kind: Option<Node<'a>>,
    pub(super) ts: Option<Node<'a>>,
    pub(super) parent: Option<Node<'a>>,
    pub(super) meta: Option<Node<'a>>,
    pub(super) payload: Option<Node<'a>>,
}

impl<'a> Record<'a> {
    pub(super) fn of(line: Node<'a>) -> Self {
        let mut record = Self::default();
        for (key, value) in line.fields() {
            match key.plain() {
                Some("id") => record.id = Some(value),
                Some("kind") => record.kind = Some(value),
                Some("ts") => record.ts = Some(value),
                Some("parent") => record.parent = Some(value),
                Some("meta") => record.meta = Some(value),
                Some("payload") => record.payload = Some(value),
                _ => {}
            }
        }
        record
    }
}

/// Whether a trace was written by Quipu, by the payload of its root.
pub(super) fn is_ours(root: Node<'_>) -> bool {
    root.path(&["sdk", "name"])
        .is_some_and(|name| name.is("quipu"))
}

/// The agent whose session a trace was made of, by the payload of its root.
pub(super) fn agent<'a>(root: Node<'a>) -> Option<Cow<'a, str>> {
    let said = |node: Option<Node<'a>>| node?.as_str().filter(|agent| !agent.is_empty());
    said(root.path(&["tags", "agent"]))
        .or_else(|| said(root.path(&["imported_from", "agent"])))
        .or_else(|| said(root.get("imported_from")))
}

/// The session or run that Quipu made a trace of, in its agent's own terms, by the payload of its root.
pub(super) fn original(root: Node<'_>) -> Option<Cow<'_, str>> {
    if !is_ours(root) {
        return None;
    }
    let id = match agent(root) {
        Some(agent) => {
            crate::registry::brand(&agent)?;
            root.path(&["imported_from", "session_id"])
        }
        // A run that was recorded has no agent.
        None if root.get("imported_from").is_none() => root.path(&["tags", "run"]),
        None => None,
    };
    id?.as_str().filter(|id| !id.is_empty())
}

/// A count, or a time in milliseconds. Programs that count in floating point write `100.0`.
pub(super) fn count(node: Node<'_>) -> Option<u64> {
    if node.kind() != Kind::Number {
        return None;
    }
    node.as_u64().or_else(|| {
        let count = node.as_f64()?;
        (count.is_finite() && count >= 0.0).then(|| format!("{count:.0}").parse().ok())?
    })
}

/// Token counts, in disjoint buckets.
///
/// The specification's names are those of Anthropic: what was read from or written to a cache is not in the
/// input. Recorders of Shadow write `cached_input_tokens` instead, taken as the vendor gave it: beside the input
/// for Anthropic's models, inside it for all others. Reasoning is part of the output, as both vendors count
/// it; where it is more than all of the output, it can only have been counted beside it.
pub(super) fn usage(node: Node<'_>, model: &str) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(count);
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    if input.is_none() && output.is_none() {
        return message::usage(node);
    }
    let thinking = count("thinking_tokens");
    let (read, cached) = (
        count("cache_read_input_tokens"),
        count("cached_input_tokens"),
    );
    let inside = cached.filter(|cached| {
        read.is_none() && !model.contains("claude") && input.is_some_and(|input| *cached <= input)
    });
    let hour = count("cached_write_1h_tokens").or_else(|| {
        let hour = node.path(&["cache_creation", "ephemeral_1h_input_tokens"])?;
        self::count(hour)
    });
    let written = count("cache_creation_input_tokens").or_else(|| {
        let minutes = count("cached_write_5m_tokens");
        minutes.or(hour)?;
        let sum = minutes.unwrap_or(0).saturating_add(hour.unwrap_or(0));
        Some(sum)
    });
    Some(Usage {
        input: input.map(|input| input - inside.unwrap_or(0)),
        cache_read: read.or(cached),
        cache_write: written,
        cache_write_1h: hour,
        output: match (output, thinking) {
            (Some(output), Some(thinking)) if thinking > output => {
                Some(output.saturating_add(thinking))
            }
            _ => output,
        },
        reasoning: thinking,
    })
}
