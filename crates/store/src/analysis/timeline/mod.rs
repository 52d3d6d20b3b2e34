//! When what went on in a transcript: spans, and what they come to.

mod build;
mod measure;
mod ranges;

use std::collections::{BTreeMap, HashMap, HashSet};

use quipu_api::timeline::{ChildTranscript, SpanKind, Timeline, TimelineSpan};

use super::{Window, millis, time};
use crate::Store;
use crate::catalogue::{NotFound, TranscriptRow};
use crate::events::ALL;
use crate::import::ImportError;
use build::{Builder, Built, SpanFact};
use measure::Measured;

/// So many sub-agents are looked at, and named where no event does, at most.
const CHILDREN: usize = 10_000;
const UNPLACED: usize = 1_000;

impl Store {
    /// The spans of a transcript, from an event on, and what all of them come to.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn timeline(&self, row: &TranscriptRow, wanted: &Window) -> Result<Timeline, ImportError> {
        let children = Children::of(self, row)?;
        let mut builder = Builder::new(row.recorded, &children.by_call);
        for batch in self.batches(row, &ALL)? {
            for event in batch? {
                builder.observe(&event);
            }
        }
        let built = builder.finish();
        let measured = Measured::of(&built);
        let first = built
            .spans
            .partition_point(|span| span.seq_from < wanted.from);
        let mut last = (first + wanted.most()).min(built.spans.len());
        // Spans that begin with the same event stay together, so that the next page can begin with an event.
        while last > first
            && last < built.spans.len()
            && built.spans[last].seq_from == built.spans[last - 1].seq_from
        {
            last += 1;
        }
        let mut found = HashMap::new();
        let mut spans = Vec::with_capacity(last - first);
        for at in first..last {
            let transcript = children.transcript(self, row, &built.spans[at], &mut found)?;
            spans.push(document(&built, &measured, at, transcript));
        }
        Ok(Timeline {
            transcript: super::address(row),
            events: built.events,
            spans_total: built.spans.len() as u64,
            spans,
            next: built.spans.get(last).map(|span| span.seq_from),
            axis: measured.axis,
            lanes: measured.lanes_total,
            totals: measured.totals(&built),
            unplaced: children.unplaced(&built),
        })
    }
}

fn document(
    built: &Built,
    measured: &Measured,
    at: usize,
    transcript: Option<String>,
) -> TimelineSpan {
    let span = &built.spans[at];
    let place = built.places.get(span.place).cloned().unwrap_or_default();
    let name = |number: Option<u32>| number.and_then(|number| built.names.get(number)).cloned();
    TimelineSpan {
        span: at as u64,
        kind: span.kind,
        name: name(span.name),
        step_kind: name(span.step_kind),
        path: place.path,
        iterations: place.iterations,
        attempt: place.attempt,
        call_id: span.call_id.as_deref().map(str::to_owned),
        seq_from: span.seq_from,
        seq_to: span.seq_to,
        start: span.start.and_then(time),
        end: span.end.and_then(time),
        duration_ms: span.duration_ms,
        timing: span.timing,
        status: span.status,
        parent: span.parent.map(|parent| parent as u64),
        lane: measured.lanes[at].map(u64::from),
        critical: measured.critical[at],
        transcript,
        child: span.child.as_deref().map(str::to_owned),
    }
}

/// The transcripts below one.
struct Children {
    rows: Vec<TranscriptRow>,
    /// Their places in the list: by the call that began them, and by what they are known as.
    by_call: HashMap<String, usize>,
    by_name: BTreeMap<String, usize>,
}

impl Children {
    fn of(store: &Store, row: &TranscriptRow) -> Result<Self, ImportError> {
        let mut rows = store.children(&row.native)?;
        rows.truncate(CHILDREN);
        let mut children = Self {
            rows,
            by_call: HashMap::new(),
            by_name: BTreeMap::new(),
        };
        for (at, child) in children.rows.iter().enumerate() {
            if let Some(call) = &child.parent_call {
                children.by_call.entry(call.clone()).or_insert(at);
            }
            for name in [&child.native, &child.run_id] {
                children.by_name.entry(name.clone()).or_insert(at);
            }
        }
        Ok(children)
    }

    /// The place of the child that a span begins.
    fn begun_by(&self, span: &SpanFact) -> Option<usize> {
        let by_name = |name: &str| self.by_name.get(name);
        let child = span.child.as_deref().and_then(by_name);
        let call = span.call_id.as_deref().and_then(|id| self.by_call.get(id));
        child.or(call).copied()
    }

    /// The id of the transcript that has the inside of a span.
    fn transcript(
        &self,
        store: &Store,
        row: &TranscriptRow,
        span: &SpanFact,
        found: &mut HashMap<String, Option<String>>,
    ) -> Result<Option<String>, ImportError> {
        if !matches!(span.kind, SpanKind::ChildRun | SpanKind::Subagent) {
            return Ok(None);
        }
        if let Some(at) = self.begun_by(span) {
            return Ok(super::address(&self.rows[at]));
        }
        let Some(child) = span.child.as_deref() else {
            return Ok(None);
        };
        if let Some(known) = found.get(child) {
            return Ok(known.clone());
        }
        let there = match store.find(child) {
            // Only the id itself means it, not the beginning of another.
            Ok(there) if there.id != row.id && (there.run_id == child || there.native == child) => {
                super::address(&there)
            }
            Ok(_) | Err(NotFound::None(_) | NotFound::Several(..)) => None,
            Err(NotFound::Catalogue(error)) => return Err(error.into()),
        };
        found.insert(child.to_owned(), there.clone());
        Ok(there)
    }

    /// Those that no span begins.
    fn unplaced(&self, built: &Built) -> Vec<ChildTranscript> {
        let placed: HashSet<usize> = built
            .spans
            .iter()
            .filter_map(|span| self.begun_by(span))
            .collect();
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(at, _)| !placed.contains(at));
        rows.take(UNPLACED)
            .map(|(_, row)| ChildTranscript {
                id: row.address.clone(),
                title: row.title.clone(),
                started_at: millis(row.started_at),
                ended_at: millis(row.ended_at),
            })
            .collect()
    }
}
