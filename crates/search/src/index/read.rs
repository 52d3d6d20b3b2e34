//! Looking events up.

use std::path::PathBuf;
use std::sync::Arc;

use tantivy::collector::Count;
use tantivy::query::EnableScoring;
use tantivy::{DocId, IndexReader, ReloadPolicy, Score, Searcher, SegmentReader};

use super::collect::{Best, Firsts, Rank, Sought, Visible, latest};
use super::compile::Compiler;
use super::health::guarded;
use super::schema::{AT, Fields, PASS, PLACE, SEQ};
use super::{IndexError, Passes, Result, TantivyIndex, View};
use crate::query::{Filter, Query};

/// What the index does not know of its events, because it is their session's.
pub trait Sessions {
    /// The passes over the logs of sessions that meet a condition.
    fn passes(&self, filter: &Filter) -> Result<Passes>;
}

/// What comes first.
#[derive(Debug, Clone, Default)]
pub enum Order {
    /// What fits best.
    #[default]
    Relevance,
    /// The latest.
    Newest,
    /// What belongs to the pass with the highest number, which is found at the pass's own number. Of the
    /// same pass, the latest.
    ByPass(Arc<Vec<u64>>),
}

/// What is wanted of what is found.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// In which order.
    pub order: Order,
    /// How many at most.
    pub limit: usize,
    /// Passes that are treated as if they were not there.
    pub hidden: Passes,
}

/// An event that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The pass over a log in which it was read.
    pub pass: u64,
    /// Its number in the transcript.
    pub seq: u64,
    /// Where it stands in the log, as it was put in.
    pub place: u64,
    /// Milliseconds since 1970.
    pub at: Option<i64>,
    /// How well it fits; zero where that was not asked for.
    pub score: f32,
}

/// The index as it was at one moment.
pub(super) struct TantivyView {
    searcher: Searcher,
    fields: Fields,
    path: PathBuf,
}

impl std::fmt::Debug for TantivyView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TantivyView").finish_non_exhaustive()
    }
}

impl TantivyIndex {
    /// The index as it is now.
    pub(super) fn searcher(&self) -> Result<TantivyView> {
        guarded(&self.path, || {
            let reader: IndexReader = self
                .engine
                .reader_builder()
                .reload_policy(ReloadPolicy::Manual)
                .try_into()
                .map_err(|error| super::unusable(&self.path, &error))?;
            Ok(TantivyView {
                searcher: reader.searcher(),
                fields: self.fields,
                path: self.path.clone(),
            })
        })
    }
}

impl View for TantivyView {
    fn events(&self) -> u64 {
        self.searcher.num_docs()
    }

    fn removed(&self) -> u64 {
        let segments = self.searcher.segment_readers().iter();
        segments.map(|it| u64::from(it.num_deleted_docs())).sum()
    }

    fn highest_pass(&self) -> Result<u64> {
        guarded(&self.path, || {
            let mut highest = 0;
            for segment in self.searcher.segment_readers() {
                let passes = segment.fast_fields().u64(PASS)?;
                highest = highest.max(passes.first_or_default_col(0).max_value());
            }
            Ok(highest)
        })
    }

    fn search(&self, query: &Query, wish: &Wish, sessions: &dyn Sessions) -> Result<Vec<Hit>> {
        guarded(&self.path, || self.found(query, wish, sessions))
    }

    fn count(&self, query: &Query, hidden: &Passes, sessions: &dyn Sessions) -> Result<u64> {
        guarded(&self.path, || {
            let found = self.compiler(sessions).visible(query, hidden)?;
            Ok(self.searcher.search(&found, &Count)? as u64)
        })
    }
}

impl TantivyView {
    pub(super) fn segments(&self) -> &[SegmentReader] {
        self.searcher.segment_readers()
    }

    fn found(&self, query: &Query, wish: &Wish, sessions: &dyn Sessions) -> Result<Vec<Hit>> {
        let compiler = self.compiler(sessions);
        let phrase = compiler.phrase(query);
        let rank = match &wish.order {
            Order::Newest => Rank::Newest,
            Order::ByPass(ranks) => Rank::ByPass(ranks.clone()),
            Order::Relevance => {
                if let Some(phrase) = phrase {
                    let weight = phrase.weight(&self.searcher)?;
                    return self.best(wish, |segment, bar, take| {
                        phrase.each_better(segment, &weight, bar, take)
                    });
                }
                let scoring = EnableScoring::enabled_from_searcher(&self.searcher);
                let weight = compiler.query(query)?.weight(scoring)?;
                return self.best(wish, |segment, bar, take| {
                    weight.for_each_pruning(bar, segment, take)
                });
            }
        };
        if let Some(phrase) = &phrase {
            return self.firsts(wish, &rank, &Sought::Phrase(phrase));
        }
        let scoring = EnableScoring::disabled_from_searcher(&self.searcher);
        let weight = compiler.query(query)?.weight(scoring)?;
        self.firsts(wish, &rank, &Sought::Any(&*weight))
    }

    /// Those that fit best, of what `each` gives of a segment above a bar.
    fn best(
        &self,
        wish: &Wish,
        each: impl Fn(
            &SegmentReader,
            Score,
            &mut dyn FnMut(DocId, Score) -> Score,
        ) -> tantivy::Result<()>,
    ) -> Result<Vec<Hit>> {
        let mut best = Best::new(wish.limit.max(1));
        for (ordinal, segment) in self.segments().iter().enumerate() {
            let visible = Visible::of(segment, &wish.hidden)?;
            best.segment(ordinal, &visible, |bar, take| each(segment, bar, take))?;
        }
        let found = best.done();
        found
            .map(|(score, ordinal, doc)| self.hit(ordinal, doc, score))
            .collect()
    }

    /// Those that come first.
    fn firsts(&self, wish: &Wish, rank: &Rank, sought: &Sought<'_>) -> Result<Vec<Hit>> {
        let segments = self.segments();
        let mut order = Vec::with_capacity(segments.len());
        for (ordinal, segment) in segments.iter().enumerate() {
            order.push((std::cmp::Reverse(latest(segment)?), ordinal));
        }
        order.sort_unstable();
        let mut firsts = Firsts::new(wish.limit.max(1));
        for (_, ordinal) in order {
            let segment = &segments[ordinal];
            let visible = Visible::of(segment, &wish.hidden)?;
            firsts.segment(rank, ordinal, segment, sought, &visible)?;
        }
        let found = firsts.done().into_iter();
        found
            .map(|(_, std::cmp::Reverse((ordinal, doc)))| self.hit(ordinal, doc, 0.0))
            .collect()
    }

    fn compiler<'c>(&'c self, sessions: &'c dyn Sessions) -> Compiler<'c> {
        Compiler {
            fields: self.fields,
            searcher: &self.searcher,
            sessions,
        }
    }

    fn hit(&self, ordinal: usize, doc: DocId, score: f32) -> Result<Hit> {
        let segment = &self.segments()[ordinal];
        let number = |name: &str| -> Result<u64, IndexError> {
            let column = segment.fast_fields().u64(name)?;
            Ok(column.first(doc).unwrap_or(0))
        };
        let at = segment.fast_fields().i64(AT)?.first(doc);
        Ok(Hit {
            pass: number(PASS)?,
            seq: number(SEQ)?,
            place: number(PLACE)?,
            at: at.filter(|at| *at != i64::MIN),
            score,
        })
    }
}
