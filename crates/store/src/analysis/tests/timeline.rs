//! Spans, lanes, gaps and the critical path.

use quipu_api::timeline::{Axis, SpanKind, SpanStatus, Timeline, TimelineSpan, Timing};
use quipu_model::{Body, Fidelity, Json, Notes, Place, Step, ToolCall, ToolResult};

use super::kit::*;
use crate::Store;
use crate::analysis::Window;
use crate::catalogue::TranscriptRow;

fn all(store: &Store, row: &TranscriptRow) -> Timeline {
    store.timeline(row, &Window::default()).unwrap()
}

fn find<'t>(timeline: &'t Timeline, kind: SpanKind, name: &str) -> &'t TimelineSpan {
    let mut found = timeline
        .spans
        .iter()
        .filter(|span| span.kind == kind && span.name.as_deref() == Some(name));
    let span = found
        .next()
        .unwrap_or_else(|| panic!("no span of {name}: {timeline:#?}"));
    assert!(found.next().is_none(), "several of {name}");
    span
}

/// Two tools at once, an answer, a person who takes a minute, and another answer.
fn conversation() -> Session {
    let mut session = Session::default();
    session
        .user(0, "do it")
        .answer(2_000, "A", &tool("t1", "Read", "{}"), (10, 0, 5))
        .answer(2_000, "A", &tool("t2", "Bash", "{}"), (10, 0, 5))
        .result(3_000, "t1", "text", false)
        .result(7_000, "t2", "boom", true)
        .answer(10_000, "B", &text("done"), (20, 0, 5))
        .user(70_000, "more")
        .answer(75_000, "C", &text("done again"), (30, 0, 5));
    session
}

#[test]
fn a_session_has_spans_of_models_and_tools_and_of_waiting_for_a_person() {
    let (_machine, store, row) = conversation().import();
    let timeline = all(&store, &row);
    assert_eq!(timeline.transcript.as_ref(), Some(&row.address));
    let kinds: Vec<_> = timeline
        .spans
        .iter()
        .map(|span| (span.kind, span.seq_from, span.seq_to, span.duration_ms))
        .collect();
    assert_eq!(
        kinds,
        [
            (SpanKind::Model, 2, 3, Some(2_000)),
            (SpanKind::Tool, 2, 4, Some(1_000)),
            (SpanKind::Tool, 3, 5, Some(5_000)),
            (SpanKind::Model, 6, 6, Some(3_000)),
            (SpanKind::Model, 8, 8, Some(5_000)),
        ]
    );
    let (read, bash) = (
        find(&timeline, SpanKind::Tool, "Read"),
        find(&timeline, SpanKind::Tool, "Bash"),
    );
    assert_eq!(
        (read.timing, read.status),
        (Timing::Measured, SpanStatus::Ok)
    );
    assert_eq!(bash.status, SpanStatus::Failed);
    assert_eq!(bash.call_id.as_deref(), Some("t2"));
    assert_ne!(read.lane, bash.lane, "they overlap");
    assert_eq!((timeline.axis, timeline.lanes), (Axis::Time, 2));
    let critical: Vec<bool> = timeline.spans.iter().map(|span| span.critical).collect();
    assert_eq!(critical, [true, false, true, true, true]);
    let totals = &timeline.totals;
    assert_eq!(totals.wall_ms, Some(75_000));
    assert_eq!(totals.busy_ms, Some(15_000));
    assert_eq!(totals.waiting_ms, Some(60_000));
    assert_eq!(totals.idle_ms, Some(0));
    assert_eq!(totals.overlap_ms, Some(1_000));
    assert_eq!(totals.most_at_once, 2);
    assert_eq!(totals.critical_ms, Some(15_000));
    assert_eq!(totals.critical_spans, [0, 2, 3, 4]);
    assert_eq!((totals.gaps_total, totals.gaps.len()), (1, 1));
    let gap = &totals.gaps[0];
    assert_eq!(
        (gap.person, gap.duration_ms, gap.seq),
        (true, 60_000, Some(7))
    );
    assert_eq!(totals.clock_went_back, 0);
}

