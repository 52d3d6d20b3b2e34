//! Looking events up.

use std::path::PathBuf;
use std::sync::Arc;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::EnableScoring;
use tantivy::{DocAddress, IndexReader, ReloadPolicy, Searcher, SegmentReader};

use super::collect::{Firsts, Rank, latest};
use super::compile::Compiler;
use super::health::guarded;
use super::schema::{AT, Fields, PASS, PLACE, SEQ};
use super::{Index, IndexError, Passes, Result};
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
#[derive(Clone)]
pub struct View {
    searcher: Searcher,
    fields: Fields,
    path: PathBuf,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl Index {
    /// The index as it is now. What is committed later is in a later view.
    pub fn view(&self) -> Result<View> {
        guarded(&self.path, || {
            let reader: IndexReader = self
                .engine
                .reader_builder()
                .reload_policy(ReloadPolicy::Manual)
                .try_into()
                .map_err(|error| super::unusable(&self.path, &error))?;
            Ok(View {
                searcher: reader.searcher(),
                fields: self.fields,
                path: self.path.clone(),
            })
        })
    }
}

impl View {
    pub(super) fn segments(&self) -> &[SegmentReader] {
        self.searcher.segment_readers()
    }

    /// How many events there are.
    pub fn events(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// How many events were removed that are still in the files.
    pub fn removed(&self) -> u64 {
        let segments = self.searcher.segment_readers().iter();
        segments.map(|it| u64::from(it.num_deleted_docs())).sum()
    }

    /// The highest number of a pass.
    pub fn highest_pass(&self) -> Result<u64> {
        guarded(&self.path, || {
            let mut highest = 0;
            for segment in self.searcher.segment_readers() {
                let passes = segment.fast_fields().u64(PASS)?;
                highest = highest.max(passes.first_or_default_col(0).max_value());
            }
            Ok(highest)
        })
    }

    /// The events that a query asks for.
    pub fn search(&self, query: &Query, wish: &Wish, sessions: &dyn Sessions) -> Result<Vec<Hit>> {
        guarded(&self.path, || self.found(query, wish, sessions))
    }

    fn found(&self, query: &Query, wish: &Wish, sessions: &dyn Sessions) -> Result<Vec<Hit>> {
        let limit = wish.limit.max(1);
        let found = self.compiler(sessions).query(query, &wish.hidden)?;
        let rank = match &wish.order {
            Order::Relevance => {
                let best = TopDocs::with_limit(limit).order_by_score();
                let best = self.searcher.search(&found, &best)?;
                return best
                    .into_iter()
                    .map(|(score, address)| self.hit(address, score))
                    .collect();
            }
            Order::Newest => Rank::Newest,
            Order::ByPass(ranks) => Rank::ByPass(ranks.clone()),
        };
        let weight = found.weight(EnableScoring::disabled_from_searcher(&self.searcher))?;
        let segments = self.searcher.segment_readers();
        let mut order = Vec::with_capacity(segments.len());
        for (ordinal, segment) in segments.iter().enumerate() {
            order.push((std::cmp::Reverse(latest(segment)?), ordinal));
        }
        order.sort_unstable();
        let mut firsts = Firsts::new(limit);
        for (_, ordinal) in order {
            firsts.segment(&rank, ordinal, &segments[ordinal], &*weight)?;
        }
        let found = firsts.done().into_iter();
        found
            .map(|(_, std::cmp::Reverse((ordinal, doc)))| {
                let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
                self.hit(DocAddress::new(ordinal, doc), 0.0)
            })
            .collect()
    }

    /// How many events a query asks for.
    pub fn count(&self, query: &Query, hidden: &Passes, sessions: &dyn Sessions) -> Result<u64> {
        guarded(&self.path, || {
            let found = self.compiler(sessions).query(query, hidden)?;
            Ok(self.searcher.search(&found, &Count)? as u64)
        })
    }

    fn compiler<'c>(&'c self, sessions: &'c dyn Sessions) -> Compiler<'c> {
        Compiler {
            fields: self.fields,
            searcher: &self.searcher,
            sessions,
        }
    }

    fn hit(&self, address: DocAddress, score: f32) -> Result<Hit> {
        let segment = self.searcher.segment_reader(address.segment_ord);
        let number = |name: &str| -> Result<u64, IndexError> {
            let column = segment.fast_fields().u64(name)?;
            Ok(column.first(address.doc_id).unwrap_or(0))
        };
        let at = segment.fast_fields().i64(AT)?.first(address.doc_id);
        Ok(Hit {
            pass: number(PASS)?,
            seq: number(SEQ)?,
            place: number(PLACE)?,
            at: at.filter(|at| *at != i64::MIN),
            score,
        })
    }
}
