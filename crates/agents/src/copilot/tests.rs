use insta::assert_snapshot;
use quipu_model::{Body, Status, Usage};

use super::{CHAT, CHAT_JOURNAL, Copilot, EVENTS, HISTORY, TRACES};
use crate::Pick;
use crate::corpus::logs;
use crate::testkit::{Read, hostile, picks, read};

const SESSION: &str = r#"{"type":"session.start","data":{"sessionId":"s1","version":1,"producer":"copilot-agent","copilotVersion":"1.0.68","startTime":"2026-07-05T03:51:38.763Z","selectedModel":"gpt-5","context":{"cwd":"/code","gitRoot":"/code","branch":"main","headCommit":"abc","repository":"me/it","repositoryHost":"github.com"}},"id":"1","timestamp":"2026-07-05T03:51:38.822Z","parentId":null}
{"type":"system.message","data":{"role":"system","content":"You are Copilot."},"id":"2","timestamp":"2026-07-05T03:51:39.000Z","parentId":"1"}
{"type":"user.message","data":{"content":"list","transformedContent":"<now/> list","attachments":[{"type":"file","path":"/a","displayName":"a"},{"type":"blob","data":"QUJD","mimeType":"image/png","displayName":"b"}],"interactionId":"i"},"id":"3","timestamp":"2026-07-05T03:51:40.000Z","parentId":"2"}
{"type":"hook.start","data":{"hookInvocationId":"h","hookType":"preToolUse","input":{}},"id":"4","timestamp":"2026-07-05T03:51:40.100Z","parentId":"3"}
{"type":"assistant.reasoning","data":{"reasoningId":"r","content":"I think."},"id":"5","timestamp":"2026-07-05T03:51:41.000Z","parentId":"4"}
{"type":"assistant.message","data":{"messageId":"m1","apiCallId":"c1","model":"gpt-5","content":"Listing.","reasoningText":"I think.","toolRequests":[{"toolCallId":"t1","name":"bash","arguments":{"command":"ls"},"type":"function"},{"toolCallId":"t2","name":"task","arguments":{"prompt":"go"},"type":"function"}],"outputTokens":30},"id":"6","timestamp":"2026-07-05T03:51:42.000Z","parentId":"5"}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"bash","arguments":{"command":"ls"}},"id":"7","timestamp":"2026-07-05T03:51:43.000Z","parentId":"6"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":false,"error":{"message":"You may not.","code":"denied"}},"id":"8","timestamp":"2026-07-05T03:51:43.250Z","parentId":"7"}
{"type":"subagent.started","data":{"toolCallId":"t2","agentName":"explore"},"agentId":"t2","id":"9","timestamp":"2026-07-05T03:51:44.000Z","parentId":"8"}
{"type":"assistant.message","data":{"messageId":"m2","model":"haiku","content":"","reasoningOpaque":"xyz","toolRequests":[],"outputTokens":5},"agentId":"t2","id":"10","timestamp":"2026-07-05T03:51:45.000Z","parentId":"9"}
{"type":"tool.execution_complete","data":{"toolCallId":"t2","success":true,"result":{"content":"done","binaryResultsForLlm":[{"data":"QUJD","mimeType":"image/png","type":"image"}]}},"id":"11","timestamp":"2026-07-05T03:51:46.000Z","parentId":"10"}
{"type":"user.message","data":{"content":"skill text","source":"skill-x","attachments":[]},"id":"12","timestamp":"2026-07-05T03:51:47.000Z","parentId":"11"}
{"type":"session.shutdown","data":{"shutdownType":"routine","modelMetrics":{"gpt-5":{"requests":{"count":1,"cost":1},"usage":{"inputTokens":1000,"outputTokens":30,"cacheReadTokens":600,"cacheWriteTokens":100,"reasoningTokens":12}},"haiku":{"requests":{"count":1,"cost":0},"usage":{"inputTokens":50,"outputTokens":5,"cacheReadTokens":0,"cacheWriteTokens":0}}}},"id":"13","timestamp":"2026-07-05T03:51:48.000Z","parentId":"12"}
{"type":"session.resume","data":{"resumeTime":"2026-07-05T04:00:00.000Z","eventCount":13},"id":"14","timestamp":"2026-07-05T04:00:00.000Z","parentId":"13"}
{"type":"user.message","data":{"content":"again","attachments":[]},"id":"15","timestamp":"2026-07-05T04:00:01.000Z","parentId":"14"}
{"type":"assistant.message","data":{"messageId":"m3","apiCallId":"c3","model":"gpt-5","content":"Again.","outputTokens":7},"id":"16","timestamp":"2026-07-05T04:00:02.000Z","parentId":"15"}
{"type":"session.shutdown","data":{"shutdownType":"routine","modelMetrics":{"gpt-5":{"requests":{"count":2,"cost":1},"usage":{"inputTokens":1500,"outputTokens":37,"cacheReadTokens":900,"cacheWriteTokens":100,"reasoningTokens":12}},"haiku":{"requests":{"count":1,"cost":0},"usage":{"inputTokens":50,"outputTokens":5,"cacheReadTokens":0,"cacheWriteTokens":0}}}},"id":"17","timestamp":"2026-07-05T04:00:03.000Z","parentId":"16"}
{"type":"session.snapshot_rewind","data":{"upToEventId":"15","eventsRemoved":3},"id":"18","timestamp":"2026-07-05T04:00:04.000Z","parentId":"17"}
{"type":"session.wonder","data":{"sparkle":1},"id":"19","timestamp":"2026-07-05T04:00:05.000Z","parentId":"18"}
"#;

