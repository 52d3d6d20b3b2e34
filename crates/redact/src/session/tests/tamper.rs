//! Whatever is changed in a shared copy is found.

use quipu_formats::normalized::{Beyond, NormalizedOptions};
use serde_json::Value;

use super::{Events, call, key, result, said, session, share, token};
use crate::Profile;
use crate::receipt::{Against, Report, open, verify};

fn shared() -> (quipu_model::Header, Events, Value, Vec<u8>) {
    let secret = token(1);
    let (header, events) = session(vec![
        said(&format!("use {secret}, or {secret}{} é", token(2))),
        call(
            "c1",
            "Bash",
            &format!(r#"{{"command":"curl {secret}","n":1.0,"{secret}":[true,null,{{}}]}}"#),
        ),
        result("c1", "Bash", r#""mail ada@example.com""#),
        super::event(4, said("bye")).body,
    ]);
    let (_, _, bytes) = share(
        &header,
        &NormalizedOptions::default(),
        &events,
        &Profile::builtin("research").unwrap(),
    );
    let value = serde_json::from_slice(&bytes).unwrap();
    (header, events, value, bytes)
}

/// Every place of a value: the way to it.
fn places(value: &Value, at: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    all.push(at.clone());
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        at.push(key);
        places(value, at, all);
        at.pop();
    }
}

fn get<'v>(value: &'v mut Value, way: &[String]) -> &'v mut Value {
    way.iter().fold(value, |value, step| match value {
        Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
        other => &mut other[step.as_str()],
    })
}

fn other(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(format!("{text}x")),
        Value::Number(number) => Value::from(number.as_f64().unwrap_or(0.0) + 1.0),
        Value::Bool(is) => Value::Bool(!is),
        Value::Null => Value::Bool(false),
        Value::Array(items) => Value::Array(items.iter().cloned().chain([Value::Null]).collect()),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("zz".to_owned(), Value::Null);
            Value::Object(fields)
        }
    }
}

#[test]
fn every_change_of_a_shared_copy_is_found() {
    let (_, _, document, bytes) = shared();
    assert!(verify(&bytes[..]).unwrap().is_good());
    // Written in another way it says the same.
    let mut all = Vec::new();
    places(&document, &mut Vec::new(), &mut all);
    assert!(all.len() > 150, "{}", all.len());
    let mut changed = 0;
    for way in all {
        if way.first().is_some_and(|first| first == "submitter") {
            continue;
        }
        let mut copy = document.clone();
        let place = get(&mut copy, &way);
        *place = other(place);
        let what = way.join(".");
        let report = verify(copy.to_string().as_bytes()).unwrap();
        assert!(!report.is_good(), "{what} was changed and nobody knows");
        changed += 1;
        // The same place, left out.
        if let Some((last, before)) = way.split_last() {
            let mut copy = document.clone();
            match get(&mut copy, before) {
                Value::Object(fields) => drop(fields.remove(last)),
                Value::Array(items) => drop(items.remove(last.parse().unwrap())),
                _ => {}
            }
            let report = verify(copy.to_string().as_bytes()).unwrap();
            assert!(!report.is_good(), "{what} was left out and nobody knows");
        }
    }
    assert!(changed > 150, "{changed}");
}

#[test]
fn events_in_another_order_are_found() {
    let (_, _, document, _) = shared();
    let mut copy = document.clone();
    copy["events"].as_array_mut().unwrap().swap(0, 3);
    assert!(!verify(copy.to_string().as_bytes()).unwrap().is_good());
}

