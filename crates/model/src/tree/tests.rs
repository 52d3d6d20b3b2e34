//! Events are written as short lines, trees are compared as indented text.
//!
//! | line | event |
//! |---|---|
//! | `run w` / `done w` | `run.started` / `run.completed` of workflow `w` |
//! | `start a.b#1 agent` / `end a.b#1` | a step, here in iteration 1, begins / ends |
//! | `call a child` / `return a child` | a call of the run `child` begins / ends |
//! | `msg a` | a message with the path `a`; `-` is the empty path |
//! | `tool c1 a` / `result c1 a` | a tool call / result with the path `a` |
//! | `odd a` | an event outside the vocabulary |
//!
//! `!why` at the end of a line is an error. In a rendered tree `~` marks a place that was inferred,
//! `?` one that is ambiguous.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::*;
use crate::{
    Annotations, AnyBlock, AnyBody, Body, Event, Fidelity, Foreign, Json, Role, Shape, Step,
    StepEnd, ToolCall, ToolResult,
};

/// The events of a script, numbered from 1.
fn events(run: &str, script: &str) -> Vec<Event<AnyBody>> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
    lines
        .zip(1..)
        .map(|(line, seq)| {
            let (line, error) = match line.split_once(" !") {
                Some((line, error)) => (line, Some(error.to_owned())),
                None => (line, None),
            };
            let words: Vec<&str> = line.split(' ').collect();
            let word = |n: usize| words.get(n).copied().unwrap_or("-");
            let at = match words[0] {
                "tool" | "result" => word(2),
                "run" | "done" => "-",
                _ => word(1),
            };
            let place = place(at);
            let name = place.path.rsplit(['.', '/']).next().unwrap_or("");
            if words[0] == "start" {
                kinds.insert(word(1), word(2));
            }
            let step = Step::new(name, kinds.get(word(1)).copied().unwrap_or("command"));
            let end = |step| StepEnd {
                step,
                error: error.clone(),
                result: None,
            };
            let child_run_id = || RunId::new(word(2)).unwrap();
            let workflow = || (word(1) != "-").then(|| Step::new(word(1), "workflow"));
            let call = Step::new(name, "call_workflow");
            let body = match words[0] {
                "run" => Body::RunStarted(workflow()),
                "done" => Body::RunCompleted(workflow().map(end)),
                "start" => Body::StepStarted(step),
                "end" => Body::StepCompleted(end(step)),
                "call" => Body::CallStarted {
                    child_run_id: child_run_id(),
                    step: call,
                },
                "return" => Body::CallCompleted {
                    child_run_id: child_run_id(),
                    end: end(call),
                },
                "msg" => Body::UserMessage(Vec::new()),
                "tool" => Body::ToolCall(ToolCall {
                    name: "Bash".to_owned(),
                    call_id: word(1).to_owned(),
                    input: None,
                    fidelity: Fidelity::Router,
                }),
                "result" => Body::ToolResult(ToolResult {
                    name: "Bash".to_owned(),
                    call_id: word(1).to_owned(),
                    input: None,
                    output: None,
                    error: error.clone(),
                    fidelity: Fidelity::Router,
                }),
                "odd" => return event(run, seq, place, odd()),
                other => panic!("no such line: {other}"),
            };
            event(run, seq, place, AnyBody::Known(body))
        })
        .collect()
}

fn place(text: &str) -> Place {
    let (path, iteration) = text.split_once('#').unwrap_or((text, "0"));
    Place::step(path.trim_matches('-')).iteration(iteration.parse().unwrap())
}

fn odd() -> AnyBody {
    AnyBody::Foreign(Foreign {
        event_type: "step.exploded".to_owned(),
        child_run_id: None,
        shape: Shape::Null,
        payload: Json::null(),
    })
}

/// Events are a second apart.
fn event(run: &str, seq: u64, place: Place, body: AnyBody) -> Event<AnyBody> {
    Event {
        seq,
        run_id: RunId::new(run).unwrap(),
        parent_run_id: None,
        timestamp: Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap(),
        place,
        body,
        annotations: Annotations::default(),
    }
}

