//! What holds for every log that there is.

use std::collections::BTreeMap;

use quipu_api::Time;
use quipu_model::Timestamp;

use super::kit::*;
use crate::Store;
use crate::analysis::{MOST, Window};
use crate::catalogue::TranscriptRow;

const ALL: Window = Window {
    from: 1,
    limit: MOST,
};

fn check_timeline(store: &Store, row: &TranscriptRow) {
    let timeline = store.timeline(row, &ALL).unwrap();
    let totals = &timeline.totals;
    let name = row.path.display();
    if let Some(wall) = totals.wall_ms {
        let parts = [totals.busy_ms, totals.waiting_ms, totals.idle_ms];
        let sum: u64 = parts.into_iter().map(Option::unwrap).sum();
        assert_eq!(sum, wall, "{name}");
        assert!(totals.critical_ms <= totals.busy_ms, "{name}");
        assert!(totals.overlap_ms <= totals.busy_ms, "{name}");
    }
    let mut last = (0, 0);
    let mut lanes: BTreeMap<u64, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    let instant = |time: &Time| time.0.parse::<Timestamp>().unwrap();
    for (at, span) in timeline.spans.iter().enumerate() {
        assert_eq!(span.span, at as u64);
        assert!(span.seq_from <= span.seq_to, "{name}");
        assert!((span.seq_from, span.span) > last || at == 0, "{name}");
        last = (span.seq_from, span.span);
        if let Some(parent) = span.parent {
            let parent = &timeline.spans[usize::try_from(parent).unwrap()];
            assert!(
                parent.seq_from <= span.seq_from,
                "{name}: {parent:?} {span:?}"
            );
            assert_ne!(parent.span, span.span);
        }
        if let (Some(lane), Some(start), Some(end)) = (span.lane, &span.start, &span.end)
            && instant(start) < instant(end)
        {
            let lane = lanes.entry(lane).or_default();
            lane.push((instant(start), instant(end)));
        }
    }
    for spans in lanes.values_mut() {
        spans.sort_unstable();
        assert!(
            spans.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "{name}"
        );
    }
}

fn check_tools(store: &Store, row: &TranscriptRow) {
    let ledger = store.tools(row).unwrap();
    let (total, figures) = (&ledger.total, &row.figures);
    let name = row.path.display();
    assert_eq!(total.calls, figures.tool_calls, "{name}: calls");
    assert_eq!(total.dangling, Some(figures.dangling), "{name}: dangling");
    assert_eq!(ledger.orphans, Some(figures.orphans), "{name}: orphans");
    // What a result without a call says is of no call.
    if figures.orphans == 0 {
        assert_eq!(total.failures, figures.failures, "{name}: failures");
        assert_eq!(total.denials, Some(figures.denials), "{name}: denials");
    }
    let sum: u64 = ledger.tools.iter().map(|tool| tool.calls).sum();
    assert_eq!((sum, ledger.other_tools), (total.calls, 0), "{name}");
}

fn check_context(store: &Store, row: &TranscriptRow) {
    let context = store.context(row, &ALL).unwrap();
    let name = row.path.display();
    // The catalogue counts what another log has already to that one.
    if row.copied_events > 0 || row.duplicate || row.copy_of.is_some() {
        return;
    }
    let tokens = context.turns.iter().filter_map(|turn| turn.tokens.as_ref());
    let sum: u64 = tokens.map(|tokens| tokens.total).sum();
    assert_eq!(context.turns_total, context.turns.len() as u64, "{name}");
    assert_eq!(sum, row.usage.total(), "{name}: tokens");
    assert!(
        context.compactions_total <= row.figures.compactions,
        "{name}"
    );
}

#[test]
fn figures_agree_with_the_catalogue_and_spans_keep_their_order() {
    let machine = Machine::new();
    let store = machine.store();
    import_corpus(&machine, &store);
    let rows = rows(&store);
    assert!(rows.len() > 60, "{}", rows.len());
    for row in &rows {
        check_timeline(&store, row);
        check_tools(&store, row);
        check_context(&store, row);
    }
}
