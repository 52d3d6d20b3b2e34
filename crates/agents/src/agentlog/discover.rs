//! How traces are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::{TRACE, wire};
use crate::{Dialect, Head, Match, registry};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    // A record that is spread over lines is no line of a trace.
    if head.is_sse() || head.spans_lines() || !head.records().any(is_record) {
        return None;
    }
    let root = head.records().find(|record| is_record(*record))?;
    Match::sure(Dialect {
        brand: brand(root),
        ..TRACE
    })
}

/// Whether this is a record, by what the envelope must have. Ids are looked at no further than to see that
/// they are meant to be hashes.
fn is_record(record: Node<'_>) -> bool {
    let text = |key: &str| record.get(key).is_some_and(|n| n.kind() == Kind::String);
    text("version")
        && text("kind")
        && text("ts")
        && record
            .text("id")
            .is_some_and(|id| id.starts_with("sha256:"))
        && record.get("parent").is_some()
        && record.get("payload").is_some()
}

/// The agent whose trace this is. A trace that Quipu made of a session says whose session it was; that is
/// believed when the agent is one that is known. All others are of the program that the format is from:
/// what they say of the SDK is kept with the session's first note.
fn brand(root: Node<'_>) -> &'static str {
    let Some(payload) = root.get("payload") else {
        return TRACE.brand;
    };
    if !wire::is_ours(payload) {
        return TRACE.brand;
    }
    wire::agent(payload)
        .and_then(|agent| registry::brand(&agent))
        .unwrap_or("quipu")
}
