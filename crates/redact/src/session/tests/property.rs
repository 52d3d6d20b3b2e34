//! What holds of any session under any profile.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quipu_formats::normalized::{self, Beyond, NormalizedOptions};
use quipu_model::{Block, Body, Content, Event, Header, Json};

use super::{Events, check, engine, key, profiles, share, token};
use crate::profile::Numbers;
use crate::receipt::{Against, verify};

fn sessions() -> impl Strategy<Value = (Header, Events)> {
    quipu_formats::arbitrary::session().prop_map(|(header, events)| {
        let events = events
            .into_iter()
            .map(|event| (event, Beyond::default()))
            .collect();
        (header, events)
    })
}

/// Findings by rule, of a document.
fn broken(bytes: &[u8]) -> BTreeMap<&'static str, u64> {
    let report = normalized::verify(bytes).unwrap();
    report
        .counts
        .iter()
        .map(|(rule, count)| (rule.name(), *count))
        .collect()
}

fn read(bytes: &[u8]) -> (normalized::Read, Events) {
    let mut events = Vec::new();
    let read =
        normalized::read_with(bytes, &mut |event, beyond| events.push((event, beyond))).unwrap();
    (read, events)
}

/// Puts a secret into every text there is.
fn plant(events: &mut Events, secret: &str) {
    let json = |json: &mut Option<Json>| {
        let text = Json::string(&format!("see {secret} there"));
        let inner = json.as_ref().map_or("null", Json::get).to_owned();
        let planted = format!(
            r#"{{"a":{},"{secret}":[{inner}],"n":{{"deep":{}}}}}"#,
            text.get(),
            text.get()
        );
        *json = Json::parse(&planted).ok();
    };
    for (event, beyond) in events {
        beyond.extra.push(("mood".to_owned(), Json::string(secret)));
        match &mut event.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                for Block { content, .. } in blocks {
                    match content {
                        Content::Text(text)
                        | Content::Thinking(text)
                        | Content::Command(text)
                        | Content::Stream(text) => {
                            text.push_str(secret);
                        }
                        Content::ToolUse { input, .. } => json(input),
                        Content::ToolResult { content, .. } => json(content),
                        Content::Unknown(whole) => *whole = Json::string(secret),
                    }
                }
            }
            Body::ToolCall(call) => json(&mut call.input),
            Body::ToolResult(result) => {
                json(&mut result.input);
                json(&mut result.output);
                result.error = Some(format!("{secret} {secret}"));
            }
            Body::StepCompleted(end) => {
                end.error = Some(secret.to_owned());
                json(&mut end.result);
            }
            Body::Note(note) => {
                note.text = Some(format!("x{secret}"));
                json(&mut note.raw);
            }
            Body::ModelCall(call) => {
                call.provider = Some(secret.to_owned());
                json(&mut call.params);
                call.error = Some(secret.to_owned());
            }
            Body::Chunk(chunk) => {
                chunk.text = format!("x {secret}");
                json(&mut chunk.delta);
            }
            Body::Harness(harness) => {
                harness.name = format!("x {secret}");
                json(&mut harness.attributes);
            }
            Body::Error(failure) => {
                failure.code = Some(secret.to_owned());
                failure.message = format!("no {secret}");
            }
            _ => {}
        }
        event.place.path = format!("a.{secret}");
        json(&mut event.annotations.extra);
        event.annotations.stop_reason = Some(format!("it said {secret}"));
    }
}

