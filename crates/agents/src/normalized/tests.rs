//! Transcripts of others, and our own.

use proptest::prelude::*;
use quipu_formats::arbitrary;
use quipu_formats::normalized::{NormalizedOptions, Writer};
use quipu_model::{Annotations, Body, Event, Header, Place, RunId, Status, Step, Timestamp, Usage};

use super::{Normalized, TRANSCRIPT};
use crate::testkit::{hostile, read};

/// Only what was published, as another program writes it.
const FOREIGN: &str = r#"{
  "schemaVersion": "0.1.0",
  "transcriptId": "9f1c2d3e-0000-4000-8000-000000000001",
  "source": {"agent": "claude-code", "agentVersion": "1.2.3", "adapter": "claude-code", "adapterVersion": "0.1.0"},
  "session": {"startedAt": "2026-06-22T10:00:00Z", "endedAt": "2026-06-22T10:00:09Z", "environment": {"os": "darwin", "cwd": "/code/app", "repo": {"name": "app", "commit": "a1b2c3d"}}},
  "submitter": {"keyId": "key_2a9f", "pseudonym": "anon_7c41", "identityLinked": false},
  "privacy": {"profile": "research", "redactionApplied": true, "anonymizationApplied": true, "rulesApplied": ["aws"], "redactionCount": 1, "contentPolicy": {"includeFileContents": false, "toolOutput": "truncated"}},
  "metrics": {"eventCount": 6, "messageCount": 2, "toolCallCount": 1, "durationMs": 9000, "tokens": {"input": 12, "output": 3}, "costUsd": 0.25},
  "events": [
    {"id": "ev_001", "seq": 1, "timestamp": "2026-06-22T10:00:00Z", "type": "user_message", "role": "user", "text": "run the tests", "redactions": []},
    {"id": "ev_002", "seq": 2, "timestamp": "2026-06-22T10:00:01Z", "type": "reasoning", "role": "assistant", "text": "npm, then"},
    {"id": "ev_003", "seq": 3, "timestamp": "2026-06-22T10:00:02Z", "type": "tool_call", "role": "assistant", "text": "Running them", "tool": {"name": "Bash", "callId": "call_88", "input": {"command": "npm test"}}},
    {"id": "ev_004", "seq": 4, "timestamp": "2026-06-22T10:00:06Z", "type": "tool_result", "role": "tool", "tool": {"name": "Bash", "callId": "call_88", "output": "[REDACTED:aws] denied", "status": "denied", "durationMs": 4200}, "redactions": [{"field": "tool.output", "ruleId": "aws", "type": "secret", "placeholder": "[REDACTED:aws]"}]},
    {"id": "ev_005", "seq": 5, "timestamp": "2026-06-22T10:00:09Z", "type": "assistant_message", "role": "assistant", "text": "It was denied.", "model": "m1", "usage": {"input": 12, "output": 3}},
    {"id": "ev_006", "seq": 6, "timestamp": "2026-06-22T10:00:09Z", "type": "applause", "role": "user", "clap": 3}
  ]
}
"#;

#[test]
fn a_foreign_transcript_reads_like_a_log() {
    let read = read(FOREIGN.as_bytes(), "shared.json").unwrap();
    assert_eq!(read.dialect.name, "normalized");
    assert_eq!(read.dialect.brand, "claude-code");
    assert_eq!(read.error, None);
    let session = &read.session;
    assert_eq!(
        session.id.as_deref(),
        Some("9f1c2d3e-0000-4000-8000-000000000001")
    );
    assert_eq!(session.version.as_deref(), Some("1.2.3"));
    assert_eq!(session.cwd.as_deref(), Some("/code/app"));
    assert_eq!(session.commit.as_deref(), Some("a1b2c3d"));
    assert_eq!(session.vendor_cost.as_deref(), Some("0.25"));
    let words = [
        "note.context",
        "note.context",
        "message.user",
        "message.assistant",
        "message.assistant",
        "tool.call",
        "tool.result",
        "message.assistant",
        "note.unknown_record",
    ];
    assert_eq!(read.words(), words);
    let result = &read.events[6];
    assert_eq!(result.annotations.status, Some(Status::Denied));
    assert_eq!(result.annotations.duration_ms, Some(4200));
    let usage = Usage {
        input: Some(12),
        output: Some(3),
        ..Usage::default()
    };
    assert_eq!(read.usage(), usage);
    let source = result.annotations.source.as_ref().unwrap();
    let at = usize::try_from(source.offset).unwrap();
    assert!(FOREIGN[at..].starts_with("{\"id\": \"ev_004\""));
    assert_eq!(source.line, 13);
}

