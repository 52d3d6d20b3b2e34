//! Sessions that are written and read back.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_model::json::Tape;
use quipu_model::{Block, Body, Content, Event, Json, Money, Place};

use super::{Dir, write};
use crate::arbitrary;
use crate::flow::{FlowOptions, Rule, names, read, time, verify::verify};

/// Each thing that was said or done, as it should come back: by place and agent, in order.
type Told = BTreeMap<(String, String), Vec<String>>;

fn blocks(who: &str, blocks: &[Block]) -> Vec<String> {
    let mut told: Vec<String> = blocks
        .iter()
        .map(|block| format!("{who} {:?}", block.content))
        .collect();
    if told.is_empty() {
        told.push(format!("{who} {:?}", Content::Text(String::new())));
    }
    told
}

fn told(event: &Event) -> Vec<String> {
    match &event.body {
        Body::SystemMessage(said) => blocks("system", said),
        Body::UserMessage(said) => blocks("user", said),
        Body::AssistantMessage(said) => blocks("assistant", said),
        _ => Vec::new(),
    }
}

fn messages(events: &[Event], key: impl Fn(&Event) -> (String, String)) -> Told {
    let mut all = Told::new();
    for event in events {
        let said = told(event);
        if !said.is_empty() {
            all.entry(key(event)).or_default().extend(said);
        }
    }
    all
}

/// A value as it reads: a text may come back spelled in another way.
fn value(json: Option<&Json>) -> Option<String> {
    let text = json?.as_str().map(|text| format!("{text:?}"));
    text.or_else(|| json.map(|json| json.get().to_owned()))
}

/// Calls and results by themselves: which results come back beside which calls is another question.
fn tools(events: &[Event]) -> Vec<String> {
    let mut all: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCall(call) => Some(format!(
                "call {} {} {:?}",
                call.name,
                call.call_id,
                value(call.input.as_ref())
            )),
            Body::ToolResult(result) => {
                let (output, error) = (value(result.output.as_ref()), &result.error);
                let status = event.annotations.status;
                Some(format!(
                    "result {} {output:?} {error:?} {status:?}",
                    result.call_id
                ))
            }
            _ => None,
        })
        .collect();
    all.sort();
    all
}

/// Where an event comes back.
fn place(place: &Place) -> String {
    let has_flow = place
        .path
        .split_once('.')
        .is_some_and(|(flow, step)| !flow.is_empty() && !step.is_empty());
    match (place.path.as_str(), has_flow) {
        (path, true) => path.to_owned(),
        ("", _) => "session.main".to_owned(),
        (path, _) => format!("session.{path}"),
    }
}

fn money(text: Option<&str>) -> Option<Money> {
    text.and_then(Money::parse)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn messages_and_tools_come_back((header, events) in arbitrary::session()) {
        let (files, loss, list) = write(&header, &events, &FlowOptions::default());
        prop_assert!(loss.carried <= loss.events);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert_eq!(list.lines().count(), files.len());
        let (again, _, _) = write(&header, &events, &FlowOptions::default());
        prop_assert_eq!(&files, &again);
        let dir = Dir::new("run");
        for (name, bytes) in &files {
            dir.put(name, bytes);
        }
        let (run, read) = dir.read();
        let agent = header.agent().unwrap_or("agent");
        let before = messages(&events, |event| {
            let own = event.annotations.subagent_id.clone().filter(|id| !id.is_empty());
            (place(&event.place), own.unwrap_or_else(|| agent.into()).into())
        });
        let after = messages(&read, |event| {
            // The agent that the run as a whole is of is none of its sub-agents.
            let own = event.annotations.subagent_id.clone();
            (event.place.path.clone(), own.unwrap_or_else(|| agent.into()).into())
        });
        // Iterations and executions of one step may come back in another order: theirs is by time.
        let sorted = |told: Told| -> Told {
            told.into_iter().map(|(key, mut said)| { said.sort(); (key, said) }).collect()
        };
        prop_assert_eq!(sorted(before), sorted(after));
        let null_is_none = |events: &[Event]| tools(events);
        prop_assert_eq!(null_is_none(&events), null_is_none(&read));
        prop_assert_eq!(run.header.run_id, header.run_id);
        prop_assert_eq!(run.header.title, header.title);
    }

    #[test]
    fn totals_add_up_for_any_session((header, events) in arbitrary::session()) {
        let (files, _, _) = write(&header, &events, &FlowOptions::default());
        let (mut prompt, mut completion, mut cost) = (0u128, 0u128, Money::ZERO);
        for (_, bytes) in files.iter().filter(|(name, _)| name.contains("/receipts/")) {
            let text = std::str::from_utf8(bytes).unwrap();
            let mut tape = Tape::new();
            let node = tape.read(text, 128).unwrap();
            let count = |key: &str| {
                node.path(&["tokens", key]).unwrap().raw().get().parse::<u128>().unwrap()
            };
            prop_assert_eq!(count("prompt") + count("completion"), count("total"));
            prompt += count("prompt");
            completion += count("completion");
            cost += money(node.get("cost_usd").map(|n| n.raw().get())).unwrap_or(Money::ZERO);
            for key in ["started_at", "completed_at"] {
                let time = time::parse(&node.text(key).unwrap()).unwrap();
                prop_assert_eq!(time.form, time::Form::Strict);
            }
        }
        let (mut asked, mut made, mut paid) = (0u128, 0u128, Money::ZERO);
        for event in &events {
            let usage = event.annotations.usage.unwrap_or_default();
            let parts = [usage.input, usage.cache_read, usage.cache_write];
            asked += parts.into_iter().flatten().map(u128::from).sum::<u128>();
            made += usage.output.map_or(0, u128::from);
            paid += event.annotations.cost.unwrap_or(Money::ZERO);
        }
        prop_assert_eq!((prompt, completion, cost), (asked, made, paid));
    }

    /// Of what is written, nothing breaks a rule but what is true of the session itself.
    #[test]
    fn what_is_written_is_clean((header, events) in arbitrary::session()) {
        let (files, _, _) = write(&header, &events, &FlowOptions::default());
        let dir = Dir::new(header.run_id.as_str());
        for (name, bytes) in &files {
            prop_assert!(!name.starts_with('/') && name.split('/').all(|part| part != ".." && !part.is_empty()));
            dir.put(name, bytes);
        }
        let report = verify(&dir.path()).unwrap();
        // Times of a session may run backwards, and so do costs; a text may look like a stub's.
        let allowed = [Rule::TranscriptNewer, Rule::CostOrder, Rule::StubSuccess];
        let broken: Vec<_> = report.findings.iter().filter(|found| !allowed.contains(&found.rule)).collect();
        prop_assert!(broken.is_empty(), "{broken:?}");
    }
}

