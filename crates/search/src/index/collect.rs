//! The best of what is found.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::columnar::ColumnValues as _;
use tantivy::query::Weight;
use tantivy::{DocId, SegmentReader};

use super::schema::{AT, PASS};

/// What comes first, when it is not what fits best.
#[derive(Debug, Clone)]
pub(super) enum Rank {
    /// The latest.
    Newest,
    /// What belongs to the pass with the highest number here, and of those the latest.
    ByPass(Arc<Vec<u64>>),
}

/// The place of an event in the order, and where it is. Earlier ones are greater.
pub(super) type Ranked = ((u64, i64), Reverse<(usize, DocId)>);

/// As many of the first as are asked for, of several segments.
pub(super) struct Firsts {
    heap: BinaryHeap<Reverse<Ranked>>,
    limit: usize,
}

impl Firsts {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(limit.min(1 << 16) + 1),
            limit,
        }
    }

    /// Whether nothing with a lower place than this is wanted any more.
    fn bar(&self) -> Option<(u64, i64)> {
        let last = self.heap.peek()?;
        (self.heap.len() == self.limit).then_some(last.0.0)
    }

    fn put(&mut self, rank: Ranked) {
        if self.heap.len() < self.limit {
            self.heap.push(Reverse(rank));
        } else if let Some(mut last) = self.heap.peek_mut()
            && rank > last.0
        {
            *last = Reverse(rank);
        }
    }

    /// The first ones, in order.
    pub(super) fn done(self) -> Vec<Ranked> {
        let mut found: Vec<Ranked> = self.heap.into_iter().map(|Reverse(it)| it).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }

    /// Takes what a segment has. Segments had better come with the latest first.
    pub(super) fn segment(
        &mut self,
        rank: &Rank,
        ordinal: usize,
        segment: &SegmentReader,
        weight: &dyn Weight,
    ) -> tantivy::Result<()> {
        let at = segment
            .fast_fields()
            .i64(AT)?
            .first_or_default_col(i64::MIN);
        let ranks = match rank {
            Rank::Newest => None,
            Rank::ByPass(ranks) => {
                let pass = segment.fast_fields().u64(PASS)?.first_or_default_col(0);
                Some((ranks.clone(), pass))
            }
        };
        if ranks.is_none() && self.bar().is_some_and(|(_, bar)| at.max_value() < bar) {
            return Ok(());
        }
        let alive = segment.alive_bitset();
        let mut times = vec![0_i64; tantivy::COLLECT_BLOCK_BUFFER_LEN];
        weight.for_each_no_score(segment, &mut |docs| {
            let times = &mut times[..docs.len()];
            at.get_vals(docs, times);
            for (doc, at) in docs.iter().zip(times.iter()) {
                let first = match &ranks {
                    None => 0,
                    Some((ranks, pass)) => rank_of(ranks, pass.get_val(*doc)),
                };
                let place = (first, *at);
                if self.bar().is_some_and(|bar| place < bar)
                    || alive.is_some_and(|alive| alive.is_deleted(*doc))
                {
                    continue;
                }
                self.put((place, Reverse((ordinal, *doc))));
            }
        })
    }
}

fn rank_of(ranks: &[u64], pass: u64) -> u64 {
    let pass = usize::try_from(pass).ok();
    pass.and_then(|pass| ranks.get(pass)).copied().unwrap_or(0)
}

/// The latest time in a segment.
pub(super) fn latest(segment: &SegmentReader) -> tantivy::Result<i64> {
    let at = segment.fast_fields().i64(AT)?;
    Ok(at.first_or_default_col(i64::MIN).max_value())
}
