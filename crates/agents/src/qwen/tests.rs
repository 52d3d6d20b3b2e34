use insta::assert_snapshot;
use quipu_model::{Body, Status};

use super::{Qwen, SESSION as DIALECT};
use crate::Pick;
use crate::corpus::logs;
use crate::testkit::{hostile, picks, read};

const SESSION: &str = r#"{"uuid":"a","parentUuid":null,"sessionId":"s1","timestamp":"2026-06-15T14:40:22.832Z","type":"user","cwd":"/code","version":"0.18.1","gitBranch":"main","message":{"role":"user","parts":[{"text":"list the files"}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s1","timestamp":"2026-06-15T14:40:22.842Z","type":"system","cwd":"/code","version":"0.18.1","subtype":"attribution_snapshot","systemPayload":{"snapshot":{}}}
{"uuid":"c","parentUuid":"b","sessionId":"s1","timestamp":"2026-06-15T14:40:22.908Z","type":"system","cwd":"/code","version":"0.18.1","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response","input_token_count":500,"output_token_count":20}}}
{"uuid":"d","parentUuid":"c","sessionId":"s1","timestamp":"2026-06-15T14:40:22.909Z","type":"assistant","cwd":"/code","version":"0.18.1","model":"coder","message":{"role":"model","parts":[{"text":"Let me see.","thought":true},{"text":"Listing."},{"functionCall":{"id":"t1","name":"ls","args":{"path":"."}}}]},"usageMetadata":{"promptTokenCount":500,"candidatesTokenCount":20,"thoughtsTokenCount":5,"totalTokenCount":525,"cachedContentTokenCount":100}}
{"uuid":"e","parentUuid":"d","sessionId":"s1","timestamp":"2026-06-15T14:40:22.950Z","type":"tool_result","cwd":"/code","version":"0.18.1","message":{"role":"user","parts":[{"functionResponse":{"id":"t1","name":"ls","response":{"error":"no"}}}]},"toolCallResult":{"callId":"t1","status":"error","errorType":"execution_denied"}}
{"uuid":"e","parentUuid":"d","sessionId":"s1","timestamp":"2026-06-15T14:40:22.950Z","type":"tool_result","cwd":"/code","version":"0.18.1","message":{"role":"user","parts":[]}}
{"uuid":"f","parentUuid":"e","sessionId":"s1","timestamp":"2026-06-15T14:40:23.000Z","type":"assistant","cwd":"/code","version":"0.18.1","model":"coder","message":{"role":"model","parts":[{"text":"Not allowed."}]},"usageMetadata":{"promptTokenCount":600,"candidatesTokenCount":50,"thoughtsTokenCount":30,"totalTokenCount":650,"cachedContentTokenCount":0}}
{"uuid":"g","parentUuid":"f","sessionId":"s1","timestamp":"2026-06-15T14:40:24.000Z","type":"user","subtype":"notification","provenance":"system","cwd":"/code","version":"0.18.1","message":{"role":"user","parts":[{"text":"a task ended"}]}}
{"uuid":"h","parentUuid":"g","sessionId":"s1","timestamp":"2026-06-15T14:40:25.000Z","type":"user","cwd":"/code","version":"0.18.1","message":{"role":"user","parts":[{"text":"try again"}]}}
{"uuid":"i","parentUuid":"h","sessionId":"s1","timestamp":"2026-06-15T14:40:26.000Z","type":"assistant","cwd":"/code","version":"0.18.1","model":"coder","message":{"role":"model","parts":[{"text":"No."}]}}
{"uuid":"j","parentUuid":"g","sessionId":"s1","timestamp":"2026-06-15T14:40:27.000Z","type":"system","subtype":"rewind","cwd":"/code","version":"0.18.1","systemPayload":{"truncatedCount":2}}
{"uuid":"k","parentUuid":"j","sessionId":"s1","timestamp":"2026-06-15T14:40:28.000Z","type":"system","subtype":"custom_title","cwd":"/code","version":"0.18.1","systemPayload":{"customTitle":"Files","titleSource":"manual"}}
{"uuid":"l","parentUuid":"k","sessionId":"s1","timestamp":"2026-06-15T14:40:29.000Z","type":"system","subtype":"custom_title","cwd":"/code","version":"0.18.1","systemPayload":{"customTitle":"Other","titleSource":"auto"}}
{"uuid":"m","parentUuid":"l","sessionId":"s1","timestamp":"2026-06-15T14:40:30.000Z","type":"system","subtype":"wonder","cwd":"/code","version":"0.18.1","systemPayload":{},"sparkle":1}
"#;

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "s1.jsonl").unwrap();
    assert_eq!(read.dialect, DIALECT);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.title.as_deref(), Some("Files"));
    let superseded = read
        .events
        .iter()
        .filter(|e| e.annotations.flags.superseded);
    let superseded: Vec<u64> = superseded.map(|event| event.seq).collect();
    // The prompt that was taken back, and the reply to it.
    assert_eq!(superseded, [9, 10]);
}