/// A log of an agent, and the transcript that is made of it, tell the same.
#[test]
fn our_own_transcript_of_a_log_reads_as_the_log_does() {
    let log = concat!(
        r#"{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/code","timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":"hello"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:06Z","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"}],"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"s1","timestamp":"2026-01-02T03:04:07Z","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":9}}}"#,
        "\n",
        r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","timestamp":"2026-01-02T03:04:08Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a b"}]}}"#,
        "\n",
    );
    let from_log = read(log.as_bytes(), "s1.jsonl").unwrap();
    let mut header = Header::new(RunId::new("s1").unwrap());
    header.origin = Some(quipu_model::Origin {
        agent: "claude-code".to_owned(),
        session_id: from_log.session.id.clone().map(Into::into),
        ..quipu_model::Origin::default()
    });
    for event in &from_log.events {
        header.observe(event);
    }
    let mut writer = Writer::new(&header, &NormalizedOptions::default(), Vec::new()).unwrap();
    for event in &from_log.events {
        let nothing = quipu_formats::normalized::Beyond::default();
        writer.write(event, &nothing).unwrap();
    }
    let (_, document) = writer.end().unwrap();
    let from_transcript = read(&document, "s1.json").unwrap();
    assert_eq!(from_transcript.dialect.brand, "claude-code");
    assert_eq!(from_transcript.session.id, from_log.session.id);
    assert_eq!(from_transcript.usage(), from_log.usage());
    assert_eq!(from_transcript.ledger.units, from_log.ledger.units);
    let plain = |events: &[quipu_model::Event]| {
        let mut events = events.to_vec();
        for event in &mut events {
            event.annotations.source = None;
            event.run_id = RunId::new("s1").unwrap();
        }
        events
    };
    assert_eq!(plain(&from_transcript.events), plain(&from_log.events));
}

#[test]
fn steps_of_a_workflow_are_steps_again() {
    let document = r#"{"schemaVersion":"0.1.0","transcriptId":"t","source":{"agent":"quipu"},"events":[
{"id":"ev_001","seq":1,"timestamp":"2026-06-22T10:00:00Z","type":"meta","role":"system","meta":{"kind":"step","event":"step.started","name":"build","stepKind":"command"}},
{"id":"ev_002","seq":2,"timestamp":"2026-06-22T10:00:00Z","type":"assistant_message","role":"assistant","blocks":[{"type":"text","text":"a"},{"type":"tool_use","name":"Bash","callId":"c"}],"superseded":true}]}"#;
    let read = read(document.as_bytes(), "t.json").unwrap();
    assert_eq!(
        read.words(),
        ["step.started", "message.assistant", "tool.call"]
    );
    let step = Step::new("build", "command");
    assert_eq!(read.events[0].body, Body::StepStarted(step));
    assert!(read.events[1].annotations.flags.superseded);
    assert!(matches!(&read.events[2].body, Body::ToolCall(call) if call.name == "Bash"));
}

proptest! {
    /// A model call, a chunk, a harness event, a blob, an error and a note come back as what they were.
    #[test]
    fn every_kind_comes_back(bodies in prop::collection::vec(arbitrary::other_kind(), 1..6)) {
        let bodies: Vec<_> = bodies.into_iter().filter(|body| body.blocks().is_none()).collect();
        let mut header = Header::new(RunId::new("r").unwrap());
        let events: Vec<_> = bodies.iter().zip(1..).map(|(body, seq)| Event {
            seq,
            run_id: header.run_id.clone(),
            parent_run_id: None,
            timestamp: Timestamp::UNIX_EPOCH,
            place: Place::step("build").in_iteration(2),
            body: body.clone(),
            annotations: Annotations::default(),
        }).collect();
        for event in &events {
            header.observe(event);
        }
        let mut writer = Writer::new(&header, &NormalizedOptions::default(), Vec::new()).unwrap();
        for event in &events {
            let nothing = quipu_formats::normalized::Beyond::default();
            writer.write(event, &nothing).unwrap();
        }
        let (_, document) = writer.end().unwrap();
        let read = read(&document, "r.json").unwrap();
        let again: Vec<_> = read.events.into_iter().map(|event| event.body).collect();
        prop_assert_eq!(again, bodies);
    }
}

#[test]
fn broken_transcripts_do_no_harm() {
    let start = FOREIGN.find("    {\"id\": \"ev_003\"").unwrap();
    let short = format!(
        "{}{}",
        &FOREIGN[..start],
        FOREIGN[start..].lines().skip(1).collect::<String>()
    );
    hostile(&Normalized, TRANSCRIPT, &short);
}

#[test]
fn other_documents_are_not_taken() {
    for other in [
        r#"{"schemaVersion":"0.1.0"}"#,
        r#"{"schemaVersion":"2.0","transcriptId":"x","source":{"agent":"a"},"events":[]}"#,
        r#"{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"a"},"steps":[]}"#,
        "{\"schemaVersion\":\"0.1.0\",\"transcriptId\":\"x\",\"source\":{\"agent\":\"a\"}}\n{}\n",
    ] {
        let found = crate::identify(other.as_bytes(), true);
        assert!(
            found.is_none_or(|(_, dialect)| dialect.name != "normalized"),
            "{other}"
        );
    }
    // Known by its beginning, however long it is.
    let beginning = &FOREIGN[..FOREIGN.find("ev_002").unwrap()];
    let (family, dialect) = crate::identify(beginning.as_bytes(), false).unwrap();
    assert_eq!(
        (family.name(), dialect.brand),
        ("normalized", "claude-code")
    );
}
