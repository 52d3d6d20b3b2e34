//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::Node;

use super::{SESSION, STREAM};
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    vec![LogPlace {
        brand: "droid",
        root: host.home(".factory/sessions"),
        depth: 3,
        pick,
    }]
}

fn pick(below: &Path) -> Pick {
    match below.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => Pick::Log,
        _ => Pick::Skip,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() {
        return None;
    }
    for record in head.records() {
        if is_beginning(record) {
            return Match::sure(SESSION);
        }
        if is_printed(record) {
            return Match::sure(STREAM);
        }
    }
    None
}

/// Whether a line is the beginning of a session.
fn is_beginning(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    record
        .get("type")
        .is_some_and(|kind| kind.is("session_start"))
        && (has("id") || has("session"))
        && (has("cwd") || has("owner") || has("sessionTitle") || has("session"))
}

/// Whether a line is one that `droid exec` prints.
fn is_printed(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    let session = has("session_id") || has("sessionId");
    session
        && match record.text("type").as_deref() {
            Some("message") => has("role") && has("text"),
            Some("tool_call") => has("toolName") && has("parameters"),
            Some("tool_result") => has("value") && (has("toolCallId") || has("toolId")),
            Some("completion") => has("finalText"),
            _ => false,
        }
}
