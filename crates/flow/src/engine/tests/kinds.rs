//! Each kind of step.

use super::{World, story};
use crate::engine::RunStatus;

#[tokio::test]
async fn a_command_leaves_its_output_and_leads_on() {
    let ran = World::new()
        .run(
            r#"
  initial: hello
  hello: {type: command, command: "printf hi; printf oops >&2", on_success: use}
  use: {type: step, command: "printf '{{.states.hello.Output}}-{{states.hello.ExitCode}}'", on_success: done}
  done: {type: terminal, status: success, message: "said {{.states.use.Output}}"}
"#,
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    assert_eq!(ran.outcome.message.as_deref(), Some("said hi-0"));
    let result = ran.result("hello");
    assert_eq!(
        (&result["output"], &result["stderr"]),
        (&"hi".into(), &"oops".into())
    );
    let told = [
        "run.started",
        "+hello",
        "-hello",
        "+use",
        "-use",
        "+done",
        "-done",
        "run.completed succeeded",
    ];
    assert_eq!(ran.story(), told);
}

#[tokio::test]
async fn a_failing_command_goes_where_the_step_says() {
    let world = World::new();
    let inline = r#"
  initial: bad
  bad: {type: command, command: "echo no >&2; exit 3", on_success: done, on_failure: {message: "gave up: {{.error.Message}}", status: 7}}
  done: {type: terminal, status: success}
"#;
    let ran = world.run(inline).await;
    assert_eq!(
        (ran.outcome.status, ran.outcome.exit_code),
        (RunStatus::Failed, 7)
    );
    assert_eq!(
        ran.outcome.message.as_deref(),
        Some("gave up: exit code 3: no")
    );
    assert_eq!(ran.result("bad")["exit_code"], 3);
    let jump = r#"
  initial: bad
  bad: {type: command, command: "exit 3", on_success: done, on_failure: rescue}
  rescue: {type: command, command: "printf saved", on_success: done}
  done: {type: terminal, status: success}
"#;
    assert_eq!(world.run(jump).await.outcome.status, RunStatus::Succeeded);
    let nowhere = r#"
  initial: bad
  bad: {type: command, command: "exit 3", on_success: done}
  done: {type: terminal, status: success}
"#;
    let ran = world.run(nowhere).await;
    assert_eq!(
        (ran.outcome.status, ran.outcome.exit_code),
        (RunStatus::Failed, 1)
    );
    assert_eq!(
        ran.outcome.error.as_deref(),
        Some("step bad failed: exit code 3")
    );
}

#[tokio::test]
async fn transitions_are_tried_in_order_for_every_kind_and_outcome() {
    let ran = World::new()
        .run(
            r#"
  initial: set
  set:
    type: set
    values: {n: 3}
    transitions:
      - {when: "states.set.Data.n > 5", goto: big}
      - {when: "states.set.Data.n > 2", goto: fails}
      - {goto: small}
  fails:
    type: operation
    operation: json.parse
    inputs: {text: "{"}
    transitions:
      - {when: "states.fails.Status == 'failed'", goto: small}
  big: {type: terminal, status: failure}
  small: {type: terminal, status: success, message: "n={{.states.set.Data.n}}"}
"#,
        )
        .await;
    assert_eq!(ran.outcome.message.as_deref(), Some("n=3"));
}

#[tokio::test]
async fn a_parallel_step_gives_each_branch_a_path_of_its_own() {
    let ran = World::new()
        .run(
            r#"
  initial: both
  both: {type: parallel, parallel: [a, b], on_success: done}
  a: {type: command, command: "printf A"}
  b: {type: command, command: "printf B"}
  done: {type: terminal, status: success, message: "{{.states.a.Output}}{{.states.b.Output}}"}
"#,
        )
        .await;
    assert_eq!(ran.outcome.message.as_deref(), Some("AB"));
    let mut inside: Vec<String> = ran
        .story()
        .into_iter()
        .filter(|line| line.contains("both."))
        .collect();
    inside.sort();
    assert_eq!(inside, ["+both.a", "+both.b", "-both.a", "-both.b"]);
}

#[tokio::test]
async fn strategies_decide_when_a_parallel_step_succeeds() {
    let world = World::new();
    let with = |strategy: &str| {
        format!(
            r#"
  initial: both
  both: {{type: parallel, parallel: [quick, slow, bad], strategy: {strategy}, on_success: done, on_failure: lost}}
  quick: {{type: command, command: "sleep 0.3; touch quick"}}
  slow: {{type: command, command: "sleep 20; touch slow"}}
  bad: {{type: command, command: "exit 1"}}
  done: {{type: terminal, status: success}}
  lost: {{type: terminal, status: failure}}
"#
        )
    };
    let any = world.run(&with("any_succeed")).await;
    assert_eq!(any.outcome.status, RunStatus::Succeeded);
    assert_eq!(any.error("both.slow").as_deref(), Some("cancelled"));
    assert_eq!(any.result("both.slow")["status"], "cancelled");
    let all = world.run(&with("all_succeed")).await;
    assert_eq!(all.outcome.status, RunStatus::Failed);
    assert_eq!(
        all.error("both").as_deref(),
        Some("branch bad failed: exit code 1")
    );
    assert!(
        !world.root().join("slow").exists(),
        "a cancelled branch does nothing more"
    );
}

#[tokio::test]
async fn best_effort_succeeds_whatever_happens_and_max_concurrent_is_kept() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: all
  all: {type: parallel, parallel: [a, b, c], strategy: best_effort, max_concurrent: 1, on_success: done}
  a: {type: command, command: "echo a+ >> log; sleep 0.1; echo a- >> log"}
  b: {type: command, command: "echo b+ >> log; sleep 0.1; echo b- >> log; exit 1"}
  c: {type: command, command: "echo c+ >> log; sleep 0.1; echo c- >> log"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    let log = world.read("log");
    let lines: Vec<&str> = log.lines().collect();
    for pair in lines.chunks(2) {
        assert_eq!(
            pair[0].trim_end_matches('+'),
            pair[1].trim_end_matches('-'),
            "{log}"
        );
    }
    assert_eq!(ran.result("all")["output"], "2 of 3 branches succeeded");
}

#[tokio::test]
async fn a_branch_waits_for_the_branches_it_depends_on() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: both
  both: {type: parallel, parallel: [late, early], on_success: done}
  early: {type: command, command: "sleep 0.2; echo early >> log"}
  late: {type: command, command: "echo late >> log", depends_on: [early]}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    assert_eq!(world.read("log"), "early\nlate\n");
}

