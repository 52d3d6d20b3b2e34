//! What is known of a log beside its events, once it was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Dropped, Feed, FeedError, Marks, Mended, Session};

/// What a log says as a whole, and what became of its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What it says of the session.
    pub session: Session,
    /// Records read.
    pub records: u64,
    /// Records that became nothing, by the reason for it.
    pub dropped: BTreeMap<Dropped, u64>,
    /// Irregularities that were mended.
    pub mended: BTreeMap<Mended, u64>,
    /// Fields that are known and reach no event, and how often they were there.
    pub left_out: Vec<(String, u64)>,
    /// Calls without a result, by their events, in order.
    pub open: Vec<u64>,
    /// Why it could not be read wholly.
    pub problem: Option<String>,
}

impl About {
    /// What a feed knows at its end.
    pub fn new(feed: &Feed, problem: Option<&FeedError>) -> Self {
        let ledger = feed.ledger();
        let left_out = ledger.drift.names_left_out();
        let mut open: Vec<u64> = ledger.open_calls().collect();
        open.sort_unstable();
        Self {
            session: feed.session().clone(),
            records: ledger.records,
            dropped: ledger.dropped.clone(),
            mended: ledger.mended.clone(),
            left_out: left_out.map(|(name, n)| (name.to_owned(), n)).collect(),
            open,
            problem: problem.map(ToString::to_string),
        }
    }

    /// Marks that were gathered while the log was read, complete.
    pub fn close(&self, marks: &mut Marks) {
        marks.close(self.open.iter().copied());
    }
}
