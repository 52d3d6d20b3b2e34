//! What other engines promise and do not do. Each test runs a workflow that shows that this one does.

use std::time::{Duration, Instant};

use quipu_model::{Body, Content};

use super::{World, story};
use crate::engine::RunStatus;

#[tokio::test]
async fn run_started_and_completed_bracket_every_run_and_terminal_steps_are_steps() {
    let ran = World::new()
        .run("  initial: done\n  done: {type: terminal, status: failure, message: no}\n")
        .await;
    assert_eq!(
        ran.story(),
        ["run.started", "+done", "-done", "run.completed failed"]
    );
}

#[tokio::test]
async fn two_loops_in_parallel_branches_run_each_item_once_at_the_right_place() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: both
  both: {type: parallel, parallel: [one, two], on_success: done}
  one: {type: for_each, items: "a,b,c,d,e,f,g,h", body: [b1]}
  two: {type: for_each, items: "s,t,u,v,w,x,y,z", body: [b2]}
  b1: {type: command, command: "echo b1{{.loop.Item}}{{.loop.Index}} >> log"}
  b2: {type: command, command: "echo b2{{.loop.Item}}{{.loop.Index}} >> log"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    let mut log: Vec<String> = world.read("log").lines().map(str::to_owned).collect();
    log.sort();
    let expected: Vec<String> = [("b1", "abcdefgh"), ("b2", "stuvwxyz")]
        .iter()
        .flat_map(|(name, items)| {
            items
                .chars()
                .enumerate()
                .map(move |(i, item)| format!("{name}{item}{i}"))
        })
        .collect();
    assert_eq!(log, expected);
    for (path, items) in [("both.one.b1", 8), ("both.two.b2", 8)] {
        let places: Vec<_> = ran
            .events
            .iter()
            .filter(|event| event.place.path == path)
            .map(|event| {
                (
                    event.body.type_word().to_owned(),
                    event.place.iterations.clone(),
                )
            })
            .collect();
        for pass in 0..items {
            for word in ["step.started", "step.completed"] {
                let here = places
                    .iter()
                    .filter(|(at, passes)| at == word && *passes == [pass]);
                assert_eq!(here.count(), 1, "{path}[{pass}] {word}");
            }
        }
    }
}

