//! Where threads are, and how they are known.

use std::path::Path;

use quipu_model::json::Kind;

use super::THREAD;
use crate::{Head, Host, LogPlace, Match, Pick};

pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let kept = host.data("amp/threads");
    let extension = host
        .editors()
        .into_iter()
        .map(|editor| editor.join("globalStorage/sourcegraph.amp"));
    std::iter::once(kept)
        .chain(extension)
        .map(|root| LogPlace {
            brand: "amp",
            root,
            depth: 3,
            pick,
        })
        .collect()
}

fn pick(below: &Path) -> Pick {
    let is_thread = below
        .file_stem()
        .and_then(|stem| stem.to_str())
        .is_some_and(|stem| stem.starts_with("T-"));
    if is_thread && below.extension().is_some_and(|ending| ending == "json") {
        Pick::Log
    } else {
        Pick::Skip
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let document = head.document()?;
    let is_list = |key: &str| document.get(key).is_some_and(|n| n.kind() == Kind::List);
    let is_thread = document.text("id").is_some_and(|id| id.starts_with("T-"))
        && is_list("messages")
        && (document.get("created").is_some() || document.get("v").is_some());
    if is_thread { Match::sure(THREAD) } else { None }
}
