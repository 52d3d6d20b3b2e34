//! How trajectories are known, and where an agent keeps its sessions as such.

use super::TRAJECTORY;
use crate::family::ending;
use crate::{Head, Host, LogPlace, Match, Pick};

/// Devin writes one when a session ends. What it needs to go on is in a database, which is not read.
pub(super) fn places(host: &Host) -> Vec<LogPlace> {
    [host.data("devin"), host.home("AppData/Roaming/Devin")]
        .into_iter()
        .map(|home| LogPlace {
            brand: "devin",
            root: home.join("cli/transcripts"),
            depth: 0,
            pick: |below| match ending(below) {
                "json" => Pick::Log,
                _ => Pick::Skip,
            },
        })
        .collect()
}

pub(super) fn sniff(head: &Head<'_>) -> Option<Match> {
    let version = head.field("schema_version").and_then(|it| it.as_str());
    if let Some(version) = version {
        return if version.starts_with("ATIF-v") {
            Match::sure(TRAJECTORY)
        } else {
            None
        };
    }
    // The version may stand behind the steps.
    let step = head.first_item("steps")?;
    let has = |key: &str| step.get(key).is_some();
    if has("step_id") && has("source") && has("message") {
        Match::likely(TRAJECTORY)
    } else {
        None
    }
}
