//! What spans come to: lanes, busy and idle time, the critical path.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use quipu_api::timeline::{Axis, SpanKind, TimelineGap, TimelineTotals, Timing};

use super::build::{Built, SpanFact};
use super::ranges::{self, Range};
use crate::analysis::time;

/// So many gaps and spans of the critical path are named at most.
const GAPS: usize = 20;
const CRITICAL: usize = 200;

/// What spans come to.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) axis: Axis,
    /// The lane of each span.
    pub(super) lanes: Vec<Option<u32>>,
    pub(super) lanes_total: u64,
    /// Whether each span is on the critical path.
    pub(super) critical: Vec<bool>,
    /// Whether each span has others in it.
    has_inside: Vec<bool>,
}

/// From when to when a span went on, where both are known and in order.
fn range(span: &SpanFact) -> Option<Range> {
    let (start, end) = span.start.zip(span.end)?;
    (start <= end).then_some((start, end))
}

impl Measured {
    pub(super) fn of(built: &Built) -> Self {
        let mut has_inside = vec![false; built.spans.len()];
        for parent in built.spans.iter().filter_map(|span| span.parent) {
            has_inside[parent] = true;
        }
        let dated = built.spans.iter().any(|span| span.start.is_some());
        let axis = if dated { Axis::Time } else { Axis::Seq };
        let lanes = lanes(built, axis);
        let most = lanes.iter().flatten().max();
        let lanes_total = most.map_or(0, |most| u64::from(*most) + 1);
        let mut measured = Self {
            axis,
            lanes,
            lanes_total,
            critical: vec![false; built.spans.len()],
            has_inside,
        };
        measured.mark_critical(built);
        measured
    }

    /// Whether a span is work: not merely what work went on in.
    fn is_work(&self, at: usize, span: &SpanFact) -> bool {
        match span.kind {
            SpanKind::Run => false,
            SpanKind::Step => !self.has_inside[at],
            SpanKind::ChildRun | SpanKind::Subagent | SpanKind::Model | SpanKind::Tool => true,
        }
    }

    /// Work that has no other work in it.
    fn innermost<'b>(&'b self, built: &'b Built) -> impl Iterator<Item = (usize, Range)> {
        let spans = built.spans.iter().enumerate();
        let spans = spans.filter(|(at, span)| self.is_work(*at, span) && !self.has_inside[*at]);
        spans.filter_map(|(at, span)| Some((at, range(span)?)))
    }

    /// From the end back: the work that ended last, then the work that ended last before that began, and so on.
    fn mark_critical(&mut self, built: &Built) {
        let mut work: Vec<(usize, Range)> = self.innermost(built).collect();
        // Of those that end together, the one that began first is met first.
        work.sort_unstable_by_key(|(at, (from, to))| (*to, Reverse(*from), *at));
        let (mut left, mut before) = (work.len(), i64::MAX);
        while left > 0 {
            left = work[..left].partition_point(|(_, (_, to))| *to <= before);
            let Some((at, (from, _))) = left.checked_sub(1).map(|at| work[at]) else {
                break;
            };
            self.critical[at] = true;
            (left, before) = (left - 1, from);
        }
    }

    pub(super) fn totals(&self, built: &Built) -> TimelineTotals {
        let critical: Vec<usize> = (0..built.spans.len())
            .filter(|at| self.critical[*at])
            .collect();
        let unknown = |span: &&SpanFact| span.timing == Timing::Unknown;
        let (overlap, most_at_once) = self.overlaps(built);
        let mut totals = TimelineTotals {
            first: built.first.and_then(time),
            last: built.last.and_then(time),
            wall_ms: None,
            busy_ms: None,
            waiting_ms: None,
            idle_ms: None,
            overlap_ms: None,
            most_at_once,
            gaps_total: 0,
            gaps: Vec::new(),
            critical_ms: None,
            critical_total: critical.len() as u64,
            critical_spans: longest(built, critical.clone()),
            clock_went_back: built.clock_went_back,
            undated: built.undated,
            unknown_durations: built.spans.iter().filter(unknown).count() as u64,
            orphans: built.orphans,
        };
        let Some(whole) = built.first.zip(built.last) else {
            return totals;
        };
        let spans = built.spans.iter().enumerate();
        let work = spans.filter(|(at, span)| self.is_work(*at, span));
        let work: Vec<Range> = work.filter_map(|(_, span)| range(span)).collect();
        let busy = ranges::union(ranges::clipped(work, whole));
        let waits = built.waits.iter().map(|wait| (wait.from, wait.to));
        let waits = ranges::union(ranges::clipped(waits, whole));
        let waiting = ranges::without(&waits, &busy);
        let idle = ranges::without(&ranges::without(&[whole], &busy), &waits);
        let path = critical.iter().filter_map(|at| range(&built.spans[*at]));
        let path = ranges::union(ranges::clipped(path, whole));
        // Rounded each by itself they might come to more than the whole.
        let wall = ms(whole.1.saturating_sub(whole.0));
        let busy_ms = ms(ranges::length(&busy)).min(wall);
        let waiting_ms = ms(ranges::length(&waiting)).min(wall - busy_ms);
        totals.wall_ms = Some(wall);
        totals.busy_ms = Some(busy_ms);
        totals.waiting_ms = Some(waiting_ms);
        totals.idle_ms = Some(wall - busy_ms - waiting_ms);
        totals.overlap_ms = Some(ms(overlap));
        totals.critical_ms = Some(ms(ranges::length(&path)));
        totals.gaps_total = (waiting.len() + idle.len()) as u64;
        totals.gaps = gaps(built, &waiting, &idle);
        totals
    }

    /// How long two or more went on at once, and how many at most.
    fn overlaps(&self, built: &Built) -> (i64, u64) {
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for (_, (from, to)) in self.innermost(built).filter(|(_, it)| it.0 < it.1) {
            changes.push((from, 1));
            changes.push((to, -1));
        }
        // What ends when another begins does not overlap it: -1 comes before 1.
        changes.sort_unstable();
        let (mut open, mut most, mut overlap, mut before) = (0_i64, 0_i64, 0_i64, 0_i64);
        for (at, change) in changes {
            if open >= 2 {
                overlap = overlap.saturating_add(at.saturating_sub(before));
            }
            open += change;
            most = most.max(open);
            before = at;
        }
        (overlap, most.unsigned_abs())
    }
}

