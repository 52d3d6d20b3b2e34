//! Requests of other programs, in either encoding.

use proptest::prelude::*;

use crate::otlp::protobuf;
use crate::otlp::request::{
    BadRequest, Encoding, Limits, Request, Signal, answer, each, refusal, split,
};

/// A field of a message: its number, and bytes.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    let mut out = varint(number << 3 | 2);
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
    out
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

fn numbered(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn pair(key: &str, value: &[u8]) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, value)].concat()
}

/// A request with one span that has these attributes and these other fields.
fn request_of(attributes: &[Vec<u8>], more: &[u8]) -> Vec<u8> {
    let mut span = [field(1, &[0x5b; 16]), field(2, &[0xee; 8])].concat();
    for attribute in attributes {
        span.extend(field(9, attribute));
    }
    span.extend_from_slice(more);
    let scope = field(2, &span);
    field(1, &field(2, &scope))
}

fn lines(body: &[u8]) -> (Vec<serde_json::Value>, u64) {
    let request = split(Signal::Traces, Encoding::Protobuf, body, &Limits::default()).unwrap();
    let lines = request.records.iter();
    let lines = lines.map(|record| serde_json::from_str(&record.line).unwrap());
    (lines.collect(), request.unknown_fields)
}

#[test]
fn every_type_of_value_is_carried() {
    let list = field(
        5,
        &[field(1, &numbered(2, 1)), field(1, &field(1, b"x"))].concat(),
    );
    let map = field(6, &field(1, &pair("k", &numbered(3, u64::MAX))));
    let double = [&varint(4 << 3 | 1)[..], &1.5_f64.to_le_bytes()].concat();
    let odd = [&varint(4 << 3 | 1)[..], &f64::NAN.to_le_bytes()].concat();
    let body = request_of(
        &[
            pair("text", &field(1, b"")),
            pair("yes", &numbered(2, 1)),
            pair("less", &numbered(3, (-7_i64).cast_unsigned())),
            pair("half", &double),
            pair("odd", &odd),
            pair("list", &list),
            pair("map", &map),
            pair("bytes", &field(7, &[0, 255])),
            pair("nothing", b""),
        ],
        &[
            numbered(6, 3),
            [&varint(7 << 3 | 1)[..], &7_u64.to_le_bytes()].concat(),
            [&varint(16 << 3 | 5)[..], &257_u32.to_le_bytes()].concat(),
            numbered(99, 1),
        ]
        .concat(),
    );
    let (lines, unknown) = lines(&body);
    assert_eq!(unknown, 1);
    let span = &lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "5b".repeat(16));
    assert_eq!((&span["kind"], &span["flags"]), (&3.into(), &257.into()));
    assert_eq!(span["startTimeUnixNano"], "7");
    let values: Vec<String> = span["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["value"].to_string())
        .collect();
    assert_eq!(
        values,
        [
            r#"{"stringValue":""}"#,
            r#"{"boolValue":true}"#,
            r#"{"intValue":"-7"}"#,
            r#"{"doubleValue":1.5}"#,
            r#"{"doubleValue":"NaN"}"#,
            r#"{"arrayValue":{"values":[{"boolValue":true},{"stringValue":"x"}]}}"#,
            r#"{"kvlistValue":{"values":[{"key":"k","value":{"intValue":"-1"}}]}}"#,
            r#"{"bytesValue":"AP8="}"#,
            "{}",
        ]
    );
}

#[test]
fn what_nests_too_deep_is_rejected_alone() {
    let mut value = field(1, b"deep");
    for _ in 0..200 {
        value = field(5, &field(1, &value));
    }
    let mut body = request_of(&[pair("deep", &value)], &[]);
    body.extend(request_of(&[pair("flat", &field(1, b"x"))], &[]));
    let request = split(
        Signal::Traces,
        Encoding::Protobuf,
        &body,
        &Limits::default(),
    )
    .unwrap();
    assert_eq!((request.records.len(), request.rejected), (1, 1));
    assert!(
        request.reasons[0].contains("deeper"),
        "{:?}",
        request.reasons
    );
}

