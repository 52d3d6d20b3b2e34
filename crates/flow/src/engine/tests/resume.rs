//! Going on with a run from its own transcript.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_model::RunId;
use quipu_record::Storage;

use super::{World, story};
use crate::engine::{
    EngineError, Line, Outcome, Person, Question, ResumeOptions, RunStatus, Saying, Verdict,
};

/// Consents to everything.
struct Yes;

impl Person for Yes {
    fn line<'a>(&'a self, _: Question<'a>) -> Saying<'a, Line> {
        Box::pin(async { None })
    }
    fn consents<'a>(&'a self, _: Question<'a>) -> Saying<'a, bool> {
        Box::pin(async { Some(true) })
    }
}

/// One step of every kind. Commands write down that they ran.
const EVERY_KIND: &str = r#"
name: every
states:
  initial: set
  set: {type: set, values: {list: [1, 2]}, on_success: first}
  first: {type: command, command: "echo first >> log; printf one", on_success: both}
  both: {type: parallel, parallel: [left, inner], on_success: each}
  left: {type: command, command: "echo left >> log"}
  inner: {type: parallel, parallel: [deep_a, deep_b]}
  deep_a: {type: command, command: "echo deep_a >> log"}
  deep_b: {type: command, command: "echo deep_b >> log"}
  each: {type: for_each, items: "{{.states.set.Data.list}}", body: [outer_say, nest], on_complete: grow}
  outer_say: {type: command, command: "echo outer_say{{.loop.Item}} >> log"}
  nest: {type: for_each, items: "x,y", body: [say]}
  say: {type: command, command: "echo say{{.loop.Parent.Item}}{{.loop.Item}} >> log"}
  grow: {type: while, while: "states.count.Output != 'cc'", body: [count], on_complete: call}
  count: {type: command, command: "echo count{{.loop.Index}} >> log; printf c >> counts; cat counts"}
  call: {type: call_workflow, workflow: child, inputs: {n: "{{.states.first.Output}}"}, outputs: {got: work}, on_success: op}
  op: {type: operation, operation: file.write, inputs: {path: "op", content: "x"}, on_success: ask}
  ask: {type: agent, provider: claude, prompt: "Say something about {{.states.call.Response.got}}", on_success: gate}
  gate: {type: approval, message: "Go on?", on_success: wait}
  wait: {type: wait, duration: 1ms, on_success: last}
  last: {type: command, command: "echo last >> log", retry: {max_attempts: 2, initial_delay: 1ms}, on_success: done}
  done: {type: terminal, status: success, message: "{{.states.call.Response.got}}"}
"#;

const CHILD: &str = r#"
name: child
inputs: [{name: n, type: string, required: true}]
states:
  initial: work
  work: {type: command, command: "echo work >> log; printf 'got {{.inputs.n}}'", on_success: more}
  more: {type: command, command: "echo more >> log", on_success: done}
  done: {type: terminal, status: success}
"#;

fn world() -> World {
    let mut world = World::new();
    world.person = Some(std::sync::Arc::new(Yes));
    world.file(".quipu/workflows/child.yaml", CHILD);
    world
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a transcript");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn cut(path: &Path, lines: &[String], count: usize, torn: bool) {
    use std::io::Write as _;
    let mut text = lines[..count].concat();
    if torn && let Some(next) = lines.get(count) {
        text.push_str(&next[..next.len() / 2]);
    }
    std::fs::remove_file(path).ok();
    for beside in ["idx", "jsonl.idx", "torn"] {
        std::fs::remove_file(path.with_extension(beside)).ok();
    }
    if count > 0 {
        let mut file = std::fs::File::create(path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
    }
}

/// How often each command said that it ran.
fn ran(log: &str) -> BTreeMap<String, usize> {
    let mut ran = BTreeMap::new();
    for line in log.lines() {
        *ran.entry(line.to_owned()).or_default() += 1;
    }
    ran
}

/// The commands whose end is in the transcript, as they name themselves in the log.
fn ended(lines: &[String]) -> BTreeMap<String, usize> {
    let mut ended = BTreeMap::new();
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(line).expect("an event");
        if event["type"] != "step.completed" || event["payload"]["kind"] != "command" {
            continue;
        }
        let name = event["payload"]["name"].as_str().expect("a name");
        let passes = event["iterations"].as_array().cloned().unwrap_or_default();
        let pass = |at: usize| {
            passes
                .get(at)
                .and_then(serde_json::Value::as_u64)
                .unwrap_or_default()
        };
        let flat = event["iteration"].as_u64().unwrap_or_default();
        let said = match name {
            "outer_say" => format!("outer_say{}", flat + 1),
            "say" => format!(
                "say{}{}",
                pass(0) + 1,
                ["x", "y"][usize::try_from(pass(1)).expect("small")]
            ),
            "count" => format!("count{flat}"),
            name => name.to_owned(),
        };
        *ended.entry(said).or_default() += 1;
    }
    ended
}

