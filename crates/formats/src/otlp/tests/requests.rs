//! Requests of other programs, in either encoding.

use proptest::prelude::*;

use crate::otlp::protobuf;
use crate::otlp::request::{BadRequest, Encoding, Limits, Signal, answer, each, split};

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
