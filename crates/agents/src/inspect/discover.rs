//! Where logs are, and how they are known.

use std::path::Path;

use quipu_model::json::Node;

use super::{LOG, SAMPLE};
use crate::{Head, Host, LogPlace, Match, Pick};

/// Logs lie in the project they are of. There is a place for all only where a person named one.
pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    let named = host.env("INSPECT_LOG_DIR").into_iter();
    named
        .map(|root| LogPlace {
            brand: "inspect",
            root,
            depth: 3,
            pick,
        })
        .collect()
}

fn pick(below: &Path) -> Pick {
    match below.extension().and_then(|ending| ending.to_str()) {
        Some("eval") => Pick::Gather,
        Some("json") => Pick::Log,
        _ => Pick::Skip,
    }
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let has = |record: Node<'_>, key: &str| record.get(key).is_some();
    let is_spec = |spec: Node<'_>| {
        has(spec, "task") && has(spec, "model") && (has(spec, "dataset") || has(spec, "eval_id"))
    };
    let is_sample = |sample: Node<'_>| {
        has(sample, "epoch") && (has(sample, "messages") || has(sample, "events"))
    };
    let of_archive = |record: Node<'_>| {
        has(record, "inspect_log") || record.get("inspect_sample").is_some_and(is_sample)
    };
    if head.records().any(of_archive) {
        return Match::sure(SAMPLE);
    }
    let spec = head
        .fields()
        .any(|(key, _, value)| key == "eval" && is_spec(value));
    let ours = head
        .fields()
        .any(|(key, _, _)| matches!(key, "version" | "status"));
    (spec && ours).then_some(LOG).and_then(Match::sure)
}
