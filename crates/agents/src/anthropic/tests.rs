use insta::assert_snapshot;
use quipu_model::{Body, Usage};
use serde_json::Value;

use super::{Anthropic, BODY as BODY_DIALECT, CHUNKS, SSE};
use crate::corpus::{files, fixtures};
use crate::testkit::{Read, hostile, read};

const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":3,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me "}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"abc"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

: a comment keeps the line open

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"hello "}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"there"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}

data: {"type":"content_block_stop","index":2}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20,"input_tokens":12}}

data: {"type":"message_stop"}

"#;

const BODY: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x",
"content":[{"type":"thinking","thinking":"let me see","signature":"abc"},{"type":"text","text":"hello there"},
{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],
"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":3,"output_tokens":20}}"#;

fn bodies(read: &Read) -> Vec<&Body> {
    read.events.iter().map(|event| &event.body).collect()
}

fn chunks(lines: &[&str]) -> Read {
    let log = lines.join("\n");
    read(log.as_bytes(), "log").unwrap()
}

fn start(id: &str) -> String {
    format!(
        r#"{{"type":"message_start","message":{{"id":"{id}","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{{"input_tokens":5,"output_tokens":1}}}}}}"#
    )
}

#[test]
fn a_stream_reads_as_its_body() {
    let stream = read(STREAM.as_bytes(), "log").unwrap();
    assert_snapshot!(stream.lines());
    let body = read(BODY.as_bytes(), "log").unwrap();
    assert_eq!(body.dialect.name, "anthropic-body");
    assert_eq!(bodies(&stream), bodies(&body));
    assert_eq!(stream.usage(), body.usage());
    let usage = stream.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(12), Some(3), Some(20)),
        "the last sums, once"
    );
    // The same payloads, one a line.
    let lines: Vec<&str> = STREAM
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    let lines = chunks(&lines);
    assert_eq!(lines.dialect.name, "anthropic-chunks");
    assert_eq!(bodies(&lines), bodies(&body));
    assert_eq!(lines.session.id.as_deref(), Some("msg_1"));
}

#[test]
fn inputs_that_are_empty_or_cut_off() {
    let first = start("msg_1");
    let read = chunks(&[
        &first,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"now","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"write","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\"on and"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(read.words(), ["tool.call", "tool.call", "note.truncated"]);
    let inputs: Vec<&str> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCall(call) => call.input.as_ref().map(quipu_model::Json::get),
            _ => None,
        })
        .collect();
    assert_eq!(inputs, ["{}", r#""{\"text\":\"on and""#]);
}

#[test]
fn a_message_that_begins_twice() {
    let first = start("msg_1");
    let read = chunks(&[
        &first,
        &first,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
        &first,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(read.words(), ["message.assistant", "note.model_call"]);
    let usage = read.usage();
    assert_eq!((usage.input, usage.output), (Some(5), Some(1)));
}

#[test]
fn a_message_in_the_middle_of_another() {
    let (first, second) = (start("msg_1"), start("msg_2"));
    let read = chunks(&[
        &first,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"one"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"half"}}"#,
        &second,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"two"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        read.words(),
        [
            "message.assistant",
            "message.assistant",
            "note.rewind",
            "message.assistant",
            "note.model_call"
        ]
    );
    let gone: Vec<bool> = read
        .events
        .iter()
        .map(|event| event.annotations.flags.superseded)
        .collect();
    assert_eq!(gone, [true, true, false, false, false]);
}

#[test]
fn errors_refusals_and_ends_that_do_not_come() {
    let first = start("msg_1");
    let read = chunks(&[
        &first,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"so f"}}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ]);
    assert_eq!(
        read.words(),
        ["note.error", "message.assistant", "note.truncated"]
    );
    assert_eq!(read.usage().input, Some(5), "what was begun is counted");
    let read = chunks(&[
        &first,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"fallback","from":{"model":"m"},"to":{"model":"n"}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"no"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"no"}},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    assert_eq!(
        read.words(),
        ["note.model_change", "message.assistant", "note.error"]
    );
    assert_eq!(read.events[1].annotations.model.as_deref(), Some("n"));
}

#[test]
fn tools_of_the_vendor() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[
{"type":"server_tool_use","id":"s1","name":"bash_code_execution","input":{"command":"false"}},
{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{"type":"bash_code_execution_result","stdout":"","stderr":"bad","return_code":1}},
{"type":"mcp_tool_use","id":"s2","name":"echo","server_name":"e","input":{}},
{"type":"mcp_tool_result","tool_use_id":"s2","is_error":false,"content":[{"type":"text","text":"x"}]},
{"type":"compaction","content":"so far"},{"type":"wonder"}]}"#;
    let read = read(body.as_bytes(), "log").unwrap();
    assert_snapshot!(read.lines());
}

