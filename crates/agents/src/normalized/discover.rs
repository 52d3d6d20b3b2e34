//! How transcripts are known. They have no place of their own.

use memchr::memmem;
use quipu_model::json::{Kind, Node};

use super::{PAGE, TRANSCRIPT};
use crate::feed::page::OPEN;
use crate::{Dialect, Head, Match, registry};

/// The types of events that were published.
const TYPES: [&str; 7] = [
    "user_message",
    "assistant_message",
    "reasoning",
    "tool_call",
    "tool_result",
    "system",
    "meta",
];

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(page) = page(head.text()) {
        return Match::sure(page);
    }
    let version = head.field("schemaVersion")?.as_str()?;
    if !version.starts_with("0.") {
        return None;
    }
    let source = head.field("source");
    let agent = source.and_then(|source| source.text("agent"));
    let is_event = head.first_item("events").is_some_and(is_event);
    let has_id = head
        .field("transcriptId")
        .is_some_and(|id| id.kind() == Kind::String);
    if !(is_event || agent.is_some() && has_id) {
        return None;
    }
    Match::sure(Dialect {
        brand: agent
            .and_then(|agent| registry::brand(&agent))
            .unwrap_or(TRANSCRIPT.brand),
        ..TRANSCRIPT
    })
}

/// A page with a transcript in it that is not sealed.
fn page(text: &str) -> Option<Dialect> {
    /// How far into a transcript the agent's name stands at most.
    const NEAR: usize = 4096;
    let text = text.trim_start().as_bytes();
    if !text.starts_with(b"<") {
        return None;
    }
    let inside = memmem::find(text, OPEN)? + OPEN.len();
    let near = &text[inside..text.len().min(inside + NEAR)];
    let agent = memmem::find(near, b"\"agent\":\"").and_then(|at| {
        let rest = &near[at + 9..];
        let end = memchr::memchr(b'"', rest)?;
        registry::brand(std::str::from_utf8(&rest[..end]).ok()?)
    });
    Some(Dialect {
        brand: agent.unwrap_or(PAGE.brand),
        ..PAGE
    })
}

fn is_event(event: Node<'_>) -> bool {
    let is_type = |kind: Node<'_>| TYPES.iter().any(|word| kind.is(word));
    event.get("type").is_some_and(is_type) && event.get("seq").is_some()
}
