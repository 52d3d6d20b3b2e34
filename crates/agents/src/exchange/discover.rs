//! How transcripts are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::RUN;
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() || head.is_sse() {
        return None;
    }
    if head.records().any(is_event) {
        Match::sure(RUN)
    } else {
        None
    }
}

/// Whether a line has the envelope of an event.
fn is_event(record: Node<'_>) -> bool {
    let has = |key: &str, kind: Kind| record.get(key).is_some_and(|node| node.kind() == kind);
    has("seq", Kind::Number)
        && ["run_id", "type", "timestamp"]
            .iter()
            .all(|key| has(key, Kind::String))
        && record.get("payload").is_some()
}
