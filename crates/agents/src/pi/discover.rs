//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::{Kind, Node};

use super::{OMP, SESSION, STREAM};
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let sessions = host.env("PI_CODING_AGENT_SESSION_DIR").unwrap_or_else(|| {
        host.env_or_home("PI_CODING_AGENT_DIR", ".pi/agent")
            .join("sessions")
    });
    let mut places = vec![
        place("pi", sessions),
        place("omp", host.home(".omp/agent/sessions")),
        place("prime-agent", host.home(".prime/agent/sessions")),
    ];
    // The last two are what it was called before.
    for home in [".openclaw", ".moltbot", ".clawdbot"] {
        places.push(LogPlace {
            pick: |below| {
                if below.iter().any(|part| part == "sessions") {
                    pick(below)
                } else {
                    Pick::Skip
                }
            },
            ..place("openclaw", host.home(home).join("agents"))
        });
    }
    places
}

fn place(brand: &'static str, root: PathBuf) -> LogPlace {
    LogPlace {
        brand,
        root,
        depth: 4,
        pick,
    }
}

fn pick(below: &Path) -> Pick {
    // A session that was begun anew is put aside under a longer name.
    let is_aside = below
        .file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.contains(".jsonl.reset."));
    if is_aside || below.extension().is_some_and(|ending| ending == "jsonl") {
        Pick::Log
    } else {
        Pick::Skip
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(brand: &str) -> Dialect {
    if brand == "omp" { OMP } else { SESSION }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.spans_lines() || head.is_sse() {
        return None;
    }
    if head.records().any(is_title) {
        return Match::sure(OMP);
    }
    if head.records().any(is_event) {
        return Match::sure(STREAM);
    }
    if head.records().any(is_header) {
        return Match::sure(SESSION);
    }
    // A part of a session, without its beginning.
    if head.records().any(is_entry) {
        return Match::likely(SESSION);
    }
    None
}

fn is_header(record: Node<'_>) -> bool {
    let has = |key: &str| record.get(key).is_some_and(|n| n.kind() == Kind::String);
    record.get("type").is_some_and(|kind| kind.is("session"))
        && has("id")
        && has("timestamp")
        && has("cwd")
}

/// Whether a line is the title that Oh-My-Pi begins with.
fn is_title(record: Node<'_>) -> bool {
    record.get("type").is_some_and(|kind| kind.is("title"))
        && record.get("v").is_some()
        && record.get("title").is_some()
        && record.get("updatedAt").is_some()
}

/// Whether a line is one that only `--mode json` prints. Anthropic's streams have a `message_start`, too.
fn is_event(record: Node<'_>) -> bool {
    let Some(message) = record.get("message") else {
        return false;
    };
    let is_dated = message
        .get("timestamp")
        .is_some_and(|n| n.kind() == Kind::Number);
    let is_one = match record.text("type").as_deref() {
        Some("message_start") => is_dated,
        Some("message_update") => record.get("assistantMessageEvent").is_some(),
        Some("message_end") => true,
        _ => false,
    };
    is_one && message.get("role").is_some() && message.get("content").is_some()
}

/// Whether a line is an entry whose message no other agent writes in this way.
fn is_entry(record: Node<'_>) -> bool {
    let Some(message) = record.get("message") else {
        return false;
    };
    record.get("type").is_some_and(|kind| kind.is("message"))
        && (message.get("toolCallId").is_some()
            || (message
                .get("timestamp")
                .is_some_and(|n| n.kind() == Kind::Number)
                && message.get("role").is_some()))
}