#[test]
fn a_log_without_times_has_no_durations_and_lanes_by_events() {
    let mut session = Session::undated();
    session
        .user(0, "do it")
        .answer(0, "A", &tool("t1", "Read", "{}"), (10, 0, 5))
        .answer(0, "A", &tool("t2", "Bash", "{}"), (10, 0, 5))
        .result(0, "t1", "text", false)
        .result(0, "t2", "text", false);
    let (_machine, store, row) = session.import();
    let timeline = all(&store, &row);
    assert_eq!(timeline.axis, Axis::Seq);
    assert_eq!(timeline.spans.len(), 3);
    for span in &timeline.spans {
        assert_eq!(
            (&span.start, &span.end, span.duration_ms),
            (&None, &None, None)
        );
        assert_eq!((span.timing, span.critical), (Timing::Unknown, false));
        assert!(span.lane.is_some());
    }
    let totals = &timeline.totals;
    assert_eq!(
        (totals.wall_ms, totals.busy_ms, totals.critical_ms),
        (None, None, None)
    );
    assert_eq!((totals.undated, totals.unknown_durations), (5, 3));
}

#[test]
fn a_clock_that_went_back_is_told_and_nothing_is_put_in_order() {
    let mut session = Session::default();
    session
        .user(10_000, "do it")
        .answer(12_000, "A", &tool("t1", "Bash", "{}"), (10, 0, 5))
        .result(9_000, "t1", "text", false)
        .answer(14_000, "B", &text("done"), (10, 0, 5));
    let (_machine, store, row) = session.import();
    let timeline = all(&store, &row);
    assert_eq!(timeline.totals.clock_went_back, 1);
    let tool = find(&timeline, SpanKind::Tool, "Bash");
    assert_eq!((tool.duration_ms, tool.timing), (None, Timing::Unknown));
    let times = [&tool.start, &tool.end].map(|time| time.as_ref().unwrap().0.as_str());
    // As the log has them.
    assert_eq!(times, ["2026-01-02T03:00:12Z", "2026-01-02T03:00:09Z"]);
    assert_eq!(timeline.totals.wall_ms, Some(5_000));
}

#[test]
fn a_tool_call_without_a_result_is_open() {
    let mut session = Session::default();
    session
        .user(0, "do it")
        .answer(2_000, "A", &tool("t1", "Bash", "{}"), (10, 0, 5));
    let (_machine, store, row) = session.import();
    let timeline = all(&store, &row);
    let tool = find(&timeline, SpanKind::Tool, "Bash");
    assert_eq!((tool.status, tool.end.as_ref()), (SpanStatus::Open, None));
    assert_eq!(tool.duration_ms, None);
}

#[test]
fn pages_have_all_spans_once() {
    let (_machine, store, row) = conversation().import();
    let whole = all(&store, &row);
    assert_eq!(whole.next, None);
    for limit in 1..=6 {
        let (mut spans, mut from) = (Vec::new(), 1);
        for _ in 0..10 {
            let page = store.timeline(&row, &Window { from, limit }).unwrap();
            assert_eq!(page.spans_total, 5);
            assert_eq!(page.totals, whole.totals);
            spans.extend(page.spans);
            let Some(next) = page.next else {
                break;
            };
            assert!(next > from, "{next} {from}");
            from = next;
        }
        assert_eq!(spans, whole.spans, "{limit}");
    }
    let behind = store
        .timeline(&row, &Window { from: 99, limit: 5 })
        .unwrap();
    assert_eq!((behind.spans.len(), behind.next), (0, None));
}

fn call(id: &str, fidelity: Fidelity) -> Body {
    Body::ToolCall(ToolCall {
        name: "fetch".to_owned(),
        call_id: id.into(),
        input: Some(Json::null()),
        fidelity,
    })
}

