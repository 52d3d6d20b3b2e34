//! What is on the record, and where.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quipu_model::{Body, Timestamp};
use quipu_record::Storage;
use regex::Regex;

use super::World;
use crate::engine::RunStatus;

/// A clock that goes on by a second each time.
#[derive(Default)]
struct Ticks(AtomicI64);

impl quipu_record::Clock for Ticks {
    fn now(&self) -> Timestamp {
        let second = 1_767_323_045 + self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_second(second).expect("a time")
    }
}

/// A text without what differs from run to run.
fn settled(world: &World, text: &str) -> String {
    let text = text.replace(&world.root().display().to_string(), "ROOT");
    let mut runs: Vec<String> = Vec::new();
    let id = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
        .expect("a pattern");
    for found in id.find_iter(&text) {
        if !runs.iter().any(|run| run == found.as_str()) {
            runs.push(found.as_str().to_owned());
        }
    }
    let mut text = text;
    for (number, run) in (1..).zip(&runs) {
        text = text.replace(run, &format!("RUN-{number}"));
    }
    for (pattern, with) in [
        (r#""duration_ms":\d+"#, r#""duration_ms":0"#),
        (r#""check":"[^"]*""#, r#""check":"""#),
        (
            r#""input_sha256":"[0-9a-f]{64}""#,
            r#""input_sha256":"HASH""#,
        ),
        (
            r#""workflow_sha256":"[0-9a-f]{64}""#,
            r#""workflow_sha256":"HASH""#,
        ),
        (r#""request":"[0-9a-f]{64}""#, r#""request":"HASH""#),
    ] {
        text = Regex::new(pattern)
            .expect("a pattern")
            .replace_all(&text, with)
            .into_owned();
    }
    text
}

const GOLDEN: &str = r#"
name: golden
inputs:
  - {name: who, type: string, default: "world"}
  - {name: API_KEY, type: string, default: "k"}
states:
  initial: hello
  hello: {type: command, command: "printf 'hello {{.inputs.who}}'", on_success: ask}
  ask: {type: agent, provider: claude, prompt: "Greet {{.inputs.who}}", system_prompt: "Be kind", on_success: each}
  each: {type: for_each, items: "a,b", body: [flaky], on_complete: call}
  flaky: {type: command, command: "test -e seen-{{.loop.Item}} || { touch seen-{{.loop.Item}}; exit 9; }", retry: {max_attempts: 2, initial_delay: 1ms}}
  call: {type: call_workflow, workflow: child, on_success: gate}
  gate: {type: set, values: {x: 1}, on_success: bad}
  bad: {type: command, command: "echo sorry >&2; exit 4", continue_on_error: true, on_success: done}
  done: {type: terminal, status: success, message: "all done"}
"#;

const CHILD: &str = "name: child\nstates:\n  initial: done\n  done: {type: terminal, status: success, message: \"from the child\"}\n";

fn world() -> World {
    let mut world = World::new();
    world.recorder.clock = Arc::new(Ticks::default());
    world.file(".quipu/workflows/child.yaml", CHILD);
    world
}

#[tokio::test]
async fn the_shape_of_a_transcript_does_not_change_unnoticed() {
    let world = world();
    let ran = world.run(GOLDEN).await;
    assert_eq!(
        ran.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        ran.outcome.error
    );
    let storage = Storage::at(&world.home());
    let child = ran
        .events
        .iter()
        .find_map(|event| event.body.child_run_id().cloned())
        .expect("a child");
    let mut text = std::fs::read_to_string(storage.path_of(&ran.outcome.run_id)).expect("a file");
    text.push('\n');
    text.push_str(&std::fs::read_to_string(storage.path_of(&child)).expect("a file"));
    insta::assert_snapshot!("golden_transcript", settled(&world, &text));
    for run in [&ran.outcome.run_id, &child] {
        let report = storage
            .verify(
                &storage.path_of(run),
                quipu_exchange::lines::Limits::default(),
            )
            .expect("a report");
        assert!(report.is_clean(), "{report:?}");
    }
}

#[tokio::test]
async fn the_audit_file_is_the_same_with_and_without_a_transcript() {
    let audit = async |unrecorded: bool| {
        let mut world = world();
        if unrecorded {
            world.unrecorded = true;
            std::fs::create_dir_all(world.home()).expect("a directory");
            // A file where the directory should be: nothing can be recorded.
            std::fs::File::create(world.home().join("transcripts")).expect("a file");
        }
        let cancel = tokio_util::sync::CancellationToken::new();
        let outcome = world.try_run(GOLDEN, &[], &cancel).await.expect("it runs");
        assert_eq!(outcome.status, RunStatus::Succeeded);
        let text = std::fs::read_to_string(world.home().join("audit.jsonl")).expect("a file");
        // The clock goes on with each event that is recorded.
        let times = Regex::new(r#""timestamp":"[^"]*""#).expect("a pattern");
        times
            .replace_all(&settled(&world, &text), r#""timestamp":"""#)
            .into_owned()
    };
    let recorded = audit(false).await;
    assert_eq!(recorded, audit(true).await);
    insta::assert_snapshot!("audit", recorded);
}

#[tokio::test]
async fn a_line_of_the_audit_file_is_never_long() {
    let world = World::new();
    let long = "x".repeat(10_000);
    let steps = "name: test\ninputs: [{name: a, type: string}, {name: b, type: string}, {name: PASSWORD, type: string}]\nstates:\n  initial: bad\n  bad: {type: command, command: 'head -c 9000 /dev/zero | tr \"\\\\0\" e >&2; exit 1', on_success: done}\n  done: {type: terminal, status: success}\n";
    let ran = world
        .run_with(
            steps,
            &[("a", &long), ("b", "short"), ("PASSWORD", "hush-hush")],
        )
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Failed);
    let audit = std::fs::read_to_string(world.home().join("audit.jsonl")).expect("a file");
    assert_eq!(audit.lines().count(), 2);
    assert!(audit.lines().all(|line| line.len() < 4096));
    assert!(
        audit.contains(r#""PASSWORD":"***","a":"…","b":"short""#)
            && audit.contains("inputs_truncated"),
        "{audit}"
    );
    assert!(!audit.contains("hush-hush"));
}

#[tokio::test]
async fn outcome_exit_code_and_audit_line_agree() {
    for (steps, status, code, word) in [
        (
            "  initial: done\n  done: {type: terminal, status: success}\n",
            RunStatus::Succeeded,
            0,
            "success",
        ),
        (
            "  initial: done\n  done: {type: terminal, status: failure}\n",
            RunStatus::Failed,
            1,
            "failure",
        ),
        (
            "  initial: done\n  done: {type: terminal, status: failure, exit_code: 42}\n",
            RunStatus::Failed,
            42,
            "failure",
        ),
        (
            "  initial: a\n  a: {type: command, command: 'exit 5', on_success: done, on_failure: {message: no, status: 9}}\n  done: {type: terminal, status: success}\n",
            RunStatus::Failed,
            9,
            "failure",
        ),
    ] {
        let world = World::new();
        let ran = world.run(steps).await;
        assert_eq!(
            (ran.outcome.status, ran.outcome.exit_code),
            (status, code),
            "{steps}"
        );
        let audit = std::fs::read_to_string(world.home().join("audit.jsonl")).expect("a file");
        let last = audit.lines().last().expect("a line");
        assert!(
            last.contains(&format!(r#""status":"{word}","exit_code":{code},"#)),
            "{last}"
        );
        let Some(Body::RunCompleted(Some(end))) = ran.events.last().map(|event| &event.body) else {
            panic!("the last event is the end of the run");
        };
        let result = end.result.as_ref().expect("a result").get();
        assert!(result.contains(status.as_str()), "{result}");
        assert!(
            result.contains(&format!(r#""exit_code":{code}"#)),
            "{result}"
        );
        assert_eq!(end.error.is_some(), status == RunStatus::Failed);
    }
}

#[tokio::test]
async fn every_event_of_a_step_has_its_place() {
    let world = World::new();
    let ran = world
        .run(
            r#"
  initial: both
  both: {type: parallel, parallel: [x, y], on_success: done}
  x: {type: for_each, items: "1,2", body: [ask_x]}
  y: {type: for_each, items: "1,2", body: [ask_y]}
  ask_x: {type: agent, provider: claude, prompt: "x{{.loop.Item}}"}
  ask_y: {type: agent, provider: codex, prompt: "y{{.loop.Item}}"}
  done: {type: terminal, status: success}
"#,
        )
        .await;
    let mut asked = Vec::new();
    for event in &ran.events {
        if let Body::UserMessage(_) | Body::AssistantMessage(_) = &event.body {
            let text = event.body.texts().next().unwrap_or_default().to_owned();
            asked.push((
                event.place.path.clone(),
                event.place.iterations.clone(),
                event.body.type_word().to_owned(),
                text,
            ));
        }
    }
    asked.sort();
    asked.retain(|(.., word, _)| word == "message.user");
    let expected = [
        ("both.x.ask_x", 0, "x1"),
        ("both.x.ask_x", 1, "x2"),
        ("both.y.ask_y", 0, "y1"),
        ("both.y.ask_y", 1, "y2"),
    ];
    assert_eq!(asked.len(), expected.len());
    for ((path, passes, _, text), (at, pass, said)) in asked.iter().zip(expected) {
        assert_eq!(
            (path.as_str(), passes.as_slice(), text.as_str()),
            (at, [pass].as_slice(), said)
        );
    }
    let answers = ran
        .events
        .iter()
        .filter(|event| matches!(event.body, Body::AssistantMessage(_)));
    assert_eq!(
        answers
            .filter(|event| event.place.iterations.len() == 1)
            .count(),
        4
    );
}

#[tokio::test]
async fn long_output_is_a_blob_and_comes_back_whole() {
    let world = World::new();
    let steps = r#"
  initial: long
  long: {type: command, command: "head -c 100000 /dev/zero | tr '\\0' x", on_success: count}
  count: {type: command, command: "printf '%s' '{{.states.long.Output}}' | wc -c | tr -d ' \\n'; test -e ok", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.count.Output}}"}
"#;
    let ran = world.run(steps).await;
    let result = ran.result("long");
    assert_eq!(result["output"].as_str().map(str::len), Some(4096));
    let sha256 = result["output_blob"].as_str().expect("a blob");
    let event = ran
        .events
        .iter()
        .find(|event| !event.annotations.attachments.is_empty())
        .expect("an attachment");
    assert_eq!(
        (
            event.annotations.attachments[0].sha256.as_str(),
            event.annotations.attachments[0].bytes
        ),
        (sha256, 100_000)
    );
    world.file("ok", "");
    let again = world
        .resume(&ran.outcome.run_id, crate::engine::ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(
        again.message.as_deref(),
        Some("100000"),
        "the next step has all of it"
    );
}
