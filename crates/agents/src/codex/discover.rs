//! Where rollouts are, and how they are known.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::wire;
use super::{EXEC, ROLLOUT};
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let home = host.env_or_home("CODEX_HOME", ".codex");
    let place = |brand, root| LogPlace {
        brand,
        root,
        depth: 4,
        pick,
    };
    vec![
        place("codex", home.join("sessions")),
        place("codex", home.join("archived_sessions")),
        place("traex", host.home(".trae/cli/sessions")),
    ]
}

/// Old rollouts may be compressed. While that is done there are files with other endings.
fn pick(below: &Path) -> Pick {
    let plain = match below.extension() {
        Some(ending) if ending == "zst" => below.with_extension(""),
        _ => below.to_owned(),
    };
    match plain.extension() {
        Some(ending) if ending == "jsonl" => Pick::Log,
        _ => Pick::Skip,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() || head.is_sse() {
        return None;
    }
    let mut likely = None;
    let mut signs = Signs::default();
    for record in head.records() {
        if is_line(record) || is_first_header(record) || is_state(record) {
            return Match::sure(ROLLOUT);
        }
        if is_thread_event(record) || is_message_event(record) {
            return Match::sure(EXEC);
        }
        signs.look(record);
        if signs.are_enough() {
            likely = Match::likely(ROLLOUT);
        }
    }
    likely
}

/// Whether a record has the envelope.
fn is_line(record: Node<'_>) -> bool {
    let object = |key: &str| record.get(key).is_some_and(|n| n.kind() == Kind::Object);
    record
        .get("type")
        .and_then(|kind| kind.as_raw_str()?.plain())
        .is_some_and(|kind| wire::LINES.contains(&kind))
        && object("payload")
}

/// Whether a record is what files of the first generation begin with.
fn is_first_header(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some();
    has("id")
        && has("timestamp")
        && has("instructions")
        && !has("type")
        && !has("role")
        && !has("messages")
}

fn is_state(record: Node<'_>) -> bool {
    record
        .get("record_type")
        .is_some_and(|kind| kind.is("state"))
}

/// Whether a record is one of the stream.
fn is_thread_event(record: Node<'_>) -> bool {
    let Some(kind) = record.get("type").and_then(|n| n.as_str()) else {
        return false;
    };
    match &*kind {
        "thread.started" => record.get("thread_id").is_some(),
        "item.started" | "item.updated" | "item.completed" => record
            .get("item")
            .is_some_and(|item| item.get("type").or(item.get("item_type")).is_some()),
        _ => false,
    }
}

/// Whether a record is one of the stream of the first generation.
fn is_message_event(record: Node<'_>) -> bool {
    record.get("id").is_some()
        && record
            .path(&["msg", "type"])
            .and_then(|kind| kind.as_str())
            .is_some_and(|kind| wire::MESSAGES.contains(&&*kind))
}

/// Signs of the files before there was a format: a time on every line, and either items of the
/// Responses kind or tools that are called by `function`.
#[derive(Default)]
struct Signs {
    item: bool,
    message: bool,
    tool: bool,
}

impl Signs {
    fn look(&mut self, record: Node<'_>) {
        let has = |key: &str| record.get(key).is_some();
        let dated = has("timestamp") || has("created_at");
        let kind = record.get("type").and_then(|n| n.as_str());
        match kind.as_deref() {
            Some("function_call" | "function_call_output") if has("call_id") => self.item = true,
            Some("reasoning") if has("encrypted_content") => self.item = true,
            Some("tool_call" | "function_call") if dated && has("function") => self.tool = true,
            Some("tool_result" | "function_result") if dated && has("result") => self.tool = true,
            None if dated && has("role") => self.message = true,
            _ => {}
        }
    }

    fn are_enough(&self) -> bool {
        self.item || (self.message && self.tool)
    }
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}
