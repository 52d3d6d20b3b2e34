//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::{Kind, Node};

use super::{
    CHATGPT, CLAUDE_AI, CODEBUFF, GPTME, HERMES, HERMES_LINES, MUSE, OPENHANDS, POSIT, QWENPAW,
    VIBE,
};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let hermes = host.env_or_home("HERMES_HOME", ".hermes");
    let place = |brand, root, depth, pick| LogPlace {
        brand,
        root,
        depth,
        pick,
    };
    vec![
        place(
            "vibe",
            host.env_or_home("VIBE_HOME", ".vibe").join("logs/session"),
            2,
            |below| named(below, "messages.jsonl", Pick::Log),
        ),
        place(
            "openhands",
            host.home(".openhands/conversations"),
            1,
            |below| match below.components().count() {
                1 => Pick::Gather,
                _ => Pick::Skip,
            },
        ),
        place("hermes", hermes.join("state.db"), 0, |_| Pick::Gather),
        place("hermes", hermes.join("sessions"), 1, |below| {
            match below.extension().and_then(|ending| ending.to_str()) {
                Some("json" | "jsonl") => Pick::Log,
                _ => Pick::Skip,
            }
        }),
        place("gptme", host.data("gptme/logs"), 2, |below| {
            named(below, "conversation.jsonl", Pick::Log)
        }),
        place(
            "posit-assistant",
            host.home(".posit/assistant/workspaces"),
            5,
            |below| named(below, "lm-messages.jsonl", Pick::Log),
        ),
        place("codebuff", host.config("manicode/projects"), 4, |below| {
            named(below, "chat-messages.json", Pick::Log)
        }),
    ]
}

fn named(below: &Path, name: &str, pick: Pick) -> Pick {
    if below.file_name().is_some_and(|file| file == name) {
        pick
    } else {
        Pick::Skip
    }
}

pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    match log.file_name().and_then(|name| name.to_str()) {
        Some("messages.jsonl") => vec![log.with_file_name("meta.json")],
        Some("lm-messages.jsonl") => {
            let mut beside = vec![log.with_file_name("conversation.json")];
            let workspace = log.ancestors().nth(2);
            beside.extend(workspace.map(|workspace| workspace.join("workspace.json")));
            beside
        }
        _ => Vec::new(),
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(brand: &str, path: &Path) -> Option<Dialect> {
    match (brand, ending(path)) {
        ("vibe", _) => Some(VIBE),
        ("gptme", _) => Some(GPTME),
        ("hermes", "json") => Some(HERMES),
        ("hermes", "jsonl") => Some(HERMES_LINES),
        ("posit-assistant", _) => Some(POSIT),
        ("codebuff", _) => Some(CODEBUFF),
        _ => None,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(document) = head.document() {
        let of_document = of_document(document);
        if of_document.is_some() || head.spans_lines() {
            return of_document;
        }
    }
    if head.is_sse() {
        return None;
    }
    let any = |is: fn(Node<'_>) -> bool| head.records().any(is);
    if any(is_muse) {
        return Match::sure(MUSE);
    }
    if any(is_openhands) {
        return Match::sure(OPENHANDS);
    }
    if head.mostly(is_posit) {
        return Match::sure(POSIT);
    }
    if any(|record| record.get("role").is_some_and(|it| it.is("session_meta"))) {
        return Match::sure(HERMES_LINES);
    }
    // Results of tools have no id of their own.
    if head.mostly(is_vibe) && any(|record| record.get("message_id").is_some()) {
        return Match::likely(VIBE);
    }
    if head.mostly(is_gptme) {
        let told = |record: Node<'_>| {
            ["pinned", "hide", "files", "metadata"]
                .iter()
                .any(|key| record.get(key).is_some())
        };
        // Without any field of its own, it has to be without those of others.
        let others = |record: Node<'_>| {
            ["model", "provider", "usage", "tool_calls", "tool"]
                .iter()
                .any(|key| record.get(key).is_some())
        };
        return if head.records().any(told) {
            Match::sure(GPTME)
        } else if head.records().any(others) {
            None
        } else {
            Match::likely(GPTME)
        };
    }
    None
}

fn of_document(document: Node<'_>) -> Option<Match> {
    let has = |key: &str| document.get(key).is_some();
    let is_list = |key: &str| {
        document
            .get(key)
            .is_some_and(|list| list.kind() == Kind::List)
    };
    if document.kind() == Kind::List {
        let mut items = document.items();
        let first = items.next()?;
        if is_codebuff(first) {
            return Match::sure(CODEBUFF);
        }
        // An export of several conversations is several sessions; see `gather`.
        return match items.next() {
            None => export(first),
            Some(_) => None,
        };
    }
    if is_list("messages") && has("session_id") && (has("session_start") || has("platform")) {
        return Match::sure(HERMES);
    }
    let agent = document.get("agent");
    let memory = document.path(&["agent", "memory", "content"]);
    if memory.is_some_and(|memory| memory.kind() == Kind::List)
        && agent.is_some_and(|a| a.get("toolkit").is_some() || a.get("_sys_prompt").is_some())
    {
        return Match::sure(QWENPAW);
    }
    export(document)
}

fn export(document: Node<'_>) -> Option<Match> {
    let has = |key: &str| document.get(key).is_some();
    if document
        .get("mapping")
        .is_some_and(|m| m.kind() == Kind::Object)
        && has("current_node")
    {
        return Match::sure(CHATGPT);
    }
    if document
        .get("chat_messages")
        .is_some_and(|m| m.kind() == Kind::List)
        && has("uuid")
    {
        return Match::sure(CLAUDE_AI);
    }
    None
}

fn is_muse(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("payload_type") && has("record_type") && has("payload") && has("stream")
}

fn is_openhands(record: Node<'_>) -> bool {
    let kind = record.text("kind").unwrap_or_default();
    let has = |key: &str| record.get(key).is_some();
    match &*kind {
        "MessageEvent" => has("llm_message"),
        "ActionEvent" => has("action") || has("tool_call"),
        "ObservationEvent" => has("observation"),
        "SystemPromptEvent" => has("system_prompt"),
        _ => false,
    }
}

fn is_posit(record: Node<'_>) -> bool {
    let message = record.get("message");
    record.get("id").is_some_and(|id| id.as_u64().is_some())
        && record.get("type").is_none()
        && message.is_some_and(|m| m.get("role").is_some() && m.get("content").is_some())
}

fn is_message(record: Node<'_>) -> bool {
    let role = record.text("role").unwrap_or_default();
    crate::openai_chat::message::ROLES.contains(&&*role)
        && ["type", "uuid", "sessionId", "message", "model_id", "id"]
            .iter()
            .all(|key| record.get(key).is_none())
}

fn is_vibe(record: Node<'_>) -> bool {
    is_message(record) && record.get("timestamp").is_none()
}

/// Times are as Python prints them, and so never end in `Z`.
fn is_gptme(record: Node<'_>) -> bool {
    is_message(record)
        && record
            .get("content")
            .is_some_and(|content| content.kind() == Kind::String)
        && record
            .get("timestamp")
            .and_then(|timestamp| timestamp.as_str())
            .is_some_and(|timestamp| timestamp.contains('T') && !timestamp.ends_with('Z'))
}

fn is_codebuff(record: Node<'_>) -> bool {
    let variant = record.text("variant").unwrap_or_default();
    matches!(&*variant, "user" | "ai" | "agent" | "error")
        && record.get("id").is_some()
        && record.get("content").is_some()
}
