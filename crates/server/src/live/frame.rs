//! What is written to a client: frames of server-sent events.

use std::borrow::Cow;
use std::fmt::Display;

use quipu_exchange::lines::Limits;
use quipu_exchange::{Item, Reader};
use quipu_record::BadLine;
use serde::Serialize;

/// Said to everybody now and then, so that both ends notice when the other is gone. It has no id: a client that reconnects
/// resumes behind the last event that it had.
pub(crate) const HEARTBEAT: &[u8] = b"event: heartbeat\ndata: {}\n\n";

/// How long a client waits before it reconnects, in milliseconds.
const RETRY: u32 = 2000;

/// The name of events whose type cannot be used as one.
const OTHER: &str = "other";

/// The type of the event that ends a run.
const RUN_COMPLETED: &str = "run.completed";

/// An event with an id.
pub(crate) fn event(id: impl Display, name: &str, data: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(format!("id: {id}\nevent: {name}\ndata: ").as_bytes());
    if data.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        // Between the values of a line there may be a carriage return, which would end the field.
        for byte in data {
            match byte {
                b'\r' | b'\n' => into.extend_from_slice(b"\ndata: "),
                byte => into.push(*byte),
            }
        }
    } else {
        into.extend_from_slice(data);
    }
    into.extend_from_slice(b"\n\n");
}

/// Something that is not an event of a transcript, and has no id.
pub(crate) fn notice(name: &str, data: &impl Serialize) -> Vec<u8> {
    // What is said here is made of numbers and texts, which JSON can say; the line breaks of texts are escaped in it.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// The first that a client is told, with how long to wait before it reconnects.
pub(crate) fn connected(data: &impl Serialize) -> Vec<u8> {
    let mut bytes = format!("retry: {RETRY}\n").into_bytes();
    bytes.extend_from_slice(&notice("connected", data));
    bytes
}

/// A line of a run that is not an event.
pub(crate) fn bad(bad: &BadLine) -> Vec<u8> {
    #[derive(Serialize)]
    struct Bad {
        line: u64,
        offset: u64,
        why: String,
    }
    let BadLine { at, fault, .. } = bad;
    notice(
        "bad",
        &Bad {
            line: at.line,
            offset: at.offset,
            why: fault.to_string(),
        },
    )
}

/// What an event of a transcript is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Name(Cow<'static, str>);

impl Name {
    /// The type of the event on a line. What a line says may be anything, so that only plain names are used.
    pub(crate) fn of(line: &[u8]) -> Self {
        let mut reader = Reader::resuming(line, Limits::default(), 0, 0);
        // What is in memory is read, whatever it is.
        let Ok(Some(Item::Event(found))) = reader.next() else {
            return Self(Cow::Borrowed(OTHER));
        };
        let name = &found.scan.event_type;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Self(Cow::Borrowed(OTHER));
        }
        Self(Cow::Owned(name.as_ref().to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the event that ends a run.
    pub(crate) fn ends_run(&self) -> bool {
        self.0 == RUN_COMPLETED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(data: &[u8]) -> String {
        let mut bytes = Vec::new();
        event(7, "note", data, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_frame_is_one_event_whatever_it_says() {
        assert_eq!(
            written(b"{\"a\":1}"),
            "id: 7\nevent: note\ndata: {\"a\":1}\n\n"
        );
        let broken = written(b"{\r\"a\":\n1}");
        assert_eq!(
            broken,
            "id: 7\nevent: note\ndata: {\ndata: \"a\":\ndata: 1}\n\n"
        );
        assert_eq!(
            notice("missed", &serde_json::json!({"why": "a\nb"})),
            b"event: missed\ndata: {\"why\":\"a\\nb\"}\n\n"
        );
    }

    #[test]
    fn only_plain_types_become_names() {
        let line = |name: &str| {
            format!(
                r#"{{"seq":1,"run_id":"r","type":"{name}","path":"","iteration":0,"timestamp":"2026-06-08T08:14:40Z","payload":null}}"#
            )
        };
        for (name, expected) in [
            ("tool.call", "tool.call"),
            ("step.call_workflow.started", "step.call_workflow.started"),
            (r"x\nid: 9", OTHER),
            ("", OTHER),
            ("with space", OTHER),
        ] {
            assert_eq!(Name::of(line(name).as_bytes()).as_str(), expected, "{name}");
        }
        assert_eq!(Name::of(b"not an event").as_str(), OTHER);
        assert!(Name::of(line("run.completed").as_bytes()).ends_run());
    }
}
