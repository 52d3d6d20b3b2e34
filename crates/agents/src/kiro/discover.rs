//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::{Kind, Node};

use super::{CHAT, CONVERSATION, ROWS, SESSION};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let mut places = vec![LogPlace {
        brand: "kiro",
        root: host.home(".kiro/sessions"),
        depth: 4,
        pick: |below| by_ending(below, "jsonl"),
    }];
    let mac = host.home("Library/Application Support");
    for root in [host.data("kiro-cli"), mac.join("kiro-cli")] {
        places.push(LogPlace {
            brand: "kiro",
            root: root.join("data.sqlite3"),
            depth: 0,
            pick: |_| Pick::Gather,
        });
    }
    for root in [host.config("Kiro"), mac.join("Kiro")] {
        places.push(LogPlace {
            brand: "kiro",
            root: root.join("User/globalStorage/kiro.kiroagent"),
            depth: 3,
            pick: |below| by_ending(below, "chat"),
        });
    }
    places
}

fn by_ending(below: &Path, wanted: &str) -> Pick {
    if below.extension().is_some_and(|ending| ending == wanted) {
        Pick::Log
    } else {
        Pick::Skip
    }
}

pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    if log.extension().is_some_and(|ending| ending == "jsonl") {
        vec![
            log.with_extension("json"),
            log.with_file_name("session.json"),
        ]
    } else {
        Vec::new()
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    match ending(path) {
        "jsonl" => Some(SESSION),
        "chat" => Some(CHAT),
        _ => None,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let tables = head.tables();
    if tables.iter().any(|table| table == "conversations_v2") {
        return Match::sure(ROWS);
    }
    if let Some(document) = head.document() {
        let is_list = |key: &str| document.get(key).is_some_and(|n| n.kind() == Kind::List);
        if is_list("history") && document.get("conversation_id").is_some() {
            return Match::sure(CONVERSATION);
        }
        if is_list("chat") && document.get("executionId").is_some() {
            return Match::sure(CHAT);
        }
    }
    if head.spans_lines() {
        return None;
    }
    for record in head.records() {
        if is_message(record) || is_event(record) {
            return Match::sure(SESSION);
        }
        let is_row = record
            .get("table")
            .is_some_and(|table| table.is("kiro_conversation"));
        if is_row {
            return Match::sure(ROWS);
        }
    }
    None
}

/// Whether a line is one of the older form.
fn is_message(record: Node<'_>) -> bool {
    record.text("kind").is_some_and(|kind| {
        matches!(
            &*kind,
            "Prompt" | "AssistantMessage" | "ToolResults" | "Compaction"
        )
    }) && record
        .get("data")
        .is_some_and(|data| data.kind() == Kind::Object)
}

/// Whether a line is one of the newer form.
fn is_event(record: Node<'_>) -> bool {
    let Some(payload) = record.get("payload") else {
        return false;
    };
    let has = |key: &str| payload.get(key).is_some();
    record.get("id").is_some()
        && record.get("timestamp").is_some()
        && match payload.text("type").as_deref() {
            Some("user" | "assistant") => payload
                .get("content")
                .is_some_and(|content| content.kind() == Kind::String),
            Some("tool_call") => has("toolName") && has("toolCallId"),
            Some("tool_result") => has("toolCallId"),
            _ => false,
        }
}
