//! What happens on a bad day.

use std::time::{Duration, Instant};

use super::World;
use crate::engine::{EngineError, RunStatus};

fn executable(world: &World, name: &str, script: &str) -> String {
    let path = world.file(name, script);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("executable");
    path.display().to_string()
}

/// Asks an agent whose program is this script.
async fn asked(script: &str, more: &str) -> super::Ran {
    let world = World {
        stub: None,
        ..World::new()
    };
    let bin = executable(&world, "claude", script);
    world
        .run(&format!(
            "  initial: ask\n  ask: {{type: agent, provider: claude, prompt: Go, options: {{binary: '{bin}'}}, {more} on_success: done}}\n  done: {{type: terminal, status: success}}\n"
        ))
        .await
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_stops_the_run_before_anything_happens() {
    let world = World::new();
    std::fs::create_dir_all(world.home()).expect("a directory");
    std::fs::File::create(world.home().join("transcripts")).expect("a file");
    let cancel = tokio_util::sync::CancellationToken::new();
    let steps = "  initial: a\n  a: {type: command, command: 'touch made', on_success: done}\n  done: {type: terminal, status: success}\n";
    let refused = world.try_run(steps, &[], &cancel).await;
    assert!(
        matches!(refused, Err(EngineError::Recording(_))),
        "{refused:?}"
    );
    assert!(!world.root().join("made").exists());
    let told = World {
        unrecorded: true,
        ..world
    };
    let outcome = told.try_run(steps, &[], &cancel).await.expect("it runs");
    assert_eq!(outcome.status, RunStatus::Succeeded);
    assert!(told.root().join("made").exists());
}

#[tokio::test]
async fn a_command_that_prints_without_end_is_cut_and_counted() {
    let ran = World::new()
        .run("  initial: a\n  a: {type: command, command: 'head -c 40000000 /dev/zero', on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Succeeded);
    assert!(
        ran.harness()
            .contains(&("context_trim".to_owned(), "output_truncated".to_owned()))
    );
}

#[tokio::test]
async fn an_agent_that_prints_nothing_gives_an_empty_answer() {
    let ran = asked("#!/bin/sh\nexit 0\n", "").await;
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        ran.outcome.error
    );
}

#[tokio::test]
async fn an_agent_that_fails_is_a_step_that_failed_with_what_it_said() {
    let ran = asked("#!/bin/sh\necho 'no such model' >&2\nexit 3\n", "").await;
    let error = ran.error("ask").expect("an error");
    assert!(
        error.contains("exit code 3") && error.contains("no such model"),
        "{error}"
    );
    assert_eq!(ran.result("ask")["exit_code"], 3);
}

#[tokio::test]
async fn an_agent_that_hangs_and_ignores_requests_to_end_is_made_to() {
    let began = Instant::now();
    let ran = asked(
        "#!/bin/sh\ntrap '' TERM\nsleep 60; sleep 60\n",
        "timeout: 500ms,",
    )
    .await;
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(ran.error("ask").as_deref(), Some("no end within 500ms"));
}

#[tokio::test]
async fn an_agent_that_prints_garbage_does_not_fail_the_step() {
    let ran = asked("#!/bin/sh\nprintf '{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\\000b\"}]}}\\n{broken\\n{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"fine\",\"session_id\":\"s\"}\\n{\"half'\n", "").await;
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        ran.outcome.error
    );
    assert_eq!(ran.result("ask")["output"], "fine");
}