#[test]
fn limits_are_kept() {
    let body = request_of(&[pair("long", &field(1, &[b'x'; 5_000]))], &[]);
    let reject = |limits: Limits, word: &str| {
        let request = split(Signal::Traces, Encoding::Protobuf, &body, &limits).unwrap();
        assert_eq!((request.records.len(), request.rejected), (0, 1), "{word}");
        assert!(request.reasons[0].contains(word), "{:?}", request.reasons);
    };
    let usual = Limits::default();
    reject(
        Limits {
            attribute: 4_000,
            ..usual
        },
        "attribute \"long\"",
    );
    reject(
        Limits {
            record: 4_000,
            ..usual
        },
        "longer than 4000",
    );
    reject(
        Limits {
            records: 0,
            ..usual
        },
        "more than 0 spans",
    );
    reject(
        Limits {
            lines: 4_000,
            ..usual
        },
        "take more than",
    );
    let too_long = split(
        Signal::Traces,
        Encoding::Json,
        &body,
        &Limits { body: 9, ..usual },
    );
    assert!(matches!(
        too_long,
        Err(BadRequest::TooLong { limit: 9, .. })
    ));
}

/// The most memory that this process had, in KiB; `None` where the system does not tell.
fn most_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Takes a bomb of nearly 64 MiB, and says how many KiB that took beside the bomb.
fn memory_for(bomb: &[u8], signal: Signal, encoding: Encoding) -> (Request, usize) {
    let limits = Limits::default();
    assert!(bomb.len() <= limits.body && bomb.len() > limits.body - (1 << 20));
    let before = most_memory();
    let request = split(signal, encoding, bomb, &limits).unwrap();
    assert_eq!(request.records.len(), 0);
    let took = before.zip(most_memory()).map(|(from, to)| to - from);
    (request, took.unwrap_or(0))
}

/// The most that a request may take beside its body, in KiB.
const ENOUGH: usize = 160 << 10;

#[test]
fn a_record_of_nothing_but_small_fields_takes_little_memory() {
    let (scope, log) = (
        [field(1, &[0x5b; 16]), field(2, &[0xee; 8])].concat(),
        Vec::new(),
    );
    for (signal, ids, number) in [(Signal::Traces, scope, 9_u64), (Signal::Logs, log, 6)] {
        let fields = |length: usize| [&ids[..], &field(number, b"").repeat(length / 2)].concat();
        // Longer than a record may be; and as long, four times.
        for (records, length) in [(1, (64 << 20) - 64), (4, (16 << 20) - 64)] {
            let record = field(2, &fields(length));
            let body = field(1, &field(2, &record.repeat(records)));
            drop(record);
            let (request, took) = memory_for(&body, signal, Encoding::Protobuf);
            assert_eq!(request.rejected, records as u64);
            assert_eq!(request.reasons.len(), 1, "{:?}", request.reasons);
            assert!(request.reasons[0].contains("longer than 16777216 bytes"));
            assert!(took < ENOUGH, "{signal:?}, {records} records: {took} KiB");
        }
    }
}

#[test]
fn many_small_records_scopes_and_resources_take_little_memory() {
    let many = ((64 << 20) - 64) / 2;
    let records = field(1, &field(2, &field(2, b"").repeat(many)));
    let (request, took) = memory_for(&records, Signal::Traces, Encoding::Protobuf);
    assert_eq!(request.rejected, many as u64);
    let why = request.reasons.join("; ");
    assert!(why.contains("traceId"), "{why}");
    assert!(why.contains("more than 50000 spans"), "{why}");
    assert!(took < ENOUGH, "records: {took} KiB");
    drop(records);
    for body in [
        field(1, &field(2, b"").repeat(many)),
        field(1, b"").repeat(many),
    ] {
        let (request, took) = memory_for(&body, Signal::Traces, Encoding::Protobuf);
        assert_eq!(request.rejected, 0);
        assert!(took < ENOUGH, "{took} KiB");
    }
}

