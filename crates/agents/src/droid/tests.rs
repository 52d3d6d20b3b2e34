use insta::assert_snapshot;

use crate::testkit::{hostile, read};
use crate::{Checkpoint, Collect, Family as _, Feed, Origin};

const SESSION: &str = concat!(
    r#"{"type":"session_start","id":"d1","title":"New Session","sessionTitle":"Listing","owner":"u","version":2,"cwd":"/code","callingSessionId":"d0","callingToolUseId":"t0"}"#,
    "\n",
    r#"{"type":"message","id":"m1","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>\nbe brief\n</system-reminder>\n\nlist"}]}}"#,
    "\n",
    r#"{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t1","name":"Execute","input":{"command":"ls"}}]}}"#,
    "\n",
    r#"{"type":"message","id":"m3","parentId":"m2","timestamp":"2026-01-02T03:04:07.500Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"no such file"}]}}"#,
    "\n",
    r#"{"type":"message","id":"m4","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"user","visibility":"user_only","content":[{"type":"text","text":"Context is nearly full"}]}}"#,
    "\n",
    r#"{"type":"message","id":"m5","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"user","content":[],"hookEventName":"PreToolUse","hookResults":[]}}"#,
    "\n",
    r#"{"type":"todo_state","id":"x","timestamp":"2026-01-02T03:04:08.000Z","todos":{"todos":"1. [x] list"},"messageIndex":3}"#,
    "\n",
    r#"{"type":"compaction_state","id":"y","timestamp":"2026-01-02T03:04:09.000Z","summaryText":"listed","summaryKind":"compaction","removedCount":2}"#,
    "\n",
    r#"{"type":"message","id":"m4","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"user","content":"again"}}"#,
    "\n",
);

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

const STREAM: &str = concat!(
    r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","tools":["Execute"],"model":"m","reasoning_effort":"off"}"#,
    "\n",
    r#"{"type":"message","role":"user","id":"1","text":"hi","timestamp":1767323045000,"session_id":"s"}"#,
    "\n",
    r#"{"type":"tool_call","id":"c","messageId":"2","toolId":"Execute","toolName":"Execute","parameters":{"command":"ls"},"timestamp":1767323046000,"session_id":"s"}"#,
    "\n",
    r#"{"type":"tool_result","id":"c","messageId":"3","toolId":"Execute","isError":false,"value":{"stdout":"","exitCode":2},"timestamp":1767323047000,"session_id":"s"}"#,
    "\n",
    r#"{"type":"message","role":"assistant","id":"4","text":"hello","timestamp":1767323048000,"session_id":"s"}"#,
    "\n",
    r#"{"type":"completion","finalText":"hello","numTurns":1,"durationMs":3000,"usage":{"input_tokens":3,"output_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":0},"session_id":"s","timestamp":1767323048100}"#,
    "\n",
    r#"{"type":"error","source":"cli","message":"no key","timestamp":1767323048200,"session_id":"s"}"#,
    "\n",
);

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
