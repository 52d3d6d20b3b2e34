//! What a log says is in the trace, and what it does not say is not.

use proptest::prelude::*;
use quipu_model::{Body, Flags, NoteKind, Notes};
use serde_json::Value;

use super::{Kept, calls, event, facts, gives, note, of_call, project, says, text, user};
use crate::agentlog::project::{ProjectionOptions, Projector};

fn taken_back() -> Notes {
    Notes {
        flags: Flags {
            superseded: true,
            ..Flags::default()
        },
        ..Notes::default()
    }
}

fn undated(notes: Notes) -> Notes {
    Notes {
        flags: Flags {
            undated: true,
            ..notes.flags
        },
        ..notes
    }
}

/// Whether a request has a message that says this.
fn is_asked(records: &[Value], said: &str) -> bool {
    records
        .iter()
        .filter(|record| record["kind"] == "chat_request")
        .flat_map(|record| record["payload"]["messages"].as_array().unwrap())
        .any(|message| message["content"] == said)
}

#[test]
fn a_prompt_right_before_a_compaction_is_in_the_next_request() {
    let (kept, loss) = project(
        vec![
            (user("first"), Notes::default()),
            (says("Yes."), of_call("c1")),
            (user("second"), Notes::default()),
            (note(NoteKind::Compaction, "shorter"), Notes::default()),
            (says("Go on."), of_call("c2")),
        ],
        ProjectionOptions::default(),
    );
    let records = kept.records();
    let last = records
        .iter()
        .rfind(|record| record["kind"] == "chat_request")
        .unwrap();
    assert_eq!(last["payload"]["messages"][0]["content"], "second");
    assert_eq!(last["meta"]["quipu"]["omitted"], 2);
    assert!(loss.is_complete());
}

#[test]
fn a_request_has_at_least_one_message_that_no_request_before_it_had() {
    let (kept, _) = project(
        vec![
            (user("first"), Notes::default()),
            (says("Yes."), of_call("c1")),
            (note(NoteKind::Compaction, "shorter"), Notes::default()),
        ],
        ProjectionOptions::default(),
    );
    let asked = kept.records();
    let asked = asked.iter().filter(|it| it["kind"] == "chat_request");
    assert_eq!(asked.count(), 1);
}

#[test]
fn a_prompt_that_was_taken_back_before_an_answer_is_a_request_of_its_own() {
    let (kept, _) = project(
        vec![
            (user("go"), Notes::default()),
            (user("wrong"), taken_back()),
            (user("right"), Notes::default()),
            (says("Done."), of_call("c1")),
            (user("at the end"), taken_back()),
        ],
        ProjectionOptions::default(),
    );
    let records = kept.records();
    for said in ["go", "wrong", "right", "at the end"] {
        assert!(is_asked(&records, said), "{said}");
    }
    let answered = records
        .iter()
        .position(|record| record["kind"] == "chat_response")
        .unwrap();
    let asked = records[answered - 1]["payload"]["messages"].to_string();
    assert!(asked.contains("right") && !asked.contains("wrong"));
    let wrong = &records[answered - 2];
    assert_eq!(wrong["meta"]["quipu"]["superseded"], true);
    assert_eq!(wrong["meta"]["quipu"]["unanswered"], true);
    assert_eq!(wrong["meta"]["quipu"]["seq"], 2);
}

/// A latency is what the log says, or the time between two times that the log has.
#[test]
fn a_duration_is_not_made_of_a_time_that_is_missing() {
    let told = |kept: &Kept, kind: &str| {
        let records = kept.records();
        let record = records.iter().find(|it| it["kind"] == kind).unwrap();
        let latency = record["payload"]["latency_ms"].as_u64().unwrap();
        let how = record["meta"]["quipu"]["latency"].as_str();
        (latency, how.map(str::to_owned))
    };
    let unknown = (0, Some("unknown".to_owned()));
    for (prompt, call, result) in [
        (true, true, true),
        (true, false, true),
        (true, true, false),
        (false, true, true),
        (false, false, false),
    ] {
        let dated = |is_dated: bool, notes: Notes| {
            let millis = if is_dated { 0 } else { -1_780_000_000_000 };
            (millis, if is_dated { notes } else { undated(notes) })
        };
        let mut kept = Kept::default();
        let mut projector = Projector::new(facts(), ProjectionOptions::default());
        let bodies = [
            (user("go"), dated(prompt, Notes::default())),
            (calls("t1", "{}"), dated(call, of_call("c1"))),
            (gives("t1", "\"x\""), dated(result, Notes::default())),
        ];
        for (n, (body, (millis, notes))) in bodies.into_iter().enumerate() {
            let later = if millis == 0 {
                100 * i64::try_from(n).unwrap()
            } else {
                0
            };
            projector
                .event(&event(n as u64 + 1, millis + later, body, notes), &mut kept)
                .unwrap();
        }
        projector.finish(&mut kept).unwrap();
        kept.check();
        let known = (100, Some("derived".to_owned()));
        let expected = |known_both| if known_both { &known } else { &unknown };
        assert_eq!(&told(&kept, "chat_response"), expected(prompt && call));
        assert_eq!(&told(&kept, "tool_result"), expected(call && result));
    }
}

