//! Where threads are, and how they are known.

use quipu_model::json::Node;

use super::ROWS;
use super::wire::{DOCUMENT, MESSAGE, THREAD};
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let mac = host.home("Library/Application Support/Zed");
    [host.data("zed"), mac]
        .into_iter()
        .map(|home| LogPlace {
            brand: "zed",
            root: home.join("threads/threads.db"),
            depth: 0,
            pick: |_| Pick::Gather,
        })
        .collect()
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if !head.tables().is_empty() {
        // One table, and what SQLite keeps for itself. Others have more beside threads.
        let mut own = head
            .tables()
            .iter()
            .filter(|name| !name.starts_with("sqlite_"));
        let only = own.next().is_some_and(|name| name == "threads") && own.next().is_none();
        return if only { Match::sure(ROWS) } else { None };
    }
    if head.records().any(is_row) {
        Match::sure(ROWS)
    } else {
        None
    }
}

/// Whether a line is one of a thread.
fn is_row(record: Node<'_>) -> bool {
    let (Some(table), Some(row)) = (record.text("table"), record.get("row")) else {
        return false;
    };
    match &*table {
        THREAD => row.get("id").is_some(),
        MESSAGE | DOCUMENT => true,
        _ => false,
    }
}
