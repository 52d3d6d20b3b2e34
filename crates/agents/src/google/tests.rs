use insta::assert_snapshot;
use quipu_model::Body;
use serde_json::Value;

use super::{BODY, CHUNKS, Google, SSE};
use crate::corpus::documents;
use crate::testkit::{Read, hostile, read};

const CHUNKED: &str = concat!(
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"let me ","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":2,"totalTokenCount":12},"modelVersion":"gemini-x","responseId":"R1","createTime":"2026-01-02T03:04:05Z"}"#,
    "\n",
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"see","thought":true},{"text":"hel"}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":14},"modelVersion":"gemini-x","responseId":"R1"}"#,
    "\n",
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]},"index":0}],"usageMetadata":{"promptTokenCount":10,"thoughtsTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":15},"modelVersion":"gemini-x","responseId":"R1"}"#,
    "\n",
    r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"path":"/"}},"thoughtSignature":"x"},{"text":"","thoughtSignature":"y"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"thoughtsTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":18},"modelVersion":"gemini-x","responseId":"R1"}"#,
    "\n",
);

const WHOLE: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"let me see","thought":true},{"text":"hello"},{"functionCall":{"name":"ls","args":{"path":"/"}}}]},"finishReason":"STOP","index":0}],
"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"thoughtsTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":18},"modelVersion":"gemini-x","responseId":"R1","createTime":"2026-01-02T03:04:05Z"}"#;

fn bodies(read: &Read) -> Vec<&Body> {
    read.events.iter().map(|event| &event.body).collect()
}

fn inputs(read: &Read) -> Vec<String> {
    read.events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCall(call) => call.input.as_ref(),
            _ => None,
        })
        .map(|json| json.get().to_owned())
        .collect()
}

#[test]
fn a_stream_reads_as_its_body() {
    let stream = read(CHUNKED.as_bytes(), "log").unwrap();
    assert_snapshot!(stream.lines());
    let body = read(WHOLE.as_bytes(), "log").unwrap();
    assert_eq!(body.dialect.name, "google-body");
    assert_eq!(bodies(&stream), bodies(&body));
    let usage = stream.usage();
    assert_eq!(usage, body.usage());
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(6), Some(4), Some(8), Some(3))
    );
    let sse = format!("data: {}", CHUNKED.trim_end().replace('\n', "\n\ndata: "));
    let sse = read(sse.as_bytes(), "log").unwrap();
    assert_eq!(sse.dialect.name, "google-sse");
    assert_eq!(bodies(&sse), bodies(&body));
    let list = format!("[{}]", CHUNKED.lines().collect::<Vec<_>>().join(",\n"));
    let list = read(list.as_bytes(), "log").unwrap();
    assert_eq!(list.dialect.name, "google-body");
    assert_eq!(bodies(&list), bodies(&body));
}

#[test]
fn arguments_in_pieces() {
    let part = |part: &str, end: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"functionCall":{part}}}]}}{end}}}],"usageMetadata":{{"trafficType":"X"}},"modelVersion":"m","responseId":"R"}}"#
        )
    };
    let lines = [
        part(r#"{"name":"put","willContinue":true}"#, ""),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.items[0].name","stringValue":"ap","willContinue":true}],"willContinue":true}"#,
            "",
        ),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.items[0].name","stringValue":"ple"}],"willContinue":true}"#,
            "",
        ),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.items[0].price","numberValue":0.50},{"jsonPath":"$.items[1]['a b']","boolValue":true}],"willContinue":true}"#,
            "",
        ),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.items[999999999].far","nullValue":"NULL_VALUE"}],"willContinue":true}"#,
            "",
        ),
        part("{}", ""),
        part(r#"{"name":"now"}"#, ""),
        // The end of this one never comes.
        part(r#"{"name":"last","willContinue":true}"#, ""),
        part(
            r#"{"partialArgs":[{"jsonPath":"$.x","stringValue":"y","willContinue":true}],"willContinue":true}"#,
            r#","finishReason":"STOP""#,
        ),
    ];
    let log = lines.join("\n");
    let read = read(log.as_bytes(), "log").unwrap();
    assert_eq!(
        inputs(&read),
        [
            r#"{"items":[{"name":"apple","price":0.50},{"a b":true},{"far":null}]}"#,
            "{}",
            r#"{"x":"y"}"#
        ]
    );
}

#[test]
fn requests_code_images_and_results() {
    let log = concat!(
        r#"{"request":{"systemInstruction":{"parts":[{"text":"brief"}]},"contents":[{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}]},"response":{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"bad"}}]},"finishReason":"STOP"}],"modelVersion":"m"}}"#,
        "\n",
        r#"{"request":{"systemInstruction":{"parts":[{"text":"brief"}]},"contents":[{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"no"}}}]}]},"response":{"candidates":[],"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"m"}}"#,
        "\n",
    );
    let read = read(log.as_bytes(), "log").unwrap();
    assert_snapshot!(read.lines());
    assert_eq!(read.ledger.orphans, 0);
    assert_eq!(read.blobs, 1);
}

#[test]
fn anything_is_read() {
    hostile(&Google, CHUNKS, CHUNKED);
    hostile(&Google, BODY, WHOLE);
    let sse = format!("data: {}", CHUNKED.trim_end().replace('\n', "\n\ndata: "));
    hostile(&Google, SSE, &sse);
}

#[test]
fn recorded_usage_is_the_total_of_the_vendor() {
    let logs = documents("gemini-http");
    let (mut compared, all) = (0, logs.len());
    for (name, bytes, documents) in logs {
        // Of each response the last; a line with a method is a response of its own.
        let total_of = |response: &Value| response["usageMetadata"]["totalTokenCount"].as_u64();
        let last = |chunks: &[Value]| chunks.iter().filter_map(total_of).next_back();
        let total: u64 = match documents.first() {
            Some(first) if first["method"].is_string() => documents
                .iter()
                .filter_map(|line| match &line["response"] {
                    Value::Array(chunks) => last(chunks),
                    response => total_of(response),
                })
                .sum(),
            _ => last(&documents).unwrap_or(0),
        };
        let read = read(&bytes, "log").unwrap();
        assert_eq!(read.usage().total(), total, "{name}");
        assert!(read.ledger.drift.is_empty(), "{name}");
        compared += usize::from(total > 0);
    }
    assert!(all == 0 || compared >= 10);
}
