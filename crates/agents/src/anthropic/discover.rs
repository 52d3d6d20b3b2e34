//! How captures are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::{BODY, CHUNKS, SSE};
use crate::capture::Pair;
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.is_sse() {
        return head
            .records()
            .any(is_event)
            .then_some(SSE)
            .and_then(Match::sure);
    }
    if head.records().any(is_event) {
        return Match::sure(CHUNKS);
    }
    let first = head.first_that(|record| Pair::of(record).is_some())?;
    let framed = match head.document() {
        Some(_) => BODY,
        None => CHUNKS,
    };
    if is_message(first) {
        return Match::sure(framed);
    }
    if is_error(first) || is_request(first) {
        return Match::likely(framed);
    }
    let pair = Pair::of(first)?;
    let asked = pair.request.is_some_and(is_request);
    let answered = pair.response.is_some_and(|response| {
        is_message(response) || response.items().next().is_some_and(is_event)
    });
    if answered {
        return Match::sure(framed);
    }
    asked.then_some(framed).and_then(Match::likely)
}

/// Whether it is an event of a stream.
fn is_event(record: Node<'_>) -> bool {
    let Some(kind) = record.text("type") else {
        return false;
    };
    match &*kind {
        "message_start" => record.get("message").is_some_and(is_message),
        "content_block_start" => record.get("content_block").is_some(),
        "content_block_delta" => record.get("delta").is_some() && record.get("index").is_some(),
        _ => false,
    }
}

/// Whether it is the body of a response.
fn is_message(record: Node<'_>) -> bool {
    let is = |key: &str, text: &str| record.get(key).is_some_and(|node| node.is(text));
    is("type", "message")
        && is("role", "assistant")
        && record
            .get("content")
            .is_some_and(|c| c.kind() == Kind::List)
        && record.get("model").is_some()
        && record.get("stop_reason").is_some()
}

fn is_error(record: Node<'_>) -> bool {
    record.get("type").is_some_and(|kind| kind.is("error"))
        && record
            .get("error")
            .is_some_and(|error| error.get("type").is_some() && error.get("message").is_some())
}

/// Whether it is the body of a request. Others have messages too; only here are the instructions apart
/// from them, and tools have a schema of their own.
fn is_request(record: Node<'_>) -> bool {
    let roles = |message: Node<'_>| {
        message
            .get("role")
            .is_some_and(|role| role.is("user") || role.is("assistant"))
    };
    let Some(messages) = record.get("messages").filter(|m| m.kind() == Kind::List) else {
        return false;
    };
    let ours = record.get("system").is_some()
        || record.get("anthropic_version").is_some()
        || record
            .text("model")
            .is_some_and(|model| model.contains("claude"))
        || record
            .get("tools")
            .is_some_and(|tools| tools.items().any(|tool| tool.get("input_schema").is_some()));
    record.get("max_tokens").is_some() && ours && messages.items().all(roles)
}