#[tokio::test]
async fn a_missing_agent_is_said_and_stub_mode_is_offered_not_used() {
    let world = World {
        stub: None,
        ..World::new()
    };
    let ran = world
        .run("  initial: ask\n  ask: {type: agent, provider: claude, prompt: Go, options: {binary: /no/such/claude}, retry: {max_attempts: 3, initial_delay: 1ms}, on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    let error = ran.error("ask").expect("an error");
    assert!(
        error.contains("was not found") && error.contains("--stub"),
        "{error}"
    );
    assert_eq!(
        ran.harness()
            .iter()
            .filter(|(category, _)| category == "retry")
            .count(),
        0,
        "trying again does not help"
    );
}

#[tokio::test]
async fn a_loop_over_many_items_keeps_its_memory() {
    let world = World::new();
    let items: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
    let ran = world
        .run(&format!(
            "  initial: each\n  each: {{type: for_each, items: [{}], body: [s], on_complete: done}}\n  s: {{type: set, values: {{v: '{{{{.loop.Item}}}}'}}}}\n  done: {{type: terminal, status: success, message: '{{{{.states.s.Data.v}}}}'}}\n",
            items.join(", ")
        ))
        .await;
    assert_eq!(ran.outcome.message.as_deref(), Some("1999"));
    assert_eq!(ran.outcome.steps, 2_002);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_branches_run_at_once() {
    let world = World::new();
    let names: Vec<String> = (0..64).map(|n| format!("b{n}")).collect();
    let steps: Vec<String> = names
        .iter()
        .map(|name| format!("  {name}: {{type: wait, duration: 300ms}}\n"))
        .collect();
    let steps = steps.concat();
    let began = Instant::now();
    let ran = world
        .run(&format!("  initial: all\n  all: {{type: parallel, parallel: [{}], on_success: done}}\n{steps}  done: {{type: terminal, status: success}}\n", names.join(", ")))
        .await;
    assert_eq!(ran.result("all")["output"], "64 of 64 branches succeeded");
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_secret_is_not_in_blobs_children_or_the_audit_file() {
    let mut world = World::new();
    world.recorder.masker = Some(std::sync::Arc::new(|_: &mut quipu_model::Draft| {}));
    world.file(
        ".quipu/workflows/kid.yaml",
        "name: kid\ninputs: [{name: PASSWORD, type: string}]\nstates:\n  initial: k\n  k: {type: command, command: 'echo pw={{.inputs.PASSWORD}}', on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let steps = r#"
name: test
inputs: [{name: SECRET_A, type: string, default: "hunter\"two"}, {name: TOKEN_N, type: integer, default: 7654321}]
states:
  initial: big
  big: {type: command, command: "head -c 70000 /dev/zero | tr '\\0' x; printf '%s' \"$SECRET_A\"", on_success: op}
  op: {type: operation, operation: json.parse, inputs: {text: '{"pin": 7654321}'}, on_success: call}
  call: {type: call_workflow, workflow: kid, inputs: {PASSWORD: gen3rated-pw}, on_success: bad}
  bad: {type: command, command: "printf '%s' \"$SECRET_A\" >&2; exit 1", on_success: done}
  done: {type: terminal, status: success}
"#;
    let ran = world.run(steps).await;
    assert_eq!(ran.outcome.status, RunStatus::Failed);
    let mut todo = vec![world.home()];
    let mut files = 0;
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(
                std::fs::read_dir(&path)
                    .expect("a directory")
                    .flatten()
                    .map(|entry| entry.path()),
            );
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        for secret in ["hunter\"two", "hunter\\\"two", "7654321", "gen3rated"] {
            assert!(!text.contains(secret), "{secret} is in {}", path.display());
        }
    }
    assert!(files >= 4, "two transcripts, a blob and the audit file");
}

#[tokio::test]
async fn branches_that_depend_on_others_have_their_values_and_do_not_run_after_a_failure() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: all
  all: {type: parallel, strategy: best_effort, parallel: [a, b, c, d], on_success: done}
  a: {type: command, command: "sleep 0.1; printf value"}
  b: {type: command, command: "printf 'got {{.states.a.Output}}'", depends_on: [a]}
  c: {type: command, command: "exit 1"}
  d: {type: command, command: "touch made", depends_on: [c]}
  done: {type: terminal, status: success, message: "{{.states.b.Output}}"}
"#,
        )
        .await;
    assert_eq!(
        ran.outcome.message.as_deref(),
        Some("got value"),
        "{:?}",
        ran.outcome.error
    );
    assert!(!world.root().join("made").exists());
    let circle = "  initial: all\n  all: {type: parallel, parallel: [a, b], on_success: done}\n  a: {type: command, command: 'true', depends_on: [b]}\n  b: {type: command, command: 'true', depends_on: [a]}\n  done: {type: terminal, status: success}\n";
    let ran = world.run(circle).await;
    assert!(
        ran.outcome
            .error
            .expect("an error")
            .contains("depends on itself")
    );
}

#[tokio::test]
async fn captured_output_of_any_size_is_kept() {
    let world = World::new();
    let ran = world
        .run("  initial: a\n  a: {type: command, command: 'head -c 300000 /dev/zero | tr \"\\\\0\" x', capture: {stdout: big}, on_success: b}\n  b: {type: command, command: 'test -e ok', on_success: done}\n  done: {type: terminal, status: success, message: '{{len .states.a.Data.big}}'}\n")
        .await;
    let line = ran.result("a").to_string().len();
    assert!(line < 10_000, "{line}");
    world.file("ok", "");
    let outcome = world
        .resume(&ran.outcome.run_id, crate::engine::ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(
        outcome.message.as_deref(),
        Some("300000"),
        "{:?}",
        outcome.error
    );
}

#[tokio::test]
async fn what_daemonises_itself_ends_with_its_step() {
    let world = World::new();
    let ran = world
        .run("  initial: a\n  a: {type: command, command: \"setsid sh -c 'sleep 47 & echo $! > pid'; sleep 20\", timeout: 500ms, on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    assert_eq!(ran.error("a").as_deref(), Some("no end within 500ms"));
    let pid = world.read("pid").trim().to_owned();
    for _ in 0..40 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{pid} is still there");
}