#[tokio::test]
async fn a_loop_goes_over_its_items_with_a_place_for_each_pass() {
    let ran = World::new()
        .run(
            r#"
  initial: each
  each: {type: for_each, items: '["x", {"k": 1}]', body: [say], on_complete: done}
  say: {type: command, command: "printf '%s' '{{.loop.Item}} {{.loop.Index1}}/{{.loop.Length}} {{.loop.Last}}'"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    let said: Vec<_> = ran
        .results("each.say")
        .iter()
        .map(|result| result["output"].clone())
        .collect();
    assert_eq!(said, ["x 1/2 false", "{\"k\":1} 2/2 true"]);
    let told = [
        "run.started",
        "+each",
        "+each.say[0]",
        "-each.say[0]",
        "+each.say[1]",
        "-each.say[1]",
        "-each",
        "+done",
        "-done",
        "run.completed succeeded",
    ];
    assert_eq!(ran.story(), told);
}

#[tokio::test]
async fn loops_three_deep_have_three_passes_and_see_their_parents() {
    let ran = World::new()
        .run(
            r#"
  initial: a
  a: {type: for_each, items: "1,2", body: [b], on_complete: done}
  b: {type: for_each, items: "x,y", body: [c]}
  c: {type: for_each, items: "p,q", body: [say]}
  say: {type: command, command: "printf '%s' '{{.loop.Parent.Parent.Item}}{{.loop.Parent.Item}}{{.loop.Item}}'"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    let said: Vec<_> = ran
        .results("a.b.c.say")
        .iter()
        .map(|result| result["output"].clone())
        .collect();
    assert_eq!(
        said,
        ["1xp", "1xq", "1yp", "1yq", "2xp", "2xq", "2yp", "2yq"]
    );
    let places: Vec<_> = ran
        .events
        .iter()
        .filter(|event| event.place.path == "a.b.c.say")
        .map(|event| event.place.iterations.clone())
        .collect();
    assert_eq!(places.first(), Some(&vec![0, 0, 0]));
    assert_eq!(places.last(), Some(&vec![1, 1, 1]));
}

#[tokio::test]
async fn a_while_loop_sees_what_its_body_did() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: grow
  grow: {type: while, while: "states.count.Output != 'xxx'", body: [count], max_iterations: 9, on_complete: done}
  count: {type: command, command: "printf x >> log; cat log"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    assert_eq!(world.read("log"), "xxx");
    assert_eq!(ran.result("grow")["output"], "completed 3 iterations");
}

#[tokio::test]
async fn break_when_and_steps_outside_end_a_loop() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: each
  each: {type: for_each, items: "a,b,c", body: [say], break_when: "loop.index == 1", on_complete: again}
  say: {type: command, command: "printf '{{.loop.Item}}' >> log"}
  again: {type: for_each, items: "d,e,f", body: [leave], on_complete: wrong}
  leave: {type: command, command: "printf '{{.loop.Item}}' >> log", transitions: [{when: "loop.item == 'e'", goto: done}]}
  wrong: {type: terminal, status: failure}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(
        (ran.outcome.status, world.read("log").as_str()),
        (RunStatus::Succeeded, "abde")
    );
}

#[tokio::test]
async fn items_that_a_limit_leaves_out_are_counted() {
    let ran = World::new()
        .run(
            r#"
  initial: each
  each: {type: for_each, items: "a,b,c", body: [say], max_iterations: 2, on_complete: done}
  say: {type: command, command: "true"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(ran.results("each.say").len(), 2);
    assert!(
        ran.harness()
            .contains(&("guardrail".to_owned(), "items_left_out".to_owned()))
    );
}

#[tokio::test]
async fn a_called_workflow_has_a_file_of_its_own_and_gives_outputs() {
    let world = World::new();
    world.file(
        ".quipu/workflows/child.yaml",
        r#"
name: child
inputs: [{name: who, type: string, required: true}]
states:
  initial: greet
  greet: {type: command, command: "printf 'hello {{.inputs.who}}'", on_success: done}
  done: {type: terminal, status: success, message: "greeted"}
"#,
    );
    let ran = world
        .run(
            r#"
  initial: call
  call: {type: call_workflow, workflow: child, inputs: {who: "ada {{.inputs.n}}"}, outputs: {said: greet, twice: "{{.states.greet.Output}}!"}, on_success: done}
  done: {type: terminal, status: success, message: "{{.states.call.Response.said}}/{{.states.call.Response.twice}}"}
"#,
        )
        .await;
    assert!(
        ran.outcome
            .error
            .as_deref()
            .is_some_and(|e| e.contains("inputs.n")),
        "{:?}",
        ran.outcome
    );
    let with = world
        .run_with(
            r#"
name: parent
inputs: [{name: n, type: string}]
states:
  initial: call
  call: {type: call_workflow, workflow: child, inputs: {who: "ada {{.inputs.n}}"}, outputs: {said: greet, twice: "{{.states.greet.Output}}!"}, on_success: done}
  done: {type: terminal, status: success, message: "{{.states.call.Response.said}}/{{.states.call.Response.twice}}"}
"#,
            &[("n", "1")],
        )
        .await;
    assert_eq!(
        with.outcome.message.as_deref(),
        Some("hello ada 1/hello ada 1!")
    );
    let child = with
        .events
        .iter()
        .find_map(|event| event.body.child_run_id().cloned())
        .expect("a child");
    let events = world.events(&child);
    assert!(
        events
            .iter()
            .all(|event| event.parent_run_id.as_ref() == Some(&with.outcome.run_id))
    );
    assert_eq!(story(&events)[0], "run.started");
    assert_eq!(with.story()[1..3], ["+call calls", "-call"]);
}

#[tokio::test]
async fn workflows_that_call_each_other_for_ever_are_stopped() {
    let world = World::new();
    world.file(
        ".quipu/workflows/ping.yaml",
        "name: ping\nstates:\n  initial: call\n  call: {type: call_workflow, workflow: pong, on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    world.file(
        ".quipu/workflows/pong.yaml",
        "name: pong\nstates:\n  initial: call\n  call: {type: call_workflow, workflow: ping, on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let ran = world
        .run("  initial: call\n  call: {type: call_workflow, workflow: ping, on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    let error = ran.outcome.error.expect("it fails");
    assert!(
        error.contains("ping calls itself: test → ping → pong → ping"),
        "{error}"
    );
}

#[tokio::test]
async fn set_and_wait_work_values_out_and_pass_time() {
    let ran = World::new()
        .run(
            r#"
  initial: set
  set: {type: set, values: {list: [1, 2], name: "x{{.workflow.Name}}"}, on_success: wait}
  wait: {type: wait, duration: 50ms, on_success: done}
  done: {type: terminal, status: success, message: "{{.states.set.Data.name}} {{.states.set.Data.list}} {{.states.wait.Output}}"}
"#,
        )
        .await;
    assert_eq!(
        ran.outcome.message.as_deref(),
        Some("xtest [1,2] waited 50ms")
    );
    assert!(ran.outcome.took >= std::time::Duration::from_millis(50));
}

#[tokio::test]
async fn hooks_run_around_the_workflow_and_its_steps() {
    let world = World::new();
    let ran = world
        .run(
            r#"
name: hooked
hooks:
  workflow_start: [{command: "echo start >> log"}]
  workflow_end: [{command: "echo end >> log"}]
  workflow_error: [{command: "echo 'error {{.error.Message}}' >> log"}]
states:
  initial: a
  a: {type: command, command: "echo a >> log", hooks: {pre: [{command: "echo pre >> log"}], post: [{command: "echo post >> log"}, {command: "exit 1"}]}, on_success: done}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(world.read("log"), "start\npre\na\npost\nend\n");
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "a hook that fails only warns"
    );
    assert!(
        ran.harness()
            .contains(&("tool_lifecycle".to_owned(), "hook_failed".to_owned()))
    );
}
