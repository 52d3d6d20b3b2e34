//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::Node;

use super::{GROK, HISTORY, UPDATES};
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    vec![LogPlace {
        brand: "grok",
        root: host.env_or_home("GROK_HOME", ".grok").join("sessions"),
        depth: 5,
        pick,
    }]
}

fn pick(below: &Path) -> Pick {
    match below.file_name().and_then(|name| name.to_str()) {
        Some("updates.jsonl") => Pick::Log,
        // It says again what the updates say.
        Some("chat_history.jsonl") => Pick::Keep,
        _ => Pick::Skip,
    }
}

pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    vec![log.with_file_name("summary.json")]
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let mut history = 0;
    for record in head.records() {
        if is_update(record) {
            let grok = head.records().any(is_grok);
            return Match::sure(if grok { GROK } else { UPDATES });
        }
        history += usize::from(is_history(record));
    }
    let says_model =
        |record: Node<'_>| record.get("model_id").is_some() || record.get("prompt_index").is_some();
    let ours = head
        .records()
        .any(|record| is_history(record) && says_model(record));
    (history > 0 && ours)
        .then_some(HISTORY)
        .and_then(Match::sure)
}

/// Whether a line is a notification of the protocol.
fn is_update(record: Node<'_>) -> bool {
    let record = super::wire::inner(record);
    let params = record
        .get("params")
        .or(record.get("data"))
        .unwrap_or(record);
    let update = params.get("update").unwrap_or(record);
    let named = update
        .get("sessionUpdate")
        .is_some_and(|kind| kind.as_raw_str().is_some());
    let method = record.text("method").unwrap_or_default();
    let spoken = record.get("jsonrpc").is_some() && method.starts_with("session/");
    named || (spoken && record.get("params").is_some())
}

/// Whether a line is one that only Grok Build writes: with a time beside the notification, or of a kind
/// of its own.
fn is_grok(record: Node<'_>) -> bool {
    let method = record.text("method").unwrap_or_default();
    let kept = record.get("timestamp").is_some() && record.get("jsonrpc").is_none();
    method.starts_with("_x.ai/") || (kept && method.starts_with("session/"))
}

/// Whether a line is one of the history: a message without an envelope.
fn is_history(record: Node<'_>) -> bool {
    let kind = record
        .text("type")
        .or(record.text("role"))
        .unwrap_or_default();
    let known = matches!(
        &*kind,
        "system" | "user" | "assistant" | "tool_result" | "tool" | "reasoning"
    );
    let has = |key: &str| record.get(key).is_some();
    known && (has("content") || has("summary")) && !has("message") && !has("uuid")
}