fn grow<'a>(events: impl IntoIterator<Item = &'a Event<AnyBody>>) -> RunTree {
    let mut builder = TreeBuilder::default();
    for event in events {
        builder.observe(event);
    }
    builder.finish()
}

fn tree(script: &str) -> RunTree {
    grow(&events("r1", script))
}

fn render(tree: &RunTree) -> String {
    let mut text = format!(
        "{}{}",
        tree.name.as_deref().unwrap_or("-"),
        said(&tree.tally)
    );
    write!(text, "{}", state(&tree.state, &State::Unmarked)).unwrap();
    let mut left: Vec<(usize, NodeId)> = tree.roots.iter().rev().map(|&id| (1, id)).collect();
    while let Some((depth, id)) = left.pop() {
        let node = &tree.nodes[id];
        write!(text, "\n{}{}", "  ".repeat(depth), node.place.path).unwrap();
        if node.place.iteration > 0 {
            write!(text, "#{}", node.place.iteration).unwrap();
        }
        text.push_str(match node.placed {
            Placed::ByPath => "",
            Placed::Inferred => " ~",
            Placed::Ambiguous => " ?",
        });
        if let Some(child) = &node.calls {
            write!(text, " -> {child}").unwrap();
        }
        if node.started_seq.is_none() {
            text.push_str(" never began");
        }
        write!(
            text,
            "{}{}",
            state(&node.state, &State::Done),
            said(&node.tally)
        )
        .unwrap();
        left.extend(node.children.iter().rev().map(|&id| (depth + 1, id)));
    }
    text
}

fn state(state: &State, usual: &State) -> String {
    match state {
        state if state == usual => String::new(),
        State::Open => " open".to_owned(),
        State::Done => " done".to_owned(),
        State::Failed(why) => format!(" failed: {why}"),
        State::Unmarked => " unmarked".to_owned(),
    }
}

fn said(tally: &Tally) -> String {
    let mut text = String::new();
    for (n, what) in [
        (tally.messages, "messages"),
        (tally.tool_calls, "tools"),
        (tally.tool_failures, "failed"),
        (tally.foreign, "odd"),
        (tally.inferred, "inferred"),
    ] {
        if n > 0 {
            write!(text, " {what}={n}").unwrap();
        }
    }
    for (what, calls) in [("dangling", &tally.dangling), ("orphan", &tally.orphans)] {
        for (_, id) in calls {
            write!(text, " {what}:{id}").unwrap();
        }
    }
    text
}

/// Every step is in the tree once, and parents and children agree.
fn check_links(tree: &RunTree) {
    let mut seen = vec![false; tree.nodes.len()];
    let mut visit = |parent: Option<NodeId>, children: &[NodeId]| {
        for &id in children {
            assert!(!std::mem::replace(&mut seen[id], true), "{id} hangs twice");
            assert_eq!(tree.nodes[id].parent, parent, "parent of {id}");
            assert!(
                parent.is_none_or(|parent| parent < id),
                "parents come first"
            );
        }
    };
    visit(None, &tree.roots);
    for (id, node) in tree.nodes.iter().enumerate() {
        visit(Some(id), &node.children);
    }
    assert!(
        seen.into_iter().all(|seen| seen),
        "every step hangs somewhere"
    );
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let tree = tree(script);
    check_links(&tree);
    let found = render(&tree);
    // The indent of the first line of `expected` is that of the source code.
    let expected = expected.trim_end().trim_start_matches('\n');
    let indent = expected.len() - expected.trim_start().len();
    let expected: Vec<&str> = expected
        .lines()
        .map(|line| line.get(indent..).unwrap_or("").trim_end())
        .collect();
    assert_eq!(found, expected.join("\n"), "\nfound:\n{found}\n");
}

