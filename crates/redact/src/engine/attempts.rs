//! Where rules are to be tried: at places, and within stretches.

use std::vec::Drain;

/// Bits that the number of a rule takes. The others are of the place.
const RULE: u32 = 20;

/// Places at which rules are tried, as one number each: they are put in order often.
#[derive(Debug, Default)]
pub(super) struct Attempts(Vec<u64>);

impl Attempts {
    #[inline]
    pub(super) fn push(&mut self, start: usize, rule: usize) {
        debug_assert!(rule < 1 << RULE, "more rules than there are numbers for");
        self.0.push((start as u64) << RULE | rule as u64);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes out what is tried before this place, in the order of places.
    pub(super) fn before(&mut self, sure: usize) -> impl Iterator<Item = (usize, usize)> {
        self.0.sort_unstable();
        let count = self.0.partition_point(|one| place(*one) < sure);
        let rule = |one| usize::try_from(one & ((1 << RULE) - 1)).unwrap_or(usize::MAX);
        self.0
            .drain(..count)
            .map(move |one| (place(one), rule(one)))
    }
}

fn place(one: u64) -> usize {
    usize::try_from(one >> RULE).unwrap_or(usize::MAX)
}

/// Stretches of a text in which rules are searched for.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// The rule, where it begins and where it ends.
    stretches: Vec<(usize, usize, usize)>,
    /// Where the last one of each rule may be. What is there is looked at before it is believed, so it may be old.
    last: Vec<usize>,
}

impl Around {
    /// Adds a stretch, to the last one of the rule where they touch.
    pub(super) fn push(&mut self, rule: usize, begin: usize, end: usize) {
        if self.last.len() <= rule {
            self.last.resize(rule + 1, usize::MAX);
        }
        if let Some(last) = self.stretches.get_mut(self.last[rule])
            && last.0 == rule
            && (last.1..=last.2).contains(&begin)
        {
            last.2 = last.2.max(end);
            return;
        }
        self.last[rule] = self.stretches.len();
        self.stretches.push((rule, begin, end));
    }

    pub(super) fn len(&self) -> usize {
        self.stretches.len()
    }

    pub(super) fn clear(&mut self) {
        self.stretches.clear();
    }

    /// Puts stretches of a rule together that overlap or touch.
    pub(super) fn merge(&mut self) {
        self.stretches.sort_unstable();
        self.stretches.dedup_by(|next, last| {
            let joined = next.0 == last.0 && next.1 <= last.2;
            if joined {
                last.2 = last.2.max(next.2);
            }
            joined
        });
    }

    /// Takes out all of them, by rule and place, none touching another of its rule.
    pub(super) fn drain(&mut self) -> Drain<'_, (usize, usize, usize)> {
        self.merge();
        self.stretches.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_come_in_the_order_of_places_and_rules() {
        let mut attempts = Attempts::default();
        for (start, rule) in [(9, 1), (2, 700), (2, 3), (9, 0), (5_000_000_000, 2)] {
            attempts.push(start, rule);
        }
        let first: Vec<_> = attempts.before(9).collect();
        assert_eq!(first, [(2, 3), (2, 700)]);
        let rest: Vec<_> = attempts.before(usize::MAX).collect();
        assert_eq!(rest, [(9, 0), (9, 1), (5_000_000_000, 2)]);
        assert!(attempts.is_empty());
    }

    #[test]
    fn stretches_of_a_rule_that_touch_are_one() {
        let mut around = Around::default();
        for round in 0..2 {
            for (rule, begin, end) in [
                (1, 0, 5),
                (0, 3, 4),
                (1, 5, 9),
                (1, 20, 21),
                (1, 7, 12),
                (0, 4, 4),
            ] {
                around.push(rule, begin, end);
            }
            assert!(around.len() <= 5, "{round}");
            let all: Vec<_> = around.drain().collect();
            assert_eq!(all, [(0, 3, 4), (1, 0, 12), (1, 20, 21)], "{round}");
        }
    }
}
