//! Tests of the exchange format.

mod corpus;
mod decode;
mod draft;
mod encode;
mod hostile;
mod reader;
mod seal;
mod strict;
mod verify;

use quipu_model::{Annotations, Body, Event, Place, RunId, Step};

use super::{Decoded, Escapes, Reader};

/// The first event of run `r1`, in step `a`.
fn event(body: Body) -> Event {
    Event {
        seq: 1,
        run_id: RunId::new("r1").unwrap(),
        parent_run_id: None,
        timestamp: "2026-06-08T08:14:42.123Z".parse().unwrap(),
        place: Place::step("a"),
        body,
        annotations: Annotations::default(),
    }
}

fn step(kind: &str) -> Step {
    Step::new("a", kind)
}

fn encode(event: &Event, escapes: Escapes) -> String {
    let mut line = Vec::new();
    super::encode(event, escapes, &mut line).unwrap();
    String::from_utf8(line).unwrap()
}

/// A line of run `r1` with this number, type and payload.
fn line(seq: u64, event_type: &str, payload: &str) -> String {
    format!(
        concat!(
            r#"{{"seq":{},"run_id":"r1","type":"{}","path":"a","iteration":0,"#,
            r#""timestamp":"2026-06-08T08:14:42Z","payload":{}}}"#
        ),
        seq, event_type, payload
    )
}

/// The shortest of them.
fn run(seq: u64) -> String {
    line(seq, "run.started", "null")
}

/// Reads the one event of a line, which may be without its end.
#[track_caller]
fn read_one(text: &str) -> Decoded {
    let text = format!("{}\n", text.trim_end_matches('\n'));
    let mut reader = Reader::new(text.as_bytes());
    let one = match reader.next_decoded().unwrap() {
        Some(Ok(decoded)) => decoded,
        other => panic!("{other:?} in {text}"),
    };
    assert!(
        reader.next_decoded().unwrap().is_none(),
        "more than one event: {text}"
    );
    one
}

#[track_caller]
fn known(decoded: &Decoded) -> &Body {
    match &decoded.event.body {
        other @ Body::Unknown(_) => panic!("{other:?}"),
        body => body,
    }
}
