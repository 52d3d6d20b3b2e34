//! From a query to events that can be shown.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use quipu_model::Timestamp;
use quipu_prices::Prices;
use quipu_redact::Guard;
use quipu_search::index::{Hit, IndexError, Order, Passes, View, Wish};
use quipu_search::query::Query;
use quipu_search::snippet::{Marker, snippet};

use super::sessions::Known;
use super::window::{self, Spoken};
use crate::catalogue::{CatalogueError, TranscriptRow};
use crate::import::{ImportError, Store};
use crate::transcript::Kept;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// What fits best.
    #[default]
    Relevance,
    /// The latest.
    Newest,
    /// What was said in the dearest sessions.
    Cost,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The words and conditions.
    pub query: &'a Query,
    /// What comes first.
    pub sort: Sort,
    /// How many events at most.
    pub limit: usize,
    /// How many events before and after each are wanted as well.
    pub context: u64,
    /// Also what was said in copies of sessions.
    pub copies: bool,
    /// How long snippets are, in bytes.
    pub snippet: usize,
    /// What is hidden in what is shown; by default what is hidden from the index.
    pub guard: Show,
}

/// Whether secrets are shown.
#[derive(Debug, Clone, Default)]
pub enum Show {
    /// What the store's guard finds is hidden.
    #[default]
    Guarded,
    /// What another guard finds is hidden.
    By(Arc<Guard>),
    /// All of it is shown.
    Everything,
}

/// What was found.
#[derive(Debug)]
pub struct Answer {
    /// The events.
    pub found: Vec<Found>,
    /// Whether there are more.
    pub more: bool,
    /// Transcripts that could not be searched because they are not in the index yet.
    pub not_indexed: u64,
}

/// An event that was found.
#[derive(Debug)]
pub struct Found {
    /// The transcript it stands in.
    pub row: TranscriptRow,
    /// What it says.
    pub event: Spoken,
    /// The part of the text to show.
    pub snippet: Range<usize>,
    /// What matches, as places in the text.
    pub marks: Vec<Range<usize>>,
    /// How well it fits; zero where that was not asked for.
    pub score: f32,
    /// In how many copies of the session it stands as well.
    pub copies: u64,
    /// The events before it.
    pub before: Vec<Spoken>,
    /// The events after it.
    pub after: Vec<Spoken>,
    /// Why the text could not be read.
    pub problem: Option<String>,
}

/// Why nothing could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no index, or it is not that of this catalogue.
    #[error("there is no search index; `quipu import` makes it")]
    NoIndex,
    /// It could not be used.
    #[error("{error}{remedy}", error = .0, remedy = remedy(.0))]
    Index(#[from] IndexError),
    /// The catalogue could not be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Reading could not be done.
    #[error(transparent)]
    Read(#[from] ImportError),
    /// The pattern is none, or too large.
    #[error("{0}")]
    Pattern(String),
}

/// What can be done about an index that fails.
fn remedy(error: &IndexError) -> &'static str {
    match error {
        IndexError::Busy(_) | IndexError::Sessions(_) => "",
        IndexError::Unusable { .. } | IndexError::Engine(_) => {
            "; `quipu import --rebuild` makes it again"
        }
    }
}

/// How many hits are looked at, at most, to find those that can be shown.
const MOST: usize = 50_000;

impl Store {
    /// Looks for events.
    pub fn search(&self, ask: &Ask<'_>, prices: &Prices) -> Result<Answer, SearchError> {
        let view = self.index.view(self.home())?;
        let known = Known::new(self.catalogue(), prices);
        let order = match ask.sort {
            Sort::Relevance => Order::Relevance,
            Sort::Newest => Order::Newest,
            Sort::Cost => Order::ByPass(known.by_cost()?.into()),
        };
        let mut wish = Wish {
            order,
            // One more tells whether there are more; and some may be copies.
            limit: ask.limit.saturating_mul(2).saturating_add(8).min(MOST),
            hidden: Passes::default(),
        };
        loop {
            let hits = view.search(ask.query, &wish, &known)?;
            let last = hits.len() < wish.limit || wish.limit >= MOST;
            let (found, more, dead) = self.show(ask, hits)?;
            if dead && wish.hidden.is_empty() {
                // The index has what does not count, or not any more.
                wish.hidden = self.hidden(&*view)?;
                continue;
            }
            if more || last || found.len() >= ask.limit {
                return Ok(Answer {
                    found,
                    more,
                    not_indexed: self.catalogue().count_not_indexed()?,
                });
            }
            wish.limit = wish.limit.saturating_mul(4).min(MOST);
        }
    }

    /// How many events a query finds, copies counted.
    pub fn count_matches(&self, query: &Query, prices: &Prices) -> Result<u64, SearchError> {
        let view = self.index.view(self.home())?;
        let known = Known::new(self.catalogue(), prices);
        Ok(view.count(query, &self.hidden(&*view)?, &known)?)
    }

    /// Passes that are in the index and do not count.
    fn hidden(&self, view: &dyn View) -> Result<Passes, SearchError> {
        let live: Passes = self.catalogue().live_passes()?.into_iter().collect();
        let highest = view.highest_pass()?;
        let hidden = (0..=highest).filter(|pass| !live.has(*pass));
        Ok(hidden.collect())
    }

