//! Which of two findings stands when they overlap.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Certainty, Found};

/// Something that was found, before it is known whether it stands.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) found: Found,
    /// How special the rule is.
    pub(super) rank: u8,
}

/// Leaves those that stand: what is sure before what is nearly, what is special, what is longer, what is earlier.
pub(super) fn settle(candidates: &mut Vec<Candidate>, into: &mut Vec<Found>) {
    if candidates.len() == 1 {
        into.extend(candidates.drain(..).map(|candidate| candidate.found));
        return;
    }
    candidates.sort_by_key(|candidate| {
        let found = &candidate.found;
        (
            found.certainty != Certainty::Sure,
            Reverse(candidate.rank),
            Reverse(found.span.len()),
            found.span.start,
            found.rule,
        )
    });
    let mut standing: BTreeMap<usize, Found> = BTreeMap::new();
    for candidate in candidates.drain(..) {
        let span = candidate.found.span.clone();
        let before = standing.range(..span.end).next_back();
        if before.is_none_or(|(_, found)| found.span.end <= span.start) {
            standing.insert(span.start, candidate.found);
        }
    }
    into.extend(standing.into_values());
}
