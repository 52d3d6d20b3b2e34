//! How batches are known, and where received ones lie.

use std::path::Path;

use quipu_model::json::{Kind, Node};

use super::{DOCUMENT, LINES};
use crate::family::ending;
use crate::{Dialect, Head, Host, LogPlace, Match, Pick};

/// What `quipu serve` received lies below the home of Quipu: a directory a day, a file a conversation.
///
/// Where nothing was received there is no place: whoever waits for a place to be made watches the directory above it, and
/// in that one Quipu writes itself.
pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let root = host.quipu().join("received").join("otlp");
    if !root.is_dir() {
        return Vec::new();
    }
    vec![LogPlace {
        brand: "otlp",
        root,
        depth: 1,
        pick: |path| {
            if ending(path) == "jsonl" {
                Pick::Log
            } else {
                Pick::Skip
            }
        },
    }]
}

pub(super) fn dialect_at(path: &Path) -> Option<Dialect> {
    (ending(path) == "jsonl").then_some(LINES)
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    if head.is_sse() {
        return None;
    }
    if head.spans_lines() {
        let is_batch = LISTS.iter().any(|(resources, scopes)| {
            let first = head.first_item(resources);
            first.is_some_and(|first| is_of_resource(first, scopes))
        });
        return if is_batch {
            Match::sure(DOCUMENT)
        } else {
            None
        };
    }
    if head.records().any(is_batch) {
        return Match::sure(LINES);
    }
    // A line may be longer than what is looked at.
    let first = LISTS.iter().find_map(|(resources, scopes)| {
        let first = head.first_item(resources)?;
        is_of_resource(first, scopes).then_some(())
    });
    first.and_then(|()| Match::sure(LINES))
}

/// Lists of resources, and in each a list of scopes.
const LISTS: [(&str, &str); 2] = [
    ("resourceSpans", "scopeSpans"),
    ("resourceLogs", "scopeLogs"),
];

/// Whether a record is a batch of spans or log records. Visual Studio writes such batches too, and has a reader of its own.
pub(super) fn is_batch(record: Node<'_>) -> bool {
    LISTS.iter().any(|(resources, scopes)| {
        let list = record.get(resources);
        let mut items = list.into_iter().flat_map(Node::items);
        list.is_some_and(|list| list.kind() == Kind::List)
            && items.all(|item| is_of_resource(item, scopes))
    })
}

fn is_of_resource(item: Node<'_>, scopes: &str) -> bool {
    let lists = item.get(scopes).is_none_or(|it| it.kind() == Kind::List);
    let resource = item.get("resource").filter(|resource| !resource.is_null());
    let is_theirs = resource.is_some_and(|resource| {
        let name = quipu_formats::otlp::request::attribute(resource, "service.name");
        name.as_deref() == Some("vs-copilot")
    });
    item.kind() == Kind::Object && lists && !is_theirs
}
