//! How captures are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::{BODY, CHUNKS, SSE};
use crate::capture::Pair;
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.is_sse() {
        return head
            .records()
            .any(is_response)
            .then_some(SSE)
            .and_then(Match::sure);
    }
    // A stream that was not asked for as events is one list.
    if let Some(document) = head.document()
        && document.kind() == Kind::List
    {
        let first = document.items().next();
        return first
            .is_some_and(is_response)
            .then_some(BODY)
            .and_then(Match::sure);
    }
    let first = head.first_that(|record| is_response(record) || Pair::of(record).is_some())?;
    // A line and a document of one line look alike; a document has an end of its own.
    let framed = match head.document() {
        Some(_) if head.spans_lines() || !is_piece(first) => BODY,
        _ => CHUNKS,
    };
    if is_response(first) {
        return Match::sure(framed);
    }
    if is_error(first) || is_request(first) {
        return Match::likely(framed);
    }
    let pair = Pair::of(first)?;
    let answered = pair
        .response
        .is_some_and(|response| is_response(response) || response.items().any(is_response));
    if answered {
        return Match::sure(framed);
    }
    let asked = pair.request.is_some_and(is_request);
    asked.then_some(framed).and_then(Match::likely)
}

/// Whether it is a response, or a chunk of one.
fn is_response(record: Node<'_>) -> bool {
    let record = record.get("response").unwrap_or(record);
    let has = |key: &str| record.get(key).is_some();
    let any = record
        .get("candidates")
        .is_some_and(|c| c.kind() == Kind::List)
        || has("promptFeedback");
    any && (has("usageMetadata") || has("modelVersion") || has("responseId"))
}

/// Whether it is a chunk that others follow.
fn is_piece(record: Node<'_>) -> bool {
    let done = |candidate: Node<'_>| candidate.get("finishReason").is_some();
    record
        .get("candidates")
        .is_some_and(|candidates| !candidates.items().any(done))
}

fn is_error(record: Node<'_>) -> bool {
    record.get("error").is_some_and(|error| {
        error.get("status").is_some()
            && error.get("message").is_some()
            && error
                .get("code")
                .is_some_and(|code| code.kind() == Kind::Number)
    })
}

/// Whether it is the body of a request.
fn is_request(record: Node<'_>) -> bool {
    let record = record.get("request").unwrap_or(record);
    record.get("contents").is_some_and(|contents| {
        contents
            .items()
            .next()
            .is_some_and(|content| content.get("parts").is_some())
    })
}
