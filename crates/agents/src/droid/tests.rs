use insta::assert_snapshot;

use crate::testkit::{hostile, read};
use crate::{Checkpoint, Collect, Family as _, Feed, Origin};

const SESSION: &str = include_str!("../../fixtures/droid/session.jsonl");

const SETTINGS: &str = r#"{"model":"claude-x","tokenUsage":{"inputTokens":100,"outputTokens":20,"cacheCreationTokens":30,"cacheReadTokens":400,"thinkingTokens":5}}"#;
const LATER: &str = r#"{"model":"claude-x","tokenUsage":{"inputTokens":150,"outputTokens":25,"cacheCreationTokens":30,"cacheReadTokens":500,"thinkingTokens":5}}"#;

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "d1.jsonl").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.session.title.as_deref(), Some("Listing"));
    assert_eq!(read.session.parent.as_deref(), Some("d0"));
    assert_eq!(read.session.parent_call.as_deref(), Some("t0"));
}

/// The settings are read anew whenever the log is: from where it was before, and in one go. The tokens are
/// those of the last time.
#[test]
fn settings_are_counted_once() {
    let dialect = super::SESSION;
    let origin = Origin {
        path: "d1.jsonl".as_ref(),
        part: None,
    };
    let reader = super::Droid.open(&dialect, &origin, None).unwrap();
    let mut feed = Feed::new(dialect.framing, reader);
    let mut sink = Collect::default();
    feed.push(SESSION.as_bytes(), &mut sink);
    let checkpoint = feed.checkpoint().unwrap().to_bytes();
    feed.finish(&mut sink).unwrap();
    feed.sidecar("d1.settings.json", SETTINGS.as_bytes(), &mut sink);
    assert_eq!(feed.ledger().counted().total(), 550);
    assert_eq!(feed.ledger().counted().reasoning, Some(5));
    // In one go.
    feed.sidecar("d1.settings.json", LATER.as_bytes(), &mut sink);
    assert_eq!(feed.ledger().counted().total(), 705);
    // From where it was before.
    let checkpoint = Checkpoint::from_bytes(&checkpoint).unwrap();
    let reader = super::Droid
        .open(&dialect, &origin, Some(checkpoint.reader_state()))
        .unwrap();
    let mut feed = Feed::resume(checkpoint, reader);
    feed.finish(&mut sink).unwrap();
    feed.sidecar("d1.settings.json", LATER.as_bytes(), &mut sink);
    let counted = feed.ledger().counted();
    assert_eq!(counted.total(), 705);
    let vendor = feed.session().vendor_usage.unwrap();
    assert_eq!(quipu_model::Usage::from(vendor), counted);
}

const STREAM: &str = include_str!("../../fixtures/droid-stream/session.jsonl");

#[test]
fn a_stream() {
    let read = read(STREAM.as_bytes(), "out.jsonl").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.dialect.name, "droid-stream");
    assert_eq!(
        Some(read.usage().into()),
        read.session.vendor_usage,
        "what is counted is what the agent says"
    );
}

#[test]
fn broken_logs() {
    hostile(&super::Droid, super::SESSION, SESSION);
    hostile(&super::Droid, super::STREAM, STREAM);
}