#[test]
fn dotted_paths_nest() {
    check(
        "
        run ship
        start build command
        start build.lint command
        start build.lint.rust command
        end build.lint.rust
        end build.lint
        end build !exit code 3
        start deploy command
        end deploy
        done ship !build failed
        ",
        "
        ship failed: build failed
          build failed: exit code 3
            build.lint
              build.lint.rust
          deploy
        ",
    );
}

#[test]
fn the_nearest_recorded_ancestor_is_the_parent() {
    check(
        "
        start a command
        start a.b.c command
        ",
        "
        -
          a open
            a.b.c open
        ",
    );
    check("start x.y command", "-\n  x.y open");
}

#[test]
fn branches_are_told_apart_by_path() {
    check(
        "
        start p parallel
        start p.a agent
        start p.b agent
        msg p.b
        msg p.a
        msg p.a
        end p.b
        end p.a
        end p
        ",
        "
        -
          p
            p.a messages=2
            p.b messages=1
        ",
    );
}

#[test]
fn loop_bodies_hang_from_the_loop() {
    check(
        "
        start each for_each
        start each.body#0 command
        end each.body#0
        start each.body#1 command
        tool c1 each.body#1
        result c1 each.body#1
        end each.body#1
        start each.body#2 command
        end each.body#2 !boom
        end each
        ",
        "
        -
          each
            each.body
            each.body#1 tools=1
            each.body#2 failed: boom
        ",
    );
}

#[test]
fn nested_loops() {
    check(
        "
        start outer for_each
        start outer.inner#0 while
        start outer.inner.x#0 command
        end outer.inner.x#0
        start outer.inner.x#1 command
        end outer.inner.x#1
        end outer.inner#0
        start outer.inner#1 while
        start outer.inner.x#0 command
        end outer.inner.x#0
        end outer.inner#1
        end outer
        ",
        "
        -
          outer
            outer.inner
              outer.inner.x
              outer.inner.x#1
            outer.inner#1
              outer.inner.x
        ",
    );
}

#[test]
fn concurrent_iterations_are_matched_by_number() {
    check(
        "
        start each for_each
        start each.body#0 parallel
        start each.body#1 parallel
        start each.body.a#1 command
        start each.body.a#0 command
        end each.body#0
        end each.body.a#0
        end each.body.a#1
        end each.body#1
        end each
        ",
        "
        -
          each
            each.body
              each.body.a
            each.body#1
              each.body.a#1
        ",
    );
}

#[test]
fn inside_concurrent_loops_the_iteration_does_not_tell() {
    // `each.inner.x` counts the iterations of `inner`, of which two run at once.
    check(
        "
        start each for_each
        start each.inner#0 while
        start each.inner#1 while
        start each.inner.x#1 command
        ",
        "
        -
          each open
            each.inner open
            each.inner#1 open
            each.inner.x#1 ? open
        ",
    );
}

#[test]
fn what_several_places_do_not_share_hangs_from_the_run() {
    // `a.b.c` may be in either `a.b`, and those hang from different executions of `a`.
    check(
        "
        start a#0 command
        start a#1 command
        start a.b#0 command
        start a.b#1 command
        start a.b.c#7 command
        ",
        "
        -
          a open
            a.b open
          a#1 open
            a.b#1 open
          a.b.c#7 ? open
        ",
    );
}

#[test]
fn calls_of_other_runs() {
    check(
        "
        call sub child-1
        call sub child-2
        return sub child-1
        return sub child-2 !child failed
        call late child-3
        return gone child-4
        ",
        "
        -
          sub -> child-1
          sub -> child-2 failed: child failed
          late -> child-3 open
          gone -> child-4 never began
        ",
    );
}

#[test]
fn a_step_may_be_left_open_or_never_begin() {
    check(
        "
        run w
        start a command
        end a.b
        start a.c command
        ",
        "
        w open
          a open
            a.b never began
            a.c open
        ",
    );
}

