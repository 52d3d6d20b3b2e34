use insta::assert_snapshot;
use quipu_model::Body;

use super::{BODY, CHUNKS, OpenAiResponses, SSE};
use crate::corpus::documents;
use crate::testkit::{Read, hostile, read};

const STREAM: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1767323045,"status":"in_progress","model":"gpt-x","output":[],"instructions":"be brief"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

data: {"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","delta":"hm"}

data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_9","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}}

data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}

data: {"type":"response.output_text.delta","output_index":1,"item_id":"other","delta":"hello"}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_2","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}}

data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"ls","arguments":""}}

data: {"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"path\":\"/\"}"}

data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_2","type":"function_call","call_id":"c1","name":"ls","arguments":"{\"path\":\"/\"}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","object":"response","created_at":1767323045,"status":"completed","model":"gpt-x","instructions":"be brief","output":[{"id":"rs_3","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"id":"msg_3","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]},{"id":"fc_3","type":"function_call","call_id":"c1","name":"ls","arguments":"{\"path\":\"/\"}"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}}

"#;

const WHOLE: &str = r#"{"id":"resp_1","object":"response","created_at":1767323045,"status":"completed","model":"gpt-x","instructions":"be brief","output":[
{"id":"rs_3","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
{"id":"msg_3","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]},
{"id":"fc_3","type":"function_call","call_id":"c1","name":"ls","arguments":"{\"path\":\"/\"}"}],
"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}}"#;

fn bodies(read: &Read) -> Vec<&Body> {
    read.events.iter().map(|event| &event.body).collect()
}

#[test]
fn a_stream_reads_as_its_body() {
    let stream = read(STREAM.as_bytes(), "log").unwrap();
    assert_snapshot!(stream.lines());
    let body = read(WHOLE.as_bytes(), "log").unwrap();
    assert_eq!(body.dialect.name, "openai-responses-body");
    assert_eq!(bodies(&stream), bodies(&body));
    let usage = stream.usage();
    assert_eq!(usage, body.usage());
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(6), Some(4), Some(5), Some(2))
    );
}

#[test]
fn a_stream_that_breaks_off() {
    let cut = STREAM.find(r#"data: {"type":"response.output_item.done","output_index":1"#);
    let broken = read(&STREAM.as_bytes()[..cut.unwrap()], "log").unwrap();
    assert_eq!(
        broken.words(),
        [
            "message.system",
            "message.assistant",
            "message.assistant",
            "note.truncated"
        ],
        "what had come of the text is kept"
    );
    for (end, note) in [
        (
            r#""status":"failed","error":{"code":"server_error","message":"oh"}"#,
            "note.error",
        ),
        (
            r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#,
            "note.truncated",
        ),
    ] {
        let log = format!(
            "{{\"type\":\"response.failed\",\"response\":{{\"id\":\"r\",\"object\":\"response\",\"output\":[],{end}}}}}\n{{\"type\":\"error\",\"message\":\"gone\"}}\n"
        );
        let read = read(log.as_bytes(), "log").unwrap();
        assert_eq!(read.words(), [note, "note.error"]);
    }
}

#[test]
fn tools_of_every_kind() {
    let body = r#"{"id":"resp_1","object":"response","status":"completed","model":"m","output":[
{"id":"ws","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}},
{"id":"fs","type":"file_search_call","status":"completed","queries":["a"],"results":null},
{"id":"ci","type":"code_interpreter_call","status":"completed","code":"1+1","container_id":"c","outputs":[{"type":"logs","logs":"2"}]},
{"id":"ig","type":"image_generation_call","status":"completed","output_format":"webp","revised_prompt":"p","result":"aGVsbG8="},
{"id":"mc","type":"mcp_call","name":"echo","arguments":"{\"a\":1}","server_label":"s","output":null,"error":"refused"},
{"id":"sh","type":"shell_call","call_id":"k1","action":{"commands":["false"]},"status":"completed"},
{"id":"so","type":"shell_call_output","call_id":"k1","output":[{"stdout":"","stderr":"","outcome":{"type":"exit","exit_code":1}}]},
{"id":"ts","type":"tool_search_call","call_id":null,"execution":"server","arguments":{"goal":"g"}},
{"id":"to","type":"tool_search_output","call_id":null,"tools":[]},
{"id":"ct","type":"custom_tool_call","call_id":"k2","name":"sql","input":"select 1"},
{"id":"ap","type":"mcp_approval_request","name":"x","arguments":"{}","server_label":"s"},
{"id":"cp","type":"compaction","encrypted_content":"x"},
{"id":"nn","type":"wonder"}]}"#;
    let read = read(body.as_bytes(), "log").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.blobs, 1);
    assert_eq!(read.ledger.orphans, 0);
}

#[test]
fn pairs_repeat_the_history() {
    let log = concat!(
        r#"{"request":{"model":"m","instructions":"brief","input":[{"role":"user","content":"one"}]},"response":{"id":"r1","object":"response","status":"completed","output":[{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}}"#,
        "\n",
        r#"{"request":{"model":"m","instructions":"brief","input":[{"role":"user","content":"one"},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"done"}]},"response":{"id":"r2","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}]}}"#,
        "\n",
        r#"{"request":{"model":"m","previous_response_id":"r2","input":[{"role":"user","content":"one"}]},"response":{"id":"r3","object":"response","status":"completed","output":[]}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "log").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.context",
            "message.system",
            "message.user",
            "message.assistant",
            "tool.call",
            "note.model_call",
            "tool.result",
            "message.assistant",
            "note.model_call",
            "message.user",
            "note.model_call"
        ]
    );
}

#[test]
fn anything_is_read() {
    hostile(&OpenAiResponses, SSE, STREAM);
    hostile(&OpenAiResponses, BODY, WHOLE);
    let lines: Vec<&str> = STREAM
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    hostile(&OpenAiResponses, CHUNKS, &lines.join("\n"));
}

#[test]
fn recorded_usage_is_the_total_of_the_vendor() {
    let logs = documents("openai-responses-http");
    let (mut compared, all) = (0, logs.len());
    for (name, bytes, documents) in logs {
        let total: u64 = documents
            .iter()
            .flat_map(|document| [&document["usage"], &document["response"]["usage"]])
            .filter_map(|usage| usage["total_tokens"].as_u64())
            .sum();
        let read = read(&bytes, "log").unwrap();
        // One recording has lines that are cut off; the feed still finds the response in them.
        if documents.len() == 1
            || documents.len() == bytes.trim_ascii().split(|byte| *byte == b'\n').count()
        {
            assert_eq!(read.usage().total(), total, "{name}");
        }
        assert!(read.ledger.drift.is_empty(), "{name}");
        compared += usize::from(total > 0);
    }
    assert!(all == 0 || compared >= 30);
}