fn ms(micros: i64) -> u64 {
    u64::try_from(micros / 1000).unwrap_or(0)
}

/// The longest of these spans, in their order.
fn longest(built: &Built, mut critical: Vec<usize>) -> Vec<u64> {
    if critical.len() > CRITICAL {
        let length = |at: &usize| range(&built.spans[*at]).map_or(0, |it| it.1 - it.0);
        critical.sort_by_key(|at| Reverse(length(at)));
        critical.truncate(CRITICAL);
        critical.sort_unstable();
    }
    critical.into_iter().map(|at| at as u64).collect()
}

fn gaps(built: &Built, waiting: &[Range], idle: &[Range]) -> Vec<TimelineGap> {
    let mut all: Vec<(Range, bool)> = Vec::new();
    all.extend(waiting.iter().map(|it| (*it, true)));
    all.extend(idle.iter().map(|it| (*it, false)));
    all.sort_unstable_by_key(|((from, to), _)| (Reverse(to - from), *from));
    all.truncate(GAPS);
    let ends: HashSet<i64> = all.iter().map(|((_, to), _)| *to).collect();
    // What began when a gap ended.
    let mut began: HashMap<i64, u64> = HashMap::new();
    let spans = built.spans.iter();
    let spans = spans.filter_map(|span| Some((span.start?, span.seq_from)));
    let waits = built.waits.iter().map(|wait| (wait.to, wait.seq));
    for (at, seq) in spans.chain(waits).filter(|(at, _)| ends.contains(at)) {
        let first = began.entry(at).or_insert(seq);
        *first = seq.min(*first);
    }
    let gap = |((from, to), person): (Range, bool)| {
        Some(TimelineGap {
            from: time(from)?,
            to: time(to)?,
            duration_ms: ms(to - from),
            person,
            seq: began.get(&to).copied(),
        })
    };
    all.into_iter().filter_map(gap).collect()
}

/// The lowest lane for each span in which no other is at the same time.
fn lanes(built: &Built, axis: Axis) -> Vec<Option<u32>> {
    let end = |last: Option<i64>, from: i64| last.unwrap_or(from);
    let number = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX - 1);
    let place = |span: &SpanFact| -> Option<Range> {
        let (from, to) = match axis {
            // What has not ended goes on until the last thing that is known.
            Axis::Time => (span.start?, end(span.end.or(built.last), span.start?)),
            Axis::Seq => (number(span.seq_from), number(span.seq_to).saturating_add(1)),
        };
        // What took no time is seen all the same.
        Some((from, to.max(from.saturating_add(1))))
    };
    let mut order: Vec<(Range, usize)> = Vec::new();
    for (at, span) in built.spans.iter().enumerate() {
        order.extend(place(span).map(|it| (it, at)));
    }
    order.sort_unstable_by_key(|((from, to), at)| (*from, Reverse(*to), *at));
    let mut lanes = vec![None; built.spans.len()];
    let mut taken: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut lanes_made = 0;
    for ((from, to), at) in order {
        while let Some(Reverse((until, lane))) = taken.peek().copied()
            && until <= from
        {
            taken.pop();
            free.push(Reverse(lane));
        }
        let lane = free.pop().map_or(lanes_made, |Reverse(lane)| lane);
        lanes_made = lanes_made.max(lane + 1);
        lanes[at] = Some(lane);
        taken.push(Reverse((to, lane)));
    }
    lanes
}
