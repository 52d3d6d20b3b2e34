//! Where sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::Node;

use super::wire::{is_message_type, is_record_type};
use super::{CONTEXT, RECORDS, WIRE};
use crate::{Dialect, Head, Host, LogPlace, Match, Origin, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let place = |brand, root| LogPlace {
        brand,
        root,
        depth: 6,
        pick,
    };
    let mut places = vec![
        place("kimi-cli", host.home(".kimi/sessions")),
        place("kimi-code", host.home(".kimi-code/sessions")),
    ];
    if let Some(home) = host.env("KIMI_SHARE_DIR") {
        places.push(place("kimi-cli", home.join("sessions")));
    }
    if let Some(home) = host.env("KIMI_CODE_HOME") {
        places.push(place("kimi-code", home.join("sessions")));
    }
    // The desktop.
    for root in [
        host.config("kimi-desktop/daimon-share/sessions"),
        host.home("Library/Application Support/kimi-desktop/daimon-share/sessions"),
    ] {
        places.push(place("kimi-code", root));
    }
    places
}

fn pick(below: &Path) -> Pick {
    match below.file_name().and_then(|name| name.to_str()) {
        Some("wire.jsonl") => Pick::Log,
        // The same conversation as the model sees it.
        Some("context.jsonl") => Pick::Keep,
        _ => Pick::Skip,
    }
}

/// The state of the session, which has its title and where it works. It is that of its sub-agents as well.
pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    let Some(directory) = log.parent() else {
        return Vec::new();
    };
    let mut found = vec![directory.join("state.json")];
    // `<session>/agents/<agent>/wire.jsonl`
    let agents = directory.parent();
    let is_agent = agents
        .and_then(Path::file_name)
        .is_some_and(|name| name == "agents");
    if is_agent && let Some(session) = agents.and_then(Path::parent) {
        found.push(session.join("state.json"));
    }
    found
}

/// The session a log is of, and the agent whose it is when that is not the main one.
pub(super) fn named(origin: &Origin<'_>) -> (Option<String>, Option<String>) {
    let mut above = origin.above();
    let (first, second, third) = (above.next(), above.next(), above.next());
    match (first, second, third) {
        (Some("main"), Some("agents"), Some(session)) => (Some(session.to_owned()), None),
        (Some(agent), Some("agents"), Some(session)) => {
            (Some(session.to_owned()), Some(agent.to_owned()))
        }
        (Some(directory), ..) if matches!(origin.stem(), Some("wire" | "context")) => {
            (Some(directory.to_owned()), None)
        }
        _ => (origin.stem().map(str::to_owned), None),
    }
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(brand: &str) -> Dialect {
    if brand == "kimi-cli" { WIRE } else { RECORDS }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let mut likely = None;
    for record in head.records() {
        let kind = record.text("type").unwrap_or_default();
        if is_record_type(&kind) && record.get("sessionId").is_none() {
            return Match::sure(RECORDS);
        }
        let message = record.get("message");
        if record.get("timestamp").is_some()
            && record.get("type").is_none()
            && message.is_some_and(|message| {
                let kind = message.text("type").unwrap_or_default();
                is_message_type(&kind) && message.get("payload").is_some()
            })
        {
            return Match::sure(WIRE);
        }
        if is_context_mark(record) {
            return Match::sure(CONTEXT);
        }
        // The first line of both, alone in a session that was never used.
        if kind == "metadata" && record.get("protocol_version").is_some() {
            let code = record.get("created_at").is_some();
            likely = Match::likely(if code { RECORDS } else { WIRE });
        }
    }
    likely
}

/// A line of the context that is no message.
fn is_context_mark(record: Node<'_>) -> bool {
    let role = record.text("role").unwrap_or_default();
    match &*role {
        "_checkpoint" => record.get("id").is_some(),
        "_usage" => record.get("token_count").is_some(),
        "_system_prompt" => record.get("content").is_some(),
        _ => false,
    }
}