fn result(id: &str, error: Option<&str>, fidelity: Fidelity) -> Body {
    Body::ToolResult(ToolResult {
        name: "fetch".to_owned(),
        call_id: id.into(),
        input: None,
        output: None,
        error: error.map(str::to_owned),
        fidelity,
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a run is made of many events")]
fn a_run_has_spans_of_its_steps_with_what_happened_in_them() {
    let machine = Machine::new();
    let store = machine.store();
    let none = Notes::default;
    let step = |name: &str, kind: &str| Step::new(name, kind);
    let (router, agent) = (Fidelity::Router, Fidelity::AgentEmitted);
    let (a, b) = (Place::step("par.a"), Place::step("par.b"));
    let fix = |n, attempt| Place::step("fix").in_iteration(n).at_attempt(attempt);
    let stated = Notes {
        duration_ms: Some(1_234),
        ..Notes::default()
    };
    let child = quipu_model::RunId::new("child-1").unwrap();
    record(
        &store,
        "child-1",
        vec![(0, Place::run(), Body::RunStarted(None), none())],
    );
    record(
        &store,
        "run-1",
        vec![
            (
                0,
                Place::run(),
                Body::RunStarted(Some(step("ship", "workflow"))),
                none(),
            ),
            (
                10,
                Place::step("par"),
                Body::StepStarted(step("par", "parallel")),
                none(),
            ),
            (
                20,
                a.clone(),
                Body::StepStarted(step("a", "command")),
                none(),
            ),
            (30, b.clone(), Body::StepStarted(step("b", "agent")), none()),
            // Both tell of it: the agent, and the router.
            (40, b.clone(), call("c1", agent), none()),
            (50, b.clone(), call("c1", router), none()),
            (90, b.clone(), result("c1", Some("refused"), router), stated),
            (91, b.clone(), result("c1", None, agent), none()),
            (
                120,
                a.clone(),
                Body::StepCompleted(step("a", "command").succeeded(None)),
                none(),
            ),
            (
                150,
                b,
                Body::StepCompleted(step("b", "agent").failed("no")),
                none(),
            ),
            (
                160,
                Place::step("par"),
                Body::StepCompleted(step("par", "parallel").succeeded(None)),
                none(),
            ),
            (
                170,
                fix(0, 1),
                Body::StepStarted(step("fix", "command")),
                none(),
            ),
            (
                180,
                fix(0, 1),
                Body::StepCompleted(step("fix", "command").failed("no")),
                none(),
            ),
            (
                190,
                fix(0, 2),
                Body::StepStarted(step("fix", "command")),
                none(),
            ),
            (
                200,
                Place::step("call"),
                Body::CallStarted {
                    child_run_id: child.clone(),
                    step: step("call", "call_workflow"),
                },
                none(),
            ),
            (
                300,
                Place::step("call"),
                Body::CallCompleted {
                    child_run_id: child,
                    end: step("call", "call_workflow").succeeded(None),
                },
                none(),
            ),
        ],
    );
    machine.import(&store);
    let row = store.find("run-1").unwrap();
    assert!(row.recorded);
    let timeline = all(&store, &row);
    let run = find(&timeline, SpanKind::Run, "ship");
    let (par, a, b) = (
        find(&timeline, SpanKind::Step, "par"),
        find(&timeline, SpanKind::Step, "a"),
        find(&timeline, SpanKind::Step, "b"),
    );
    assert_eq!((run.parent, run.status), (None, SpanStatus::Open));
    assert_eq!(par.parent, Some(run.span));
    assert_eq!((a.parent, b.parent), (Some(par.span), Some(par.span)));
    assert_eq!(a.duration_ms, Some(100));
    assert_eq!(b.status, SpanStatus::Failed);
    let tool = find(&timeline, SpanKind::Tool, "fetch");
    assert_eq!(tool.parent, Some(b.span));
    assert_eq!(
        (tool.duration_ms, tool.timing),
        (Some(1_234), Timing::Stated)
    );
    assert_eq!((tool.seq_from, tool.seq_to), (5, 7));
    assert_eq!(tool.status, SpanStatus::Failed);
    let tries: Vec<_> = timeline
        .spans
        .iter()
        .filter(|span| span.path == "fix")
        .map(|span| (span.iterations.clone(), span.attempt, span.status))
        .collect();
    assert_eq!(
        tries,
        [
            (vec![0], 1, SpanStatus::Failed),
            (vec![0], 2, SpanStatus::Open)
        ]
    );
    let called = find(&timeline, SpanKind::ChildRun, "call");
    let child = store.find("child-1").unwrap();
    assert_eq!(called.transcript, Some(child.address));
    assert_eq!(called.child.as_deref(), Some("child-1"));
    assert_eq!(timeline.totals.orphans, 0);
    // What goes on in a run is work; that it goes on is not.
    assert!(!run.critical && called.critical && !par.critical);
    let lanes: std::collections::BTreeSet<_> = [run, par, a, b].map(|it| it.lane).into();
    assert_eq!(lanes.len(), 4, "all four overlap");
}
