//! How chats are known. They have no place of their own.

use quipu_model::json::Kind;

use super::wire::RUN;
use super::{ANALYTICS, CHAT};
use crate::{Head, Match};

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    // A chat may have a front matter, and little else before its first run.
    const LINES: usize = 32;
    let is_chat = head
        .text()
        .lines()
        .take(LINES)
        .any(|line| line.starts_with(RUN));
    if is_chat {
        return Match::sure(CHAT);
    }
    let is_event = head.records().any(|record| {
        record
            .get("properties")
            .is_some_and(|n| n.kind() == Kind::Object)
            && record.get("event").is_some()
            && record.get("user_id").is_some()
            && record.get("time").is_some()
    });
    if is_event {
        Match::sure(ANALYTICS)
    } else {
        None
    }
}
