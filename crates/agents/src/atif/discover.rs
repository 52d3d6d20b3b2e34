//! How trajectories are known. They have no place of their own.

use super::TRAJECTORY;
use crate::{Head, Match};

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
