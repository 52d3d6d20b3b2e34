//! Requests of OpenTelemetry, in either encoding.

use quipu_formats::otlp::request::{Encoding, Limits, Signal, each, split};
use quipu_model::json::Tape;

/// Small, so that inputs of a few hundred bytes reach them.
const LIMITS: Limits = Limits {
    body: 16 << 10,
    records: 8,
    record: 2 << 10,
    attribute: 1 << 10,
    around: 512,
    lines: 8 << 10,
};

/// Takes a request apart, or refuses it. The first byte says which endpoint it is sent to and how it is written. What is
/// taken is a line with one record that keeps to the limits.
pub fn request(bytes: &[u8]) {
    let Some((how, body)) = bytes.split_first() else {
        return;
    };
    let signal = if how & 1 == 0 {
        Signal::Traces
    } else {
        Signal::Logs
    };
    let encoding = if how & 2 == 0 {
        Encoding::Json
    } else {
        Encoding::Protobuf
    };
    let Ok(request) = split(signal, encoding, body, &LIMITS) else {
        return;
    };
    assert!(request.records.len() <= LIMITS.records);
    assert_eq!(request.rejected == 0, request.reasons.is_empty());
    let mut sum = 0;
    for record in &request.records {
        sum += record.line.len();
        assert!(!record.line.contains(['\n', '\r']));
        let mut tape = Tape::new();
        let node = tape.read(&record.line, 128).expect("a line is JSON");
        let mut records = 0;
        each(node, |standing| {
            assert_eq!(standing.signal, signal);
            records += 1;
        });
        assert_eq!(records, 1);
        let is_id = |id: &String| id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
        assert!(record.trace.iter().all(is_id));
        assert!(signal == Signal::Logs || record.trace.is_some());
    }
    assert!(sum <= LIMITS.lines);
}
