//! What a transcript says to somebody who did not run it.

use std::sync::Arc;

use quipu_prices::Prices;
use quipu_record::Storage;
use tokio_util::sync::CancellationToken;

use super::World;
use crate::definition::load::load;
use crate::definition::places::Places;
use crate::engine::{EngineError, Glance, RunStatus, Survey, new_run_id};

const ASKS: &str = r#"
  initial: build
  build: {type: command, command: "echo built", on_success: ask}
  ask: {type: approval, message: "Release it?", not_starter: true, approvers: [ada, grace], on_success: done}
  done: {type: terminal, status: success}
"#;

fn survey(world: &World, run: &quipu_model::RunId) -> Survey {
    let prices = Arc::new(Prices::default());
    let survey = Survey::of(&Storage::at(&world.home()), run, &prices);
    survey.expect("readable").expect("begun")
}

#[tokio::test]
async fn a_run_that_waits_says_for_whom() {
    let world = World::new();
    let ran = world.run(ASKS).await;
    assert_eq!(ran.outcome.status, RunStatus::Paused);
    let id = &ran.outcome.run_id;
    let seen = survey(&world, id);
    assert_eq!(
        (seen.workflow.as_str(), seen.starter.as_str()),
        ("test", "ada")
    );
    assert_eq!(
        seen.end.as_ref().map(|end| end.status.as_str()),
        Some("paused")
    );
    assert!(seen.open.is_empty(), "{:?}", seen.open);
    assert_eq!(seen.requests.len(), 1);
    assert_eq!(seen.requests[0].message, "Release it?");
    let token = ran.outcome.pause.expect("it waits").token;
    let may = |user: &str| seen.may_consent(&token, user).expect("it waits for this");
    assert_eq!(may("grace"), Ok(()));
    assert!(may("ada").is_err(), "who started it");
    assert!(may("eve").is_err(), "who is not named");
    assert!(seen.may_consent("another", "grace").is_none());
    let path = Storage::at(&world.home()).path_of(id);
    let glance = Glance::at(&path).expect("a run");
    assert_eq!((&glance.run_id, &glance.end), (id, &seen.end));
    assert_eq!(glance.started_at, seen.started_at);
}

#[tokio::test]
async fn a_transcript_without_an_end_says_what_was_going_on() {
    use std::io::Write as _;
    let world = World::new();
    let ran = world.run(ASKS).await;
    let path = Storage::at(&world.home()).path_of(&ran.outcome.run_id);
    let text = std::fs::read_to_string(&path).expect("a transcript");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for count in 1..lines.len() {
        let mut file = std::fs::File::create(&path).expect("a file");
        let torn = &lines[count][..lines[count].len() / 2];
        write!(file, "{}{torn}", lines[..count].concat()).expect("written");
        let seen = survey(&world, &ran.outcome.run_id);
        assert_eq!(seen.end, None, "{count}");
        let glance = Glance::at(&path).expect("a run");
        assert_eq!(glance.end, None, "{count}");
        let is_open = |name: &str| {
            let said = |word: &str| {
                lines[..count]
                    .iter()
                    .filter(|line| line.contains(&format!("\"{word}\"")))
                    .filter(|line| line.contains(&format!("\"{name}\"")))
                    .count()
            };
            said("step.started") > said("step.completed")
        };
        let open: Vec<&str> = seen
            .open
            .iter()
            .map(|open| open.place.path.as_str())
            .collect();
        let expected: Vec<&str> = ["build", "ask"]
            .into_iter()
            .filter(|name| is_open(name))
            .collect();
        assert_eq!(open, expected, "{count}");
    }
    std::fs::File::create(&path).expect("a file");
    assert!(Glance::at(&path).is_none());
}

#[tokio::test]
async fn an_id_that_is_taken_is_not_written_to() {
    let world = World::new();
    let file = world.file("test.yaml", &format!("name: test\nstates:\n{ASKS}"));
    let places = Places::from_lookup(&world.root(), |_| None);
    let workflow = Arc::new(load(&file, &places).expect("a workflow").workflow);
    let id = new_run_id().expect("an id");
    let cancel = CancellationToken::new();
    let engine = world.engine();
    let run = || {
        engine.run_as(
            id.clone(),
            Arc::clone(&workflow),
            indexmap::IndexMap::default(),
            &cancel,
        )
    };
    assert_eq!(run().await.expect("recorded").run_id, id);
    let before = world.events(&id).len();
    let again = run().await;
    assert!(matches!(again, Err(EngineError::Taken(taken)) if taken == id));
    assert_eq!(world.events(&id).len(), before);
}

#[tokio::test]
async fn an_end_with_a_long_message_is_seen_at_a_glance() {
    let world = World::new();
    let long = "x".repeat(700 << 10);
    let steps = format!(
        "
  initial: done
  done: {{type: terminal, status: success, message: {long}}}
"
    );
    let ran = world.run(&steps).await;
    let path = Storage::at(&world.home()).path_of(&ran.outcome.run_id);
    let end = Glance::at(&path).expect("a run").end.expect("an end");
    assert_eq!(end.status, "succeeded");
    assert_eq!(end.message.map(|message| message.len()), Some(700 << 10));
}
