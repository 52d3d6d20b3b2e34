//! How sessions are known. They have no place of their own.

use quipu_model::json::{Kind, Node};

use super::LINES;
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() || head.is_sse() {
        return None;
    }
    if head.records().any(is_header) {
        Match::sure(LINES)
    } else {
        None
    }
}

/// Whether a line is the first of a session. That of Pi has a time and a directory, and may have a harness.
fn is_header(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some_and(|n| n.kind() == Kind::String);
    record.get("type").is_some_and(|kind| kind.is("session"))
        && has("harness")
        && has("id")
        && !(has("timestamp") && has("cwd"))
        && record.get("version").is_none()
}
