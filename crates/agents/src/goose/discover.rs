//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::{EXPORT, LINES, ROWS};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let roots = match host.env("GOOSE_PATH_ROOT") {
        Some(root) => vec![root.join("data/sessions"), root.join("sessions")],
        None => vec![
            host.data("goose/sessions"),
            host.home("AppData/Roaming/Block/goose/data/sessions"),
        ],
    };
    let place = |root| LogPlace {
        brand: "goose",
        root,
        depth: 0,
        pick,
    };
    roots.into_iter().map(place).collect()
}

fn pick(below: &Path) -> Pick {
    match below.extension().and_then(|ending| ending.to_str()) {
        Some("db") => Pick::Gather,
        Some("jsonl") => Pick::Log,
        _ => Pick::Skip,
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    (ending(path) == "jsonl").then_some(LINES)
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if !head.tables().is_empty() {
        let has = |name: &str| head.tables().iter().any(|table| table == name);
        let known = has("sessions") && has("messages") && has("schema_version");
        return if known { Match::sure(ROWS) } else { None };
    }
    if let Some(document) = head.document()
        && let Some(conversation) = document.get("conversation")
        && document.get("working_dir").is_some()
    {
        let messages = conversation.get("messages").unwrap_or(conversation);
        if messages
            .items()
            .next()
            .is_none_or(|m| is_message(m).is_some())
        {
            return Match::sure(EXPORT);
        }
    }
    if head.records().any(is_row) {
        return Match::sure(ROWS);
    }
    let about = head.records().any(is_about);
    let surely = head.records().filter_map(is_message).max();
    let alone = head.records().count() == 1;
    match (about, surely) {
        (true, Some(_)) | (false, Some(true)) => Match::sure(LINES),
        (true, None) if alone => Match::sure(LINES),
        (false, Some(false)) => Match::likely(LINES),
        _ => None,
    }
}

/// Whether a line is the first of a session.
fn is_about(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("working_dir") && has("message_count") && !has("role")
}

/// Whether a value is a message: surely, or perhaps.
fn is_message(record: Node<'_>) -> Option<bool> {
    let content = record.get("content").filter(|c| c.kind() == Kind::List)?;
    let number = record
        .get("created")
        .is_some_and(|c| c.kind() == Kind::Number);
    if record.get("role").is_none() || !number {
        return None;
    }
    let own = |item: Node<'_>| {
        item.text("type").is_some_and(|kind| {
            matches!(&*kind, "toolRequest" | "toolResponse" | "redactedThinking")
        })
    };
    Some(content.items().any(own) || record.path(&["metadata", "userVisible"]).is_some())
}

/// Whether a line is a row of a session.
fn is_row(record: Node<'_>) -> bool {
    let (Some(table), Some(row)) = (record.text("table"), record.get("row")) else {
        return false;
    };
    match &*table {
        "sessions" => row.get("working_dir").is_some(),
        "messages" => row.get("content_json").is_some(),
        "usage_ledger" => row.get("input_tokens").is_some(),
        _ => false,
    }
}
