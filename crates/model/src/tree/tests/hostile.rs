//! The work per event does not grow with the events before it.

use std::time::{Duration, Instant};

use super::{events, grow, tree};
use crate::tree::{Placed, State};
use crate::{Body, Event, StepEnd};

/// Several times what it takes on a busy machine (1.5 s), far below what it takes when the work per
/// event grows with the events before it (minutes).
const SOON: Duration = Duration::from_secs(10);

fn soon<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    let taken = start.elapsed();
    assert!(taken < SOON, "{what} took {taken:?}");
    done
}

fn many(n: u64, line: impl FnMut(u64) -> String) -> Vec<Event> {
    let script: Vec<String> = (0..n).map(line).collect();
    events("r", &script.join("\n"))
}

#[test]
fn a_hundred_thousand_open_steps_of_one_path() {
    const N: u64 = 100_000;
    let all = many(2 * N, |i| match i {
        i if i < N => "start a command".to_owned(),
        _ => "end a".to_owned(),
    });
    let tree = soon("open and close", || grow(&all));
    assert_eq!(tree.nodes.len(), 100_000);
    assert!(tree.nodes.iter().all(|node| node.state == State::Done));
}

#[test]
fn a_hundred_thousand_open_iterations_closed_in_the_order_they_opened() {
    const N: u64 = 100_000;
    let all = many(2 * N, |i| match i {
        i if i < N => format!("start a#{i} command"),
        i => format!("end a#{}", i - N),
    });
    let tree = soon("first in, first out", || grow(&all));
    assert!(tree.nodes.iter().all(|node| node.state == State::Done));
}

#[test]
fn a_hundred_thousand_open_steps_that_end_elsewhere() {
    // Same place, other names: each end has to look for its step, and it is never the last.
    let mut all = many(100_000, |i| format!("start loop:0/x agent-{}", i % 50));
    all.extend(many(20_000, |i| format!("end loop:1/x agent-{}", i % 50)));
    for event in &mut all {
        let (Body::StepStarted(step) | Body::StepCompleted(StepEnd { step, .. })) = &mut event.body
        else {
            unreachable!()
        };
        step.name = step.kind.to_string();
    }
    soon("ends under another path", || grow(&all));
}

#[test]
fn a_hundred_thousand_sub_steps_of_many_open_parents() {
    let mut all = many(50_000, |i| format!("start a#{i} command"));
    all.extend(many(50_000, |_| "start a.b#7 command".to_owned()));
    all.extend(many(20_000, |_| "msg a#123456".to_owned()));
    let tree = soon("ambiguous parents", || grow(&all));
    assert_eq!(tree.roots.len(), 100_000);
}

#[test]
fn a_hundred_thousand_parallel_steps() {
    let all = many(100_000, |i| format!("start p{i} parallel"));
    let tree = soon("nested parallel steps", || grow(&all));
    assert_eq!(tree.nodes[0].children.len(), 99_999);
}

#[test]
fn a_path_of_ten_thousand_segments() {
    let deep = vec!["a"; 10_000].join(".");
    let script = format!("start a command\nstart a.a command\nstart {deep} command\nmsg {deep}");
    let found = soon("a deep path", || tree(&script));
    let node = &found.nodes[2];
    assert_eq!(
        (node.parent, node.placed),
        (None, Placed::Ambiguous),
        "it was not searched"
    );
    assert_eq!(node.tally.messages, 1);

    let chain: Vec<String> = (1..300)
        .map(|n| format!("start {} command", vec!["a"; n].join(".")))
        .collect();
    let chain = tree(&chain.join("\n"));
    assert!(
        chain.nodes.iter().skip(1).all(|node| node.parent.is_some()),
        "a chain holds"
    );
}