#[test]
fn a_step_that_runs_again_is_another_step() {
    check(
        "
        start a command
        end a !first try
        start a command
        end a
        end a
        ",
        "
        -
          a failed: first try
          a
          a never began
        ",
    );
}

#[test]
fn a_resumed_run_is_open_again() {
    check("run w\n done w !killed", "w failed: killed");
    check("run w\n done w !killed\n run w", "w open");
    check("run w\n done w !killed\n run w\n done w", "w done");
    check("run -\n done -", "- done");
    check("done w", "w done");
}

#[test]
fn bare_branches_are_adopted() {
    // As awf writes them.
    check(
        "
        start p parallel
        start b agent
        start a agent
        end a
        end b
        end p
        start f agent
        end f
        ",
        "
        -
          p
            b ~
            a ~
          f
        ",
    );
}

#[test]
fn a_parallel_step_with_branches_of_its_own_adopts_none() {
    check(
        "
        start p parallel
        start p.a command
        start stray command
        ",
        "
        -
          p open
            p.a open
          stray open
        ",
    );
}

#[test]
fn bare_branches_of_nested_parallel_steps_are_ambiguous() {
    check(
        "
        start p parallel
        start a command
        start q parallel
        start x command
        end x
        end q
        start b command
        end b
        end p
        start c command
        ",
        "
        -
          p
            a ~ open
            q ~
            x ?
            b ~
          c open
        ",
    );
    // `q1` outlasts `q2`, so it decides.
    check(
        "
        start p parallel
        start q1 parallel
        start q2 parallel
        end q2
        start x command
        end q1
        start y command
        ",
        "
        -
          p open
            q1 ~
            q2 ?
            x ? open
            y ~ open
        ",
    );
}

#[test]
fn slash_paths_hang_from_the_open_loop() {
    check(
        "
        start items for_each
        start loop:0/echo#0 command
        end loop:0/echo#0
        start loop:1/echo#1 command
        end loop:1/echo#1
        end items
        start loop:2/late#2 command
        ",
        "
        -
          items
            loop:0/echo ~
            loop:1/echo#1 ~
          loop:2/late#2 ? open
        ",
    );
}

#[test]
fn slash_paths_nest() {
    check(
        "
        start outer for_each
        start loop:0/inner for_each
        start loop:0/loop:1/x#1 command
        end loop:0/loop:1/x#1
        end loop:0/inner
        end outer
        ",
        "
        -
          outer
            loop:0/inner ~
              loop:0/loop:1/x#1 ~
        ",
    );
}

#[test]
fn slash_paths_in_two_loops_at_once_are_ambiguous() {
    check(
        "
        start p parallel
        start l1 for_each
        start l2 for_each
        start loop:0/x command
        end loop:0/x
        ",
        "
        -
          p open
            l1 ~ open
            l2 ~ open
            loop:0/x ?
        ",
    );
    check(
        "
        start a command
        start a.l for_each
        start b command
        start b.l for_each
        start loop:0/x command
        ",
        "
        -
          a open
            a.l open
          b open
            b.l open
          loop:0/x ? open
        ",
    );
}

#[test]
fn a_step_may_end_under_the_path_of_another_loop() {
    // The engine keeps one current loop for all branches (G25).
    check(
        "
        start l for_each
        start loop:0/x command
        start loop:0/y command
        end loop:3/x
        end loop:3/z
        ",
        "
        -
          l open
            loop:0/x ?
            loop:0/y ~ open
            loop:3/z ~ never began
        ",
    );
    check(
        "
        start p parallel
        start l2 for_each
        start loop:0/l1 for_each
        end loop:0/l2
        end l1
        end p
        ",
        "
        -
          p
            l2 ?
              loop:0/l1 ?
        ",
    );
    check(
        "start a.x command\n end x",
        "-\n  a.x open\n  x never began",
    );
}