#[test]
fn what_is_cut_off_or_no_document_is_found() {
    let (_, _, _, bytes) = shared();
    for end in (0..bytes.len() - 2).step_by(61) {
        assert!(!verify(&bytes[..end]).unwrap().is_good(), "{end}");
    }
    assert!(!verify(&b"[1]"[..]).unwrap().is_good());
    assert!(
        !verify(&br#"{"schemaVersion":"0.1.0","events":[{"seq":1,"text":"x"}]}"#[..])
            .unwrap()
            .is_good()
    );
}

fn against(header: &quipu_model::Header, events: &Events, bytes: &[u8], with_key: bool) -> Report {
    let key = with_key.then(key);
    let mut against =
        Against::new(bytes, header, &NormalizedOptions::default(), key.as_ref()).unwrap();
    for (event, beyond) in events {
        against.event(event, beyond).unwrap();
    }
    against.finish().unwrap()
}

#[test]
fn another_original_is_found() {
    let (header, events, _, bytes) = shared();
    for with_key in [false, true] {
        let report = against(&header, &events, &bytes, with_key);
        assert!(report.is_good(), "{:?}", report.problems);
        assert_eq!(report.opened, if with_key { report.spans } else { 0 });
        // What is kept is another.
        let mut changed = events.clone();
        changed[3].0.body = said("good bye");
        let report = against(&header, &changed, &bytes, with_key);
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        assert_eq!(
            (report.problems[0].seq, report.problems[0].field.as_str()),
            (Some(4), "text")
        );
        // One event more, one less, another directory.
        let mut more = events.clone();
        more.push((super::event(5, said("more")), Beyond::default()));
        assert!(!against(&header, &more, &bytes, with_key).is_good());
        assert!(!against(&header, &events[..3].to_vec(), &bytes, with_key).is_good());
        let mut elsewhere = header.clone();
        elsewhere.environment.os = Some("beos".to_owned());
        assert!(!against(&elsewhere, &events, &bytes, with_key).is_good());
    }
}

/// What stood at a span is checked by those who have the key, and by them alone.
#[test]
fn another_secret_is_found_with_the_key() {
    let (header, events, _, bytes) = shared();
    let mut changed = events.clone();
    let text = format!("use {}, or {}{} é", token(5), token(5), token(6));
    changed[0].0.body = said(&text);
    assert!(against(&header, &changed, &bytes, false).is_good());
    let report = against(&header, &changed, &bytes, true);
    assert!(!report.is_good());
    assert_eq!(
        (report.problems[0].seq, report.problems[0].field.as_str()),
        (Some(1), "text")
    );
    let text = format!("{report:?}");
    assert!(!text.contains("ghp_"), "{text}");
    let mut elsewhere = header.clone();
    elsewhere.environment.cwd = Some("/home/ada/other".to_owned());
    assert!(!against(&elsewhere, &events, &bytes, true).is_good());
}

#[test]
fn half_a_character_is_committed_to_as_it_is_read() {
    let (header, events) = session(vec![
        call("c1", "Bash", r#"{"command":"\ud800"}"#),
        result("c1", "Bash", r#""\ud800""#),
    ]);
    for name in Profile::NAMES {
        let profile = Profile::builtin(name).unwrap();
        let (_, _, bytes) = share(&header, &NormalizedOptions::default(), &events, &profile);
        let report = against(&header, &events, &bytes, true);
        assert!(report.is_good(), "{name}: {:?}", report.problems);
    }
}

/// Whoever takes the commitment away is found out by what else the copy says of itself.
#[test]
fn a_copy_that_says_something_was_removed_is_known_without_its_commitment() {
    let (_, _, document, _) = shared();
    let report = |change: &dyn Fn(&mut Value)| {
        let mut document = document.clone();
        let privacy = document["privacy"].as_object_mut().unwrap();
        privacy.remove("commitment");
        change(&mut document);
        crate::receipt::verify(document.to_string().as_bytes()).unwrap()
    };
    let plain = report(&|_| {});
    assert!(plain.is_shared && !plain.is_good());
    assert!(report(&|it| it["privacy"]["profile"] = "local".into()).is_shared);
    let nothing = report(&|it| {
        it["privacy"] = Value::Null;
        for event in it["events"].as_array_mut().unwrap() {
            event.as_object_mut().unwrap().remove("redactions");
        }
    });
    assert!(!nothing.is_shared);
}

#[test]
fn one_span_is_opened_and_no_other() {
    let (header, events, document, _) = shared();
    let receipt = &document["events"][2]["redactions"][0];
    assert_eq!(receipt["field"], "tool.output");
    let id = document["transcriptId"].as_str().unwrap();
    let commitment = receipt["commitment"].as_str().unwrap();
    let opening = open(
        &key(),
        id,
        3,
        "tool.output",
        0,
        "ada@example.com",
        commitment,
    )
    .unwrap();
    assert!(opening.opens(commitment));
    assert_eq!(format!("{opening:?}"), "Opening(…)");
    assert_eq!(
        open(
            &key(),
            id,
            3,
            "tool.output",
            0,
            "bob@example.com",
            commitment
        ),
        None
    );
    assert_eq!(
        open(
            &crate::Key::from_bytes([9; 32]),
            id,
            3,
            "tool.output",
            0,
            "ada@example.com",
            commitment
        ),
        None
    );
    // The same value at two places has two commitments.
    let first = &document["events"][0]["redactions"];
    assert_eq!(first[0]["placeholder"], first[1]["placeholder"]);
    assert_ne!(first[0]["commitment"], first[1]["commitment"]);
    assert!(matches!(events[1].0.body, quipu_model::Body::ToolCall(_)));
    assert_eq!(header.totals.events, 4);
}
