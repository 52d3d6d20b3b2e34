//! Where sessions are, and how they are known.

use std::path::Path;

use quipu_model::json::Node;

use super::SESSION;
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let home = host
        .env("QWEN_RUNTIME_DIR")
        .or_else(|| host.env("QWEN_HOME"))
        .unwrap_or_else(|| host.home(".qwen"));
    vec![LogPlace {
        brand: "qwen-code",
        root: home.join("projects"),
        depth: 5,
        pick,
    }]
}

/// `<project>/chats/<session>.jsonl`, and what sub-agents wrote beside it.
fn pick(below: &Path) -> Pick {
    let within = |name: &str| below.iter().any(|part| part == name);
    match below.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") if within("chats") || within("subagents") => Pick::Log,
        _ => Pick::Skip,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let found = head.records().any(is_record);
    if found { Match::sure(SESSION) } else { None }
}

/// The envelope of Claude Code around a content of the Gemini API, or around a payload that only Qwen Code
/// writes.
pub(crate) fn is_record(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    let Some(kind) = record.text("type") else {
        return false;
    };
    if !(has("sessionId") && has("uuid")) {
        return false;
    }
    match &*kind {
        "user" | "assistant" | "tool_result" => {
            record.path(&["message", "parts"]).is_some() || has("toolCallResult")
        }
        "system" => has("subtype") && has("systemPayload"),
        _ => false,
    }
}