/// Lines with one id are pieces of one record: the program puts their parts together when it reads them, and takes
/// the tokens of the last. The same line again is a copy.
#[test]
fn pieces_of_a_record_are_all_read_and_copies_are_not() {
    let line = |rest: &str| {
        format!(
            r#"{{"uuid":"0f8e2c4a-1111-4222-8333-444455556666","parentUuid":null,"sessionId":"s1","timestamp":"2026-06-15T14:40:22.832Z","cwd":"/code","version":"0.18.1",{rest}}}"#
        ) + "\n"
    };
    let thought = line(
        r#""type":"assistant","model":"coder","message":{"role":"model","parts":[{"text":"Let me see.","thought":true}]}"#,
    );
    let call = line(
        r#""type":"assistant","model":"coder","message":{"role":"model","parts":[{"text":"Listing."},{"functionCall":{"id":"t1","name":"ls","args":{}}}]},"usageMetadata":{"promptTokenCount":500,"candidatesTokenCount":20,"totalTokenCount":520}"#,
    );
    let tokens = line(
        r#""type":"assistant","model":"coder","message":{"role":"model","parts":[]},"usageMetadata":{"promptTokenCount":500,"candidatesTokenCount":25,"totalTokenCount":525}"#,
    );
    let log = [&thought, &call, &call, &tokens, &thought].map(String::as_str);
    let read = read(log.concat().as_bytes(), "s1.jsonl").unwrap();
    let words = [
        "message.assistant",
        "message.assistant",
        "tool.call",
        "note.model_call",
    ];
    assert_eq!(read.words(), words);
    assert_eq!(read.usage().output, Some(25));
    assert_eq!(read.usage().input, Some(500));
    assert_eq!(read.ledger.dropped[&crate::Dropped::DuplicateRecord], 2);
    assert_eq!(read.ledger.units.len(), 1);
}

