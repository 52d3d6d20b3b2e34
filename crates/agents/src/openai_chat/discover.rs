//! How captures are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::{BODY, CHUNKS, SSE};
use crate::capture::Pair;
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.is_sse() {
        if head.records().any(is_chunk) {
            return Match::sure(SSE);
        }
        return head
            .records()
            .any(is_nameless)
            .then_some(SSE)
            .and_then(Match::likely);
    }
    let first = head.first_that(|record| Pair::of(record).is_some())?;
    // Azure begins with a chunk that names no kind.
    if head.records().any(is_chunk) {
        return Match::sure(CHUNKS);
    }
    let framed = match head.document() {
        Some(_) => BODY,
        None => CHUNKS,
    };
    if is_completion(first) {
        return Match::sure(framed);
    }
    if is_nameless(first) {
        return Match::likely(CHUNKS);
    }
    if is_error(first) || is_request(first) {
        return Match::likely(framed);
    }
    let pair = Pair::of(first)?;
    let answered = pair
        .response
        .is_some_and(|response| is_completion(response) || response.items().any(is_chunk));
    if answered {
        return Match::sure(framed);
    }
    let asked = pair.request.is_some_and(is_request);
    asked.then_some(framed).and_then(Match::likely)
}

fn is_chunk(record: Node<'_>) -> bool {
    record
        .get("object")
        .is_some_and(|object| object.is("chat.completion.chunk"))
}

fn is_completion(record: Node<'_>) -> bool {
    record
        .get("object")
        .is_some_and(|object| object.is("chat.completion"))
        && record.get("choices").is_some()
}

/// Whether it is a chunk of a vendor that does not say so.
fn is_nameless(record: Node<'_>) -> bool {
    record.get("choices").is_some_and(|choices| {
        choices.items().any(|choice| {
            choice
                .get("delta")
                .is_some_and(|d| d.kind() == Kind::Object)
        })
    })
}

/// Whether it is an error as `OpenAI` words it.
fn is_error(record: Node<'_>) -> bool {
    record.get("error").is_some_and(|error| {
        error.get("message").is_some()
            && error.get("type").is_some()
            && (error.get("param").is_some() || error.get("code").is_some())
    })
}

/// Whether it is the body of a request.
fn is_request(record: Node<'_>) -> bool {
    let Some(messages) = record.get("messages").filter(|m| m.kind() == Kind::List) else {
        return false;
    };
    let mut roles = messages.items().map(|message| message.text("role"));
    record.get("model").is_some()
        && record.get("id").is_none()
        && record.get("session_id").is_none()
        && roles.all(|role| role.is_some_and(|role| super::message::ROLES.contains(&&*role)))
}