#[test]
fn only_numbered_loops_are_loops() {
    for (path, depth) in [
        ("loop:0/x", 1),
        ("loop:0/loop:12/x", 2),
        ("loop:0", 0),
        ("loop:/x", 0),
        ("loop:a/x", 0),
        ("x/loop:0/y", 0),
        ("loop:0/x/loop:1/y", 1),
        ("", 0),
    ] {
        assert_eq!(build::loop_depth(path), depth, "{path}");
    }
}

#[test]
fn messages_under_the_workflows_name_belong_to_the_only_agent() {
    check(
        "
        start a agent
        msg w
        tool c1 -
        result c1 -
        end a
        msg w
        ",
        "
        - messages=1
          a messages=1 tools=1 inferred=2
        ",
    );
}

#[test]
fn with_two_agents_at_work_messages_belong_to_none() {
    check(
        "
        start a agent
        start b agent
        msg w
        tool c1 -
        odd -
        end b
        odd w
        ",
        "
        - messages=1 tools=1 odd=1 dangling:c1
          a open odd=1 inferred=1
          b
        ",
    );
}

#[test]
fn messages_find_their_iteration() {
    check(
        "
        start l while
        start l.a#0 agent
        end l.a#0
        start l.a#1 agent
        msg l.a#1
        msg l.a#0
        msg l.a#9
        end l.a#1
        msg l.a#9
        ",
        "
        -
          l open
            l.a messages=1
            l.a#1 messages=3
        ",
    );
}

#[test]
fn tool_calls_and_results_are_paired() {
    check(
        "
        start a agent
        tool c2 a
        tool c1 a
        tool same a
        tool same a
        result c9 a
        result same a !denied
        end a
        result c1 -
        result c1 -
        ",
        "
        - orphan:c1
          a tools=4 failed=1 dangling:c2 dangling:same orphan:c9
        ",
    );
}

#[test]
fn messages_with_unknown_blocks_count() {
    let body = AnyBody::Message {
        role: Role::User,
        blocks: vec![AnyBlock::Unknown(Json::null())],
    };
    let tree = grow([&event("r", 1, Place::run(), body)]);
    assert_eq!(tree.tally.messages, 1);
}

#[test]
fn the_run_is_described() {
    let mut all = events("r7", "start a command\n end a\n odd -");
    all[1].parent_run_id = Some(RunId::new("caller").unwrap());
    let tree = grow(&all);
    assert_eq!(tree.run_id.as_ref().unwrap().as_str(), "r7");
    assert_eq!(tree.parent_run_id.unwrap().as_str(), "caller");
    assert_eq!(tree.events, 3);
    assert_eq!(tree.span.millis(), Some(2000));
    assert_eq!(tree.nodes[0].span.millis(), Some(1000));
    assert_eq!(
        (tree.nodes[0].started_seq, tree.nodes[0].ended_seq),
        (Some(1), Some(2))
    );
    let empty = TreeBuilder::default().finish();
    assert_eq!((empty.state, empty.span.millis()), (State::Unmarked, None));
}

#[test]
fn time_may_run_backwards() {
    let at = |second| Timestamp::from_second(second).ok();
    let span = Span {
        from: at(5),
        to: at(4),
    };
    assert_eq!(span.millis(), None);
}

/// Far above what it takes, far below what it takes when the work per event grows.
const SOON: Duration = Duration::from_secs(2);

fn soon<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    let taken = start.elapsed();
    assert!(taken < SOON, "{what} took {taken:?}");
    done
}

