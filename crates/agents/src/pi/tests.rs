use insta::assert_snapshot;

use crate::testkit::{hostile, read};

const SESSION: &str = include_str!("../../fixtures/pi/session.jsonl");

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "2026-01-02T03-04-05-000Z_s1.jsonl").unwrap();
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            usage.reasoning
        ),
        (Some(16), Some(3), Some(2), Some(9), Some(4))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.3"));
    assert_eq!(read.session.title.as_deref(), Some("Listing"));
    // The first reply and what came of it is no longer on the branch.
    let left: Vec<u64> = read
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .map(|event| event.seq)
        .collect();
    assert_eq!(left, [5, 6, 7, 8]);
    assert_eq!(read.blobs, 1);
}

const OMP: &str = include_str!("../../fixtures/omp/session.jsonl");

#[test]
fn a_sub_agent_of_oh_my_pi() {
    let path = "--work--/2026-01-02T03-00-00-000Z_parent/0-Scout.jsonl";
    let read = read(OMP.as_bytes(), path).unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.dialect.name, "omp");
    assert_eq!(read.session.parent.as_deref(), Some("parent"));
    assert_eq!(read.session.title.as_deref(), Some("Looked"));
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.0000001"));
}

#[test]
fn the_first_version_had_no_ids() {
    let log = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-01-02T03:04:05.000Z","cwd":"/w","provider":"p","modelId":"m","thinkingLevel":"off"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi","timestamp":1735787046000}}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"hi","timestamp":1735787046000}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "old.jsonl").unwrap();
    assert_eq!(
        read.words(),
        ["note.session", "message.user", "message.user"]
    );
    assert!(read.ledger.drift.is_empty(), "{:?}", read.ledger.drift);
}

const STREAM: &str = include_str!("../../fixtures/pi-stream/session.jsonl");

#[test]
fn a_stream() {
    let read = read(STREAM.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect.name, "pi-stream");
    assert_eq!(
        read.words(),
        [
            "note.session",
            "note.turn",
            "message.user",
            "message.assistant",
            "note.retry",
            // What had come of a message when the stream ended.
            "message.assistant",
        ]
    );
    assert_eq!(read.usage().total(), 3);
    let last = &read.events[5].body;
    assert!(format!("{last:?}").contains("and th"));
}

#[test]
fn broken_logs() {
    hostile(&super::Pi, super::SESSION, SESSION);
    hostile(&super::Pi, super::OMP, OMP);
    hostile(&super::Pi, super::STREAM, STREAM);
}

/// The totals that the agent writes beside each usage come to what is counted.
#[test]
fn real_totals() {
    let mut seen = 0;
    for folder in ["pi", "omp", "openclaw"] {
        for (name, bytes) in crate::corpus::logs(folder) {
            let read = read(&bytes, &name).unwrap();
            let is_stream = read.dialect.name == "pi-stream";
            let text = String::from_utf8_lossy(&bytes);
            let total: u64 = text
                .lines()
                .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
                .filter(|line| line["type"] == if is_stream { "message_end" } else { "message" })
                .filter_map(|line| line["message"]["usage"]["totalTokens"].as_u64())
                .sum();
            seen += usize::from(total > 0);
            assert_eq!(read.usage().total(), total, "{name}");
        }
    }
    assert!(seen == 0 || seen >= 5, "{seen}");
}

#[test]
fn places_of_the_machine() {
    use crate::{Family as _, Host, Pick};
    let host = Host::new("/home/u", |_| None);
    let places = super::Pi.places(&host);
    let picked = |brand: &str, below: &str| {
        let place = places.iter().find(|place| place.brand == brand).unwrap();
        (place.pick)(below.as_ref())
    };
    assert_eq!(picked("pi", "--w--/2026_a.jsonl"), Pick::Log);
    assert_eq!(picked("pi", "--w--/auth.json"), Pick::Skip);
    assert_eq!(picked("openclaw", "main/sessions/a.jsonl"), Pick::Log);
    assert_eq!(picked("openclaw", "main/agent/a.jsonl"), Pick::Skip);
}

/// `OpenClaw` lets results follow calls, and first entries the session.
#[test]
fn parents_that_are_no_entries() {
    let log = concat!(
        r#"{"type":"session","id":"s","version":3,"timestamp":"2026-01-02T03:04:05Z","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","id":"m1","parentId":"s","timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"hi"}}"#,
        "\n",
        r#"{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-02T03:04:07Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"x","arguments":{}}]}}"#,
        "\n",
        r#"{"type":"message","id":"m3","parentId":"c","timestamp":"2026-01-02T03:04:08Z","message":{"role":"toolResult","toolCallId":"c","toolName":"x","content":"y","isError":false}}"#,
        "\n",
        r#"{"type":"message","id":"m4","parentId":"s","timestamp":"2026-01-02T03:04:09Z","message":{"role":"user","content":"more"}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "s.jsonl").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.session",
            "message.user",
            "tool.call",
            "tool.result",
            "message.user"
        ]
    );
}
