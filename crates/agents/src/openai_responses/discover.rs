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
    if is_response(first) {
        return Match::sure(framed);
    }
    if is_request(first) {
        return Match::likely(framed);
    }
    let pair = Pair::of(first)?;
    let answered = pair
        .response
        .is_some_and(|response| is_response(response) || response.items().any(is_event));
    if answered {
        return Match::sure(framed);
    }
    let asked = pair.request.is_some_and(is_request);
    asked.then_some(framed).and_then(Match::likely)
}

/// Whether it is an event of a stream.
fn is_event(record: Node<'_>) -> bool {
    let of_response = record
        .get("type")
        .and_then(|kind| kind.as_raw_str())
        .is_some_and(|kind| kind.starts_with("response."));
    let has = |key: &str| record.get(key).is_some();
    of_response && (record.get("response").is_some_and(is_response) || has("output_index"))
}

/// Whether it is the body of a response.
fn is_response(record: Node<'_>) -> bool {
    record
        .get("object")
        .is_some_and(|object| object.is("response"))
        && record.get("output").is_some()
}

/// Whether it is the body of a request.
fn is_request(record: Node<'_>) -> bool {
    let items = record.get("input").is_some_and(|input| match input.kind() {
        Kind::String => record.get("instructions").is_some() || record.get("store").is_some(),
        Kind::List => input
            .items()
            .all(|item| item.get("type").is_some() || item.get("role").is_some()),
        _ => false,
    });
    items && record.get("model").is_some() && record.get("object").is_none()
}
