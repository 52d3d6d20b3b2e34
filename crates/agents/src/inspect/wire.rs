//! What stands in a log.

use std::borrow::Cow;
use std::collections::HashMap;

use quipu_model::json::Node;
use quipu_model::{Status, Usage};

use crate::Text;

/// What stands in the place of a long text, before its hash.
const ATTACHMENT: &str = "attachment://";

/// The long texts of a sample, by their hashes.
pub(super) struct Attachments<'a>(HashMap<Cow<'a, str>, Node<'a>>);

impl<'a> Attachments<'a> {
    pub(super) fn of(sample: Node<'a>) -> Self {
        let kept = sample.get("attachments");
        let kept = kept.into_iter().flat_map(Node::fields);
        Self(
            kept.map(|(hash, text)| (hash.to_text_lossy(), text))
                .collect(),
        )
    }

    /// What a value is, where it may stand outside.
    pub(super) fn resolve(&self, node: Node<'a>) -> Node<'a> {
        let hash = node
            .as_raw_str()
            .and_then(|raw| raw.plain()?.strip_prefix(ATTACHMENT));
        hash.and_then(|hash| self.0.get(hash).copied())
            .unwrap_or(node)
    }

    /// A text, wherever it stands.
    pub(super) fn text(&self, node: Node<'a>) -> Option<Text<'a>> {
        Text::of(self.resolve(node))
    }
}

/// Token counts: the buckets of input are disjoint, reasoning is inside the output.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let count = |key: &str| node.get(key).and_then(|n| n.as_u64());
    let usage = Usage {
        input: count("input_tokens"),
        cache_read: count("input_tokens_cache_read"),
        cache_write: count("input_tokens_cache_write"),
        cache_write_1h: None,
        output: count("output_tokens"),
        reasoning: count("reasoning_tokens"),
    };
    (!usage.is_empty()).then_some(usage)
}

/// How a tool failed, by the kind of its error.
pub(super) fn status(kind: &str) -> Status {
    match kind {
        "timeout" => Status::Timeout,
        "permission" | "approval" => Status::Denied,
        _ => Status::Error,
    }
}

/// The messages that a call to a model was given: beside it, or in the pool that all calls of the sample share.
pub(super) fn input<'a>(event: Node<'a>, pool: &[Node<'a>]) -> Vec<Node<'a>> {
    let own: Vec<Node<'a>> = event
        .get("input")
        .into_iter()
        .flat_map(Node::items)
        .collect();
    if !own.is_empty() {
        return own;
    }
    let ranges = event.get("input_refs").into_iter().flat_map(Node::items);
    let place = |node: Option<Node<'_>>| node.and_then(|n| usize::try_from(n.as_u64()?).ok());
    let mut given = Vec::new();
    for range in ranges {
        let mut ends = range.items();
        let (from, to) = (place(ends.next()), place(ends.next()));
        if let (Some(from), Some(to)) = (from, to) {
            given.extend_from_slice(pool.get(from..to.min(pool.len())).unwrap_or_default());
        }
    }
    given
}

/// Seconds, as milliseconds.
pub(super) fn millis(seconds: Node<'_>) -> Option<u64> {
    let millis = seconds.as_f64()? * 1000.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be within range"
    )]
    (0.0..1e15).contains(&millis).then(|| millis.round() as u64)
}
