use insta::assert_snapshot;
use quipu_model::{LogBody, Status};

use crate::corpus::logs;
use crate::testkit::{Read, read, read_as};

const SESSION: &str = concat!(
    r#"{"type":"summary","summary":"Greeting","leafUuid":"u2"}"#,
    "\n",
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/code","gitBranch":"main","version":"2.1.200","isSidechain":false,"message":{"role":"user","content":"list the files"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:06.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"","signature":"abc"}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":1}}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u3","parentUuid":"u2","sessionId":"s1","timestamp":"2026-01-02T03:04:07.000Z","requestId":"r1","message":{"id":"m1","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"cache_read_input_tokens":10,"cache_creation_input_tokens":5,"output_tokens":42}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","timestamp":"2026-01-02T03:04:09.500Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a\nb"}]},"toolUseResult":{"stdout":"a\nb","interrupted":false}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"u3","sessionId":"s1","message":{"role":"user","content":"again"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u5","sessionId":"s1","timestamp":"2026-01-02T03:04:10.000Z","message":{"id":"m2","role":"assistant","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}},"isApiErrorMessage":true}"#,
    "\n",
    r#"{"type":"user","uuid":"u6","sessionId":"s1","isMeta":true,"message":{"role":"user","content":"<system-reminder>x</system-reminder>"}}"#,
    "\n",
    r#"{"type":"wonder","uuid":"u7","sessionId":"s1","sparkle":1}"#,
    "\n",
);

/// One line of a session, in brief.
fn line(kind: &str, uuid: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}","uuid":"{uuid}","sessionId":"s1",{rest}}}"#) + "\n"
}

fn said(uuid: &str, content: &str, rest: &str) -> String {
    let message = format!(r#""message":{{"role":"user","content":{content}}}{rest}"#);
    line("user", uuid, &message)
}

fn session(log: &str) -> Read {
    read(log.as_bytes(), "s1.jsonl").unwrap()
}

#[test]
fn a_session() {
    let read = session(SESSION);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (Some(3), Some(10), Some(5), Some(42)),
        "the largest of a call, once"
    );
}

#[test]
fn cut_at_every_byte_it_is_accounted_for() {
    for end in 0..SESSION.len() {
        // What no longer looks like a session is nobody's.
        let Some((family, dialect)) = crate::identify(SESSION.as_bytes(), true) else {
            panic!()
        };
        let read = read_as(family, dialect, &SESSION.as_bytes()[..end], "s1.jsonl");
        assert!(read.events.len() <= 8);
    }
}

