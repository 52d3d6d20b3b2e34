//! Documents of others: what is there is read, what is not known is kept.

use quipu_model::{Body, Content, NoteKind, Status};

use super::round_trip::{read_all, rewrite};
use crate::normalized::{NormalizedError, Section, ToolOutput, read};

const MINIMAL: &str = r#"{
  "schemaVersion": "0.1.0",
  "transcriptId": "9f1c2d3e-0000-4000-8000-000000000001",
  "source": {"agent": "codex", "agentVersion": null, "adapter": "codex", "adapterVersion": "0.9.0", "channel": [1, 2.50]},
  "session": {"startedAt": "2026-06-22T10:00:00Z", "endedAt": "2026-06-22T10:42:00Z", "capturedAt": "2026-06-22T10:43:11Z",
    "environment": {"os": "darwin", "shell": "zsh", "cwd": "<anonymized>", "tz": "UTC", "repo": {"name": "app", "remote": "<anonymized>", "commit": "a1b2c3d", "dirty": true}}},
  "submitter": {"keyId": "key_2a9f", "pseudonym": "anon_7c41", "identityLinked": true, "team": "x"},
  "privacy": {"profile": "research", "redactionApplied": true, "anonymizationApplied": true, "rulesApplied": ["aws", "emails"], "redactionCount": 14, "contentPolicy": {"includeFileContents": false, "toolOutput": "truncated", "images": "none"}, "reviewed": true},
  "metrics": {"eventCount": 5, "messageCount": 2, "toolCallCount": 1, "durationMs": 2520000, "tokens": {"input": 38211, "output": 9120, "audio": 1}, "stars": 3},
  "x-lab": {"b": 1, "a": 2},
  "events": [
    {"id": "e-1", "seq": 10, "timestamp": "2026-06-22T10:00:03Z", "type": "user_message", "role": "system", "text": "hi", "mood": "calm"},
    {"id": "ev_011", "seq": 11, "timestamp": "2026-06-22T10:00:04Z", "type": "tool_call", "role": "assistant", "text": "Running the test suite", "tool": {"name": "Bash", "callId": "call_88", "input": {"command": "npm test"}, "sandbox": true}},
    {"id": "ev_012", "seq": 12, "timestamp": "2026-06-22T10:00:05Z", "type": "tool_result", "role": "tool", "tool": {"name": "Bash", "callId": "call_88", "output": "…", "status": "timeout", "durationMs": 4200}, "redactions": [{"field": "tool.output", "ruleId": "aws", "type": "secret", "placeholder": "…"}]},
    {"id": "ev_013", "seq": 13, "timestamp": "2026-06-22T10:00:06Z", "type": "reasoning", "role": "assistant", "text": "hm", "usage": {"input_tokens": 5}},
    {"id": "ev_014", "seq": 14, "timestamp": "2026-06-22T10:42:00Z", "type": "meta", "role": "system", "text": "cut here"}
  ],
  "signature": "abc"
}"#;

#[test]
fn a_minimal_document_reads() {
    let (read, events) = read_all(MINIMAL.as_bytes());
    assert_eq!(read.header.agent(), Some("codex"));
    assert_eq!(
        read.header.run_id.as_str(),
        "9f1c2d3e-0000-4000-8000-000000000001"
    );
    assert_eq!(read.header.environment.commit.as_deref(), Some("a1b2c3d"));
    assert_eq!(read.header.totals.usage.input, Some(38211));
    let options = &read.options;
    assert_eq!(options.adapter_version.as_deref(), Some("0.9.0"));
    assert!(options.captured_at.is_some());
    assert_eq!(
        options.submitter.as_ref().unwrap().identity_linked,
        Some(true)
    );
    let privacy = options.privacy.as_ref().unwrap();
    assert_eq!(privacy.redaction_count, Some(14));
    let policy = privacy.content_policy.as_ref().unwrap();
    assert_eq!(policy.tool_output, Some(ToolOutput::Truncated));
    let sections: Vec<(Section, &str)> = options
        .extra
        .iter()
        .map(|extra| (extra.section, extra.key.as_str()))
        .collect();
    let expected = [
        (Section::Source, "channel"),
        (Section::Environment, "tz"),
        (Section::Repo, "name"),
        (Section::Repo, "dirty"),
        (Section::Submitter, "team"),
        (Section::ContentPolicy, "images"),
        (Section::Privacy, "reviewed"),
        (Section::Tokens, "audio"),
        (Section::Metrics, "stars"),
        (Section::Document, "x-lab"),
        (Section::Document, "signature"),
    ];
    assert_eq!(sections, expected);
    assert!(read.unread.is_empty());
    assert_eq!(read.beyond, 4);

    let bodies: Vec<&Body> = events.iter().map(|(event, _)| &event.body).collect();
    assert_eq!(events[0].0.seq, 10);
    assert!(matches!(bodies[1], Body::ToolCall(call) if call.call_id == "call_88"));
    assert_eq!(events[1].1.extra[0].0, "text");
    assert_eq!(events[2].0.annotations.status, Some(Status::Timeout));
    assert!(matches!(bodies[3], Body::AssistantMessage(blocks)
        if matches!(blocks[0].content, Content::Thinking(_))));
    assert!(matches!(bodies[4], Body::Note(note)
        if note.kind == NoteKind::Context && note.text.as_deref() == Some("cut here")));
}

