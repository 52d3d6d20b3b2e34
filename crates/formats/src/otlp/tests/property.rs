//! What is true of every session.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use serde_json::Value;

use super::{spans, write};
use crate::arbitrary;
use crate::otlp::{Convention, OtlpOptions};

fn options() -> impl Strategy<Value = OtlpOptions> {
    let convention = prop_oneof![Just(Convention::GenAi), Just(Convention::OpenInference)];
    let room = prop_oneof![Just(64 << 10), 0_usize..40];
    let batch = prop_oneof![Just(512 << 10), 0_usize..2_000];
    (convention, any::<bool>(), room, batch).prop_map(
        |(convention, content, max_attribute_bytes, max_batch_bytes)| OtlpOptions {
            convention,
            content,
            max_attribute_bytes,
            max_batch_bytes,
            ..OtlpOptions::default()
        },
    )
}

fn is_hex(value: &Value, len: usize) -> bool {
    let text = value.as_str().unwrap();
    text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn nanos(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

/// Checks attributes: each key once, each value of one type, and numbers in range.
fn check_attributes(of: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for attribute in of["attributes"].as_array().unwrap() {
        let key = attribute["key"].as_str().unwrap().to_owned();
        let value = attribute["value"].as_object().unwrap();
        assert_eq!(value.len(), 1);
        if let Some(int) = value.get("intValue") {
            int.as_str().unwrap().parse::<i64>().unwrap();
        }
        let before = all.insert(key.clone(), attribute["value"].clone());
        assert_eq!(before, None, "{key} twice");
    }
    all
}

/// Attributes that hold JSON as text.
const DOCUMENTS: [&str; 6] = [
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "quipu.result",
    "quipu.raw",
];

proptest! {
    #[test]
    fn every_session_is_a_trace((header, events) in arbitrary::session(), options in options()) {
        let (out, loss) = write(&header, &events, &options);
        let (again, same) = write(&header, &events, &options);
        prop_assert_eq!(&out, &again);
        prop_assert_eq!(&loss, &same);
        prop_assert_eq!(loss.events, events.len() as u64);
        prop_assert!(loss.carried <= loss.events);
        let spans = spans(&out);
        let ids: HashSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
        prop_assert_eq!(ids.len(), spans.len());
        let mut seqs = HashSet::new();
        for (n, span) in spans.iter().enumerate() {
            prop_assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16));
            prop_assert_eq!(&span["traceId"], &spans[0]["traceId"]);
            prop_assert!(nanos(&span["endTimeUnixNano"]) >= nanos(&span["startTimeUnixNano"]));
            let is_root = n + 1 == spans.len();
            match span["parentSpanId"].as_str() {
                Some(parent) => prop_assert!(ids.contains(parent) && !is_root),
                None => prop_assert!(is_root),
            }
            let attributes = check_attributes(span);
            for key in DOCUMENTS {
                if let Some(value) = attributes.get(key) {
                    let text = value["stringValue"].as_str().unwrap();
                    let read = quipu_model::Json::parse(text);
                    prop_assert!(read.is_ok(), "{}: {}", key, text);
                }
            }
            seqs.extend(attributes.get("quipu.seq").cloned().map(|it| it["intValue"].clone()));
            for event in span["events"].as_array().into_iter().flatten() {
                nanos(&event["timeUnixNano"]);
                let attributes = check_attributes(event);
                seqs.extend(attributes.get("quipu.seq").map(|it| it["intValue"].clone()));
            }
            let failed = span["status"]["code"] == 2;
            prop_assert_eq!(failed, attributes.contains_key("error.type"));
        }
        super::times::assert_nested(&spans);
        // Every event begins a span, or is an event of one.
        for event in &events {
            let seq = Value::String(event.seq.to_string());
            prop_assert!(seqs.contains(&seq), "event {} is nowhere", event.seq);
        }
    }

    #[test]
    fn without_content_nothing_that_was_said_is_there((mut header, mut events) in arbitrary::session()) {
        // A word that can only come from content.
        const SECRET: &str = "xyzzyQUX";
        super::rules::put_everywhere(&mut events, SECRET);
        header.title = Some(SECRET.to_owned());
        for convention in [Convention::GenAi, Convention::OpenInference] {
            let options = OtlpOptions { convention, ..OtlpOptions::default() };
            let (out, _) = write(&header, &events, &options);
            prop_assert!(!String::from_utf8_lossy(&out).contains(SECRET));
        }
    }
}