async fn whole(world: &World) -> (Outcome, Vec<String>, RunId, Vec<String>) {
    let first = world.run(EVERY_KIND).await;
    assert_eq!(
        first.outcome.status,
        RunStatus::Succeeded,
        "{:?}",
        first.outcome.error
    );
    let storage = Storage::at(&world.home());
    let child = first
        .events
        .iter()
        .find_map(|event| event.body.child_run_id().cloned())
        .expect("a child");
    let parent = lines(&storage.path_of(&first.outcome.run_id));
    let of_child = lines(&storage.path_of(&child));
    (first.outcome, parent, child, of_child)
}

/// Cuts the transcripts off, as a killed process leaves them, goes on, and looks at what ran.
async fn killed_at(
    world: &World,
    run: &RunId,
    parent: &[String],
    child: &RunId,
    of_child: &[String],
    (at, child_at): (usize, usize),
    torn: bool,
) {
    let storage = Storage::at(&world.home());
    cut(&storage.path_of(run), parent, at, torn);
    cut(&storage.path_of(child), of_child, child_at, false);
    let before = ended(&[&parent[..at], &of_child[..child_at]].concat());
    std::fs::remove_file(world.root().join("log")).ok();
    // What the loop with a condition counts is outside of the transcript; it is as far as the transcript is.
    let counts = before
        .iter()
        .filter(|(name, _)| name.starts_with("count"))
        .count();
    world.file("counts", &"c".repeat(counts));
    let outcome = world.resume(run, ResumeOptions::default()).await;
    let outcome = outcome.unwrap_or_else(|error| panic!("cut at {at}, {child_at}: {error}"));
    let why = format!("cut at {at} of {}, child at {child_at}", parent.len());
    assert_eq!(
        outcome.status,
        RunStatus::Succeeded,
        "{why}: {:?}",
        outcome.error
    );
    assert_eq!(outcome.message.as_deref(), Some("got one"), "{why}");
    let now = ran(&world.read("log"));
    let all = [
        "first",
        "left",
        "deep_a",
        "deep_b",
        "outer_say1",
        "say1x",
        "say1y",
        "outer_say2",
        "say2x",
        "say2y",
        "count0",
        "count1",
        "work",
        "more",
        "last",
    ];
    for name in all {
        let expected = usize::from(!before.contains_key(name));
        assert_eq!(
            now.get(name).copied().unwrap_or_default(),
            expected,
            "{why}: {name}\n{before:?}"
        );
    }
    let events = world.events(run);
    for (number, event) in (1_u64..).zip(&events) {
        assert_eq!(event.seq, number, "{why}: numbers have no gaps");
    }
    let told = story(&events);
    let opened = told.iter().filter(|line| *line == "run.started").count();
    let closed = told
        .iter()
        .filter(|line| line.starts_with("run.completed"))
        .count();
    assert_eq!((opened, closed), (2, 2), "{why}: {told:#?}");
    let mut open = Vec::new();
    for line in &told {
        if let Some(name) = line.strip_prefix('+') {
            open.push(name.trim_end_matches(" calls").to_owned());
        } else if let Some(name) = line.strip_prefix('-') {
            let name = name.trim_end_matches(" failed");
            let at = open.iter().position(|open| open == name);
            open.remove(
                at.unwrap_or_else(|| panic!("{why}: {name} ends and did not begin: {told:#?}")),
            );
        }
    }
    assert!(open.is_empty(), "{why}: {open:?} did not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_killed_after_any_event_goes_on_and_repeats_nothing() {
    let world = world();
    let (outcome, parent, child, of_child) = whole(&world).await;
    let called = parent
        .iter()
        .position(|line| line.contains("step.call_workflow.started"))
        .expect("a call");
    let returned = parent
        .iter()
        .position(|line| line.contains("step.call_workflow.completed"))
        .expect("a call");
    for at in 1..parent.len() {
        let child_at = match at {
            at if at <= called => 0,
            at if at > returned => of_child.len(),
            _ => of_child.len() / 2,
        };
        killed_at(
            &world,
            &outcome.run_id,
            &parent,
            &child,
            &of_child,
            (at, child_at),
            at % 2 == 0,
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_called_run_that_was_killed_after_any_event_goes_on_as_well() {
    let world = world();
    let (outcome, parent, child, of_child) = whole(&world).await;
    let called = parent
        .iter()
        .position(|line| line.contains("step.call_workflow.started"))
        .expect("a call");
    for child_at in 0..=of_child.len() {
        killed_at(
            &world,
            &outcome.run_id,
            &parent,
            &child,
            &of_child,
            (called + 1, child_at),
            false,
        )
        .await;
        let again = parent
            .iter()
            .filter(|line| line.contains("step.call_workflow.started"))
            .count();
        assert_eq!(again, 1);
        let children: Vec<_> = world
            .events(&outcome.run_id)
            .iter()
            .filter_map(|event| event.body.child_run_id().cloned())
            .collect();
        assert!(
            children.iter().all(|known| *known == child),
            "the same child goes on: {children:?}"
        );
    }
}

#[tokio::test]
async fn a_run_that_failed_goes_on_at_the_step_that_failed() {
    let world = World::new();
    let steps = r#"
  initial: a
  a: {type: command, command: "echo a >> log", on_success: both}
  both: {type: parallel, strategy: best_effort, parallel: [good, each], on_success: check}
  good: {type: command, command: "echo good >> log"}
  each: {type: for_each, items: "1,2,3", body: [item]}
  item: {type: command, command: "echo item{{.loop.Item}} >> log; test -e ok -o {{.loop.Item}} -lt 2"}
  check: {type: command, command: "test -e ok", on_success: done, on_failure: lost}
  done: {type: terminal, status: success}
  lost: {type: terminal, status: failure, message: "not ok"}
"#;
    let steps = steps
        .replace("strategy: best_effort, ", "")
        .replace("on_success: check}", "on_success: check, on_failure: lost}");
    let first = world.run(&steps).await;
    assert_eq!(first.outcome.status, RunStatus::Failed);
    world.file("ok", "");
    world.file("log", "");
    let outcome = world
        .resume(&first.outcome.run_id, ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
    assert_eq!(outcome.run_id, first.outcome.run_id);
    let mut again: Vec<String> = world.read("log").lines().map(str::to_owned).collect();
    again.sort();
    again.retain(|line| line != "good");
    assert_eq!(
        again,
        ["item2", "item3"],
        "what succeeded does not run again"
    );
    let refused = world
        .resume(&outcome.run_id, ResumeOptions::default())
        .await;
    assert!(matches!(refused, Err(EngineError::Resume(why)) if why.contains("has succeeded")));
}

#[tokio::test]
async fn from_runs_a_step_and_all_after_it_again_and_says_what_it_discards() {
    let world = World::new();
    let steps = r#"
  initial: a
  a: {type: command, command: "echo a >> log", on_success: b}
  b: {type: command, command: "echo b >> log", on_success: c}
  c: {type: command, command: "echo c >> log", on_success: done}
  done: {type: terminal, status: success}
"#;
    let first = world.run(steps).await;
    let from = |step: &str| ResumeOptions {
        from: Some(step.to_owned()),
        ..ResumeOptions::default()
    };
    let outcome = world
        .resume(&first.outcome.run_id, from("b"))
        .await
        .expect("it goes on");
    assert_eq!((outcome.steps, outcome.answered), (3, 1));
    assert_eq!(world.read("log"), "a\nb\nc\nb\nc\n");
    let events = world.events(&first.outcome.run_id);
    let second = events
        .iter()
        .rev()
        .find(|event| event.body.type_word() == "run.started")
        .expect("a start");
    let extra = second
        .annotations
        .extra
        .as_ref()
        .expect("facts")
        .get()
        .to_owned();
    assert!(
        extra.contains(r#""discarded_steps":["b","c","done"]"#),
        "{extra}"
    );
    // A third execution sees the second one, not the first.
    world
        .resume(&first.outcome.run_id, from("c"))
        .await
        .expect("it goes on");
    assert_eq!(world.read("log"), "a\nb\nc\nb\nc\nc\n");
    let unknown = world.resume(&first.outcome.run_id, from("zzz")).await;
    assert!(matches!(unknown, Err(EngineError::Resume(why)) if why.contains("a, b, c, done")));
}

#[tokio::test]
async fn a_step_that_is_given_something_else_runs_again() {
    let world = World::new();
    let text = |b: &str| {
        format!(
            "name: test\nstates:\n  initial: a\n  a: {{type: command, command: 'echo a >> log', on_success: b}}\n  b: {{type: command, command: '{b}', on_success: c}}\n  c: {{type: command, command: 'test -e ok', on_success: done}}\n  done: {{type: terminal, status: success}}\n"
        )
    };
    let first = world.run(&text("echo b >> log")).await;
    assert_eq!(first.outcome.status, RunStatus::Failed);
    world.file("ok", "");
    world.file("test.yaml", &text("echo other >> log"));
    let outcome = world
        .resume(&first.outcome.run_id, ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded);
    assert_eq!(world.read("log"), "a\nb\nother\n");
}

#[tokio::test]
async fn a_step_that_is_visited_again_and_again_answers_visit_by_visit() {
    let world = World::new();
    let steps = r#"
  initial: test
  test: {type: command, command: "echo test >> log; test $(wc -l < log) -ge 5", on_success: last, on_failure: fix}
  fix: {type: command, command: "echo fix >> log", on_success: test}
  last: {type: command, command: "test -e ok", on_success: done}
  done: {type: terminal, status: success}
"#;
    let first = world.run(steps).await;
    assert_eq!(first.outcome.status, RunStatus::Failed);
    assert_eq!(world.read("log"), "test\nfix\ntest\nfix\ntest\n");
    let attempts: Vec<u64> = first
        .events
        .iter()
        .filter(|event| event.place.path == "test" && event.body.type_word() == "step.started")
        .map(|event| event.place.attempt)
        .collect();
    assert_eq!(attempts, [1, 2, 3], "every visit has a place of its own");
    world.file("ok", "");
    let outcome = world
        .resume(&first.outcome.run_id, ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded);
    assert_eq!(
        world.read("log"),
        "test\nfix\ntest\nfix\ntest\n",
        "nothing of it ran again"
    );
}

#[tokio::test]
async fn an_approval_pauses_the_run_until_somebody_who_may_consents() {
    let mut world = World::new();
    let steps = r#"
  initial: before
  before: {type: command, command: "echo before >> log", on_success: gate}
  gate: {type: approval, message: "Ship {{.states.before.ExitCode}}?", approvers: [ada, bob], not_starter: true, on_success: ship, on_failure: no}
  ship: {type: command, command: "echo ship >> log", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.gate.Data.approved_by}}"}
  no: {type: terminal, status: failure, message: "denied"}
"#;
    let first = world.run(steps).await;
    assert_eq!(
        (first.outcome.status, first.outcome.exit_code),
        (RunStatus::Paused, 1)
    );
    let pause = first.outcome.pause.clone().expect("a pause");
    assert_eq!(
        (pause.path.as_str(), pause.message.as_str()),
        ("gate", "Ship 0?")
    );
    assert_eq!(
        story(&first.events).last().map(String::as_str),
        Some("run.completed paused")
    );
    let transcript =
        std::fs::read_to_string(Storage::at(&world.home()).path_of(&first.outcome.run_id))
            .expect("a file");
    assert!(
        !transcript.contains(&pause.token),
        "the token itself is not in the transcript"
    );
    let verdict = |token: &str, consents| ResumeOptions {
        verdict: Some(Verdict {
            token: token.to_owned(),
            consents,
        }),
        ..ResumeOptions::default()
    };
    // A wrong token, and the one who started the run, are refused.
    let wrong = world
        .resume(&first.outcome.run_id, verdict("nonsense", true))
        .await;
    assert!(
        matches!(wrong, Err(EngineError::Resume(why)) if why.contains("does not wait for an answer"))
    );
    let token = pause.token.clone();
    world.user = "ada".to_owned();
    let own = world
        .resume(&first.outcome.run_id, verdict(&token, true))
        .await
        .expect("it goes on");
    assert_eq!(
        own.status,
        RunStatus::Paused,
        "whoever began the run may not consent, and the request stands"
    );
    let refused = own.pause.expect("a pause").refused.expect("a reason");
    assert!(refused.contains("ada started the run"), "{refused}");
    world.user = "bob".to_owned();
    let allowed = world
        .resume(&first.outcome.run_id, verdict(&token, true))
        .await
        .expect("it goes on");
    assert_eq!(
        (allowed.status, allowed.message.as_deref()),
        (RunStatus::Succeeded, Some("bob"))
    );
    assert_eq!(world.read("log"), "before\nship\n");
}

#[tokio::test]
async fn a_masked_input_has_to_be_given_again() {
    let mut world = World::new();
    world.recorder.masker = Some(std::sync::Arc::new(|_: &mut quipu_model::Draft| {}));
    let steps = r#"
name: test
inputs: [{name: API_KEY_X, type: string}]
states:
  initial: use
  use: {type: command, command: "echo {{.inputs.API_KEY_X}} > got; test -e ok", on_success: done}
  done: {type: terminal, status: success}
"#;
    let first = world
        .run_with(steps, &[("API_KEY_X", "s3cr3t-value")])
        .await;
    assert_eq!(
        world.read("got").trim(),
        "s3cr3t-value",
        "the command has the real value"
    );
    let home = std::fs::read_to_string(Storage::at(&world.home()).path_of(&first.outcome.run_id))
        .expect("a file");
    let audit = std::fs::read_to_string(world.home().join("audit.jsonl")).expect("a file");
    assert!(!home.contains("s3cr3t") && !audit.contains("s3cr3t"));
    world.file("ok", "");
    let refused = world
        .resume(&first.outcome.run_id, ResumeOptions::default())
        .await;
    assert!(matches!(refused, Err(EngineError::Resume(why)) if why.contains("API_KEY_X")));
    let again = ResumeOptions {
        inputs: [("API_KEY_X".to_owned(), "s3cr3t-value".into())].into(),
        ..ResumeOptions::default()
    };
    let outcome = world
        .resume(&first.outcome.run_id, again)
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_run_that_is_under_way_is_not_resumed() {
    let world = World::new();
    let steps = "  initial: a\n  a: {type: command, command: 'sleep 5', on_success: done}\n  done: {type: terminal, status: success}\n";
    let cancel = tokio_util::sync::CancellationToken::new();
    let running = world.try_run(steps, &[], &cancel);
    let other = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let directory = world.home().join("transcripts");
        let name = std::fs::read_dir(directory).expect("a directory").flatten();
        let name = name
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|e| e == "jsonl"));
        let run = RunId::new(
            name.expect("a run")
                .file_stem()
                .expect("a name")
                .to_str()
                .expect("text"),
        )
        .expect("an id");
        let refused = world.resume(&run, ResumeOptions::default()).await;
        cancel.cancel();
        refused
    };
    let (outcome, refused) = tokio::join!(running, other);
    assert!(
        matches!(refused, Err(EngineError::Running(_))),
        "{refused:?}"
    );
    let outcome = outcome.expect("it is recorded");
    assert_eq!(
        (outcome.status, outcome.exit_code),
        (RunStatus::Cancelled, 130)
    );
}

/// Runs, makes the step `gate` pass, and goes on.
async fn failed_then_resumed(world: &World, steps: &str) -> (super::Ran, Outcome) {
    let first = world.run(steps).await;
    assert_eq!(
        first.outcome.status,
        RunStatus::Failed,
        "{:?}",
        first.outcome
    );
    world.file("ok", "");
    let outcome = world
        .resume(&first.outcome.run_id, ResumeOptions::default())
        .await;
    (first, outcome.expect("it goes on"))
}

#[tokio::test]
async fn what_branches_and_loops_left_is_there_after_a_resume() {
    let world = World::new();
    let steps = r#"
  initial: par
  par: {type: parallel, parallel: [a, inner], on_success: each}
  a: {type: command, command: "printf A"}
  inner: {type: parallel, parallel: [b]}
  b: {type: command, command: "printf B"}
  each: {type: for_each, items: "1,2", body: [w], on_complete: gate}
  w: {type: command, command: "printf {{.loop.Item}}"}
  gate: {type: command, command: "test -e ok", on_success: done}
  done: {type: terminal, status: success, message: "{{.states.a.Output}}{{.states.b.Output}}{{.states.w.Output}}"}
"#;
    let (_, outcome) = failed_then_resumed(&world, steps).await;
    assert_eq!(
        outcome.message.as_deref(),
        Some("AB2"),
        "{:?}",
        outcome.error
    );
}

#[tokio::test]
async fn what_was_cancelled_runs_again() {
    let world = World::new();
    let steps = "  initial: both\n  both: {type: parallel, strategy: best_effort, parallel: [slow, other], on_success: done}\n  slow: {type: command, command: 'test -e ok || sleep 20; echo slow >> log', continue_on_error: true}\n  other: {type: command, command: 'test -e ok || sleep 20; echo other >> log'}\n  done: {type: terminal, status: success}\n";
    let cancel = tokio_util::sync::CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(world.try_run(steps, &[], &cancel), stopping);
    let first = outcome.expect("it is recorded");
    assert_eq!(first.status, RunStatus::Cancelled);
    world.file("ok", "");
    let outcome = world
        .resume(&first.run_id, ResumeOptions::default())
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
    let mut log: Vec<String> = world.read("log").lines().map(str::to_owned).collect();
    log.sort();
    assert_eq!(log, ["other", "slow"]);
}

#[tokio::test]
async fn the_branch_that_failed_runs_again_and_not_only_those_it_cancelled() {
    let world = World::new();
    let steps = r#"
  initial: par
  par: {type: parallel, parallel: [each, bad], on_success: done}
  each: {type: for_each, items: "1,2", body: [w]}
  w: {type: command, command: "test -e ok || sleep 20"}
  bad: {type: command, command: "sleep 0.2; test -e ok"}
  done: {type: terminal, status: success}
"#;
    let (_, outcome) = failed_then_resumed(&world, steps).await;
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
}

#[tokio::test]
async fn an_approval_in_a_called_workflow_goes_on_in_the_same_run() {
    let world = World::new();
    world.file(
        ".quipu/workflows/kid.yaml",
        "name: kid\nstates:\n  initial: pre\n  pre: {type: command, command: 'echo pre >> log', on_success: gate}\n  gate: {type: approval, message: Go?, on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let first = world
        .run("  initial: call\n  call: {type: call_workflow, workflow: kid, on_success: done}\n  done: {type: terminal, status: success}\n")
        .await;
    let pause = first.outcome.pause.clone().expect("a pause");
    let how = ResumeOptions {
        verdict: Some(Verdict {
            token: pause.token,
            consents: true,
        }),
        ..ResumeOptions::default()
    };
    let outcome = world
        .resume(&first.outcome.run_id, how)
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
    assert_eq!(world.read("log"), "pre\n");
}

#[tokio::test]
async fn a_token_counts_for_one_pass_and_once() {
    let world = World::new();
    let steps = "  initial: each\n  each: {type: for_each, items: 'a,b', body: [gate, act], on_complete: done}\n  gate: {type: approval, message: 'Do {{.loop.Item}}?'}\n  act: {type: command, command: 'echo {{.loop.Item}} >> log'}\n  done: {type: terminal, status: success}\n";
    let first = world.run(steps).await;
    let verdict = |token: &str| ResumeOptions {
        verdict: Some(Verdict {
            token: token.to_owned(),
            consents: true,
        }),
        ..ResumeOptions::default()
    };
    let token = first.outcome.pause.clone().expect("a pause").token;
    let second = world
        .resume(&first.outcome.run_id, verdict(&token))
        .await
        .expect("it goes on");
    assert_eq!(
        (second.status, world.read("log").as_str()),
        (RunStatus::Paused, "a\n")
    );
    let again = world.resume(&first.outcome.run_id, verdict(&token)).await;
    assert!(
        matches!(again, Err(EngineError::Resume(_))),
        "a token that was used is not taken again"
    );
    let token = second.pause.expect("a pause").token;
    let third = world
        .resume(&first.outcome.run_id, verdict(&token))
        .await
        .expect("it goes on");
    assert_eq!(
        (third.status, world.read("log").as_str()),
        (RunStatus::Succeeded, "a\nb\n")
    );
}

#[tokio::test]
async fn from_a_step_inside_a_container_runs_it_again() {
    let world = World::new();
    let steps = "  initial: par\n  par: {type: parallel, parallel: [x, y], on_success: done}\n  x: {type: command, command: 'echo x >> log'}\n  y: {type: command, command: 'echo y > y'}\n  done: {type: terminal, status: success}\n";
    let first = world.run(steps).await;
    let from = ResumeOptions {
        from: Some("par.x".to_owned()),
        ..ResumeOptions::default()
    };
    let outcome = world
        .resume(&first.outcome.run_id, from)
        .await
        .expect("it goes on");
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
    assert_eq!(world.read("log"), "x\nx\n");
}

#[tokio::test]
async fn start_hooks_that_failed_run_again() {
    let world = World::new();
    let text = "name: test\nhooks: {workflow_start: [{command: 'echo hook >> log; test -e ok'}]}\nstates:\n  initial: a\n  a: {type: command, command: 'echo a >> log', on_success: done}\n  done: {type: terminal, status: success}\n";
    let (_, outcome) = failed_then_resumed(&world, text).await;
    assert_eq!(outcome.status, RunStatus::Succeeded);
    assert_eq!(world.read("log"), "hook\nhook\na\n");
}

#[tokio::test]
async fn a_call_that_is_made_again_after_a_resume_is_another_run() {
    let world = World::new();
    world.file(
        ".quipu/workflows/kid.yaml",
        "name: kid\nstates:\n  initial: k\n  k: {type: command, command: 'echo k >> log; test -e ok', on_success: done}\n  done: {type: terminal, status: success}\n",
    );
    let steps = "  initial: call\n  call: {type: call_workflow, workflow: kid, on_success: count}\n  count: {type: command, command: 'test $(wc -l < log) -ge 4', on_success: done, on_failure: call}\n  done: {type: terminal, status: success}\n";
    let (_, outcome) = failed_then_resumed(&world, steps).await;
    assert_eq!(outcome.status, RunStatus::Succeeded, "{:?}", outcome.error);
    assert_eq!(
        world.read("log").lines().count(),
        4,
        "one that failed, and three that did not"
    );
}
