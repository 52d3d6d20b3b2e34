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

impl Candidate {
    /// Whether it is to be removed because it opens something.
    fn is_secret(&self) -> bool {
        self.rank >= 2 && self.found.certainty == Certainty::Sure
    }

    /// What wins comes first: what is sure, what is special, what is longer, what is earlier.
    fn order(&self) -> impl Ord + use<> {
        let found = &self.found;
        (
            found.certainty != Certainty::Sure,
            Reverse(self.rank),
            Reverse(found.span.len()),
            found.span.start,
            found.rule,
        )
    }
}

/// Leaves those that stand. Secrets that overlap are one, named by the one that wins, so that nothing of either is left;
/// of the rest only what wins stands.
pub(super) fn settle(candidates: &mut Vec<Candidate>, into: &mut Vec<Found>) {
    if candidates.len() == 1 {
        into.extend(candidates.drain(..).map(|candidate| candidate.found));
        return;
    }
    join(candidates);
    candidates.sort_by_key(Candidate::order);
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

/// Makes one of secrets that overlap.
fn join(candidates: &mut Vec<Candidate>) {
    candidates.sort_by_key(|one| (!one.is_secret(), one.found.span.start, one.found.span.end));
    let secrets = candidates.iter().take_while(|one| one.is_secret()).count();
    let mut joined: Vec<Candidate> = Vec::with_capacity(secrets);
    let mut from = 0;
    while from < secrets {
        let mut end = candidates[from].found.span.end;
        let mut to = from + 1;
        while to < secrets && candidates[to].found.span.start < end {
            end = end.max(candidates[to].found.span.end);
            to += 1;
        }
        let start = candidates[from].found.span.start;
        let best = candidates[from..to].iter().min_by_key(|one| one.order());
        if let Some(mut best) = best.cloned() {
            best.found.span = start..end;
            joined.push(best);
        }
        from = to;
    }
    candidates.splice(..secrets, joined);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Why;

    fn settled(all: &[(u8, std::ops::Range<usize>, bool)]) -> Vec<(usize, std::ops::Range<usize>)> {
        let mut candidates: Vec<Candidate> = all
            .iter()
            .enumerate()
            .map(|(rule, (rank, span, sure))| Candidate {
                rank: *rank,
                found: Found {
                    rule,
                    span: span.clone(),
                    certainty: if *sure {
                        Certainty::Sure
                    } else {
                        Certainty::Near(Why::Check)
                    },
                },
            })
            .collect();
        let mut found = Vec::new();
        settle(&mut candidates, &mut found);
        found
            .into_iter()
            .map(|found| (found.rule, found.span))
            .collect()
    }

    #[test]
    fn secrets_that_overlap_are_one_and_the_special_one_names_it() {
        assert_eq!(settled(&[(2, 0..20, true), (4, 5..15, true)]), [(1, 0..20)]);
        assert_eq!(
            settled(&[(4, 0..10, true), (3, 8..20, true), (4, 30..40, true)]),
            [(0, 0..20), (2, 30..40)]
        );
        assert_eq!(settled(&[(4, 0..10, true), (4, 0..10, true)]), [(0, 0..10)]);
    }

    #[test]
    fn of_the_rest_only_what_wins_stands() {
        assert_eq!(settled(&[(1, 0..20, true), (4, 5..15, true)]), [(1, 5..15)]);
        assert_eq!(
            settled(&[(4, 0..20, false), (1, 5..15, true)]),
            [(1, 5..15)]
        );
        assert_eq!(settled(&[(0, 0..9, true), (0, 5..15, true)]), [(1, 5..15)]);
    }
}
