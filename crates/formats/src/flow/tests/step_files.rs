//! Files of recorded runs: one transcript and one receipt for each execution of an agent step.

use std::collections::BTreeSet;

use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Header, Json, Origin, Place, RunId, Step, Timestamp,
};

use super::Dir;
use crate::flow::StepFiles;
use crate::flow::stub::Written;

const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

fn header() -> Header {
    let mut header = Header::new(RunId::new(RUN).unwrap());
    header.origin = Some(Origin {
        agent: "quipu".to_owned(),
        ..Origin::default()
    });
    header
}

fn event(seq: u64, place: &Place, body: Body, extra: &str) -> Event {
    let mut annotations = Annotations::default();
    annotations.extra = Json::parse(extra).ok();
    Event {
        seq,
        run_id: RunId::new(RUN).unwrap(),
        parent_run_id: None,
        timestamp: Timestamp::from_second(1_750_000_000 + i64::try_from(seq).unwrap()).unwrap(),
        place: place.clone(),
        body,
        annotations,
    }
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::text(Fidelity::Router, text.to_owned())]
}

/// A run in which each of these places is an agent step.
fn events(places: &[Place]) -> Vec<Event> {
    let mut bodies = vec![(
        Place::run(),
        Body::RunStarted(Some(Step::new("review", "workflow"))),
        "{}",
    )];
    for place in places {
        let step = Step::new(place.path.clone(), "agent");
        bodies.push((place.clone(), Body::StepStarted(step.clone()), "{}"));
        let asked = r#"{"provider": "github_copilot", "role": "code-critic", "argv": ["copilot"]}"#;
        bodies.push((place.clone(), Body::UserMessage(text(&place.path)), asked));
        bodies.push((place.clone(), Body::AssistantMessage(text("fine")), "{}"));
        let result = Json::parse(r#"{"status": "completed", "cost_usd": "0.25"}"#).ok();
        bodies.push((
            place.clone(),
            Body::StepCompleted(step.succeeded(result)),
            "{}",
        ));
    }
    let end = Step::new("review", "workflow").succeeded(None);
    bodies.push((Place::run(), Body::RunCompleted(Some(end)), "{}"));
    let numbered = (1..).zip(bodies);
    numbered
        .map(|(seq, (place, body, extra))| event(seq, &place, body, extra))
        .collect()
}

fn files(events: &[Event]) -> Vec<Written> {
    let mut made = StepFiles::new(header());
    let mut files: Vec<Written> = events.iter().flat_map(|event| made.take(event)).collect();
    files.extend(made.finish());
    files
}

fn place(path: &str, iterations: &[u64], attempt: u64) -> Place {
    Place {
        path: path.to_owned(),
        iterations: iterations.to_vec(),
        attempt,
    }
}

/// Places whose names could be taken for each other.
fn alike() -> Vec<Place> {
    let long = format!("{}.x", "step".repeat(40));
    vec![
        place("build.lint", &[], 1),
        place("build_lint", &[], 1),
        place("build-lint", &[], 1),
        place("BUILD.lint", &[], 1),
        place("build.lint", &[0], 1),
        place("build.lint", &[1], 1),
        place("build.lint", &[1], 2),
        place("build.lint__i2", &[], 1),
        place("build.lint", &[1, 0], 1),
        place(&long, &[], 1),
        place(&long, &[3], 1),
        place("größe", &[], 1),
    ]
}

#[test]
fn no_execution_writes_over_the_files_of_another() {
    let files = files(&events(&alike()));
    let names: BTreeSet<String> = files.iter().map(|file| file.name.to_lowercase()).collect();
    assert_eq!(names.len(), alike().len() * 2 + 1, "{names:?}");
    for name in files
        .iter()
        .filter_map(|file| file.name.split("/receipts/").nth(1))
    {
        let (step, rest) = name.split_once('-').unwrap();
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(
            step.chars().all(word) && rest == "code-critic.json",
            "{name}"
        );
        assert!(name.len() < 120, "{name}");
    }
    let first = &files[0].name;
    assert_eq!(
        first,
        "review/llm/build_lint-code-critic-githubcopilot.jsonl"
    );
}

#[test]
fn files_of_a_longer_run_begin_with_those_of_a_shorter_one() {
    let places = alike();
    let all = files(&events(&places));
    for count in 1..places.len() {
        let part = files(&events(&places[..count]));
        // The last is `meta.json`.
        assert_eq!(part[..part.len() - 1], all[..count * 2]);
    }
}

#[test]
fn steps_come_back_at_their_places_with_what_they_cost() {
    let dir = Dir::new(RUN);
    for Written { name, bytes } in files(&events(&alike())) {
        dir.put(&name, bytes);
    }
    assert_eq!(dir.broken(), []);
    let (_, read) = dir.read();
    let ended = read
        .iter()
        .filter(|event| matches!(&event.body, Body::StepCompleted(_)));
    let ended: Vec<(&Place, Option<String>)> = ended
        .map(|event| {
            (
                &event.place,
                event.annotations.cost.map(|cost| cost.to_string()),
            )
        })
        .collect();
    let expected = alike();
    let expected: Vec<_> = expected
        .iter()
        .map(|place| (place, Some("0.25".to_owned())))
        .collect();
    assert_eq!(ended, expected);
}

#[test]
fn a_step_without_an_end_has_failed() {
    let mut events = events(&[place("one", &[], 1)]);
    events.truncate(4);
    let files = files(&events);
    let receipt = files
        .iter()
        .find(|file| file.name.contains("/receipts/"))
        .unwrap();
    let receipt: serde_json::Value = serde_json::from_slice(&receipt.bytes).unwrap();
    assert_eq!(receipt["status"], "failed");
    assert_eq!(receipt["error"], "the run ended before the step did");
}