#[test]
fn values_of_the_wrong_kind_are_no_reason_to_stop() {
    let values = [
        "null",
        "1",
        "-1e400",
        "true",
        r#""x""#,
        "[]",
        "{}",
        "[[[]]]",
        r#"{"type":1}"#,
    ];
    for key in [
        "type",
        "uuid",
        "sessionId",
        "timestamp",
        "message",
        "cwd",
        "version",
        "toolUseResult",
        "requestId",
        "attachment",
        "data",
        "isSidechain",
        "agentId",
        "toolDenialKind",
    ] {
        for value in values {
            let log = SESSION.to_owned()
                + &format!(r#"{{"type":"user","sessionId":"s1","{key}":{value}}}"#)
                + "\n"
                + &format!(
                    r#"{{"type":"assistant","uuid":"x","sessionId":"s1","message":{{"{key}":{value},"content":{value},"usage":{value}}}}}"#
                )
                + "\n"
                + &format!(
                    r#"{{"type":"user","uuid":"y","sessionId":"s1","message":{{"content":[{{"type":"tool_result","{key}":{value},"content":{value}}}]}}}}"#
                )
                + "\n";
            assert!(session(&log).events.len() >= 8, "{key} {value}");
        }
    }
}

#[test]
fn what_is_on_the_users_side_is_not_always_a_persons() {
    let log = said("u1", r#""a real prompt""#, "")
        + &said("u2", r#""<command-name>/clear</command-name>""#, "")
        + &said(
            "u3",
            r#"[{"type":"text","text":"<ide_opened_file>x</ide_opened_file>\nfix it"}]"#,
            "",
        )
        + &said(
            "u4",
            r#""This session is being continued""#,
            r#","isCompactSummary":true"#,
        )
        + &said("u5", r#""[Request interrupted by user]""#, "")
        + &line(
            "attachment",
            "u6",
            r#""attachment":{"type":"queued_command","prompt":"and this"}"#,
        )
        + &line(
            "system",
            "u7",
            r#""subtype":"compact_boundary","content":"Conversation compacted""#,
        );
    assert_eq!(
        session(&log).words(),
        [
            "message.user",
            "message.system",
            "message.user",
            "note.compaction",
            "message.system",
            "message.user",
            "note.compaction"
        ]
    );
}

#[test]
fn how_a_tool_call_ended() {
    let result = |uuid: &str, text: &str, rest: &str| {
        let content = format!(
            r#"[{{"type":"tool_result","tool_use_id":"t{uuid}","is_error":true,"content":"{text}"}}]"#
        );
        said(uuid, &content, rest)
    };
    let log = result("1", "boom", "")
        + &result(
            "2",
            "The user doesn't want to proceed with this tool use. x",
            "",
        )
        + &result("3", "no", r#","toolDenialKind":"user-rejected""#)
        + &result("4", "Command timed out after 2m", "")
        + &said(
            "5",
            r#"[{"type":"tool_result","tool_use_id":"t5","content":"fine"}]"#,
            "",
        );
    let read = session(&log);
    let statuses: Vec<Option<Status>> = read.events.iter().map(|e| e.annotations.status).collect();
    let expected = [
        Status::Error,
        Status::Denied,
        Status::Denied,
        Status::Timeout,
        Status::Ok,
    ];
    assert_eq!(statuses, expected.map(Some));
    assert_eq!(read.ledger.orphans, 5);
}

#[test]
fn calls_without_a_result_stay_and_are_marked() {
    let call = r#""message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}"#;
    let read = session(&line("assistant", "u1", call));
    assert!(read.events[0].annotations.flags.dangling);
}

#[test]
fn images_are_taken_out() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}"#;
    let big = "QUJD".repeat(1000);
    let result = format!(
        r#"[{image},{{"type":"tool_result","tool_use_id":"t1","content":[{{"type":"text","text":"see"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{big}"}}}}]}}]"#
    );
    let read = session(&said("u1", &result, ""));
    assert_eq!(read.blobs, 2);
    assert_eq!(read.events[0].annotations.attachments[0].bytes, 5);
    let text = read.lines();
    assert!(
        !text.contains("QUJDQUJD") && text.contains("agentlog-blob://"),
        "{text}"
    );
}

#[test]
fn sub_agents_are_told_apart() {
    let side = r#","isSidechain":true,"agentId":"a1""#;
    let own = read(said("u1", r#""go""#, side).as_bytes(), "agent-a1.jsonl").unwrap();
    assert_eq!(own.session.id.as_deref(), Some("s1.agent-a1"));
    assert_eq!(own.session.parent.as_deref(), Some("s1"));
    let log = said("u1", r#""go""#, "") + &said("u2", r#""inline""#, r#","isSidechain":true"#);
    let inline = session(&log);
    assert_eq!(inline.session.parent, None);
    let whose = |n: usize| inline.events[n].annotations.subagent_id.as_deref();
    assert_eq!((whose(0), whose(1)), (None, Some("sidechain")));
    let task = said(
        "u3",
        r#"[{"type":"tool_result","tool_use_id":"t1","content":"done"}]"#,
        r#","toolUseResult":{"agentId":"a1","totalDurationMs":1500}"#,
    );
    let read = session(&task);
    let notes = &read.events[0].annotations;
    assert_eq!(notes.child.as_ref().unwrap().as_str(), "s1.agent-a1");
    assert_eq!(notes.duration_ms, Some(1500));
}

#[test]
fn a_resumed_session_says_where_it_came_from() {
    let stem = "00000000-0000-4000-8000-000000000001";
    let log = said("u1", r#""go""#, "");
    let read = read(log.as_bytes(), &format!("{stem}.jsonl")).unwrap();
    assert_eq!(read.session.id.as_deref(), Some(stem));
    assert_eq!(read.session.forked_from.as_deref(), Some("s1"));
}

#[test]
fn titles_are_ranked() {
    let title = |kind: &str, key: &str, text: &str| {
        format!(r#"{{"type":"{kind}","{key}":"{text}","sessionId":"s1","leafUuid":"x"}}"#) + "\n"
    };
    let log = title("custom-title", "customTitle", "by hand")
        + &title("ai-title", "aiTitle", "by a model")
        + &title("summary", "summary", "in short");
    assert_eq!(session(&log).session.title.as_deref(), Some("by hand"));
}

#[test]
fn a_stream_comes_to_what_its_result_says() {
    let log = concat!(
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w","model":"m","claude_code_version":"2.1.178","tools":[]}"#,
        "\n",
        r#"{"type":"assistant","message":{"id":"m1","model":"m","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s","uuid":"a"}"#,
        "\n",
        r#"{"type":"stream_event","event":{"type":"ping"},"session_id":"s","uuid":"b"}"#,
        "\n",
        r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"hi","session_id":"s","total_cost_usd":0.0123,"usage":{"input_tokens":3,"output_tokens":20},"modelUsage":{"m":{}},"uuid":"c"}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect.name, "claude-stream");
    assert_eq!(
        (read.usage().input, read.usage().output),
        (Some(3), Some(20))
    );
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.0123"));
    assert_eq!(read.ledger.dropped.values().sum::<u64>(), 1);
}

#[test]
fn real_streams_come_to_what_their_results_say() {
    for (name, bytes) in logs("claude-stream") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if let Some(vendor) = read.session.vendor_usage {
            let (ours, theirs) = (read.usage(), quipu_model::Usage::from(vendor));
            assert_eq!(ours.total(), theirs.total(), "{name}");
        }
    }
}

/// The rule of the reference, checked another way: per call, the largest output of any of its lines.
#[test]
fn real_sessions_count_each_call_once() {
    for (name, bytes) in logs("claude") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if read.dialect.name != "claude" {
            continue;
        }
        let mut calls = std::collections::BTreeMap::<String, u64>::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let stream = serde_json::Deserializer::from_str(line).into_iter::<serde_json::Value>();
            for record in stream.map_while(Result::ok) {
                let message = &record["message"];
                let made_up = message["model"] == "<synthetic>"
                    || record["isApiErrorMessage"] == serde_json::Value::Bool(true);
                if record["type"] == "assistant" && !made_up {
                    // Without an id, every line is a call of its own.
                    let own = message["id"].is_null().then_some(calls.len());
                    let id = message["id"].as_str().unwrap_or_default();
                    let request = record["requestId"].as_str().unwrap_or_default();
                    let request = if id.starts_with("msg_") { "" } else { request };
                    let key = format!("{id}:{request}:{own:?}");
                    let output = message["usage"]["output_tokens"].as_u64().unwrap_or(0);
                    let call = calls.entry(key).or_default();
                    *call = (*call).max(output);
                }
            }
        }
        let expected: u64 = calls.values().sum();
        assert_eq!(read.usage().output.unwrap_or(0), expected, "{name}");
    }
}

#[test]
fn a_log_that_grew_is_an_extension_of_what_it_was() {
    let mut snapshots: Vec<(String, Vec<u8>)> = logs("claude")
        .into_iter()
        .filter(|(name, _)| name.contains("snapshots-"))
        .collect();
    snapshots.sort_by_key(|(_, bytes)| bytes.len());
    for pair in snapshots.windows(2) {
        let (short, long) = (session_of(&pair[0]), session_of(&pair[1]));
        assert!(long.events.starts_with(&short.events));
    }
}

fn session_of((name, bytes): &(String, Vec<u8>)) -> Read {
    read(bytes, name).unwrap()
}

#[test]
fn a_prompt_that_was_pasted_is_kept() {
    let log = r#"{"display":"look at [Pasted text #1]","pastedContents":{"1":{"id":1,"type":"text","content":"the text"}},"timestamp":1767323045000,"project":"/code","sessionId":"s9"}"#;
    let read = read(log.as_bytes(), "history.jsonl").unwrap();
    assert_eq!(read.dialect.name, "claude-history");
    assert!(read.session.reconstructed);
    assert!(matches!(read.events[1].body, LogBody::Exchange(_)));
    assert_eq!(read.events.len(), 2);
}
