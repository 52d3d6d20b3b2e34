//! Where conversations are, and how they are known.

use quipu_model::json::Node;

use super::ROWS;
use super::wire::{ABOUT, CONVERSATION, ITEM, LEFT_OUT, USAGE};
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let home = host.env_or_home("OMNIGENT_DATA_DIR", ".omnigent");
    vec![LogPlace {
        brand: "omnigent",
        root: home.join("chat.db"),
        depth: 0,
        pick: |_| Pick::Gather,
    }]
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let has = |name: &str| head.tables().iter().any(|table| table == name);
    if has("conversations") && has("conversation_items") {
        return Match::sure(ROWS);
    }
    if head.records().any(is_row) {
        Match::sure(ROWS)
    } else {
        None
    }
}

/// Whether a line is one of a conversation.
fn is_row(record: Node<'_>) -> bool {
    let table = record.text("table").unwrap_or_default();
    let known = [CONVERSATION, ITEM, ABOUT, USAGE, LEFT_OUT];
    record.get("row").is_some() && known.contains(&&*table)
}
