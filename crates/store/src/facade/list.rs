//! What there is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_prices::Prices;

use super::Project;
use crate::Store;
use crate::annotations::AnnotationError;
use crate::catalogue::{
    CatalogueError, Filter, NotFound, Order, Result, SourceRow, Sum, TranscriptRow,
};
use crate::stats::{Balance, Budgets, Figures, Question, Spent, Table, Waste};

/// The shortest beginning of an id that is shown.
const SHORT_ID: usize = 8;

/// An id that needs more than this is shown whole.
const LONG_ID: usize = 24;

/// Which transcripts are asked for, and how.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// What they are like.
    pub filter: Filter,
    /// In which directories they ran.
    pub project: Option<Project>,
    /// Which label they have, on themselves or on any of their events.
    pub label: Option<String>,
    /// In which order.
    pub order: Order,
    /// How many at most.
    pub limit: Option<usize>,
}

impl Listing {
    /// All that a filter means, in this order.
    pub fn of(filter: Filter, order: Order) -> Self {
        Self {
            filter,
            order,
            ..Self::default()
        }
    }

    /// Whether everything is asked for, but for sub-agents and copies.
    pub fn is_open(&self) -> bool {
        !self.filter.is_restricted() && !self.is_narrowed()
    }

    /// Whether the catalogue alone cannot tell which are asked for.
    fn is_narrowed(&self) -> bool {
        self.project.is_some() || self.label.is_some()
    }
}

/// Why transcripts could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The catalogue could not be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Labels could not be read.
    #[error(transparent)]
    Annotations(#[from] AnnotationError),
}

/// How many transcripts there are of each kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// Sessions of their own.
    pub sessions: u64,
    /// Sub-agents of them.
    pub subagents: u64,
    /// Copies of either.
    pub copies: u64,
}

impl Census {
    /// Of these transcripts.
    pub fn of_rows(rows: &[TranscriptRow]) -> Self {
        let mut census = Self::default();
        for row in rows {
            match (row.duplicate, &row.parent) {
                (true, _) => census.copies += 1,
                (false, Some(_)) => census.subagents += 1,
                (false, None) => census.sessions += 1,
            }
        }
        census
    }
}

/// `3 sessions, 1 sub-agent, 2 copies`.
impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |n: u64, one: &str, many: &str| match n {
            1 => format!("1 {one}"),
            n => format!("{n} {many}"),
        };
        let mut parts = Vec::new();
        if self.sessions > 0 || self.subagents + self.copies == 0 {
            parts.push(some(self.sessions, "session", "sessions"));
        }
        if self.subagents > 0 {
            parts.push(some(self.subagents, "sub-agent", "sub-agents"));
        }
        if self.copies > 0 {
            parts.push(some(self.copies, "copy", "copies"));
        }
        f.write_str(&parts.join(", "))
    }
}