fn many(n: u64, mut line: impl FnMut(u64) -> String) -> Vec<Event<AnyBody>> {
    let script: Vec<String> = (0..n).map(|i| line(i)).collect();
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
        let (AnyBody::Known(Body::StepStarted(step))
        | AnyBody::Known(Body::StepCompleted(StepEnd { step, .. }))) = &mut event.body
        else {
            unreachable!()
        };
        step.name.clone_from(&step.kind);
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

/// Grows a forest from scripts, the first of which is the root. Renders it as
/// `run: child, child`, with `*` for a cycle and `!` for a child that is missing.
fn forest(scripts: &[(&str, &str)]) -> (Forest, String) {
    let trees: HashMap<&str, RunTree> = scripts
        .iter()
        .map(|&(run, script)| (run, grow(&events(run, script))))
        .collect();
    let mut loaded = Vec::new();
    let forest = Forest::grow(trees[scripts[0].0].clone(), |id| {
        loaded.push(id.clone());
        trees
            .get(id.as_str())
            .cloned()
            .ok_or_else(|| format!("no run {id}"))
    });
    let count = loaded.len();
    loaded.sort();
    loaded.dedup();
    assert_eq!(loaded.len(), count, "each child is asked for once");

    let name = |run: usize| forest.runs[run].run_id.as_ref().unwrap().to_string();
    let mut text = Vec::new();
    for (run, tree) in forest.runs.iter().enumerate() {
        let links: Vec<String> = (0..tree.nodes.len())
            .filter_map(|node| forest.link(run, node))
            .map(|link| match link {
                Link::Run(child) => name(*child),
                Link::Cycle => "*".to_owned(),
                Link::Missing(why) => format!("! {why}"),
            })
            .collect();
        text.push(
            format!("{}: {}", name(run), links.join(", "))
                .trim_end()
                .to_owned(),
        );
    }
    (forest, text.join("\n"))
}

#[track_caller]
fn check_forest(scripts: &[(&str, &str)], expected: &[&str], is_whole: bool) {
    let (forest, found) = forest(scripts);
    assert_eq!(found, expected.join("\n"));
    assert_eq!(forest.is_whole(), is_whole);
}

#[test]
fn a_forest_follows_links_over_three_levels() {
    check_forest(
        &[
            ("a", "start x command\n end x\n call b b\n return b b"),
            ("b", "call c c\n return c c"),
            ("c", "start y command\n end y"),
        ],
        &["a: b", "b: c", "c:"],
        true,
    );
}

#[test]
fn a_forest_says_what_is_missing() {
    check_forest(
        &[("a", "call b b\n return b b\n call b b\n return b b")],
        &["a: ! no run b, ! no run b"],
        false,
    );
}

#[test]
fn a_forest_is_not_whole_while_anything_is_open() {
    check_forest(&[("a", "start x command")], &["a:"], false);
    check_forest(&[("a", "run w")], &["a:"], false);
    check_forest(&[("a", "run w\n done w !failed")], &["a:"], true);
    check_forest(
        &[("a", "call b b\n return b b"), ("b", "start x command")],
        &["a: b", "b:"],
        false,
    );
    check_forest(&[("a", "msg -")], &["a:"], true);
}

#[test]
fn a_forest_has_no_cycles() {
    check_forest(&[("a", "call a a\n return a a")], &["a: *"], false);
    check_forest(
        &[
            ("a", "call b b\n return b b"),
            ("b", "call c c\n return c c"),
            ("c", "call a a\n return a a\n call b b\n return b b"),
        ],
        &["a: b", "b: c", "c: *, *"],
        false,
    );
    // `x` is found through `b`, and only later seen to be called by `c`, which it calls.
    check_forest(
        &[
            ("a", "call b b\n return b b\n call c c\n return c c"),
            ("b", "call x x\n return x x"),
            ("c", "call x x\n return x x"),
            ("x", "call c c\n return c c"),
        ],
        &["a: b, c", "b: x", "c: *", "x: c"],
        false,
    );
}

#[test]
fn a_child_may_be_called_twice() {
    check_forest(
        &[
            ("a", "call b b\n return b b\n call b b\n return b b"),
            ("b", "start x command\n end x"),
        ],
        &["a: b, b", "b:"],
        true,
    );
}

#[test]
fn steps_that_call_nothing_lead_nowhere() {
    let (forest, _) = forest(&[("a", "start x command\n end x")]);
    assert_eq!(forest.link(0, 0), None);
    assert_eq!(forest.link(7, 7), None);
}
