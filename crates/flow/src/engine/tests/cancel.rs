//! Runs that are cancelled while nobody runs them.

use quipu_model::{Body, RunId};
use quipu_record::{Journal, RecorderOptions, Storage};

use super::{Ran, World};
use crate::engine::{Cancelling, EngineError, Glance, RunStatus};

const ASKS: &str = r#"
name: test
inputs:
  - {name: SECRET_key, type: string}
states:
  initial: build
  build: {type: command, command: "echo built", on_success: ask}
  ask: {type: approval, message: "Release it?", on_success: done}
  done: {type: terminal, status: success}
"#;

fn cancel(world: &World, run: &RunId) -> Result<bool, EngineError> {
    let cancelling = Cancelling {
        home: &world.home(),
        audit: Some(world.home().join("audit.jsonl")),
        recorder: RecorderOptions::default(),
        user: "grace",
    };
    cancelling.record(run)
}

async fn paused(world: &World) -> Ran {
    let ran = world
        .run_with(ASKS, &[("SECRET_key", "abcdef-123456")])
        .await;
    assert_eq!(ran.outcome.status, RunStatus::Paused);
    // Neither is needed to say that it is over.
    std::fs::remove_file(world.root().join("test.yaml")).expect("a workflow");
    ran
}

fn status(world: &World, run: &RunId) -> String {
    let glance = Glance::at(&Storage::at(&world.home()).path_of(run)).expect("a run");
    glance.end.expect("an end").status
}

#[tokio::test]
async fn a_run_that_waits_is_recorded_as_cancelled_once() {
    let world = World::new();
    let ran = paused(&world).await;
    let id = &ran.outcome.run_id;
    assert!(cancel(&world, id).expect("recorded"));
    assert_eq!(status(&world, id), "cancelled");
    let events = world.events(id);
    assert_eq!(events.len(), ran.events.len() + 1);
    let extra = events.last().and_then(|it| it.annotations.extra.as_ref());
    assert!(extra.expect("who").get().contains("grace"));
    let audit = std::fs::read_to_string(world.home().join("audit.jsonl")).expect("an audit");
    let last = audit.lines().last().expect("a line");
    assert!(
        last.contains("\"cancelled\"") && last.contains("grace"),
        "{last}"
    );
    assert!(!cancel(&world, id).expect("nothing to do"));
    assert_eq!(world.events(id).len(), events.len());
}

#[tokio::test]
async fn a_run_that_was_killed_after_any_event_can_be_cancelled() {
    use std::io::Write as _;
    let world = World::new();
    let ran = paused(&world).await;
    let id = &ran.outcome.run_id;
    let path = Storage::at(&world.home()).path_of(id);
    let text = std::fs::read_to_string(&path).expect("a transcript");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for count in 1..lines.len() {
        let mut file = std::fs::File::create(&path).expect("a file");
        let torn = &lines[count][..lines[count].len() / 2];
        write!(file, "{}{torn}", lines[..count].concat()).expect("written");
        drop(file);
        assert!(cancel(&world, id).expect("recorded"), "{count}");
        assert_eq!(status(&world, id), "cancelled", "{count}");
        let events = world.events(id);
        let count_of = |is: fn(&Body) -> bool| events.iter().filter(|it| is(&it.body)).count();
        assert_eq!(
            count_of(|body| matches!(body, Body::StepStarted(_))),
            count_of(|body| matches!(body, Body::StepCompleted(_))),
            "{count}"
        );
    }
}

#[tokio::test]
async fn a_run_that_somebody_runs_is_not_written_to() {
    let world = World::new();
    let ran = paused(&world).await;
    let id = &ran.outcome.run_id;
    let path = Storage::at(&world.home()).path_of(id);
    let limits = RecorderOptions::default().limits;
    let journal = Journal::open(&path, id, limits).expect("free");
    assert!(matches!(cancel(&world, id), Err(EngineError::Running(_))));
    drop(journal);
    assert_eq!(world.events(id).len(), ran.events.len());
    let other = crate::engine::new_run_id().expect("an id");
    assert!(matches!(
        cancel(&world, &other),
        Err(EngineError::Resume(_))
    ));
    assert!(!Storage::at(&world.home()).path_of(&other).exists());
}

#[tokio::test]
async fn who_only_looks_at_a_run_does_not_keep_others_from_it() {
    let world = World::new();
    let ran = paused(&world).await;
    let id = &ran.outcome.run_id;
    let path = Storage::at(&world.home()).path_of(id);
    let looks = std::fs::File::open(&path).expect("a transcript");
    looks.lock_shared().expect("nobody writes");
    let ends = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(15));
        drop(looks);
    });
    assert!(cancel(&world, id).expect("free in a moment"));
    ends.join().expect("it ended");
}