fn counts(usage: Usage) -> [u64; 5] {
    let Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h: _,
        output,
        reasoning,
    } = usage;
    [input, cache_read, cache_write, output, reasoning].map(Option::unwrap_or_default)
}

fn vendor(read: &Read) -> [u64; 5] {
    counts(read.session.vendor_usage.unwrap().into())
}

#[test]
fn a_session() {
    let read = read(SESSION.as_bytes(), "s1/events.jsonl").unwrap();
    assert_eq!(read.dialect, EVENTS);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.repository.as_deref(), Some("github.com/me/it"));
    assert_eq!(read.session.commit.as_deref(), Some("abc"));
    assert_eq!(read.blobs, 2);
}

#[test]
fn the_end_adds_what_the_replies_did_not_say() {
    let read = read(SESSION.as_bytes(), "s1/events.jsonl").unwrap();
    assert_eq!(counts(read.usage()), [550, 900, 100, 42, 12]);
    assert_eq!(counts(read.usage()), vendor(&read));
}

#[test]
fn a_shutdown_is_no_call() {
    let read = read(SESSION.as_bytes(), "s1/events.jsonl").unwrap();
    assert_eq!(read.summary.calls(), 3, "c1, m2 and c3");
    // Requests that no reply tells of are calls.
    let log = SESSION.replace(r#""count":2,"#, r#""count":5,"#);
    let more = crate::testkit::read(log.as_bytes(), "s1/events.jsonl").unwrap();
    assert_eq!(more.summary.calls(), 6);
}

#[test]
fn calls_that_share_an_id_keep_their_names_and_arguments() {
    let log = SESSION
        .replace(
            r#""toolCallId":"t2","name":"task""#,
            r#""toolCallId":"t1","name":"task""#,
        )
        .replace(
            r#""toolCallId":"t2","success""#,
            r#""toolCallId":"t1","success""#,
        );
    let read = read(log.as_bytes(), "s1/events.jsonl").unwrap();
    let told: Vec<(String, String)> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCall(call) => {
                let input = call.input.as_ref().map(|it| it.get().to_owned());
                Some((call.name.clone(), input.unwrap_or_default()))
            }
            Body::ToolResult(result) => Some((result.name.clone(), "result".to_owned())),
            _ => None,
        })
        .collect();
    let told: Vec<(&str, &str)> = told.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        told,
        [
            ("bash", r#"{"command":"ls"}"#),
            ("task", r#"{"prompt":"go"}"#),
            ("bash", "result"),
            ("task", "result"),
        ]
    );
}

