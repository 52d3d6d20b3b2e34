//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::wire::is_known_type;
use super::{CHAT, CHAT_JOURNAL, EVENTS, HISTORY, TRACES};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let home = host.env_or_home("COPILOT_HOME", ".copilot");
    let mut places = vec![
        LogPlace {
            brand: "copilot-cli",
            root: home.join("session-state"),
            depth: 1,
            pick: pick_events,
        },
        LogPlace {
            brand: "copilot-cli",
            root: home.join("history-session-state"),
            depth: 0,
            pick: pick_json,
        },
    ];
    for editor in host.editors() {
        places.push(LogPlace {
            brand: "copilot-chat",
            root: editor.join("workspaceStorage"),
            depth: 2,
            pick: pick_chat,
        });
        places.push(LogPlace {
            brand: "copilot-chat",
            root: editor.join("globalStorage/emptyWindowChatSessions"),
            depth: 0,
            pick: pick_json,
        });
    }
    places
}

/// `<session>/events.jsonl`, and before that `<session>.jsonl`.
fn pick_events(below: &Path) -> Pick {
    let flat = below.components().count() == 1;
    let ending = below.extension().and_then(|ending| ending.to_str());
    let is_events = below.file_name().is_some_and(|name| name == "events.jsonl");
    match ending {
        Some("jsonl") if flat || is_events => Pick::Log,
        _ => Pick::Skip,
    }
}

fn pick_json(below: &Path) -> Pick {
    match below.extension().and_then(|ending| ending.to_str()) {
        Some("json" | "jsonl") => Pick::Log,
        _ => Pick::Skip,
    }
}

/// `<workspace>/chatSessions/<session>.json(l)`
fn pick_chat(below: &Path) -> Pick {
    let in_chats = below
        .iter()
        .nth(1)
        .is_some_and(|part| part == "chatSessions");
    if in_chats {
        pick_json(below)
    } else {
        Pick::Skip
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(brand: &str, path: &Path) -> Option<Dialect> {
    let is_history = path.iter().any(|part| part == "history-session-state");
    match (brand, ending(path)) {
        ("copilot-cli", _) if is_history => Some(HISTORY),
        ("copilot-cli", "jsonl") => Some(EVENTS),
        ("copilot-chat", "json") => Some(CHAT),
        ("copilot-chat", "jsonl") => Some(CHAT_JOURNAL),
        _ => None,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(document) = head.document() {
        let has = |key: &str| document.get(key).is_some();
        if has("sessionId") && has("chatMessages") {
            return Match::sure(HISTORY);
        }
        if is_chat(document) {
            return Match::sure(CHAT);
        }
    }
    let mut likely = None;
    for record in head.records() {
        if is_event(record) {
            return Match::sure(EVENTS);
        }
        if is_bare(record) {
            likely = Match::likely(EVENTS);
        }
        if is_change(record) {
            return Match::sure(CHAT_JOURNAL);
        }
        if is_trace(record) {
            return Match::sure(TRACES);
        }
    }
    // The beginning of a document that is too long to be looked at as a whole.
    let text = head.text();
    let cut_off = head.document().is_none() && head.first().is_none();
    if cut_off
        && text.trim_start().starts_with('{')
        && ["\"requests\"", "\"responderUsername\"", "\"message\""]
            .iter()
            .all(|key| text.contains(key))
    {
        return Match::sure(CHAT);
    }
    likely
}

/// Whether this is a chat of Visual Studio Code.
fn is_chat(document: Node<'_>) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let Some(requests) = document.get("requests") else {
        return false;
    };
    requests.kind() == Kind::List
        && (has("responderUsername")
            || has("requesterUsername")
            || has("initialLocation")
            || requests.items().any(|request| {
                request.get("requestId").is_some() && request.get("message").is_some()
            }))
}

/// Whether a line is a change to a chat: all of it at first, then what is set or added where.
fn is_change(record: Node<'_>) -> bool {
    if record.get("kind").and_then(|kind| kind.as_u64()) != Some(0) {
        return false;
    }
    let whole = record.get("v").unwrap_or(record);
    whole.get("requests").is_some() && whole.get("sessionId").is_some()
}

/// Whether a line is an event of Copilot CLI.
fn is_event(record: Node<'_>) -> bool {
    let Some(kind) = record.text("type") else {
        return false;
    };
    let data = record
        .get("data")
        .filter(|data| data.kind() == Kind::Object);
    let Some(data) = data else {
        // The end of standard output has no data.
        return kind == "result"
            && record.path(&["usage", "premiumRequests"]).is_some()
            && record.get("sessionId").is_some();
    };
    let has = |key: &str| record.get(key).is_some();
    if kind == "session.start"
        && (data.get("copilotVersion").is_some() || data.get("producer").is_some())
    {
        return true;
    }
    is_known_type(&kind) && has("id") && (has("timestamp") || has("parentId"))
}

/// Whether a line is such an event without what tells one from another.
fn is_bare(record: Node<'_>) -> bool {
    let data = record.get("data").map(|data| data.kind());
    let kind = record.text("type").unwrap_or_default();
    data == Some(Kind::Object) && kind.contains('.') && is_known_type(&kind)
}

/// Whether a line is a batch of spans that Visual Studio wrote.
fn is_trace(record: Node<'_>) -> bool {
    record
        .get("resourceSpans")
        .into_iter()
        .flat_map(Node::items)
        .filter_map(|spans| spans.path(&["resource", "attributes"]))
        .flat_map(Node::items)
        .any(|attribute| {
            attribute
                .get("key")
                .is_some_and(|key| key.is("service.name"))
                && attribute
                    .path(&["value", "stringValue"])
                    .is_some_and(|name| name.is("vs-copilot"))
        })
}
