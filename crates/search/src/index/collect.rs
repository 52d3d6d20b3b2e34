//! The best of what is found.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::columnar::ColumnValues;
use tantivy::fastfield::AliveBitSet;
use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

use super::Passes;
use super::phrase::Phrase;
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

/// Which events of a segment are looked at.
pub(super) struct Visible {
    hidden: Option<(Passes, Column<u64>)>,
    alive: Option<AliveBitSet>,
}

type Column<T> = Arc<dyn ColumnValues<T>>;

impl Visible {
    /// Those that were not removed, and not of a hidden pass.
    pub(super) fn of(segment: &SegmentReader, hidden: &Passes) -> tantivy::Result<Self> {
        let hidden = if hidden.is_empty() {
            None
        } else {
            let pass = segment.fast_fields().u64(PASS)?.first_or_default_col(0);
            Some((hidden.clone(), pass))
        };
        Ok(Self {
            hidden,
            alive: segment.alive_bitset().cloned(),
        })
    }

    fn has(&self, doc: DocId) -> bool {
        let removed = self.alive.as_ref().is_some_and(|it| it.is_deleted(doc));
        let hidden = self.hidden.as_ref();
        !removed && !hidden.is_some_and(|(hidden, pass)| hidden.has(pass.get_val(doc)))
    }
}

/// What is looked for in a segment.
pub(super) enum Sought<'s> {
    Phrase(&'s Phrase),
    Any(&'s dyn Weight),
}

/// A score and where it is of. Better ones are greater; of equal ones, the one that comes first.
struct Scored(Score, Reverse<(usize, DocId)>);

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0
            .total_cmp(&other.0)
            .then_with(|| self.1.cmp(&other.1))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scored {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scored {}

/// As many of those that fit best as are asked for, of several segments. What a segment has to beat is what was found
/// in those before it.
pub(super) struct Best {
    heap: BinaryHeap<Reverse<Scored>>,
    limit: usize,
}

impl Best {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(limit.min(1 << 16) + 1),
            limit,
        }
    }

    /// What a score has to be above.
    fn bar(&self) -> Score {
        match self.heap.peek() {
            Some(last) if self.heap.len() >= self.limit => last.0.0,
            _ => Score::MIN,
        }
    }

    /// Takes what a segment has: `each` gives events with a score above a bar, which every event may raise. Segments
    /// have to come in order.
    pub(super) fn segment(
        &mut self,
        ordinal: usize,
        visible: &Visible,
        each: impl FnOnce(Score, &mut dyn FnMut(DocId, Score) -> Score) -> tantivy::Result<()>,
    ) -> tantivy::Result<()> {
        each(self.bar(), &mut |doc, score| {
            if visible.has(doc) {
                self.heap
                    .push(Reverse(Scored(score, Reverse((ordinal, doc)))));
                if self.heap.len() > self.limit {
                    self.heap.pop();
                }
            }
            self.bar()
        })
    }

    /// The best, in order.
    pub(super) fn done(self) -> impl Iterator<Item = (Score, usize, DocId)> {
        let found = self.heap.into_sorted_vec().into_iter();
        found.map(|Reverse(Scored(score, Reverse((ordinal, doc))))| (score, ordinal, doc))
    }
}

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
        sought: &Sought<'_>,
        visible: &Visible,
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
        let place = |doc: DocId, at: i64| match &ranks {
            None => (0, at),
            Some((ranks, pass)) => (rank_of(ranks, pass.get_val(doc)), at),
        };
        match sought {
            Sought::Phrase(phrase) => {
                let firsts = std::cell::RefCell::new(self);
                phrase.each(
                    segment,
                    |doc, _| {
                        let place = place(doc, at.get_val(doc));
                        let bar = firsts.borrow().bar();
                        bar.is_none_or(|bar| place >= bar) && visible.has(doc)
                    },
                    |doc, _| {
                        let place = place(doc, at.get_val(doc));
                        firsts.borrow_mut().put((place, Reverse((ordinal, doc))));
                    },
                )
            }
            Sought::Any(weight) => {
                let mut times = vec![0_i64; tantivy::COLLECT_BLOCK_BUFFER_LEN];
                weight.for_each_no_score(segment, &mut |docs| {
                    let times = &mut times[..docs.len()];
                    at.get_vals(docs, times);
                    for (doc, at) in docs.iter().zip(times.iter()) {
                        let place = place(*doc, *at);
                        if self.bar().is_none_or(|bar| place >= bar) && visible.has(*doc) {
                            self.put((place, Reverse((ordinal, *doc))));
                        }
                    }
                })
            }
        }
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
