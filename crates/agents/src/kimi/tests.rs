use std::path::Path;

use insta::assert_snapshot;
use quipu_model::Usage;

use super::{CONTEXT, Kimi, RECORDS, WIRE};
use crate::corpus::logs;
use crate::testkit::{Read, hostile, picks, read};
use crate::{Family as _, Pick};

const SESSION: &str = r#"{"type":"metadata","protocol_version":"1.4","created_at":1785612803281}
{"type":"config.update","cwd":"/code","modelAlias":"kimi-k2","thinkingEffort":"on","time":1785612803282}
{"type":"config.update","profileName":"agent","systemPrompt":"You are Kimi.","time":1785612803283}
{"type":"turn.prompt","input":[{"type":"text","text":"list"}],"origin":{"kind":"user"},"time":1785612812819}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"list"}],"toolCalls":[],"origin":{"kind":"user"}},"time":1785612812820}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>be nice</system-reminder>"}],"toolCalls":[],"origin":{"kind":"injection","variant":"x"}},"time":1785612812821}
{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1","turnId":"0","step":1},"time":1785612812825}
{"type":"llm.request","kind":"loop","provider":"kimi","model":"k2","modelAlias":"kimi-k2","toolSelect":false,"systemPromptHash":"a","toolsHash":"b","messageCount":1,"time":1785612812829}
{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p1","turnId":"0","step":1,"stepUuid":"s1","part":{"type":"think","think":"Hm."}},"time":1785613801102}
{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"p2","turnId":"0","step":1,"stepUuid":"s1","part":{"type":"text","text":"Sure."}},"time":1785613801103}
{"type":"permission.record_approval_result","turnId":0,"toolCallId":"Bash_0","toolName":"Bash","action":"rm","result":{"decision":"rejected"},"time":1785613809972}
{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"Bash_0","turnId":"0","step":1,"stepUuid":"s1","toolCallId":"Bash_0","name":"Bash","args":{"command":"rm"}},"time":1785613809973}
{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"Bash_0","toolCallId":"Bash_0","result":{"output":"no","isError":true}},"time":1785613809992}
{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"Agent_1","turnId":"0","step":1,"stepUuid":"s1","toolCallId":"Agent_1","name":"Agent","args":{"prompt":"go"}},"time":1785613809993}
{"type":"context.append_loop_event","event":{"type":"tool.result","parentUuid":"Agent_1","toolCallId":"Agent_1","result":{"output":"agent_id: agent-0\nstatus: completed"}},"time":1785613809994}
{"type":"context.append_loop_event","event":{"type":"step.end","uuid":"s1","turnId":"0","step":1,"usage":{"inputOther":10,"output":4,"inputCacheRead":100,"inputCacheCreation":2},"finishReason":"tool_use","messageId":"m1"},"time":1785613809995}
{"type":"usage.record","model":"kimi-k2","usage":{"inputOther":10,"output":4,"inputCacheRead":100,"inputCacheCreation":2},"usageScope":"turn","time":1785613809996}
{"type":"usage.record","model":"kimi-k2","usage":{"inputOther":7,"output":3,"inputCacheRead":0,"inputCacheCreation":0},"usageScope":"session","time":1785613809997}
{"type":"context.apply_compaction","summary":"so far","compactedCount":2,"tokensBefore":10,"tokensAfter":2,"time":1785613809998}
{"type":"context.undo","count":1,"time":1785613809999}
{"type":"wonder","time":1785613810000}
"#;

const PATH: &str = "sessions/wd_x/session_1/agents/main/wire.jsonl";

fn counts(usage: Usage) -> [u64; 4] {
    let Usage {
        input,
        cache_read,
        cache_write,
        output,
        ..
    } = usage;
    [input, cache_read, cache_write, output].map(Option::unwrap_or_default)
}

fn superseded(read: &Read) -> usize {
    let events = read.events.iter();
    events.filter(|e| e.annotations.flags.superseded).count()
}

#[test]
fn the_records_of_an_agent() {
    let read = read(SESSION.as_bytes(), PATH).unwrap();
    assert_eq!(read.dialect, RECORDS);
    assert_snapshot!(read.lines());
    assert_eq!(counts(read.usage()), [17, 100, 2, 7]);
    assert_eq!(
        counts(read.session.vendor_usage.unwrap().into()),
        counts(read.usage())
    );
    // From the prompt to what undid it.
    assert_eq!(superseded(&read), read.events.len() - 6);
}

#[test]
fn a_sub_agent_has_records_of_its_own() {
    let log = r#"{"type":"turn.prompt","input":[{"type":"text","text":"go"}],"origin":{"kind":"system_trigger","name":"subagent"},"time":1785612812819}
"#;
    let path = "sessions/wd_x/session_1/agents/agent-0/wire.jsonl";
    let read = read(log.as_bytes(), path).unwrap();
    assert_eq!(read.session.id.as_deref(), Some("session_1.agent-0"));
    assert_eq!(read.session.parent.as_deref(), Some("session_1"));
    assert_eq!(read.words(), ["message.user"]);
}

#[test]
fn images_are_kept_outside() {
    let log = r#"{"type":"turn.prompt","input":[{"type":"image_url","imageUrl":{"url":"data:image/png;base64,QUJD"}}],"origin":{"kind":"user"},"time":1785612812819}
"#;
    let read = read(log.as_bytes(), PATH).unwrap();
    assert_eq!(read.blobs, 1);
    assert!(!read.lines().contains("QUJD"));
}

