//! Chunks, harness events, blobs and errors: records that are one event each, both ways.

use std::io;

use proptest::prelude::*;
use quipu_formats::agentlog::project::{Facts, Made, ProjectionOptions, Projector, Sink};
use quipu_formats::agentlog::verify::{VerifyOptions as Checks, verify};
use quipu_formats::arbitrary;
use quipu_model::{
    Annotations, Attachment, Body, Chunk, Event, Failure, Fidelity, HarnessEvent, Header, Json,
    Notes, Place, RunId, Severity, Timestamp,
};
use serde_json::json;

use super::Log;
use crate::testkit::read;

#[derive(Default)]
struct Lines(Vec<u8>);

impl Sink for Lines {
    fn record(&mut self, made: &Made<'_>) -> io::Result<()> {
        self.0.extend_from_slice(made.line);
        Ok(())
    }

    fn blob(&mut self, _: &Attachment, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// The trace of these events, and what was lost.
fn trace(bodies: &[Body], extra: Option<&str>) -> (Vec<u8>, quipu_formats::loss::Loss) {
    let run_id = RunId::new("r").unwrap();
    let mut projector = Projector::new(
        Facts::of(&Header::new(run_id.clone())),
        ProjectionOptions::default(),
    );
    let mut lines = Lines::default();
    for (body, seq) in bodies.iter().zip(1..) {
        let event = Event {
            seq,
            run_id: run_id.clone(),
            parent_run_id: None,
            timestamp: Timestamp::from_second(1_700_000_000).unwrap(),
            place: Place::run(),
            body: body.clone(),
            annotations: Annotations::from(Notes {
                extra: extra.map(|extra| Json::parse(extra).unwrap()),
                ..Notes::default()
            }),
        };
        projector.event(&event, &mut lines).unwrap();
    }
    let loss = projector.finish(&mut lines).unwrap();
    (lines.0, loss)
}

fn is_single(body: &Body) -> bool {
    match body {
        Body::Chunk(_) | Body::Harness(_) | Body::Error(_) => true,
        Body::Blob(blob) => blob.sha256.len() == 64,
        _ => false,
    }
}

/// The events of a trace that are one record each, by kind: chunks stand before their response.
fn singles(bodies: impl Iterator<Item = Body>) -> Vec<Body> {
    let mut found: Vec<_> = bodies.filter(is_single).collect();
    found.sort_by_key(|body| body.type_word().to_owned());
    found
}

fn again(trace: &[u8]) -> Vec<Body> {
    let read = read(trace, "r.agentlog").unwrap();
    singles(read.events.into_iter().map(|event| event.body))
}

/// What the format has a word for is in the record alone; everything else is in `meta`.
#[test]
fn records_say_what_events_say() {
    let harness = HarnessEvent {
        category: "retry".to_owned(),
        name: "backoff".to_owned(),
        severity: Some(Severity::Warning),
        attributes: Some(Json::parse(r#"{"n":1.50}"#).unwrap()),
    };
    let failure = Failure {
        source: Some("llm".to_owned()),
        code: Some("E17".to_owned()),
        message: "no".to_owned(),
        retryable: Some(true),
    };
    let chunk = Chunk {
        index: 0,
        text: "Hel".to_owned(),
        delta: Some(Json::parse(r#"{"text":"Hel"}"#).unwrap()),
        arrived_at: Some(Timestamp::from_nanosecond(1_700_000_000_000_000_001).unwrap()),
        is_last: true,
        fidelity: Fidelity::AgentEmitted,
    };
    let blob = Attachment {
        mime: "image/png".to_owned(),
        bytes: 3,
        sha256: "ab".repeat(32),
    };
    let other = HarnessEvent {
        category: "weather".to_owned(),
        severity: None,
        ..harness.clone()
    };
    for (body, is_all) in [
        (Body::Harness(harness), true),
        (Body::Error(failure.clone()), true),
        (Body::Chunk(chunk.clone()), true),
        (Body::Blob(blob), true),
        (Body::Harness(other), false),
        (
            Body::Error(Failure {
                source: None,
                ..failure
            }),
            false,
        ),
        (
            Body::Chunk(Chunk {
                delta: None,
                arrived_at: None,
                ..chunk
            }),
            false,
        ),
    ] {
        let (trace, loss) = trace(std::slice::from_ref(&body), None);
        assert!(
            loss.dropped.is_empty() && loss.wrapped.is_empty(),
            "{body:?} {loss:?}"
        );
        let text = String::from_utf8(trace.clone()).unwrap();
        assert_eq!(!text.contains("\"fields\""), is_all, "{text}");
        assert_eq!(again(&trace), [body]);
    }
}

/// A record of another program is an event of that kind, and the event is that record again.
#[test]
fn records_of_others_are_events_with_all_their_fields() {
    for (kind, payload) in [
        (
            "error",
            json!({"source": "tool", "code": "E", "message": "no", "retriable": true, "upstream_status": 429, "try": [1]}),
        ),
        (
            "harness_event",
            json!({"category": "budget", "name": "spent", "severity": "fatal", "attributes": {"usd": 1.5}, "more": "x"}),
        ),
        (
            "blob_ref",
            json!({"mime": "image/png", "size_bytes": 12, "blob_id": format!("sha256:{}", "ab".repeat(32)), "uri": format!("agentlog-blob://x/{}", "ab".repeat(32))}),
        ),
    ] {
        let mut log = Log::new();
        log.add(kind, &payload);
        let events = log.read().events;
        assert!(is_single(&events[1].body), "{kind}");
        let extra = events[1]
            .annotations
            .extra
            .as_ref()
            .map(|extra| extra.get().to_owned());
        let (trace, _) = trace(&[events[1].body.clone()], extra.as_deref());
        let records = String::from_utf8(trace).unwrap();
        let record: serde_json::Value =
            serde_json::from_str(records.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&record["kind"], &record["payload"]),
            (&json!(kind), &payload)
        );
    }
    // What lacks a field that such an event needs is kept whole.
    for (kind, payload) in [
        (
            "chunk",
            json!({"chunk_index": -1, "time_unix_nano": 1, "delta": {}}),
        ),
        ("error", json!({"source": "tool"})),
        (
            "harness_event",
            json!({"category": "retry", "name": "x", "severity": "awful"}),
        ),
    ] {
        let mut log = Log::new();
        log.add(kind, &payload);
        let events = log.read().events;
        let Body::Note(note) = &events[1].body else {
            panic!("{kind} {:?}", events[1].body);
        };
        assert!(note.raw.as_ref().unwrap().get().contains("payload"));
    }
}

proptest! {
    /// Whatever such an event says, its trace is as the format wants it, and reads as the same event.
    #[test]
    fn every_event_that_is_one_record_comes_back(bodies in prop::collection::vec(arbitrary::other_kind(), 1..6)) {
        let (trace, _) = trace(&bodies, None);
        let report = verify(&trace[..], &Checks::default()).unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
        prop_assert_eq!(again(&trace), singles(bodies.into_iter()));
    }
}