/// Every value that is not known is in what is written again, as it was.
#[test]
fn what_is_not_known_is_written_again() {
    let (again, loss) = rewrite(MINIMAL.as_bytes());
    assert!(loss.is_complete(), "{loss}");
    let again = String::from_utf8(again).unwrap();
    for kept in [
        r#""channel":[1, 2.50]"#,
        r#""tz":"UTC""#,
        r#""name":"app""#,
        r#""dirty":true"#,
        r#""team":"x""#,
        r#""images":"none""#,
        r#""reviewed":true"#,
        r#""audio":1"#,
        r#""stars":3"#,
        r#""x-lab":{"b": 1, "a": 2}"#,
        r#""signature":"abc""#,
        r#""id":"e-1""#,
        r#""role":"system","text":"hi""#,
        r#""mood":"calm""#,
        r#""text":"Running the test suite""#,
        r#""sandbox":true"#,
        r#""usage":{"input_tokens": 5}"#,
        r#""redactions":[{"field":"tool.output","ruleId":"aws","type":"secret","placeholder":"…"}]"#,
        r#""adapterVersion":"0.9.0""#,
    ] {
        assert!(again.contains(kept), "{kept} is not in {again}");
    }
    let twice = rewrite(again.as_bytes()).0;
    assert_eq!(String::from_utf8(twice).unwrap(), again);
}

#[test]
fn fields_that_hold_something_else_are_kept_and_the_rest_is_read() {
    let document = r#"{"schemaVersion":"0.1.0","session":{"startedAt":5},"metrics":[],"events":[
        7,
        {"type":"applause","seq":2,"clap":true},
        {"type":"user_message","seq":"3","timestamp":"yesterday","text":["x"],"blocks":[{"type":"hologram"}],"usage":-1,"opaque":"yes"},
        {"type":"tool_result","text":"out","tool":{"callId":7,"status":"odd"}},
        {"type":"meta","meta":{"kind":"applause","n":1}},
        {"type":"meta","meta":{"kind":"step","event":"step.started"}}]}"#;
    let (read, events) = read_all(document.as_bytes());
    let unread: Vec<&str> = read.unread.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(unread, ["session.startedAt", "metrics"]);
    assert_eq!(events.len(), 6);
    let raw = |at: usize| match &events[at].0.body {
        Body::Note(note) => note.raw.as_ref().map(|raw| raw.get().to_owned()),
        _ => None,
    };
    assert_eq!(raw(0).as_deref(), Some("7"));
    assert!(raw(1).unwrap().contains("clap"));
    assert!(raw(4).unwrap().contains("applause"));
    assert!(raw(5).unwrap().contains("step.started"));
    let (third, beyond) = &events[2];
    assert!(third.annotations.flags.undated);
    assert_eq!(third.seq, 3, "by its place");
    let keys: Vec<&str> = beyond.extra.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["seq", "timestamp", "text", "usage", "opaque", "blocks"]
    );
    let (fourth, beyond) = &events[3];
    assert!(matches!(&fourth.body, Body::ToolResult(result)
        if result.output.as_ref().unwrap().get() == "\"out\""));
    let keys: Vec<&str> = beyond.tool.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["callId", "nativeStatus"]);
    let (again, loss) = rewrite(document.as_bytes());
    assert!(loss.dropped.contains_key("unread timestamp"), "{loss}");
    assert!(
        !loss.dropped.contains_key("unread usage"),
        "it is written again"
    );
    assert!(String::from_utf8(again).unwrap().contains(r#""usage":-1"#));
}

#[test]
fn metrics_are_held_against_what_was_counted() {
    let wrong = MINIMAL.replace("\"messageCount\": 2", "\"messageCount\": 3");
    let (read, _) = read_all(wrong.as_bytes());
    let fields: Vec<(&str, &str, &str)> = read
        .mismatches
        .iter()
        .map(|m| (m.field.as_ref(), m.stated.as_str(), m.counted.as_str()))
        .collect();
    assert_eq!(fields, [("messageCount", "3", "1")]);
}

#[test]
fn errors_say_where_and_what() {
    let fails = |text: &str| read(text.as_bytes(), &mut |_| {}).unwrap_err();
    let says = |text: &str, expected: &str| {
        let error = fails(text).to_string();
        assert!(error.contains(expected), "{error}");
    };
    says("[]", "line 1: expected an object at byte 0");
    says(
        "{\"events\":[\n{\"seq\":1},\n{\"seq\":",
        "line 3: the document ends at byte 30, in `events[1]`",
    );
    says(
        "{\"events\":[\n{\"seq\":1},\n{\"seq\":tru}]}",
        "line 3, byte 23: `events[1]` is not JSON",
    );
    says(
        "{\"schemaVersion\":\"1.0.0\"}",
        "schemaVersion is \"1.0.0\"",
    );
    assert!(matches!(fails("{}"), NormalizedError::NotATranscript));
    assert!(matches!(fails(""), NormalizedError::NotADocument { .. }));
    let mut not_utf8 = b"{\"events\":[\"".to_vec();
    not_utf8.extend_from_slice(b"\xff\"]}");
    let error = read(&not_utf8[..], &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"));
}