impl Store {
    /// The transcripts that are asked for.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used, or labels are asked for and cannot be read.
    pub fn list(&self, wanted: &Listing) -> Result<Vec<TranscriptRow>, ListError> {
        // The catalogue knows neither what a directory is nor what people wrote.
        let limit = wanted.limit.filter(|_| !wanted.is_narrowed());
        let labelled = match &wanted.label {
            Some(label) => Some(self.annotations().labelled(label)?),
            None => None,
        };
        if labelled.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(Vec::new());
        }
        let mut rows = self.catalogue().list(&wanted.filter, wanted.order, limit)?;
        if let Some(project) = &wanted.project {
            rows.retain(|row| row.cwd.as_deref().is_some_and(|cwd| project.has(cwd)));
        }
        if let Some(labelled) = &labelled {
            rows.retain(|row| labelled.contains(&row.address));
        }
        if wanted.is_narrowed() {
            rows.truncate(wanted.limit.unwrap_or(usize::MAX));
        }
        Ok(rows)
    }

    /// The transcript with this id or address, the only one whose id begins so, or the `last`.
    ///
    /// # Errors
    ///
    /// When there is none or there are several, or the catalogue cannot be used.
    pub fn find(&self, id: &str) -> Result<TranscriptRow, NotFound> {
        self.catalogue().find(id)
    }

    /// The transcripts that were read from one file.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn transcripts_at(&self, path: &Path) -> Result<Vec<TranscriptRow>> {
        self.catalogue().transcripts_at(path)
    }

    /// The sub-agents of a session, by the id that its copies share, in the order in which they began.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn children(&self, native: &str) -> Result<Vec<TranscriptRow>> {
        self.catalogue().children(native)
    }

    /// How many sub-agents each session has that has any.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn child_counts(&self) -> Result<BTreeMap<String, u64>> {
        self.catalogue().child_counts()
    }

    /// Sums by agent over the transcripts that a filter means.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn by_agent(&self, filter: &Filter) -> Result<Vec<Sum>> {
        self.catalogue().by_agent(filter)
    }

    /// The directories that sessions ran in, sorted.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn directories(&self) -> Result<Vec<String>> {
        self.catalogue().directories()
    }

    /// Every log that was read.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn sources(&self) -> Result<Vec<SourceRow>> {
        self.catalogue().sources()
    }

    /// What was spent and done. What cannot be answered ([`Question::check`]) comes out empty.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn stats(&self, question: &Question<'_>) -> Result<Table> {
        self.catalogue().stats(question)
    }

    /// What the calls of a transcript cost, copies not counted. `explain` proves it.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn spent(&self, row: &TranscriptRow, prices: &Prices) -> Result<Spent> {
        self.catalogue().spent(row.id, prices)
    }

    /// What each of these transcripts came to with its sub-agents, by its number ([`TranscriptRow::id`]).
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn figures(
        &self,
        rows: &[TranscriptRow],
        prices: &Prices,
    ) -> Result<HashMap<i64, Figures>> {
        self.catalogue().figures(rows, prices)
    }

    /// What need not have been paid for, by kind; at most so many sessions of each.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn waste(&self, question: &Question<'_>, worst: usize) -> Result<Vec<Waste>> {
        self.catalogue().waste(question, worst)
    }

    /// How much of each budget was spent. Of sessions, only those that exceed their limit.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn balances(
        &self,
        budgets: &Budgets,
        now: Timestamp,
        zone: &TimeZone,
        prices: &Prices,
    ) -> Result<Vec<Balance>> {
        budgets.balances(self.catalogue(), now, zone, prices)
    }

    /// How many transcripts are asked for, whatever the limit.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used, or labels are asked for and cannot be read.
    pub fn count(&self, wanted: &Listing) -> Result<u64, ListError> {
        if wanted.is_narrowed() {
            let all = Listing {
                limit: None,
                ..wanted.clone()
            };
            return Ok(self.list(&all)?.len() as u64);
        }
        let sums = self.catalogue().by_agent(&wanted.filter)?;
        Ok(sums.iter().map(|sum| sum.transcripts).sum())
    }

    /// How many transcripts of each kind are imported.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn census(&self) -> Result<Census> {
        let sum = |filter: Filter| -> Result<(u64, u64)> {
            let sums = self.catalogue().by_agent(&filter)?;
            let all = sums.iter().map(|sum| sum.transcripts).sum();
            Ok((all, sums.iter().map(|sum| sum.subagents).sum()))
        };
        let originals = Filter {
            subagents: true,
            imported: true,
            ..Filter::default()
        };
        let with_copies = Filter {
            duplicates: true,
            ..originals.clone()
        };
        let (originals, subagents) = sum(originals)?;
        let (all, _) = sum(with_copies)?;
        Ok(Census {
            sessions: originals.saturating_sub(subagents),
            subagents,
            copies: all.saturating_sub(originals),
        })
    }

    /// The agents that something is kept of, the one with most first.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn agents(&self) -> Result<Vec<String>> {
        let all = Filter {
            subagents: true,
            duplicates: true,
            ..Filter::default()
        };
        let sums = self.catalogue().by_agent(&all)?;
        Ok(sums.into_iter().map(|sum| sum.name).collect())
    }

    /// The beginnings of ids by which they can be told apart.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn short_ids(&self) -> Result<ShortIds> {
        Ok(ShortIds::new(self.catalogue().run_ids()?))
    }
}

/// The ids of everything that is kept.
#[derive(Debug, Default)]
pub struct ShortIds(Vec<String>);

impl ShortIds {
    /// Of these ids.
    pub fn new(mut ids: Vec<String>) -> Self {
        ids.sort();
        ids.dedup();
        Self(ids)
    }

    /// The shortest beginning of an id that no other id has. Ids that go on behind the whole id with a dot
    /// are its sub-agents and copies, which do not count.
    pub fn short(&self, id: &str) -> String {
        let Ok(at) = self.0.binary_search_by(|other| other.as_str().cmp(id)) else {
            return id.to_owned();
        };
        let belongs = |other: &String| {
            other
                .strip_prefix(id)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let common = |other: &String| {
            let same = id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
            same.count()
        };
        let before = at.checked_sub(1).map(|at| &self.0[at]);
        let after = self.0[at + 1..].iter().find(|other| !belongs(other));
        let needed = before.into_iter().chain(after).map(common).max();
        let needed = needed.map_or(SHORT_ID, |common| (common + 1).max(SHORT_ID));
        // Of what begins with all of another id, the rest is what matters.
        let ends_in_dot = id.as_bytes().get(needed - 1) == Some(&b'.');
        let needed = if needed > LONG_ID || ends_in_dot {
            id.len()
        } else {
            needed
        };
        id.get(..needed).unwrap_or(id).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_beginning_that_is_unique() {
        let ids = [
            "0199aaaa-1111-7000-8000-000000000001",
            "0199aaaa-1111-7000-8000-000000000001.agent-a",
            "0199aaaa-2222-7000-8000-000000000002",
            "5d2cf00d-0000-4000-8000-000000000003",
            "run-number-1",
            "run-number-1.5a50f392",
            "run-number-2",
        ]
        .map(str::to_owned);
        let all = ShortIds::new(ids.to_vec());
        let short: Vec<String> = ids.iter().map(|id| all.short(id)).collect();
        assert_eq!(
            short,
            [
                "0199aaaa-1",
                "0199aaaa-1111-7000-8000-000000000001.agent-a",
                "0199aaaa-2",
                "5d2cf00d",
                "run-number-1",
                "run-number-1.5a50f392",
                "run-number-2"
            ]
        );
    }

    #[test]
    fn a_census_names_what_there_is() {
        let census = |sessions, subagents, copies| {
            let census = Census {
                sessions,
                subagents,
                copies,
            };
            census.to_string()
        };
        assert_eq!(census(0, 0, 0), "0 sessions");
        assert_eq!(census(1, 0, 0), "1 session");
        assert_eq!(census(3, 1, 2), "3 sessions, 1 sub-agent, 2 copies");
        assert_eq!(census(0, 2, 1), "2 sub-agents, 1 copy");
    }
}