/// One byte becomes six: a text of control characters.
#[test]
fn texts_and_resources_that_grow_as_json_take_little_memory() {
    let ones = vec![1_u8; (16 << 20) - 128];
    let span = request_of(&[pair("ones", &field(1, &ones))], &[]);
    let body = span.repeat(4);
    drop((ones, span));
    let (request, took) = memory_for(&body, Signal::Traces, Encoding::Protobuf);
    assert_eq!(request.rejected, 4);
    assert!(took < ENOUGH, "text: {took} KiB");
    drop(body);
    // A resource that is too long is not unpacked. Its records are rejected.
    let long = field(1, &field(1, b"").repeat(((64 << 20) - 128) / 2));
    let span = [field(1, &[0x5b; 16]), field(2, &[0xee; 8])].concat();
    let body = field(1, &[long, field(2, &field(2, &span))].concat());
    let (request, took) = memory_for(&body, Signal::Traces, Encoding::Protobuf);
    assert_eq!(request.rejected, 1);
    assert!(request.reasons[0].contains("resource and scope are longer"));
    assert!(took < ENOUGH, "resource: {took} KiB");
}

/// A resource in JSON is not copied for each of its scopes.
#[test]
fn a_long_resource_with_many_scopes_takes_no_time() {
    let long = "x".repeat(32 << 20);
    let scopes = vec!["{}"; 200_000].join(",");
    let body = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"{long}"}}]}},"scopeSpans":[{scopes},{{"spans":[{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"}}]}}]}}]}}"#
    );
    let begun = std::time::Instant::now();
    let limits = Limits::default();
    let request = split(Signal::Traces, Encoding::Json, body.as_bytes(), &limits).unwrap();
    assert_eq!((request.records.len(), request.rejected), (0, 1));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn a_field_that_comes_twice_is_counted() {
    let twice = [numbered(6, 1), numbered(6, 3)].concat();
    let (lines, unknown) = lines(&request_of(&[], &twice));
    let span = &lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!((&span["kind"], unknown), (&3.into(), 1));
}

#[test]
fn what_is_of_a_model_is_told_from_the_rest() {
    let of = |signal: Signal, record: &str| {
        let [lists, scopes, records] = match signal {
            Signal::Traces => ["resourceSpans", "scopeSpans", "spans"],
            Signal::Logs => ["resourceLogs", "scopeLogs", "logRecords"],
        };
        let body = format!(
            r#"{{"{lists}":[{{"{scopes}":[{{"{records}":[{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",{record}}}]}}]}}]}}"#
        );
        let limits = Limits::default();
        let request = split(signal, Encoding::Json, body.as_bytes(), &limits).unwrap();
        request.records[0].of_a_model
    };
    let attribute =
        |key: &str| format!(r#""attributes":[{{"key":"{key}","value":{{"intValue":"1"}}}}]"#);
    for key in [
        "gen_ai.request.model",
        "llm.model_name",
        "openinference.span.kind",
        "traceloop.span.kind",
        "quipu.seq",
    ] {
        assert!(of(Signal::Traces, &attribute(key)), "{key}");
        assert!(of(Signal::Logs, &attribute(key)), "{key}");
        let event = format!(r#""events":[{{"name":"x",{}}}]"#, attribute(key));
        assert!(of(Signal::Traces, &event), "{key}");
    }
    let named = r#""attributes":[{"key":"session.id","value":{"stringValue":"s"}}]"#;
    assert!(of(Signal::Traces, named));
    assert!(of(Signal::Traces, r#""events":[{"name":"gen_ai.choice"}]"#));
    assert!(of(Signal::Logs, r#""eventName":"gen_ai.user.message""#));
    let old = r#""attributes":[{"key":"event.name","value":{"stringValue":"gen_ai.choice"}}]"#;
    assert!(of(Signal::Logs, old));
    for key in [
        "http.request.method",
        "db.system.name",
        "llms",
        "service.name",
    ] {
        assert!(!of(Signal::Traces, &attribute(key)), "{key}");
    }
    assert!(!of(
        Signal::Logs,
        r#""body":{"stringValue":"gen_ai.choice"}"#
    ));
}

#[test]
fn a_refusal_has_the_number_that_grpc_has_for_it() {
    for (status, code) in [
        (400, 3),
        (401, 16),
        (403, 7),
        (408, 4),
        (413, 8),
        (415, 3),
        (429, 8),
        (500, 13),
        (503, 14),
    ] {
        let json = refusal(Encoding::Json, status, "no \"such\"");
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let expected = serde_json::json!({"code": code, "message": "no \"such\""});
        assert_eq!(json, expected);
        let binary = refusal(Encoding::Protobuf, status, "no");
        assert_eq!(binary, [0x08, code, 0x12, 2, b'n', b'o']);
    }
}

#[test]
fn the_answer_is_in_the_encoding_of_the_request() {
    let json = answer(Signal::Logs, Encoding::Json, 2, "a \"b\"");
    assert_eq!(
        String::from_utf8(json).unwrap(),
        r#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"a \"b\""}}"#
    );
    let binary = answer(Signal::Traces, Encoding::Protobuf, 2, "ab");
    assert_eq!(binary, [0x0a, 6, 0x08, 2, 0x12, 2, b'a', b'b']);
    assert_eq!(answer(Signal::Traces, Encoding::Protobuf, 0, ""), b"");
    assert_eq!(answer(Signal::Traces, Encoding::Json, 0, ""), b"{}");
}

#[test]
fn what_the_writer_wrote_is_the_same_in_both_encodings() {
    for golden in [
        include_str!("golden/gen-ai-content.jsonl"),
        include_str!("golden/open-inference-content.jsonl"),
    ] {
        for line in golden.lines() {
            let of = |encoding, body: &[u8]| {
                let request = split(Signal::Traces, encoding, body, &Limits::default()).unwrap();
                assert_eq!((request.rejected, request.unknown_fields), (0, 0));
                let records = request.records.into_iter();
                let records = records.map(|record| {
                    let line: serde_json::Value = serde_json::from_str(&record.line).unwrap();
                    let mut span = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
                    // Nothing is the same as what is empty.
                    span.as_object_mut()
                        .unwrap()
                        .retain(|_, it| !it.is_array() || it[0] != serde_json::Value::Null);
                    (
                        span,
                        record.trace,
                        record.conversation,
                        record.service,
                        record.began,
                    )
                });
                records.collect::<Vec<_>>()
            };
            let binary = protobuf(line.as_bytes()).unwrap();
            let (json, binary) = (
                of(Encoding::Json, line.as_bytes()),
                of(Encoding::Protobuf, &binary),
            );
            assert!(!json.is_empty());
            assert_eq!(json, binary);
        }
    }
}

proptest! {
    /// No bytes do any harm, and what is taken is JSON on one line.
    #[test]
    fn any_bytes_are_taken_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let mut body = request_of(&[pair("k", &field(1, b"value"))], &numbered(6, 1));
        let place = at.index(body.len());
        body[place] = with;
        let cut = &body[..place];
        for body in [&bytes[..], &body[..], cut] {
            for signal in [Signal::Traces, Signal::Logs] {
                for encoding in [Encoding::Json, Encoding::Protobuf] {
                    let Ok(request) = split(signal, encoding, body, &Limits::default()) else {
                        continue;
                    };
                    for record in request.records {
                        prop_assert!(!record.line.contains('\n'));
                        let mut tape = quipu_model::json::Tape::new();
                        let mut records = 0;
                        each(tape.read(&record.line, 128).unwrap(), |_| records += 1);
                        prop_assert_eq!(records, 1);
                    }
                }
            }
        }
    }
}
