//! How transcripts are known. They have no place of their own.

use quipu_model::json::Node;

use super::TRANSCRIPT;
use crate::registry::brand;
use crate::{Dialect, Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.is_sse() || head.spans_lines() {
        return None;
    }
    let line = head.records().find(|record| is_line(*record))?;
    Match::sure(Dialect {
        brand: agent(line).unwrap_or(TRANSCRIPT.brand),
        ..TRANSCRIPT
    })
}

/// Whether a record is a line of a transcript: the version, who spoke, and which program wrote it.
fn is_line(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    record.get("v").and_then(|version| version.as_u64()) == Some(1)
        && record
            .get("type")
            .is_some_and(|kind| kind.is("user") || kind.is("assistant"))
        && has("content")
        && (has("agent") || has("cli_version"))
        && !has("message")
}

/// The agent whose session it was, when a family reads its logs.
fn agent(line: Node<'_>) -> Option<&'static str> {
    match line.text("agent").as_deref()? {
        "factoryai-droid" => Some("droid"),
        "gemini" => Some("gemini-cli"),
        agent => brand(agent),
    }
}
