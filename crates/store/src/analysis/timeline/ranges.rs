//! Sets of stretches of time, sorted and apart from each other.

/// From a number up to another.
pub(super) type Range = (i64, i64);

/// The stretches that any of these cover.
pub(super) fn union(mut all: Vec<Range>) -> Vec<Range> {
    all.retain(|(from, to)| from < to);
    all.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// What of the first no stretch of the second covers.
pub(super) fn without(all: &[Range], taken: &[Range]) -> Vec<Range> {
    let mut left = Vec::new();
    let mut next = 0;
    for (from, to) in all {
        let mut from = *from;
        while next < taken.len() && taken[next].1 <= from {
            next += 1;
        }
        let mut at = next;
        while at < taken.len() && taken[at].0 < *to {
            if from < taken[at].0 {
                left.push((from, taken[at].0));
            }
            from = from.max(taken[at].1);
            at += 1;
        }
        if from < *to {
            left.push((from, *to));
        }
    }
    left
}

/// What of these is within bounds.
pub(super) fn clipped(all: impl IntoIterator<Item = Range>, within: Range) -> Vec<Range> {
    let clip = |(from, to): Range| (from.max(within.0), to.min(within.1));
    all.into_iter().map(clip).filter(|it| it.0 < it.1).collect()
}

/// How long they are together.
pub(super) fn length(all: &[Range]) -> i64 {
    all.iter()
        .map(|(from, to)| to.saturating_sub(*from))
        .fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<Range>> {
        proptest::collection::vec((0_i64..60, 0_i64..12), 0..12).prop_map(|all| {
            all.into_iter()
                .map(|(from, len)| (from, from + len))
                .collect()
        })
    }

    fn has(all: &[Range], at: i64) -> bool {
        all.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    proptest! {
        /// Each moment is covered or not as the words say.
        #[test]
        fn stretches_cover_what_they_say(a in ranges(), b in ranges()) {
            let (whole_a, whole_b) = (union(a.clone()), union(b.clone()));
            let left = without(&whole_a, &whole_b);
            let inner = clipped(whole_a.clone(), (10, 40));
            for at in 0..80 {
                prop_assert_eq!(has(&whole_a, at), has(&a, at));
                prop_assert_eq!(has(&left, at), has(&a, at) && !has(&b, at));
                prop_assert_eq!(has(&inner, at), has(&a, at) && (10..40).contains(&at));
            }
            let covered = (0..80).filter(|at| has(&a, *at)).count();
            prop_assert_eq!(length(&whole_a), i64::try_from(covered).unwrap());
            prop_assert!(whole_a.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
