//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::wire::{is_error, is_event, is_message, is_part, is_run, is_session};
use super::{EVENTS, EXPORT, ROWS, RUN, SSE};
use crate::{Head, Host, LogPlace, Match, Pick};

/// The agents that keep sessions as `OpenCode` does, each in a directory of its own name.
const BRANDS: [&str; 4] = ["opencode", "kilo", "mimocode", "icodemate"];

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let mut places = Vec::new();
    if let Some(root) = host.env("OPENCODE_DB") {
        places.push(LogPlace {
            brand: "opencode",
            root,
            depth: 0,
            pick: |_| Pick::Gather,
        });
    }
    for brand in BRANDS {
        let home = host.data(brand);
        places.push(LogPlace {
            brand,
            root: home.clone(),
            depth: 0,
            pick,
        });
    }
    places
}

fn pick(below: &Path) -> Pick {
    // Preview versions name their database after their channel.
    let is_database = below.extension().is_some_and(|ending| ending == "db");
    if is_database || below == Path::new("storage") {
        Pick::Gather
    } else {
        Pick::Skip
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if !head.tables().is_empty() {
        let has = |name: &str| head.tables().iter().any(|table| table == name);
        let known = has("session") && ((has("message") && has("part")) || has("session_message"));
        return if known { Match::sure(ROWS) } else { None };
    }
    if let Some(document) = head.document()
        && let Some(found) = sniff_document(document, head.spans_lines())
    {
        return Some(found);
    }
    for record in head.records() {
        if is_row(record) {
            return Match::sure(ROWS);
        }
        if is_run(record) {
            return Match::sure(RUN);
        }
        if is_event(record) {
            return Match::sure(if head.is_sse() { SSE } else { EVENTS });
        }
    }
    None
}

fn sniff_document(document: Node<'_>, spans_lines: bool) -> Option<Match> {
    let has_parts = |item: Node<'_>| {
        item.get("info").is_some_and(is_message)
            && item.get("parts").is_some_and(|p| p.kind() == Kind::List)
    };
    if document.kind() == Kind::List {
        let first = document.items().next()?;
        let known = has_parts(first) || is_session(first);
        return if known { Match::sure(EXPORT) } else { None };
    }
    let is_export = document.get("info").is_some_and(is_session)
        && document.get("messages").is_some_and(|messages| {
            messages.kind() == Kind::List && messages.items().next().is_none_or(has_parts)
        });
    if is_export || has_parts(document) || is_session(document) || is_message(document) {
        return Match::sure(EXPORT);
    }
    // What begins like a stream is one, unless it is spread over lines.
    if spans_lines && is_event(document) {
        return Match::sure(EXPORT);
    }
    match is_part(document) {
        Some(true) => Match::sure(EXPORT),
        Some(false) => Match::likely(EXPORT),
        None if is_error(document) => Match::likely(EXPORT),
        None => None,
    }
}

/// Whether a line is a row of a session.
fn is_row(record: Node<'_>) -> bool {
    let (Some(table), Some(row)) = (record.text("table"), record.get("row")) else {
        return false;
    };
    let has = |key: &str| row.get(key).is_some();
    match &*table {
        "session" => has("id") && (has("directory") || has("data")),
        "message" | "session_message" => has("session_id") && has("data"),
        "part" => has("message_id") && has("data"),
        "file" => has("path") && (has("text") || has("error")),
        _ => false,
    }
}