/// Texts of what was said, thought, given and given back.
fn texts(events: &Events) -> Vec<String> {
    let mut all = Vec::new();
    let mut json = |json: &Option<Json>| {
        all.extend(
            json.as_ref()
                .and_then(|json| json.as_str().map(std::borrow::Cow::into_owned)),
        );
    };
    let mut said = Vec::new();
    for (event, _) in events {
        match &event.body {
            Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks)
            | Body::SystemMessage(blocks) => {
                for Block { content, .. } in blocks {
                    match content {
                        Content::Text(text)
                        | Content::Thinking(text)
                        | Content::Command(text)
                        | Content::Stream(text) => {
                            said.push(text.clone());
                        }
                        Content::ToolUse { input, .. } => json(input),
                        Content::ToolResult { content, .. } => json(content),
                        Content::Unknown(whole) => json(&Some(whole.clone())),
                    }
                }
            }
            Body::ToolCall(call) => json(&call.input),
            Body::ToolResult(result) => {
                json(&result.input);
                json(&result.output);
                said.extend(result.error.clone());
            }
            Body::Note(note) => {
                said.extend(note.text.clone());
                json(&note.raw);
            }
            Body::ModelCall(call) => {
                said.extend(call.error.clone());
                json(&call.params);
            }
            Body::Chunk(chunk) => {
                said.push(chunk.text.clone());
                json(&chunk.delta);
            }
            Body::Harness(harness) => json(&harness.attributes),
            Body::Error(failure) => said.push(failure.message.clone()),
            _ => {}
        }
    }
    all.extend(said);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is shared is a good document: nothing is wrong with it that was not with the original.
    #[test]
    fn what_is_shared_is_a_good_document((header, events) in sessions()) {
        let (_, _, local) = share(&header, &NormalizedOptions::default(), &events, &profiles()[0]);
        for profile in profiles() {
            let (outcome, shared, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
            let report = verify(&bytes[..]).unwrap();
            prop_assert!(report.is_good(), "{}: {:?}\n{}", profile.name, report.problems, String::from_utf8_lossy(&bytes));
            let (before, after) = (broken(&local), broken(&bytes));
            prop_assert_eq!(&before, &after, "{}\n{}", profile.name, String::from_utf8_lossy(&bytes));
            let numbers = |events: &Events| events.iter().map(|(event, _)| event.seq).collect::<Vec<_>>();
            prop_assert_eq!(numbers(&shared), numbers(&events));
            let rounds = profile.numbers == Numbers::Rounded;
            if !rounds {
                prop_assert_eq!(outcome.header.totals.clone(), header.totals.clone());
            }
            // Each id is what it was, or the same other one wherever it was.
            let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
            for ((one, _), (other, _)) in shared.iter().zip(&events) {
                let ids = |event| [linked(event), event.annotations.native_id.clone().map(Into::into), event.annotations.parent_id.clone().map(Into::into)];
                for (one, other) in ids(one).into_iter().zip(ids(other)) {
                    prop_assert!(profile.replaces_ids() || one == other);
                    prop_assert_eq!(there.entry(other.clone()).or_insert_with(|| one.clone()), &one);
                    prop_assert_eq!(back.entry(one).or_insert_with(|| other.clone()), &other);
                }
                prop_assert!(rounds || one.annotations.usage == other.annotations.usage);
            }
            let (read, back) = read(&bytes);
            prop_assert_eq!(read.header, outcome.header);
            prop_assert_eq!(read.options, outcome.options);
            prop_assert_eq!(back, shared);
        }
    }

    /// Nothing is left to remove.
    #[test]
    fn twice_changes_nothing((header, mut events) in sessions(), seed in any::<u64>()) {
        plant(&mut events, &token(seed));
        for profile in profiles() {
            let (outcome, shared, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
            let (_, _, again) = share(&outcome.header, &outcome.options, &shared, &profile);
            prop_assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&bytes), "{}", profile.name);
        }
    }

    /// No secret is in what is shared, and none in a receipt.
    #[test]
    fn no_secret_is_left((mut header, mut events) in sessions(), seed in any::<u64>()) {
        let secret = token(seed);
        plant(&mut events, &secret);
        header.title = Some(format!("with {secret}"));
        header.environment.cwd = Some(format!("/code/{secret}"));
        for profile in profiles().iter().skip(1) {
            let (_, _, bytes) = share(&header, &NormalizedOptions::default(), &events, profile);
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(!text.contains(&secret[4..20]), "{}: {}", profile.name, text);
        }
    }

    /// The original is the shared copy with something at each span; another is not.
    #[test]
    fn the_original_is_recognised((header, mut events) in sessions(), seed in any::<u64>()) {
        plant(&mut events, &token(seed));
        for profile in profiles() {
            let (_, _, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
            for key in [None, Some(key())] {
                let mut against = Against::new(&bytes[..], &header, &NormalizedOptions::default(), key.as_ref()).unwrap();
                for (event, beyond) in &events {
                    against.event(event, beyond).unwrap();
                }
                let report = against.finish().unwrap();
                prop_assert!(report.is_good(), "{}: {:?}\n{}", profile.name, report.problems, String::from_utf8_lossy(&bytes));
                if key.is_some() {
                    prop_assert!(report.opened <= report.spans);
                }
            }
        }
    }

    /// How long things took stays, and when they were does not.
    #[test]
    fn times_are_moved_by_the_same(events in prop::collection::vec(0..2_000_000_000i64, 1..6)) {
        let bodies = events.iter().map(|_| super::said("x")).collect();
        let (_, mut session) = super::session(bodies);
        for ((event, _), second) in session.iter_mut().zip(&events) {
            event.timestamp = quipu_model::Timestamp::from_second(*second).unwrap();
        }
        let mut header = super::header();
        for (event, _) in &session {
            header.observe(event);
        }
        for name in ["public", "structure-only"] {
            let profile = crate::Profile::builtin(name).unwrap();
            let (outcome, shared, bytes) = share(&header, &NormalizedOptions::default(), &session, &profile);
            check(&bytes);
            let moved: Vec<i64> = shared.iter().zip(&events).map(|((event, _), was)| event.timestamp.as_second() - was).collect();
            prop_assert!(moved.windows(2).all(|pair| pair[0] == pair[1]));
            let start = outcome.header.started_at.unwrap().as_second();
            if name == "public" {
                prop_assert!(moved[0] != 0 && moved[0].abs() <= 180 * 86_400);
            } else {
                prop_assert_eq!(start, 0);
            }
        }
    }

    /// Nothing of what was said is left where there is to be no text at all.
    #[test]
    fn structure_has_no_text((mut header, mut events) in sessions(), seed in any::<u64>()) {
        for (index, (event, _)) in events.iter_mut().enumerate() {
            event.annotations.native_id = None;
            event.place.path = String::new();
            if let Body::UserMessage(blocks) = &mut event.body {
                blocks.push(Block::text(quipu_model::Fidelity::Router, format!("unlikely words {index} {seed}")));
            }
        }
        header.origin = None;
        header.title = Some("another unlikely text".to_owned());
        let profile = crate::Profile::builtin("structure-only").unwrap();
        let (_, _, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
        let text = String::from_utf8(bytes).unwrap();
        let all = texts(&events).into_iter().chain(header.title.clone());
        for said in all {
            let letters: Vec<char> = said.chars().collect();
            for part in letters.windows(8) {
                let part: String = part.iter().collect();
                // What is written by the format itself is no text of the session's.
                let is_own = ["{\"seq\":1}", "\"[REDACTED:", "truncated"].iter().any(|own| own.contains(&part));
                prop_assert!(is_own || !text.contains(&part), "{part:?} in {text}");
            }
        }
    }
}

/// What links an event to others.
fn linked(event: &Event) -> Option<String> {
    match &event.body {
        Body::ToolCall(call) => Some(call.call_id.to_string()),
        Body::ToolResult(result) => Some(result.call_id.to_string()),
        _ => None,
    }
}

#[test]
fn the_rules_of_these_tests_find_what_they_should() {
    let engine = engine();
    let mut found = Vec::new();
    engine.scan(
        &mut crate::Scratch::default(),
        &token(1),
        crate::Context::default(),
        &mut found,
    );
    assert_eq!(found.len(), 1);
}