#[tokio::test]
async fn a_body_that_two_loops_share_has_a_path_in_each() {
    let ran = World::new()
        .run(
            r#"
  initial: one
  one: {type: for_each, items: "a", body: [shared], on_complete: two}
  two: {type: for_each, items: "b", body: [shared], on_complete: done}
  shared: {type: command, command: "true"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    let told = ran.story();
    assert!(
        told.contains(&"+one.shared[0]".to_owned()) && told.contains(&"+two.shared[0]".to_owned()),
        "{told:?}"
    );
}

#[tokio::test]
async fn the_result_of_a_step_is_what_it_returned() {
    let ran = World::new()
        .run("  initial: a\n  a: {type: command, command: 'printf out; printf err >&2', on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    let result = ran.result("a");
    assert_eq!(
        (&result["output"], &result["stderr"], &result["exit_code"]),
        (&"out".into(), &"err".into(), &0.into())
    );
    let end = ran
        .events
        .iter()
        .find(|event| matches!(event.body, Body::StepCompleted(_)))
        .expect("an end");
    assert!(end.annotations.duration_ms.is_some());
}

#[tokio::test]
async fn a_command_is_a_command_block_and_long_ones_stream() {
    let ran = World::new()
        .run("  initial: a\n  a: {type: command, command: 'echo one; sleep 1.2; echo two; sleep 0.2', on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    let blocks: Vec<&Content> = ran
        .events
        .iter()
        .filter_map(|event| event.body.blocks())
        .flatten()
        .map(|block| &block.content)
        .collect();
    assert!(matches!(blocks[0], Content::Command(command) if command.starts_with("echo one")));
    let streamed: String = blocks
        .iter()
        .filter_map(|content| match content {
            Content::Stream(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(streamed, "one\ntwo\n");
}

#[tokio::test]
async fn a_timeout_below_a_second_is_a_timeout() {
    let began = Instant::now();
    let ran = World::new()
        .run("  initial: a\n  a: {type: command, command: 'sleep 30', timeout: 300ms, on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(ran.error("a").as_deref(), Some("no end within 300ms"));
    assert_eq!(ran.result("a")["exit_code"], -1);
}

#[tokio::test]
async fn retry_timeout_and_continue_on_error_work_on_every_kind() {
    let world =
        World::scripted("  - {step: ask, text: '', fail: broken}\n  - {step: ask, text: fine}\n");
    world.file(".quipu/workflows/child.yaml", "name: child\nstates:\n  initial: a\n  a: {type: command, command: 'test -e call || { touch call; exit 1; }', on_success: done}\n  done: {type: terminal, status: success}\n");
    world.file("op.json", "[1]");
    let ran = world
        .run(
            r#"
  initial: ask
  ask: {type: agent, provider: claude, prompt: "Go", retry: {max_attempts: 3, initial_delay: 1ms}, on_success: call}
  call: {type: call_workflow, workflow: child, retry: {max_attempts: 2, initial_delay: 1ms}, on_success: par}
  par: {type: parallel, parallel: [p], retry: {max_attempts: 2, initial_delay: 1ms}, on_success: each}
  p: {type: command, command: "test -e par || { touch par; exit 1; }"}
  each: {type: for_each, items: "a,b", body: [e], retry: {max_attempts: 2, initial_delay: 1ms}, on_complete: op}
  e: {type: command, command: "test -e each || { touch each; exit 1; }"}
  op: {type: operation, operation: json.parse, inputs: {text: "{"}, retry: {max_attempts: 2, initial_delay: 1ms}, continue_on_error: true, on_success: slow}
  slow: {type: parallel, parallel: [s], timeout: 200ms, continue_on_error: true, on_success: done}
  s: {type: wait, duration: 20s}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        ran.outcome.error
    );
    let told = ran.story();
    for (failed, then) in [
        ("-ask failed", "+ask#2"),
        ("-call failed", "+call#2 calls"),
        ("-par failed", "+par#2"),
        ("-each failed", "+each#2"),
        ("-op failed", "+op#2"),
    ] {
        let at = told
            .iter()
            .position(|line| line == failed)
            .unwrap_or_else(|| panic!("{failed}: {told:#?}"));
        assert!(
            told[at..].iter().any(|line| line == then),
            "{then}: {told:#?}"
        );
    }
    assert_eq!(ran.error("slow").as_deref(), Some("no end within 200ms"));
    assert_eq!(ran.result("slow.s")["status"], "cancelled");
    let retries = ran
        .harness()
        .iter()
        .filter(|(category, _)| category == "retry")
        .count();
    assert_eq!(retries, 5);
    let mut places: Vec<_> = ran
        .events
        .iter()
        .filter(|event| matches!(event.body, Body::StepStarted(_) | Body::CallStarted { .. }))
        .map(|event| event.place.clone())
        .collect();
    let all = places.len();
    places.sort();
    places.dedup();
    assert_eq!(
        places.len(),
        all,
        "every execution of a step has a place of its own"
    );
}

#[tokio::test]
async fn capture_depends_on_env_and_data_have_an_effect() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: a
  a: {type: command, command: "printf captured; printf oops >&2", capture: {stdout: out, stderr: err, max_size: 4}, on_success: b}
  b: {type: command, command: "true", depends_on: [zzz], on_success: done, on_failure: done}
  zzz: {type: command, command: "true", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.a.Data.out}}/{{.states.a.Data.err}}"}
"#,
        )
        .await;
    assert_eq!(ran.outcome.message.as_deref(), Some("capt/oops"));
    assert_eq!(
        ran.error("b").as_deref(),
        Some("step b depends on zzz, which has not run")
    );
    let unset = "name: test\nenv: [QUIPU_TEST_IS_NOT_SET]\nstates:\n  initial: done\n  done: {type: terminal, status: success}\n";
    let ran = world.run(unset).await;
    let error = ran.outcome.error.expect("an error");
    assert!(
        error.contains("test.yaml:2:7: the environment variable QUIPU_TEST_IS_NOT_SET is not set"),
        "{error}"
    );
}

#[tokio::test]
async fn a_step_that_fails_before_it_runs_has_an_error_and_no_effect() {
    let world = World::new();
    let ran = world
        .run("  initial: a\n  a: {type: command, command: 'touch made; echo {{.inputs.nothing}}', on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    assert_eq!(story(&ran.events)[1..3], ["+a", "-a failed"]);
    let error = ran.error("a").expect("an error");
    assert!(
        error.contains("test.yaml:4:") && error.contains("undefined variable: inputs.nothing"),
        "{error}"
    );
    assert!(!world.root().join("made").exists());
}

#[tokio::test]
async fn operations_run_inside_loops() {
    let world = World::new();
    let ran = world
        .run("  initial: each\n  each: {type: for_each, items: 'a,b', body: [write], on_complete: done}\n  write: {type: operation, operation: file.write, inputs: {path: 'f-{{.loop.Item}}', content: '{{.loop.Index}}'}}\n  done: {type: terminal, status: success}\n")
        .await;
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        ran.outcome.error
    );
    assert_eq!(
        (world.read("f-a"), world.read("f-b")),
        ("0".to_owned(), "1".to_owned())
    );
}

#[tokio::test]
async fn a_body_that_jumps_back_for_ever_is_stopped_with_a_clear_error() {
    let world = World::new();
    let steps = "  initial: each\n  each: {type: for_each, items: 'a', body: [again], on_complete: done}\n  again: {type: command, command: 'true', transitions: [{goto: again}]}\n  done: {type: terminal, status: success}\n";
    let ran = world.run(steps).await;
    let error = ran.outcome.error.clone().expect("an error");
    assert!(error.contains("step again has run 50 times"), "{error}");
    let circle = "  initial: a\n  a: {type: command, command: 'true', on_success: b}\n  b: {type: command, command: 'true', on_success: a}\n  done: {type: terminal, status: success}\n";
    let ran = world.run(circle).await;
    assert!(
        ran.outcome
            .error
            .expect("an error")
            .contains("goes round in circles")
    );
}

#[tokio::test]
async fn cancelling_a_run_stops_what_it_started_and_the_transcript_says_so() {
    let world = World::new();
    let cancel = tokio_util::sync::CancellationToken::new();
    let steps = "name: test\nhooks: {workflow_cancel: [{command: 'touch bye'}]}\nstates:\n  initial: both\n  both: {type: parallel, parallel: [a, b], on_success: after}\n  a: {type: command, command: 'echo $$ > pid; (sleep 30; touch late) & wait'}\n  b: {type: wait, duration: 30s}\n  after: {type: command, command: 'touch after', on_success: done}\n  done: {type: terminal, status: success}\n";
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cancel.cancel();
    };
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(world.try_run(steps, &[], &cancel), stopping);
    assert!(began.elapsed() < Duration::from_secs(10));
    let ran = world.ran(outcome.expect("it is recorded"));
    assert_eq!(
        (ran.outcome.status, ran.outcome.exit_code),
        (RunStatus::Cancelled, 130)
    );
    assert_eq!(
        ran.story().last().map(String::as_str),
        Some("run.completed cancelled")
    );
    for path in ["both.a", "both.b", "both"] {
        assert_eq!(ran.result(path)["status"], "cancelled", "{path}");
    }
    assert!(
        world.root().join("bye").exists(),
        "the hook of a cancelled run runs"
    );
    assert!(!world.root().join("after").exists());
    let pid = world.read("pid").trim().to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[tokio::test]
async fn an_agent_that_needs_no_next_step_in_a_branch_has_none_and_elsewhere_it_is_said() {
    let ran = World::new()
        .run("  initial: ask\n  ask: {type: agent, provider: claude, prompt: Go}\n  done: {type: terminal, status: success}\n")
        .await;
    let error = ran.outcome.error.expect("an error");
    assert!(
        error.contains("step ask succeeded, but says no step that follows it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_dangling_tool_use_and_partial_output_stay_when_an_agent_fails() {
    let world = World {
        stub: None,
        ..World::new()
    };
    let stream = r#"{"type":"system","subtype":"init","session_id":"s1","model":"m"}
{"type":"assistant","session_id":"s1","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a"}}],"usage":{"input_tokens":3,"output_tokens":5}}}"#;
    let bin = world.file(
        "claude",
        &format!("#!/bin/sh\ncat <<'END'\n{stream}\nEND\nsleep 30\n"),
    );
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("executable");
    let ran = world
        .run(&format!(
            "  initial: ask\n  ask: {{type: agent, provider: claude, prompt: Go, timeout: 1s, options: {{binary: '{}'}}, on_success: done}}\n  done: {{type: terminal, status: success}}\n",
            bin.display()
        ))
        .await;
    assert_eq!(
        ran.error("ask").as_deref(),
        Some("no end within 1s"),
        "{:?}",
        ran.outcome.error
    );
    let uses = ran
        .events
        .iter()
        .filter(|event| event.place.path == "ask")
        .filter_map(|event| event.body.blocks())
        .flatten();
    let found = uses.filter(
        |block| matches!(&block.content, Content::ToolUse { id, .. } if id.as_str() == "toolu_1"),
    );
    let calls = ran.events.iter().filter(
        |event| matches!(&event.body, Body::ToolCall(call) if call.call_id.as_str() == "toolu_1"),
    );
    assert!(found.count() + calls.count() >= 1, "{:#?}", ran.events);
    let texts: Vec<&str> = ran
        .events
        .iter()
        .flat_map(|event| event.body.texts())
        .collect();
    assert!(texts.contains(&"Let me look."), "{texts:?}");
    assert_eq!(
        ran.result("ask")["output"]
            .as_str()
            .map(|text| text.contains("Let me look.")),
        Some(true),
        "{}",
        ran.result("ask")
    );
}