#[test]
fn a_person_who_speaks_in_pieces_speaks_once() {
    let line = |text: &str| {
        format!(
            r#"{{"uuid":"u","parentUuid":null,"sessionId":"s1","timestamp":"2026-06-15T14:40:22.832Z","cwd":"/code","version":"0.18.1","type":"user","message":{{"role":"user","parts":[{{"text":"{text}"}}]}}}}"#
        ) + "\n"
    };
    let rewind = r#"{"uuid":"r","parentUuid":null,"sessionId":"s1","timestamp":"2026-06-15T14:40:27.000Z","type":"system","subtype":"rewind","cwd":"/code","version":"0.18.1","systemPayload":{}}"#;
    let log = line("look") + &line("and see") + rewind;
    let read = read(log.as_bytes(), "s1.jsonl").unwrap();
    let superseded = read.events.iter().map(|e| e.annotations.flags.superseded);
    assert_eq!(superseded.collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn thoughts_are_counted_as_the_total_says() {
    let read = read(SESSION.as_bytes(), "s1.jsonl").unwrap();
    let usage = read.usage();
    // On top of the first reply, inside the second.
    assert_eq!(usage.output, Some(25 + 50));
    assert_eq!(usage.reasoning, Some(35));
    assert_eq!((usage.input, usage.cache_read), (Some(1000), Some(100)));
}

#[test]
fn what_was_not_allowed_is_denied() {
    let read = read(SESSION.as_bytes(), "s1.jsonl").unwrap();
    let result = read
        .events
        .iter()
        .find(|event| matches!(event.body, Body::ToolResult(_)));
    assert_eq!(result.unwrap().annotations.status, Some(Status::Denied));
}

#[test]
fn a_sub_agent_has_a_file_of_its_own() {
    let log = r#"{"uuid":"a","parentUuid":null,"sessionId":"s1","timestamp":"2026-06-15T14:40:22.832Z","type":"user","subtype":"agent_launch_prompt","cwd":"/code","version":"0.18.1","isSidechain":true,"agentId":"explore-7f","agentName":"Explore","message":{"role":"user","parts":[{"text":"look around"}]}}
"#;
    let read = read(log.as_bytes(), "agent.jsonl").unwrap();
    assert_eq!(read.session.id.as_deref(), Some("s1.agent-explore-7f"));
    assert_eq!(read.session.parent.as_deref(), Some("s1"));
    assert_eq!(read.words(), ["message.user"]);
}

#[test]
fn a_branch_says_where_it_comes_from() {
    let log = r#"{"uuid":"a","parentUuid":null,"sessionId":"s2","timestamp":"2026-06-15T14:40:22.832Z","type":"user","cwd":"/code","version":"0.18.1","forkedFrom":{"sessionId":"s1","messageUuid":"a"},"message":{"role":"user","parts":[{"text":"look"}]}}
"#;
    let read = read(log.as_bytes(), "s2.jsonl").unwrap();
    assert_eq!(read.session.forked_from.as_deref(), Some("s1"));
}

#[test]
fn broken_logs_do_no_harm() {
    let short: Vec<&str> = SESSION
        .lines()
        .filter(|line| {
            ["\"d\"", "\"e\"", "\"j\"", "\"c\""]
                .iter()
                .any(|id| line.contains(&format!("\"uuid\":{id}")))
        })
        .collect();
    hostile(&Qwen, DIALECT, &short.join("\n"));
}

/// The program measures each call as well; what is counted is the same.
#[test]
fn real_sessions_count_what_was_measured() {
    for (name, bytes) in logs("qwen") {
        let Some(read) = read(&bytes, &name).filter(|read| read.dialect == DIALECT) else {
            continue;
        };
        let mut measured = [0; 3];
        for line in String::from_utf8(bytes).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let event = &line["systemPayload"]["uiEvent"];
            if event["event.name"] == "qwen-code.api_response" {
                let keys = [
                    "input_token_count",
                    "cached_content_token_count",
                    "output_token_count",
                ];
                for (sum, key) in measured.iter_mut().zip(keys) {
                    *sum += event[key].as_u64().unwrap();
                }
            }
        }
        let usage = read.usage();
        let [input, cached, output] = measured;
        assert_eq!(usage.input.unwrap_or(0), input - cached, "{name}");
        assert_eq!(usage.cache_read.unwrap_or(0), cached, "{name}");
        assert_eq!(usage.output.unwrap_or(0), output, "{name}");
        assert!(read.ledger.drift.is_empty(), "{name}");
    }
}

/// What is picked below a place: `(place, path, what it is)`.
#[test]
fn logs_are_picked_by_where_they_are() {
    picks(
        &Qwen,
        &[
            (".qwen/projects", "p/chats/s.jsonl", Pick::Log),
            (".qwen/projects", "p/subagents/s/agent-a.jsonl", Pick::Log),
            (".qwen/projects", "p/chats/s.runtime.json", Pick::Skip),
            (".qwen/projects", "p/other.jsonl", Pick::Skip),
        ],
    );
}
