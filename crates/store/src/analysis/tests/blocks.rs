//! The five-hour blocks of subscriptions.

use quipu_api::blocks::{Blocks, UsageBlock};
use quipu_prices::Prices;

use super::kit::*;
use crate::Store;
use crate::catalogue::Filter;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Times are those since three o'clock.
fn store() -> (Machine, Store) {
    let mut session = Session::default();
    session.user(20 * MINUTE, "go");
    // In the block from 3 to 8, in the next one, and after a night.
    for (n, ms) in [
        35 * MINUTE,
        5 * HOUR - 1,
        5 * HOUR,
        6 * HOUR + 10 * MINUTE,
        20 * HOUR + 50 * MINUTE,
    ]
    .into_iter()
    .enumerate()
    {
        let content = if n == 0 {
            tool("t", "Bash", "{}")
        } else {
            text("x")
        };
        session.answer(ms, &format!("m{n}"), &content, (1_000, 0, 100));
    }
    session.lines = session.lines.replace("m-1", "claude-opus-4-5-20251101");
    let (machine, store, _) = session.import();
    (machine, store)
}

fn blocks(store: &Store, filter: &Filter, now: i64) -> Blocks {
    let prices = Prices::builtin();
    store.blocks(filter, &prices, at(now)).unwrap()
}

fn span(block: &UsageBlock) -> (String, String) {
    let hour = |time: &quipu_api::Time| time.0[11..16].to_owned();
    (hour(&block.start), hour(&block.end))
}

#[test]
fn a_block_begins_with_the_hour_of_the_first_activity_and_lasts_five() {
    let (_machine, store) = store();
    let all = blocks(&store, &Filter::default(), 100 * HOUR);
    assert_eq!(all.agents, ["claude-code"]);
    let spans: Vec<_> = all.blocks.iter().map(span).collect();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        spans,
        [
            pair("03:00", "08:00"),
            pair("08:00", "13:00"),
            pair("23:00", "04:00")
        ]
    );
    let first = &all.blocks[0];
    assert_eq!(first.spent.calls, 2);
    assert_eq!(first.spent.tokens.total, 2_200);
    // What was asked at 3:20 is the first activity, before the answer at 3:35.
    assert_eq!(first.first_activity.0, "2026-01-02T03:15:00Z");
    assert_eq!(first.last_activity.0, "2026-01-02T08:00:00Z");
    assert_eq!(first.active_quarters, 3);
    assert_eq!(first.models, ["claude-opus-4-5-20251101"]);
    // 5 and 25 dollars for a million.
    assert_eq!(first.spent.usd.as_ref().unwrap().0, "0.015");
    for block in &all.blocks {
        assert!(!block.active && block.left_ms.is_none() && block.projection.is_none());
    }
}

#[test]
fn the_block_at_hand_has_a_projection_when_two_quarters_were_active() {
    let (_machine, store) = store();
    let now = 7 * HOUR;
    let all = blocks(&store, &Filter::default(), now);
    // Begun at 8; first activity at 8; two calls; it is 10.
    let block = &all.blocks[1];
    assert!(block.active);
    assert_eq!(block.left_ms, Some(3 * 60 * 60 * 1000));
    let projection = block.projection.as_ref().unwrap();
    assert!(projection.is_projection);
    assert_eq!(projection.tokens_per_minute, 2_200 / 120);
    assert_eq!(projection.tokens, 2_200 * 5 / 2);
    assert_eq!(projection.usd.as_ref().unwrap().0, "0.0375");
    // The last one has a single quarter.
    let all = blocks(&store, &Filter::default(), 21 * HOUR);
    let block = all.blocks.last().unwrap();
    assert!(block.active && block.projection.is_none());
    assert_eq!(block.active_quarters, 1);
}

#[test]
fn filters_leave_blocks_out_and_never_move_them() {
    let (_machine, store) = store();
    let since = |ms: i64| Filter {
        since: Some(at(ms).as_millisecond()),
        ..Filter::default()
    };
    // In the middle of the first block: it is shown as a whole.
    let all = blocks(&store, &since(4 * HOUR), 100 * HOUR);
    assert_eq!(all.blocks.len(), 3);
    assert_eq!(all.blocks[0].spent.calls, 2);
    assert_eq!(blocks(&store, &since(5 * HOUR), 100 * HOUR).blocks.len(), 2);
    let other = Filter {
        agents: vec!["gemini".to_owned()],
        ..Filter::default()
    };
    assert_eq!(blocks(&store, &other, 100 * HOUR).blocks, []);
}

#[test]
fn blocks_are_of_the_directories_that_are_meant_and_of_ones_own_sessions() {
    use crate::catalogue::Received;
    let (_machine, store) = store();
    let over = |directory: &str| {
        let directories = [directory.to_owned()];
        let all = store.blocks_over(
            &Filter::default(),
            Some(&directories),
            &Prices::builtin(),
            at(100 * HOUR),
        );
        all.unwrap().blocks.len()
    };
    assert_eq!((over("/code"), over("/elsewhere")), (3, 0));
    // What others spent is not one's own, unless it is asked for.
    receive_all(&store);
    let of = |received: Received| {
        let filter = Filter {
            received,
            ..Filter::default()
        };
        let tools = store.tools_over(&filter, None).unwrap().transcripts;
        (blocks(&store, &filter, 100 * HOUR).blocks.len(), tools)
    };
    assert_eq!(of(Received::AsUsual), (0, 0));
    assert_eq!(of(Received::Without), (0, 0));
    assert_eq!(of(Received::With), (3, 1));
    assert_eq!(of(Received::From("anon_7".to_owned())), (3, 1));
}
