//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::Node;

use super::{DOCUMENT, HISTORY, SESSION, STREAM};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick, qwen};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let claude = host.env("CLAUDE_CONFIG_DIR");
    let homes = match claude {
        Some(home) => vec![home],
        None => vec![host.home(".claude"), host.config("claude")],
    };
    let mut places = Vec::new();
    for home in homes {
        places.push(projects("claude-code", home.join("projects")));
        places.push(LogPlace {
            brand: "claude-code",
            root: home.join("history.jsonl"),
            depth: 0,
            pick: |_| Pick::Gather,
        });
    }
    // The desktop's sessions.
    for root in [
        host.config("Claude/local-agent-mode-sessions"),
        host.home("Library/Application Support/Claude/local-agent-mode-sessions"),
    ] {
        places.push(LogPlace {
            depth: 10,
            ..projects("claude-code", root)
        });
    }
    for (brand, below) in [
        ("openclaude", ".openclaude/projects"),
        ("qoder", ".qoder/projects"),
        ("iflow", ".iflow/projects"),
        ("workbuddy", ".workbuddy/projects"),
        ("command-code", ".commandcode/projects"),
        ("zencoder", ".zencoder/sessions"),
    ] {
        places.push(projects(brand, host.home(below)));
    }
    places
}

fn projects(brand: &'static str, root: PathBuf) -> LogPlace {
    LogPlace {
        brand,
        root,
        depth: 6,
        pick,
    }
}

fn pick(below: &Path) -> Pick {
    let within = |name: &str| below.iter().any(|part| part == name);
    let ending = below.extension().and_then(|ending| ending.to_str());
    if within("tool-results") {
        // Large outputs that the session only refers to.
        return if ending.is_some() {
            Pick::Keep
        } else {
            Pick::Skip
        };
    }
    match ending {
        Some("jsonl") => Pick::Log,
        _ => Pick::Skip,
    }
}

pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    let is_agent = log
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("agent-"));
    if is_agent {
        vec![log.with_extension("meta.json")]
    } else {
        Vec::new()
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    (ending(path) == "jsonl").then_some(SESSION)
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(document) = head.document() {
        if document.get("loglines").is_some() {
            return Match::sure(DOCUMENT);
        }
        let mut items = document.items();
        if items
            .next()
            .is_some_and(|first| is_session(first) || is_stream(first))
        {
            return Match::likely(DOCUMENT);
        }
        if head.spans_lines() && (is_session(document) || is_stream(document)) {
            return Match::sure(DOCUMENT);
        }
    }
    if head
        .records()
        .any(|record| is_cursor(record) || is_droid(record) || qwen::is_record(record))
    {
        return None;
    }
    let mut likely = None;
    for record in head.records() {
        if is_system(record) {
            likely = Match::likely(SESSION);
        } else if is_session(record) {
            return Match::sure(SESSION);
        }
        if is_stream(record) {
            return Match::sure(STREAM);
        }
        if is_prompt(record) {
            return Match::sure(HISTORY);
        }
        if is_bare(record) {
            likely = Match::likely(SESSION);
        }
    }
    likely
}

/// Whether a line is a notice of a session. Qwen Code writes the same envelope around its own.
fn is_system(record: Node<'_>) -> bool {
    record.get("type").is_some_and(|kind| kind.is("system")) && is_session(record)
}

/// Whether a line is one that Droid prints, whose stream begins as this one does.
fn is_droid(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    match record.text("type").as_deref() {
        Some("message") => has("role") && has("text"),
        Some("tool_call") => has("toolName") && has("parameters"),
        Some("completion") => has("finalText"),
        _ => false,
    }
}

/// Whether a line is one of a session: the envelope that user, assistant and system lines have, with a
/// message of the Anthropic kind; or one of the lines without an envelope that only Claude Code writes.
fn is_session(record: Node<'_>) -> bool {
    let Some(kind) = record.text("type") else {
        return false;
    };
    let has = |key: &str| record.get(key).is_some();
    match &*kind {
        "user" | "assistant" => {
            has("sessionId")
                && has("uuid")
                && record
                    .get("message")
                    .is_some_and(|m| m.get("parts").is_none())
        }
        "system" | "attachment" | "progress" => {
            has("sessionId")
                && has("uuid")
                && (has("subtype") || has("attachment") || has("data"))
                && record.get("systemPayload").is_none()
        }
        "summary" => has("leafUuid"),
        "file-history-snapshot" | "file-history-delta" => has("messageId") || has("snapshot"),
        "queue-operation" => has("operation"),
        "last-prompt" | "ai-title" | "custom-title" | "permission-mode" | "worktree-state" => {
            has("sessionId")
        }
        _ => false,
    }
}

/// Whether a line is one of the stream.
fn is_stream(record: Node<'_>) -> bool {
    let Some(kind) = record.text("type") else {
        return false;
    };
    let has = |key: &str| record.get(key).is_some();
    let message = record.get("message");
    match &*kind {
        "system" => has("session_id") && record.get("subtype").is_some_and(|s| s.is("init")),
        "assistant" | "user" => {
            (has("session_id") || has("parent_tool_use_id"))
                && message.is_some_and(|m| m.get("content").is_some())
        }
        "result" => has("session_id") && has("num_turns"),
        _ => false,
    }
}

/// Whether a line is one of the stream that Cursor's agent writes, which is alike: its beginning names no
/// tools, and tool calls are lines of their own.
fn is_cursor(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    let kind = |word: &str| record.get("type").is_some_and(|kind| kind.is(word));
    has("session_id")
        && !has("uuid")
        && ((kind("system") && has("permissionMode") && !has("tools"))
            || (kind("tool_call") && has("call_id")))
}

/// Whether a line is a message of the right shape without anything around it that tells whose it is.
fn is_bare(record: Node<'_>) -> bool {
    record
        .text("type")
        .is_some_and(|kind| matches!(&*kind, "user" | "assistant"))
        && record.get("message").is_some_and(|message| {
            let told = message.get("role").is_some() || record.get("timestamp").is_some();
            message.get("content").is_some() && told
        })
}

/// Whether a line is one of the history of prompts.
fn is_prompt(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("display") && has("timestamp") && has("project")
}