const MESSAGES: &str = r#"{"type":"metadata","protocol_version":"1.1"}
{"timestamp":1770000000.5,"message":{"type":"TurnBegin","payload":{"user_input":"list the files"}}}
{"timestamp":1770000001.0,"message":{"type":"StepBegin","payload":{"n":1}}}
{"timestamp":1770000001.5,"message":{"type":"ContentPart","payload":{"type":"think","think":"","encrypted":"abc"}}}
{"timestamp":1770000002.0,"message":{"type":"ContentPart","payload":{"type":"text","text":"Listing."}}}
{"timestamp":1770000002.5,"message":{"type":"ToolCall","payload":{"type":"function","id":"t1","function":{"name":"Shell","arguments":"{\"command\":"}}}}
{"timestamp":1770000002.6,"message":{"type":"ToolCallPart","payload":{"arguments_part":"\"ls\"}"}}}
{"timestamp":1770000002.7,"message":{"type":"ApprovalRequest","payload":{"id":"r1","tool_call_id":"t1","sender":"Shell","action":"run","description":"ls"}}}
{"timestamp":1770000002.8,"message":{"type":"ApprovalResponse","payload":{"request_id":"r1","response":"reject"}}}
{"timestamp":1770000003.0,"message":{"type":"ToolResult","payload":{"tool_call_id":"t1","return_value":{"is_error":true,"output":"","message":"The tool call is rejected by the user."}}}}
{"timestamp":1770000003.1,"message":{"type":"StatusUpdate","payload":{"context_usage":0.1,"token_usage":{"input_other":11,"output":5,"input_cache_read":7,"input_cache_creation":0},"message_id":"m1"}}}
{"timestamp":1770000003.2,"message":{"type":"StatusUpdate","payload":{"context_usage":0.2}}}
{"timestamp":1770000003.3,"message":{"type":"SubagentEvent","payload":{"parent_tool_call_id":"t2","agent_id":"a1","event":{"type":"ContentPart","payload":{"type":"text","text":"From below."}}}}}
{"timestamp":1770000004.0,"message":{"type":"TurnEnd","payload":{}}}
{"timestamp":1770000005.0,"message":{"type":"ToolCall","payload":{"type":"function","id":"t3","function":{"name":"Shell","arguments":"{\"cut"}}}}
"#;

#[test]
fn the_wire() {
    let read = read(MESSAGES.as_bytes(), "sessions/h/abc/wire.jsonl").unwrap();
    assert_eq!(read.dialect, WIRE);
    assert_snapshot!(read.lines());
    assert_eq!(read.session.id.as_deref(), Some("abc"));
    assert_eq!(counts(read.usage()), [11, 7, 0, 5]);
}

const LINES: &str = r#"{"role":"_checkpoint","id":0}
{"role":"user","content":"list"}
{"role":"assistant","content":[{"type":"think","think":"Hm."},{"type":"text","text":"Sure."}],"tool_calls":[{"type":"function","id":"t1","function":{"name":"Shell","arguments":"{\"command\":\"ls\"}"}}]}
{"role":"tool","content":[{"type":"text","text":"a"}],"tool_call_id":"t1"}
{"role":"_usage","token_count":12}
"#;

#[test]
fn a_context() {
    let read = read(LINES.as_bytes(), "sessions/h/abc/context.jsonl").unwrap();
    assert_eq!(read.dialect, CONTEXT);
    assert_snapshot!(read.lines());
}

#[test]
fn broken_logs_do_no_harm() {
    hostile(&Kimi, RECORDS, SESSION);
    hostile(&Kimi, WIRE, MESSAGES);
    hostile(&Kimi, CONTEXT, LINES);
}

/// The books have every call; what is counted is the same.
#[test]
fn real_sessions_count_what_is_in_the_books() {
    for (name, bytes) in logs("kimi") {
        let Some(read) = read(&bytes, &name) else {
            continue;
        };
        if let Some(vendor) = read.session.vendor_usage {
            assert_eq!(counts(vendor.into()), counts(read.usage()), "{name}");
        }
        assert!(read.ledger.drift.is_empty(), "{name}");
    }
}

/// What is picked below a place: `(place, path, what it is)`.
#[test]
fn logs_are_picked_by_where_they_are() {
    picks(
        &Kimi,
        &[
            (".kimi/sessions", "h/s/wire.jsonl", Pick::Log),
            (".kimi/sessions", "h/s/context.jsonl", Pick::Keep),
            (".kimi/sessions", "h/s/state.json", Pick::Skip),
            (
                ".kimi-code/sessions",
                "wd_x/session_1/agents/agent-0/wire.jsonl",
                Pick::Log,
            ),
        ],
    );
}

#[test]
fn the_state_beside_a_log_has_its_title() {
    let session = Path::new("/k/wd_x/session_1");
    let log = session.join("agents/main/wire.jsonl");
    assert!(Kimi.sidecars(&log).contains(&session.join("state.json")));

    let origin = crate::Origin {
        path: &log,
        part: None,
    };
    let mut feed = crate::Feed::new(RECORDS.framing, Kimi.open(&RECORDS, &origin, None).unwrap());
    let mut events = crate::Collect::default();
    feed.push(SESSION.as_bytes(), &mut events);
    feed.sidecar(
        "state.json",
        br#"{"title":"Listing","workDir":"/other"}"#,
        &mut events,
    );
    assert_eq!(feed.session().title.as_deref(), Some("Listing"));
    assert_eq!(feed.session().cwd.as_deref(), Some("/code"));
}