#[test]
fn replies_without_a_model_are_not_counted_twice() {
    let log = SESSION
        .replace(r#""model":"gpt-5","#, "")
        .replace(r#""selectedModel":"gpt-5","#, "");
    let read = read(log.as_bytes(), "s1/events.jsonl").unwrap();
    assert_eq!(counts(read.usage()), vendor(&read));
}

#[test]
fn a_rewind_takes_back_the_event_and_what_follows() {
    let read = read(SESSION.as_bytes(), "s1/events.jsonl").unwrap();
    let superseded: Vec<&str> = read
        .events
        .iter()
        .filter(|event| event.annotations.flags.superseded)
        .filter_map(|event| event.annotations.native_id.as_deref())
        .collect();
    assert_eq!(superseded, ["15", "16", "17"]);
}

#[test]
fn a_call_is_timed_by_when_it_ran() {
    let read = read(SESSION.as_bytes(), "s1/events.jsonl").unwrap();
    let result = read
        .events
        .iter()
        .find(|event| matches!(event.body, Body::ToolResult(_)))
        .unwrap();
    assert_eq!(result.annotations.duration_ms, Some(250));
    assert_eq!(result.annotations.status, Some(Status::Denied));
}

const OUTPUT: &str = r#"{"type":"session.tools_updated","data":{"model":"gpt-5"},"id":"1","timestamp":"2026-07-05T03:51:38.822Z","parentId":null,"ephemeral":true}
{"type":"user.message","data":{"content":"hi","attachments":[]},"id":"2","timestamp":"2026-07-05T03:51:39.822Z","parentId":"1"}
{"type":"assistant.message_delta","data":{"messageId":"m1","deltaContent":"Hel"},"id":"3","timestamp":"2026-07-05T03:51:40.822Z","parentId":"2","ephemeral":true}
{"type":"assistant.message","data":{"messageId":"m1","apiCallId":"c1","model":"gpt-5","content":"Hello","outputTokens":4},"id":"4","timestamp":"2026-07-05T03:51:41.822Z","parentId":"3"}
{"type":"assistant.usage","data":{"model":"gpt-5","apiCallId":"c1","inputTokens":100,"outputTokens":4,"cacheReadTokens":60,"cacheWriteTokens":10},"id":"5","timestamp":"2026-07-05T03:51:42.822Z","parentId":"4","ephemeral":true}
{"type":"session.idle","data":{},"id":"6","timestamp":"2026-07-05T03:51:43.822Z","parentId":"5","ephemeral":true}
{"type":"result","timestamp":"2026-07-05T03:51:44.822Z","sessionId":"s1","exitCode":0,"usage":{"premiumRequests":1,"totalApiDurationMs":1000,"sessionDurationMs":6000,"codeChanges":{}}}
"#;

#[test]
fn standard_output() {
    let read = read(OUTPUT.as_bytes(), "out.jsonl").unwrap();
    assert_eq!(read.dialect, EVENTS);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.id.as_deref(), Some("s1"));
    assert_eq!(counts(read.usage()), [30, 60, 10, 4, 0]);
}

const OLD: &str = r#"{"sessionId":"s1","startTime":"2025-10-08T21:10:16.398Z","chatMessages":[{"role":"user","content":"list"},{"role":"assistant","content":"Sure.","tool_calls":[{"id":"t1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"a"}],"timeline":[{"type":"user","text":"list"}]}"#;

#[test]
fn the_first_format() {
    let read = read(OLD.as_bytes(), "s1.json").unwrap();
    assert_eq!(read.dialect, HISTORY);
    assert_snapshot!(read.lines());
}

const REQUEST: &str = r#"{"requestId":"request_1","timestamp":1790000001000,"modelId":"copilot/gpt-5","message":{"text":"fix it"},"variableData":{"variables":[{"kind":"file","name":"a"}]},"response":[{"kind":"thinking","value":"Hm."},{"value":"See "},{"kind":"inlineReference","inlineReference":{"fsPath":"/p/a.rs"}},{"value":" for it."},{"kind":"toolInvocationSerialized","isComplete":true,"toolCallId":"c1","toolId":"run_in_terminal","isConfirmed":{"type":4},"toolSpecificData":{"kind":"terminal","commandLine":{"original":"go test"},"terminalCommandState":{"exitCode":1,"duration":1200},"terminalCommandOutput":{"text":"FAIL"}}},{"value":"Done."}],"result":{"timings":{"totalElapsed":5000},"metadata":{"promptTokens":100,"outputTokens":20}}}"#;

#[test]
fn a_chat_reads_alike_as_document_and_as_journal() {
    let document = format!(
        r#"{{"version":3,"responderUsername":"GitHub Copilot","sessionId":"s1","creationDate":1790000000000,"customTitle":"Fix","requests":[{REQUEST}]}}"#
    );
    let document = read(document.as_bytes(), "s1.json").unwrap();
    assert_eq!(document.dialect, CHAT);
    assert_snapshot!(document.lines());

    let request: serde_json::Value = serde_json::from_str(REQUEST).unwrap();
    let mut begun = request.clone();
    begun["response"] = serde_json::json!([]);
    begun.as_object_mut().unwrap().remove("result");
    let parts = request["response"].as_array().unwrap();
    let mut lines = vec![
        r#"{"kind":0,"v":{"version":3,"sessionId":"s1","creationDate":1790000000000,"requests":[]}}"#
            .to_owned(),
        serde_json::json!({"kind":2,"k":["requests"],"v":[begun]}).to_string(),
    ];
    lines.extend(parts.iter().map(|part| {
        serde_json::json!({"kind":2,"k":["requests",0,"response"],"v":[part]}).to_string()
    }));
    let end = serde_json::json!({"kind":1,"k":["requests",0,"result"],"v":request["result"]});
    lines.push(end.to_string());
    lines.push(r#"{"kind":1,"k":["customTitle"],"v":"Fix"}"#.to_owned());
    let log = lines.join("\n");
    let journal = read(log.as_bytes(), "s1.jsonl").unwrap();
    assert_eq!(journal.dialect, CHAT_JOURNAL);
    assert_eq!(journal.session.title, document.session.title);
    let texts = |read: &Read| -> Vec<Body> {
        let bodies = read.events.iter().map(|event| event.body.clone());
        bodies
            .filter(|body| matches!(body, Body::AssistantMessage(_) | Body::UserMessage(_)))
            .collect()
    };
    assert_eq!(texts(&journal), texts(&document));
    assert_eq!(counts(journal.usage()), counts(document.usage()));
    hostile(&Copilot, CHAT_JOURNAL, &log);
}

#[test]
fn broken_logs_do_no_harm() {
    let short: Vec<&str> = SESSION
        .lines()
        .filter(|line| {
            ["1", "3", "6", "8", "13", "18"]
                .iter()
                .any(|id| line.contains(&format!("\"id\":\"{id}\"")))
        })
        .collect();
    hostile(&Copilot, EVENTS, &short.join("\n"));
    hostile(&Copilot, EVENTS, OUTPUT);
    hostile(&Copilot, HISTORY, OLD);
    hostile(&Copilot, CHAT, &format!(r#"{{"requests":[{REQUEST}]}}"#));
    let span = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"vs-copilot"}}]},"scopeSpans":[{"spans":[{"spanId":"a","startTimeUnixNano":"1781295601000000000","endTimeUnixNano":"1781295602000000000","status":{"code":2},"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{}"}}]},{"spanId":"b","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"5"}}]}]}]}]}
"#;
    hostile(&Copilot, TRACES, span);
    let read = read(span.as_bytes(), "traces.jsonl").unwrap();
    assert_eq!(
        read.words(),
        ["tool.call", "tool.result", "note.model_call"]
    );
    assert_eq!(read.usage().input, Some(5));
}

#[test]
fn real_sessions_count_what_the_vendor_counted() {
    let mut compared = 0;
    for (name, bytes) in logs("copilot") {
        let read = read(&bytes, &name).unwrap();
        assert_eq!(read.dialect, EVENTS, "{name}");
        assert!(
            read.ledger.drift.is_empty(),
            "{name}: {:?}",
            read.ledger.drift
        );
        if read.session.vendor_usage.is_some() {
            assert_eq!(counts(read.usage()), vendor(&read), "{name}");
            compared += 1;
        }
    }
    assert!(compared == 0 || compared >= 6, "{compared}");
}

/// What is picked below a place: `(place, path, what it is)`.
#[test]
fn logs_are_picked_by_where_they_are() {
    picks(
        &Copilot,
        &[
            (".copilot/session-state", "abc/events.jsonl", Pick::Log),
            (".copilot/session-state", "abc.jsonl", Pick::Log),
            (".copilot/session-state", "abc/session.db", Pick::Skip),
            (".copilot/session-state", "abc/other.jsonl", Pick::Skip),
            (".copilot/history-session-state", "abc.json", Pick::Log),
            (
                ".config/Code/User/workspaceStorage",
                "h/chatSessions/a.json",
                Pick::Log,
            ),
            (
                ".config/Code/User/workspaceStorage",
                "h/chatSessions/a.jsonl",
                Pick::Log,
            ),
            (
                ".config/Code/User/workspaceStorage",
                "h/workspace.json",
                Pick::Skip,
            ),
        ],
    );
}

/// The record of a result does not say whose it is; its call does.
#[test]
fn the_result_of_a_sub_agents_call_is_the_sub_agents() {
    let log = r#"{"type":"session.start","data":{"sessionId":"s1","version":1,"producer":"copilot-agent","copilotVersion":"1.0.68","startTime":"2026-07-05T03:51:38.763Z"},"id":"1","timestamp":"2026-07-05T03:51:38.763Z","parentId":null}
{"type":"tool.execution_start","data":{"toolCallId":"t1","toolName":"task","arguments":{}},"id":"2","timestamp":"2026-07-05T03:51:39.000Z","parentId":"1"}
{"type":"tool.execution_start","data":{"toolCallId":"t2","toolName":"view","arguments":{},"parentToolCallId":"t1"},"id":"3","timestamp":"2026-07-05T03:51:40.000Z","parentId":"2"}
{"type":"tool.execution_complete","data":{"toolCallId":"t2","success":true,"result":{"content":"a"}},"id":"4","timestamp":"2026-07-05T03:51:41.000Z","parentId":"3"}
{"type":"tool.execution_complete","data":{"toolCallId":"t1","success":true,"result":{"content":"b"}},"id":"5","timestamp":"2026-07-05T03:51:42.000Z","parentId":"4"}
"#;
    let read = read(log.as_bytes(), "events.jsonl").unwrap();
    let whose: Vec<_> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolResult(result) => Some((
                result.call_id.as_str(),
                event.annotations.subagent_id.as_deref(),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(whose, [("t2", Some("t1")), ("t1", None)]);
}
