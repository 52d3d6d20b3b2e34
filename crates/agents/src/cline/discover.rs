//! Where tasks and sessions are, and how they are known.

use std::path::{Path, PathBuf};

use quipu_model::json::{Kind, Node};

use super::{HISTORY, SESSION, SHOWN, TASK, wire};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

/// The extensions, and the agents they are.
const EXTENSIONS: [(&str, &str); 5] = [
    ("saoudrizwan.claude-dev", "cline"),
    ("rooveterinaryinc.roo-cline", "roo"),
    ("RooVeterinaryInc.roo-cline", "roo"),
    ("kilocode.kilo-code", "kilo-legacy"),
    ("zoocodeorganization.zoo-code", "zoo"),
];

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let mut places = Vec::new();
    for editor in host.editors() {
        for (extension, brand) in EXTENSIONS {
            let storage = editor.join("globalStorage").join(extension);
            places.push(tasks(brand, storage.join("tasks")));
        }
    }
    let data = match (host.env("CLINE_DATA_DIR"), host.env("CLINE_DIR")) {
        (Some(data), _) => data,
        (None, Some(home)) => home.join("data"),
        (None, None) => host.home(".cline/data"),
    };
    places.push(tasks("cline", data.join("tasks")));
    places.push(LogPlace {
        brand: "cline",
        root: host
            .env("CLINE_SESSION_DATA_DIR")
            .unwrap_or_else(|| data.join("sessions")),
        depth: 2,
        pick: |below| {
            let name = below.file_name().and_then(|name| name.to_str());
            match name {
                Some(name) if name.ends_with(".messages.json") => Pick::Log,
                _ => Pick::Skip,
            }
        },
    });
    places.push(tasks("roo", host.home(".vscode-mock/global-storage/tasks")));
    places
}

fn tasks(brand: &'static str, root: PathBuf) -> LogPlace {
    LogPlace {
        brand,
        root,
        depth: 1,
        pick: |below| {
            // Tasks are directories, named by a time or by an id.
            let is_task = below.iter().count() == 1 && below.extension().is_none();
            if is_task { Pick::Gather } else { Pick::Skip }
        },
    }
}

/// What says more of a session lies beside its messages, under the name of the session.
pub(super) fn sidecars(log: &Path) -> Vec<PathBuf> {
    let name = log.file_name().and_then(|name| name.to_str());
    let id = name.and_then(|name| name.strip_suffix(".messages.json"));
    id.map(|id| log.with_file_name(format!("{id}.json")))
        .into_iter()
        .collect()
}

/// How a log in a place reads where its content does not tell.
pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    (ending(path) == "json").then_some(SESSION)
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if let Some(document) = head.document() {
        if is_session(document) {
            return Match::sure(SESSION);
        }
        if document.kind() == Kind::List {
            return sniff_list(document);
        }
    }
    let is_row = head.records().any(|record| {
        record.get("row").is_some()
            && record
                .text("file")
                .is_some_and(|file| wire::FILES.contains(&&*file))
    });
    if is_row { Match::sure(TASK) } else { None }
}

/// Whether a document is a session of the newer kind, or what lies beside one.
fn is_session(document: Node<'_>) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let messages = document
        .get("messages")
        .is_some_and(|messages| messages.kind() == Kind::List);
    (messages && has("version") && has("agent") && has("updated_at"))
        || (has("session_id") && has("messages_path") && has("started_at"))
}

fn sniff_list(document: Node<'_>) -> Option<Match> {
    const SOME: usize = 12;
    let mut is_dated = false;
    for item in document.items().take(SOME) {
        let has = |key: &str| item.get(key).is_some();
        let kind = item.text("type");
        let is_shown = matches!(kind.as_deref(), Some("say" | "ask"));
        if is_shown && has("ts") && (has("say") || has("ask")) {
            return Match::sure(SHOWN);
        }
        if !(has("role") && has("content")) {
            return None;
        }
        if wire::is_told(item) {
            return Match::sure(HISTORY);
        }
        is_dated |= has("ts");
    }
    // Messages of this kind others write as well, but not with such a time.
    is_dated.then_some(())?;
    Match::likely(HISTORY)
}
