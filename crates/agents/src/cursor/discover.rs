//! Where conversations are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::{ROWS, STREAM, TEXT, TRANSCRIPT};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let mut places = Vec::new();
    for user in [
        host.config("Cursor/User"),
        host.home("Library/Application Support/Cursor/User"),
        host.home("AppData/Roaming/Cursor/User"),
    ] {
        for (below, depth) in [("globalStorage", 0), ("workspaceStorage", 1)] {
            places.push(LogPlace {
                brand: "cursor",
                root: user.join(below),
                depth,
                pick: |below| named(below, "state.vscdb"),
            });
        }
    }
    places.push(LogPlace {
        brand: "cursor",
        root: host.home(".cursor/projects"),
        depth: 4,
        pick: |below| {
            let inside = below.iter().any(|name| name == "agent-transcripts");
            match below.extension().and_then(|ending| ending.to_str()) {
                Some("jsonl" | "txt") if inside => Pick::Log,
                _ => Pick::Skip,
            }
        },
    });
    places.push(LogPlace {
        brand: "cursor",
        root: host.home(".cursor/chats"),
        depth: 2,
        pick: |below| named(below, "store.db"),
    });
    places
}

fn named(below: &Path, name: &str) -> Pick {
    if below.file_name().is_some_and(|found| found == name) {
        Pick::Gather
    } else {
        Pick::Skip
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    match ending(path) {
        "jsonl" => Some(TRANSCRIPT),
        "txt" => Some(TEXT),
        _ => None,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if !head.tables().is_empty() {
        let has = |name: &str| head.tables().iter().any(|table| table == name);
        let known = has("cursorDiskKV") || (has("blobs") && has("meta"));
        return if known { Match::sure(ROWS) } else { None };
    }
    let (mut any, mut likely) = (false, None);
    for record in head.records() {
        any = true;
        if is_row(record) {
            return Match::sure(ROWS);
        }
        if is_stream(record) {
            return Match::sure(STREAM);
        }
        if is_line(record) && !head.spans_lines() {
            if is_plain(record) {
                return Match::sure(TRANSCRIPT);
            }
            likely = Match::likely(TRANSCRIPT);
        }
    }
    if any { likely } else { sniff_text(head.text()) }
}

/// Whether a text is a transcript: it begins with a line that says who speaks.
fn sniff_text(text: &str) -> Option<Match> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty())?;
    if first != "user:" {
        return None;
    }
    if lines
        .next()
        .is_some_and(|line| line.starts_with("<user_query>"))
    {
        return Match::sure(TEXT);
    }
    if lines.any(|line| matches!(line, "assistant:" | "A:" | "<user_query>")) {
        return Match::likely(TEXT);
    }
    None
}

/// Whether a line is one of a transcript: who and what, in no envelope that others have.
fn is_line(record: Node<'_>) -> bool {
    let role = record
        .text("role")
        .is_some_and(|role| matches!(&*role, "user" | "assistant" | "system"));
    role && record.path(&["message", "content"]).is_some()
        && ["type", "uuid", "sessionId", "session_id"]
            .iter()
            .all(|key| record.get(key).is_none())
        && record.path(&["message", "role"]).is_none()
}

/// Whether a line of a transcript has nothing but what they all have.
fn is_plain(record: Node<'_>) -> bool {
    let mut fields = record.fields();
    fields.all(|(key, _)| key.is("role") || key.is("message"))
}

/// Whether a line is one of the stream that no other agent writes. Claude Code's begins alike, but names
/// the tools it has.
fn is_stream(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    if !has("session_id") {
        return false;
    }
    match record.text("type").as_deref() {
        Some("tool_call") => {
            has("call_id")
                && record
                    .get("tool_call")
                    .is_some_and(|call| call.kind() == Kind::Object)
        }
        Some("thinking") => has("subtype"),
        Some("system") => {
            record
                .get("subtype")
                .is_some_and(|subtype| subtype.is("init"))
                && has("apiKeySource")
                && has("permissionMode")
                && !has("tools")
                && !has("uuid")
        }
        _ => false,
    }
}

/// Whether a line is a row of a conversation.
fn is_row(record: Node<'_>) -> bool {
    let (Some(table), Some(row)) = (record.text("table"), record.get("row")) else {
        return false;
    };
    match &*table {
        "cursorDiskKV" | "ItemTable" => row.get("key").is_some() && row.get("value").is_some(),
        "blobs" => row.get("id").is_some() && row.get("data").is_some(),
        _ => false,
    }
}