#[test]
fn steps_come_back_as_they_were() {
    let (header, events) = super::golden::session();
    let (files, loss, _) = write(&header, &events, &FlowOptions::default());
    assert_eq!(loss.carried, loss.events);
    let dir = Dir::new(header.run_id.as_str());
    for (name, bytes) in &files {
        dir.put(name, bytes);
    }
    let mut read_back = Vec::new();
    read(&dir.path(), &mut |mut event| {
        event.annotations.source = None;
        read_back.push(event);
    })
    .unwrap();
    let mut expected = events;
    for event in &mut expected {
        // The duration of a step follows from its times.
        if let Body::StepCompleted(end) = &event.body {
            event.annotations.duration_ms = Some(if end.error.is_some() { 1500 } else { 500 });
        }
    }
    assert_eq!(read_back, expected);
}

#[test]
fn a_session_without_steps_is_one_step() {
    let (mut header, mut events) = super::golden::session();
    header.origin = None;
    events.retain(|event| {
        matches!(
            &event.body,
            Body::SystemMessage(_) | Body::UserMessage(_) | Body::AssistantMessage(_)
        )
    });
    for event in &mut events {
        event.place = Place::run();
        event.annotations.subagent_id = None;
    }
    let (files, loss, list) = write(&header, &events, &FlowOptions::default());
    assert!(
        files.contains_key("session/llm/main-agent-agent.jsonl"),
        "{list}"
    );
    for what in [
        "flow_key",
        "step_id",
        "agent_key",
        "engine",
        "status",
        "model",
        "tokens",
    ] {
        assert_eq!(loss.inferred[what].count, 1, "{what}");
    }
    let options = FlowOptions {
        flow: Some("build".to_owned()),
        step: Some("impl".to_owned()),
        agent: Some("coder".to_owned()),
        engine: Some("claude-code".to_owned()),
    };
    let (files, _, _) = write(&header, &events, &options);
    assert!(
        files.contains_key("build/llm/impl-coder-claude.jsonl"),
        "{files:?}"
    );
    assert!(files.contains_key("build/receipts/impl-coder.json"));
}

#[test]
fn steps_with_one_name_are_told_apart() {
    let (header, events) = super::golden::session();
    let mut said = Vec::new();
    for (seq, (path, agent)) in (1u64..).zip([
        ("f.a-b", "c"),
        ("f.a", "b-c"),
        ("f.A-b", "c"),
        ("../x./..", ".."),
    ]) {
        let mut event = events[2].clone();
        event.seq = seq;
        event.place = Place::step(path);
        event.annotations.subagent_id = Some(agent.into());
        said.push(event);
    }
    let (files, loss, _) = write(&header, &said, &FlowOptions::default());
    assert_eq!(files.len(), 9, "{:?}", files.keys());
    assert!(loss.wrapped["file name"].count >= 2);
    let dir = Dir::new("run-20251209-143022-abc123");
    for (name, bytes) in &files {
        assert!(!name.contains(".."), "{name}");
        dir.put(name, bytes);
    }
    let (run, _) = dir.read();
    let mut steps: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.flow.as_str(), step.step.as_str(), step.agent.as_str()))
        .collect();
    steps.sort_unstable();
    assert_eq!(
        steps,
        [
            ("f", "A-b", "c"),
            ("f", "a", "b-c"),
            ("f", "a-b", "c"),
            ("session", "../x./..", "..")
        ]
    );
    assert_eq!(run.issues, []);
    assert_eq!(names::unescape("a%2Db"), "a-b");
}

#[test]
fn without_a_place_for_files_nothing_is_carried() {
    let (header, events) = super::golden::session();
    let mut list = Vec::new();
    let beside = Box::new(crate::projection::Nowhere);
    let mut writer = crate::flow::writer(
        &header,
        &FlowOptions::default(),
        Box::new(&mut list),
        beside,
    )
    .unwrap();
    for event in &events {
        writer.event(event).unwrap();
    }
    let loss = writer.finish().unwrap();
    assert_eq!(loss.carried, 0);
    assert_eq!(loss.dropped["files"].count, 4);
    assert!(list.is_empty());
    assert!(Json::parse("{}").is_ok());
}
