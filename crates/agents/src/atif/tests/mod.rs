mod round;
pub(crate) mod story;

use insta::assert_snapshot;
use quipu_model::{Body, Event, NoteKind, Usage};

use super::{Atif, TRAJECTORY};
use crate::testkit::{Read, hostile, read, read_as};

/// A trajectory of another program's, with something of everything.
const FOREIGN: &str = include_str!("../../../fixtures/atif/session.json");

#[test]
fn another_programs_trajectory() {
    let read = read(FOREIGN.as_bytes(), "t.json").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(
        read.usage(),
        Usage {
            input: Some(30 + 7 + 3),
            cache_read: Some(60),
            cache_write: Some(10),
            cache_write_1h: None,
            output: Some(22),
            reasoning: Some(5),
        }
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.3"));
    assert_eq!(read.session.id.as_deref(), Some("s-1"));
    assert_eq!(read.ledger.orphans, 1);
    let unknown: Vec<&str> = read
        .ledger
        .drift
        .unknown
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}

#[test]
fn before_1_2_the_cache_is_no_part_of_the_prompt() {
    let usage = |version: &str| {
        let text = format!(
            r#"{{"schema_version":"{version}","agent":{{}},"steps":[{{"step_id":1,"source":"agent","message":"x","metrics":{{"prompt_tokens":10,"cached_tokens":4}}}}]}}"#
        );
        read(text.as_bytes(), "t.json").unwrap().usage()
    };
    let (old, new) = (usage("ATIF-v1.1"), usage("ATIF-v1.2"));
    assert_eq!((old.input, old.cache_read), (Some(10), Some(4)));
    assert_eq!((new.input, new.cache_read), (Some(6), Some(4)));
}

#[test]
fn nothing_is_made_up_of_a_result() {
    let read = read(FOREIGN.as_bytes(), "t.json").unwrap();
    let is_result = |event: &&Event| matches!(event.body, Body::ToolResult(_));
    let results: Vec<_> = read.events.iter().filter(is_result).collect();
    assert_eq!(results.len(), 3);
    for result in results {
        assert_eq!(result.annotations.duration_ms, None);
        assert_eq!(result.annotations.status, None);
    }
    assert_eq!(read.session.agent.as_deref(), Some("terminus"));
}

#[test]
fn broken_documents() {
    hostile(&Atif, TRAJECTORY, &FOREIGN.replace('\n', ""));
}

/// A trajectory whose steps are these.
fn with_steps(steps: &str) -> Read {
    let text = format!(
        r#"{{"schema_version":"ATIF-v1.7","agent":{{"name":"a","version":"1"}},"steps":[{steps}]}}"#
    );
    read_as(&Atif, TRAJECTORY, text.as_bytes(), "t.json")
}

#[test]
fn bad_days() {
    // Numbers out of order are no order: that is the place in the list.
    let read = with_steps(
        r#"{"step_id":9,"source":"user","message":"a"},{"step_id":9,"source":"agent","message":"b","metrics":{"prompt_tokens":1}},{"step_id":1,"source":"agent","message":"c","metrics":{"prompt_tokens":1}}"#,
    );
    assert_eq!(read.usage().input, Some(2));
    assert_eq!(
        read.words(),
        ["message.user", "message.assistant", "message.assistant"]
    );
    // An observation that points nowhere is a result without a call.
    let read = with_steps(
        r#"{"step_id":1,"source":"agent","message":"","observation":{"results":[{"source_call_id":"nobody","content":"x"}]}}"#,
    );
    assert_eq!(
        (read.ledger.orphans, read.words()[0].as_str()),
        (1, "tool.result")
    );
    // Steps of wrong types are kept.
    let read = with_steps(
        r#"1,"x",null,[],{},{"source":"tool","message":"x"},{"source":"user","message":7}"#,
    );
    let kept = read
        .words()
        .iter()
        .filter(|word| *word == "note.unknown_record")
        .count();
    assert_eq!(kept, 7);
    // Unknown keys are counted.
    let read = with_steps(r#"{"step_id":1,"source":"user","message":"a","mood":1,"tone":2}"#);
    assert_eq!(read.ledger.drift.unknown.len(), 2);
}

#[test]
fn ten_thousand_sub_agents() {
    let sub = |n: usize| {
        format!(
            r#"{{"trajectory_id":"a{n}","agent":{{}},"steps":[{{"step_id":1,"source":"agent","message":"x","metrics":{{"prompt_tokens":1}}}}]}}"#
        )
    };
    let subs: Vec<String> = (0..10_000).map(sub).collect();
    let text = format!(
        r#"{{"schema_version":"ATIF-v1.7","agent":{{}},"steps":[],"subagent_trajectories":[{}]}}"#,
        subs.join(",")
    );
    let read = read_as(&Atif, TRAJECTORY, text.as_bytes(), "t.json");
    assert_eq!(read.usage().input, Some(10_000));
    let last = read.events.last().unwrap();
    assert_eq!(last.annotations.subagent_id.as_deref(), Some("a9999"));
}

#[test]
fn sub_agents_inside_each_other() {
    let mut text =
        r#"{"agent":{},"steps":[{"step_id":1,"source":"agent","message":"deep"}]}"#.to_owned();
    for _ in 0..20 {
        text = format!(r#"{{"agent":{{}},"steps":[],"subagent_trajectories":[{text}]}}"#);
    }
    let text = format!(r#"{{"schema_version":"ATIF-v1.7","subagent_trajectories":[{text}]}}"#);
    let read = read_as(&Atif, TRAJECTORY, text.as_bytes(), "t.json");
    assert_eq!(read.words().last().unwrap(), "message.assistant");
}

#[test]
fn the_version_may_stand_last() {
    let text = r#"{"agent":{"name":"a"},"steps":[{"step_id":1,"source":"user","message":"a"}],"schema_version":"ATIF-v1.7"}"#;
    assert_eq!(
        read(text.as_bytes(), "t.json").unwrap().dialect.name,
        "atif"
    );
    let text = r#"{"steps":[{"step_id":1,"source":"user","message":"a"}]}"#;
    assert_eq!(
        read(text.as_bytes(), "t.json").unwrap().dialect.name,
        "atif"
    );
    let lines = "{\"schema_version\":\"ATIF-v1.7\"}\n{\"schema_version\":\"ATIF-v1.7\"}\n";
    assert!(crate::identify(lines.as_bytes(), true).is_none());
}

#[test]
fn real_trajectories() {
    for (name, bytes) in crate::corpus::logs("atif") {
        let read = read(&bytes, &name).unwrap();
        assert_eq!(read.dialect.name, "atif", "{name}");
        assert!(read.error.is_none(), "{name}");
        assert!(
            read.ledger.drift.unknown.is_empty(),
            "{name}: {:?}",
            read.ledger.drift
        );
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let steps = document["steps"].as_array().unwrap();
        let sum = |key: &str| -> u64 {
            let of = steps
                .iter()
                .filter_map(|step| step["metrics"][key].as_u64());
            of.sum()
        };
        assert_eq!(read.usage().input, Some(sum("prompt_tokens")), "{name}");
        assert_eq!(
            read.usage().output,
            Some(sum("completion_tokens")),
            "{name}"
        );
        let cost = document["final_metrics"]["total_cost_usd"]
            .as_f64()
            .unwrap();
        let read_cost: f64 = read
            .session
            .vendor_cost
            .as_deref()
            .unwrap()
            .parse()
            .unwrap();
        assert!((cost - read_cost).abs() < 1e-12, "{name}");
        let said = read.events.iter().filter(|event| {
            matches!(
                event.body,
                Body::UserMessage(_) | Body::AssistantMessage(_) | Body::SystemMessage(_)
            )
        });
        let managed = read
            .words()
            .iter()
            .filter(|word| *word == "note.compaction")
            .count();
        assert_eq!(said.count() + managed, steps.len(), "{name}");
        assert!(
            quipu_formats::atif::verify(std::str::from_utf8(&bytes).unwrap()).is_empty(),
            "{name}"
        );
    }
}

#[test]
fn copied_context_is_not_counted_twice() {
    let read = read(FOREIGN.as_bytes(), "t.json").unwrap();
    let mut events = read.events.iter();
    let copied = events.find(|event| event.body.texts().any(|text| text == "copied"));
    let copied = copied.unwrap();
    assert!(copied.annotations.flags.synthetic);
    assert_eq!(copied.annotations.usage, None);
    let kept = read.events.iter().any(|event| match &event.body {
        Body::Note(note) => {
            note.kind == NoteKind::Context
                && note
                    .raw
                    .as_ref()
                    .is_some_and(|raw| raw.get().contains("1000"))
        }
        _ => false,
    });
    assert!(kept, "its counts are kept in a note");
}