#[test]
fn pairs_repeat_the_history() {
    let log = concat!(
        r#"{"request":{"model":"claude-x","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":"one"}]},"response":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"1"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}}"#,
        "\n",
        r#"{"request":{"model":"claude-x","max_tokens":9,"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"one","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"text","text":"1"}]},{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"two"}]}]},"response":"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_2\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[],\"usage\":{\"input_tokens\":2,\"output_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"2\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_stop\"}\n"}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "log").unwrap();
    assert_snapshot!(read.lines());
}

#[test]
fn a_request_alone() {
    let request = r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"bad"}]}]}"#;
    let read = read(request.as_bytes(), "log").unwrap();
    assert_eq!(
        read.words(),
        ["note.context", "message.user", "tool.call", "tool.result"]
    );
}

#[test]
fn anything_is_read() {
    hostile(&Anthropic, SSE, STREAM);
    let lines: Vec<&str> = STREAM
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    hostile(&Anthropic, CHUNKS, &lines.join("\n"));
    hostile(&Anthropic, BODY_DIALECT, BODY);
}

/// What the vendor counted, put together without the reader: of each message the last word on each
/// count.
fn told(text: &str, messages: &mut Vec<[Option<u64>; 4]>) {
    const KEYS: [&str; 4] = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ];
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return;
    };
    if matches!(value["type"].as_str(), Some("message" | "message_start")) {
        messages.push([None; 4]);
    }
    let Some(counts) = messages.last_mut() else {
        return;
    };
    for usage in [&value["usage"], &value["message"]["usage"]] {
        for (key, count) in KEYS.iter().zip(&mut *counts) {
            *count = usage[*key].as_u64().or(*count);
        }
    }
}

#[test]
fn recorded_usage_is_counted_as_the_vendor_does() {
    let Some(root) = fixtures() else {
        return;
    };
    let mut paths = Vec::new();
    files(&root.join("anthropic-http"), &mut paths);
    assert!(paths.len() > 40);
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut messages = Vec::new();
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => told(&text, &mut messages),
            _ => text
                .lines()
                .for_each(|line| told(line.trim_start_matches("data:"), &mut messages)),
        }
        let mut sum = Usage::default();
        for [input, cache_read, cache_write, output] in messages {
            sum.add(&Usage {
                input,
                cache_read,
                cache_write,
                cache_write_1h: None,
                output,
                reasoning: None,
            });
        }
        let read = read(text.as_bytes(), "log").unwrap();
        // Calls to models within a call are told apart from it.
        let named = path.file_name().and_then(|name| name.to_str());
        let (input, output) = match named.unwrap_or_default() {
            "anthropic-compaction.1.json" => (60_385, 592),
            "anthropic-compaction.1.chunks.jsonl" => (60_385, 522),
            "anthropic-advisor-20250301.1.chunks.jsonl" => (2_728, 3_880),
            "anthropic-fallback.json" | "anthropic-fallback.chunks.jsonl" => (408, 0),
            _ => (0, 0),
        };
        sum.add(&Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        });
        let usage = Usage {
            reasoning: None,
            cache_write_1h: None,
            ..read.usage()
        };
        assert_eq!(usage, sum, "{}", path.display());
        assert!(read.ledger.drift.is_empty(), "{}", path.display());
    }
}

#[test]
fn searches_of_the_web_are_counted_once() {
    let message = r#"{"type":"message","id":"msg_0123456789abcdef","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5,"server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}"#;
    let read = read(message.as_bytes(), "x.json").unwrap();
    let searches: Vec<u64> = read.summary.spend.values().map(|it| it.searches).collect();
    assert_eq!(searches, [2]);
}