#[test]
fn a_result_without_its_call_has_no_duration_unless_the_log_gives_one() {
    let with = Notes {
        duration_ms: Some(7),
        ..Notes::default()
    };
    for (notes, latency, how) in [(Notes::default(), 0, Some("unknown")), (with, 7, None)] {
        let (kept, _) = project(
            vec![(gives("t1", "\"x\""), notes)],
            ProjectionOptions::default(),
        );
        let records = kept.records();
        let result = records.last().unwrap();
        assert_eq!(result["payload"]["latency_ms"], latency);
        assert_eq!(result["meta"]["quipu"]["latency"].as_str(), how);
    }
}

#[test]
fn an_answer_to_nothing_that_is_known_has_no_duration() {
    let mut facts = facts();
    facts.started_at = Some("2020-01-01T00:00:00Z".parse().unwrap());
    let mut kept = Kept::default();
    let mut projector = Projector::new(facts, ProjectionOptions::default());
    projector
        .event(&event(1, 0, says("Hello."), of_call("c1")), &mut kept)
        .unwrap();
    projector.finish(&mut kept).unwrap();
    let records = kept.records();
    assert_eq!(records[2]["payload"]["latency_ms"], 0);
    assert_eq!(records[2]["meta"]["quipu"]["latency"], "unknown");
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        4 => Just(user("")),
        2 => Just(Body::SystemMessage(text(""))),
        3 => Just(says("a")),
        1 => Just(calls("t", "{}")),
        1 => Just(gives("t", "\"x\"")),
        2 => Just(note(NoteKind::Compaction, "n")),
        1 => Just(note(NoteKind::Rewind, "n")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever happens to a conversation, each prompt and each instruction is asked at least once.
    #[test]
    fn every_prompt_is_in_a_request(
        bodies in prop::collection::vec(
            (any_body(), any::<bool>(), prop::option::of(0..3_u8), prop::option::weighted(0.3, 0..19_u8)),
            1..40,
        ),
        flush in prop::option::of(0..40_usize),
        max_request_bytes in prop::sample::select(vec![60_usize, 300, 1 << 18]),
    ) {
        let mut kept = Kept::default();
        let mut projector = Projector::new(facts(), ProjectionOptions { max_request_bytes, ..ProjectionOptions::default() });
        let mut said = Vec::new();
        for (n, (body, superseded, call, sub)) in bodies.into_iter().enumerate() {
            let words = format!("prompt {n}.");
            let body = match body {
                Body::SystemMessage(_) => Body::SystemMessage(text(&words)),
                body if body == user("") => user(&words),
                body => body,
            };
            if matches!(&body, Body::SystemMessage(_)) || body == user(&words) {
                said.push(words);
            }
            let notes = Notes {
                model_call: call.map(|n| format!("c{n}")).map(Into::into),
                subagent_id: sub.map(|n| format!("s{n}")).map(Into::into),
                flags: Flags { superseded, ..Flags::default() },
                ..Notes::default()
            };
            projector.event(&event(n as u64 + 1, 0, body, notes), &mut kept).unwrap();
            if flush == Some(n) {
                projector.flush(&mut kept).unwrap();
            }
        }
        projector.finish(&mut kept).unwrap();
        kept.check();
        let records = kept.records();
        for said in said {
            prop_assert!(is_asked(&records, &said), "{} is in no request", said);
        }
    }
}
