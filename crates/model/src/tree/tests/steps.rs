//! Where steps, messages and tool calls are placed.

use super::{check, event, events, grow};
use crate::tree::build::loop_depth;
use crate::tree::{Span, State, TreeBuilder};
use crate::{Block, Body, Json, Place, RunId, Timestamp};

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
        assert_eq!(loop_depth(path), depth, "{path}");
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
    let body = Body::UserMessage(vec![Block::unknown(Json::null())]);
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