    /// What is hidden in what is shown.
    pub(super) fn shown<'s>(
        &'s self,
        show: &'s Show,
    ) -> Result<Option<&'s Arc<Guard>>, ImportError> {
        match show {
            Show::Guarded => self.guard().map(Some),
            Show::By(guard) => Ok(Some(guard)),
            Show::Everything => Ok(None),
        }
    }

    /// What can be shown of hits: the events, whether there are more of them, and whether any hit does not
    /// count.
    fn show(&self, ask: &Ask<'_>, hits: Vec<Hit>) -> Result<(Vec<Found>, bool, bool), SearchError> {
        let marker = Marker::new(ask.query);
        let guard = self.shown(&ask.guard)?;
        let mut rows: HashMap<u64, Option<TranscriptRow>> = HashMap::new();
        let mut dead = false;
        let mut shown: Vec<Found> = Vec::new();
        let mut hits = hits.into_iter();
        // As many at a time as are still wanted: each has to be read.
        loop {
            let wanted = (ask.limit + 1).saturating_sub(shown.len());
            let mut jobs = Vec::new();
            while jobs.len() < wanted
                && let Some(hit) = hits.next()
            {
                let row = if let Some(row) = rows.get(&hit.pass) {
                    row.clone()
                } else {
                    let id = self.catalogue().transcript_of_pass(hit.pass)?;
                    let row = id.map(|id| self.catalogue().row(id)).transpose()?;
                    rows.insert(hit.pass, row.clone());
                    row
                };
                match row {
                    None => dead = true,
                    Some(row) if row.duplicate && !ask.copies => {}
                    Some(row) => jobs.push((hit, row)),
                }
            }
            if jobs.is_empty() || wanted == 0 {
                break;
            }
            for found in read_all(&self.kept(), ask, &marker, guard, jobs) {
                take(&mut shown, found, ask.copies);
            }
        }
        let more = shown.len() > ask.limit;
        shown.truncate(ask.limit);
        Ok((shown, more, dead))
    }
}

/// Takes in an event, unless it is there already: as another piece of the same, or as what it is a copy of.
fn take(shown: &mut Vec<Found>, found: Found, copies: bool) {
    for other in shown.iter_mut() {
        let same = &other.event;
        if other.row.id == found.row.id && same.seq == found.event.seq {
            return;
        }
        let is_copy = !copies
            && found.problem.is_none()
            && same.at.is_some()
            && (same.at, same.role) == (found.event.at, found.event.role)
            && same.text == found.event.text;
        if is_copy {
            other.copies += 1;
            return;
        }
    }
    shown.push(found);
}

/// Reads what hits say, on as many threads as are of use.
fn read_all(
    kept: &Kept,
    ask: &Ask<'_>,
    marker: &Marker,
    guard: Option<&Arc<Guard>>,
    jobs: Vec<(Hit, TranscriptRow)>,
) -> Vec<Found> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = jobs.len().div_ceil(threads.min(8)).max(2);
    let mut shares: Vec<Vec<(Hit, TranscriptRow)>> = Vec::new();
    for job in jobs {
        match shares.last_mut() {
            Some(last) if last.len() < share => last.push(job),
            _ => shares.push(vec![job]),
        }
    }
    let read = |jobs: Vec<(Hit, TranscriptRow)>| -> Vec<Found> {
        let all = jobs.into_iter();
        all.map(|(hit, row)| read(kept, ask, (marker, guard), &hit, row))
            .collect()
    };
    let mut rest = shares.into_iter();
    let own = rest.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = rest.map(|jobs| scope.spawn(move || read(jobs))).collect();
        let mut found = read(own);
        for other in others {
            found.extend(other.join().unwrap_or_default());
        }
        found
    })
}

fn read(
    kept: &Kept,
    ask: &Ask<'_>,
    (marker, guard): (&Marker, Option<&Arc<Guard>>),
    hit: &Hit,
    mut row: TranscriptRow,
) -> Found {
    if let (Some(guard), Some(title)) = (guard, &mut row.title) {
        *title = guard.mask(title, None).into_owned();
    }
    let mut problem = None;
    let (mut before, mut after, mut found) = (Vec::new(), Vec::new(), None);
    let first = hit.seq.saturating_sub(ask.context);
    let last = hit.seq.saturating_add(ask.context);
    match window::events(kept, &row, guard, first, last) {
        Ok(events) => {
            for event in events {
                match event.seq.cmp(&hit.seq) {
                    std::cmp::Ordering::Less => before.push(event),
                    // A message of a run has several parts with the same number: the one that matches is meant.
                    std::cmp::Ordering::Equal => {
                        let better = found
                            .as_ref()
                            .is_none_or(|found: &Spoken| marker.marks(&found.text).is_empty());
                        if better {
                            found = Some(event);
                        }
                    }
                    std::cmp::Ordering::Greater => after.push(event),
                }
            }
        }
        Err(error) => problem = Some(error.to_string()),
    }
    let event = found.unwrap_or_else(|| title(hit, &row));
    let marks = if problem.is_none() {
        marker.marks(&event.text)
    } else {
        Vec::new()
    };
    let shown = snippet(&event.text, &marks, ask.snippet);
    Found {
        snippet: shown.range,
        marks: marks.into_iter().map(|mark| mark.range).collect(),
        score: hit.score,
        copies: 0,
        before,
        after,
        problem,
        event,
        row,
    }
}

/// The title of a session, which stands before its events.
fn title(hit: &Hit, row: &TranscriptRow) -> Spoken {
    Spoken {
        seq: hit.seq,
        at: hit.at.and_then(|at| Timestamp::from_millisecond(at).ok()),
        role: "note",
        tool: None,
        place: None,
        text: row.title.clone().unwrap_or_default(),
    }
}
