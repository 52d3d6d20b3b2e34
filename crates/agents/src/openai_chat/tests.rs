use insta::assert_snapshot;
use quipu_model::Body;

use super::{BODY, CHUNKS, OpenAiChat, SSE};
use crate::corpus::documents;
use crate::testkit::{Read, hostile, read};

const STREAM: &str = r#"data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"hm"},"finish_reason":null}],"usage":null}

: keep alive

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{"content":"hel"},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{"content":"lo","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"ls","arguments":""}},{"index":1,"id":"c2","type":"function","function":{"name":"now","arguments":""}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"/\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"gpt-x","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}

data: [DONE]

"#;

const WHOLE: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1767323045,"model":"gpt-x","choices":[
{"index":0,"message":{"role":"assistant","content":"hello","reasoning_content":"hm","tool_calls":[
{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}},
{"id":"c2","type":"function","function":{"name":"now","arguments":""}}]},"finish_reason":"tool_calls"}],
"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#;

fn bodies(read: &Read) -> Vec<&Body> {
    read.events.iter().map(|event| &event.body).collect()
}

fn chunks(lines: &[&str]) -> Read {
    let log = lines.join("\n");
    read(log.as_bytes(), "log").unwrap()
}

#[test]
fn a_stream_reads_as_its_body() {
    let stream = read(STREAM.as_bytes(), "log").unwrap();
    assert_snapshot!(stream.lines());
    let body = read(WHOLE.as_bytes(), "log").unwrap();
    assert_eq!(body.dialect.name, "openai-chat-body");
    assert_eq!(bodies(&stream), bodies(&body));
    let usage = stream.usage();
    assert_eq!(usage, body.usage());
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(6), Some(4), Some(5), Some(2))
    );
    let lines: Vec<&str> = STREAM
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|line| line.starts_with('{'))
        .collect();
    let lines = chunks(&lines);
    assert_eq!(lines.dialect.name, "openai-chat-chunks");
    assert_eq!(bodies(&lines), bodies(&body));
}

#[test]
fn vendors_differ() {
    // No ids, whole arguments at once, usage with every chunk, and a second answer behind the first.
    let read = chunks(&[
        r#"{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
        r#"{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":9}}"#,
        r#"{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}],"function_call":{"name":"g","arguments":"{"}}}]}"#,
        r#"{"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"function_call":{"arguments":"\"b\":2}"}},"finish_reason":"function_call"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#,
    ]);
    assert_snapshot!(read.lines());
    let usage = read.usage();
    assert_eq!((usage.input, usage.output), (Some(7), Some(11)));
}

#[test]
fn several_choices_and_an_end_that_does_not_come() {
    let read = chunks(&[
        r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":1,"delta":{"content":"B"},"finish_reason":"stop"}]}"#,
        r#"{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"A"}}]}"#,
        r#"{"id":"y","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"c"}}]}"#,
    ]);
    assert_eq!(
        read.words(),
        [
            "message.assistant",
            "message.assistant",
            "note.model_call",
            "message.assistant",
            "note.truncated"
        ]
    );
    let body = r#"{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"cut"},"finish_reason":"length"},{"index":1,"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}"#;
    let read = crate::testkit::read(body.as_bytes(), "log").unwrap();
    assert_eq!(
        read.words(),
        ["message.assistant", "message.assistant", "note.truncated"]
    );
}

#[test]
fn pairs_repeat_the_history() {
    let log = concat!(
        r#"{"request":{"model":"m","messages":[{"role":"system","content":"brief"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]}]},"response":{"id":"r1","object":"chat.completion","choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}}"#,
        "\n",
        r#"{"request":{"model":"m","messages":[{"role":"system","content":"brief"},{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"done"}]},"response":[{"id":"r2","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}]}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "log").unwrap();
    assert_eq!(
        read.words(),
        [
            "note.context",
            "message.system",
            "message.user",
            "note.attachment",
            "tool.call",
            "note.model_call",
            "tool.result",
            "message.assistant",
            "note.model_call"
        ]
    );
    assert_eq!(read.blobs, 1);
    assert_eq!(read.ledger.orphans, 0);
}

#[test]
fn anything_is_read() {
    hostile(&OpenAiChat, SSE, STREAM);
    hostile(&OpenAiChat, BODY, WHOLE);
    let lines: Vec<&str> = STREAM
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|line| line.starts_with('{'))
        .collect();
    hostile(&OpenAiChat, CHUNKS, &lines.join("\n"));
}

#[test]
fn recorded_usage_is_the_total_of_the_vendor() {
    let logs = documents("openai-chat-http");
    let (mut compared, all) = (0, logs.len());
    for (name, bytes, documents) in logs {
        let total = documents
            .iter()
            .filter_map(|document| document["usage"]["total_tokens"].as_u64())
            .next_back();
        let read = read(&bytes, "log").unwrap();
        assert_eq!(read.usage().total(), total.unwrap_or(0), "{name}");
        assert!(read.ledger.drift.is_empty(), "{name}");
        compared += usize::from(total.is_some());
    }
    assert!(all == 0 || compared >= 10);
}

#[test]
fn the_price_is_the_vendors() {
    let chunk = |ticks: u64, id: &str| {
        format!(
            r#"{{"id":"{id}","object":"chat.completion.chunk","choices":[],"usage":{{"prompt_tokens":307,"completion_tokens":26,"total_tokens":560,"completion_tokens_details":{{"reasoning_tokens":227}},"cost_in_usd_ticks":{ticks}}}}}"#
        )
    };
    let read = chunks(&[&chunk(1_497_500, "a"), &chunk(2_500, "b")]);
    assert_eq!(read.session.vendor_cost.as_deref(), Some("0.00015"));
    // This vendor counts its reasoning beside the completion.
    assert_eq!(read.usage().output, Some(2 * 253));
}
