//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::wire::MESSAGE_TYPES;
use super::{ANSWER, ANTIGRAVITY, DOCUMENT, JOURNAL, STREAM};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let home = match host.env("GEMINI_CLI_HOME") {
        Some(home) => home.join(".gemini"),
        None => host.home(".gemini"),
    };
    let chats = |brand, root| LogPlace {
        brand,
        root,
        depth: 3,
        pick: pick_chat,
    };
    let mut places = vec![
        chats("gemini-cli", home.join("tmp")),
        // Qwen Code wrote the same documents before it had a format of its own.
        chats("qwen-code", host.home(".qwen/tmp")),
    ];
    for below in ["antigravity", "antigravity-cli"] {
        places.push(LogPlace {
            brand: "antigravity",
            root: home.join(below).join("brain"),
            depth: 3,
            pick: pick_transcript,
        });
    }
    places
}

/// `<project>/chats/session-….json(l)`, and `<project>/chats/<session>/<sub-agent>.jsonl`.
fn pick_chat(below: &Path) -> Pick {
    let in_chats = below.iter().nth(1).is_some_and(|part| part == "chats");
    let ending = below.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("json" | "jsonl") if in_chats => Pick::Log,
        _ => Pick::Skip,
    }
}

fn pick_transcript(below: &Path) -> Pick {
    let name = below.file_name().and_then(|name| name.to_str());
    match name {
        Some("transcript.jsonl" | "transcript_full.jsonl") => Pick::Log,
        _ => Pick::Skip,
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(brand: &str, path: &Path) -> Option<Dialect> {
    match (brand, ending(path)) {
        ("antigravity", _) => Some(ANTIGRAVITY),
        (_, "json") => Some(DOCUMENT),
        (_, "jsonl") => Some(JOURNAL),
        _ => None,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(document) = head.document()
        && let Some(found) = sniff_document(document, head.spans_lines())
    {
        return Some(found);
    }
    let mut likely = None;
    for record in head.records() {
        if is_said(record) {
            likely = Match::likely(STREAM);
        }
        if is_journal(record) {
            return Match::sure(JOURNAL);
        }
        if is_stream(record) {
            return Match::sure(STREAM);
        }
        if is_step(record) {
            return Match::sure(ANTIGRAVITY);
        }
    }
    // The beginning of a document that is too long to be looked at as a whole.
    let text = head.text();
    let cut_off = head.document().is_none() && head.first().is_none();
    if cut_off
        && text.trim_start().starts_with('{')
        && ["\"sessionId\"", "\"projectHash\"", "\"messages\""]
            .iter()
            .all(|key| text.contains(key))
    {
        return Match::sure(DOCUMENT);
    }
    likely
}

fn sniff_document(document: Node<'_>, spans_lines: bool) -> Option<Match> {
    let has = |key: &str| document.get(key).is_some();
    let mut messages = document
        .get("messages")
        .into_iter()
        .flat_map(Node::items)
        .peekable();
    if has("sessionId") && has("projectHash") && (messages.peek().is_some() || spans_lines) {
        return Match::sure(DOCUMENT);
    }
    if messages.any(is_message) && has("sessionId") {
        return Match::sure(DOCUMENT);
    }
    // What `/chat save` keeps.
    let mut history = document.get("history").into_iter().flat_map(Node::items);
    if history.any(|content| content.get("parts").is_some() && content.get("role").is_some()) {
        return Match::likely(DOCUMENT);
    }
    let stats = document.get("stats")?;
    let models = stats.get("models").map(|n| n.kind()) == Some(Kind::Object);
    if models && (has("response") || has("error") || has("session_id")) && !has("type") {
        return Match::sure(ANSWER);
    }
    None
}

/// Whether this is a message that only Gemini CLI writes: one of the model, with its name for it.
fn is_message(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("id") && has("content") && record.get("type").is_some_and(|kind| kind.is("gemini"))
}

fn is_journal(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    if has("sessionId") && has("projectHash") && (has("startTime") || has("lastUpdated")) {
        return true;
    }
    if record
        .get("$rewindTo")
        .is_some_and(|id| id.kind() == Kind::String)
    {
        return true;
    }
    let patch = record.get("$set").is_some_and(|set| {
        ["lastUpdated", "messages", "summary", "directories"]
            .iter()
            .any(|key| set.get(key).is_some())
    });
    patch || is_message(record)
}

/// Whether a line is an event of the stream.
fn is_stream(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    let Some(kind) = record.text("type") else {
        return false;
    };
    match &*kind {
        "init" => has("session_id") && has("model") && !has("subtype"),
        "tool_use" => has("tool_name") && has("tool_id"),
        "tool_result" => has("tool_id") && has("status"),
        "result" => {
            record
                .get("stats")
                .is_some_and(|stats| stats.kind() == Kind::Object)
                && has("status")
        }
        _ => false,
    }
}

/// Whether a line of the stream is a message. Others print messages as well, with more around them.
fn is_said(record: Node<'_>) -> bool {
    let role = record.text("role").unwrap_or_default();
    let others = ["id", "text", "message", "session_id", "sessionId", "uuid"];
    record.get("type").is_some_and(|kind| kind.is("message"))
        && matches!(&*role, "user" | "assistant")
        && record
            .get("content")
            .or(record.get("toolCalls"))
            .is_some_and(|content| matches!(content.kind(), Kind::String | Kind::List))
        && record
            .get("content")
            .is_none_or(|content| content.kind() == Kind::String)
        && others.iter().all(|key| record.get(key).is_none())
}

/// Whether a line is a step of Antigravity.
fn is_step(record: Node<'_>) -> bool {
    ["step_index", "source", "type", "status", "created_at"]
        .iter()
        .all(|key| record.get(key).is_some())
}

/// Whether a word is a kind of message.
pub(super) fn is_message_type(word: &str) -> bool {
    MESSAGE_TYPES.contains(&word)
}
