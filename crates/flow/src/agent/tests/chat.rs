//! A server that speaks the Chat Completions protocol, and what is heard of it.

use std::time::{Duration, Instant};

use quipu_model::Body;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::stubs::shouting;
use super::{Calls, Ear};
use crate::agent::{Agents, Answer, AskError, AskFailure, AskRequest};
use crate::http::tests::{Server, answer, server};

const KEY: &str = "sk-test-0123456789abcdef";

fn request(server: &Server) -> AskRequest {
    let mut request = AskRequest::new("openai_compatible", "Say hi.", "/");
    request.step = "ask".to_owned();
    let env = [
        ("OPENAI_BASE_URL", format!("{}/v1", server.url)),
        ("OPENAI_MODEL", "gpt-test".to_owned()),
        ("OPENAI_API_KEY", KEY.to_owned()),
    ];
    request.env = env.map(|(key, value)| (key.to_owned(), value)).into();
    request
}

async fn ask(request: &AskRequest) -> (Result<Answer, AskError>, Ear, Vec<String>) {
    let (mut ear, calls, never) = (Ear::default(), Calls::default(), CancellationToken::new());
    let agents = Agents::default();
    let answer = agents.ask(request, &mut ear, &calls, &never).await;
    for (body, notes) in &ear.events {
        let said = format!("{body:?} {notes:?}");
        assert!(!said.contains(KEY), "the key is on the record: {said}");
    }
    (answer, ear, calls.0.into_inner().unwrap())
}

/// The bodies that the server was sent.
fn bodies(server: &mut Server) -> Vec<Value> {
    let sent = std::iter::from_fn(|| server.seen.try_recv().ok());
    sent.map(|sent| serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap())
        .collect()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-test-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

const USAGE: &str = "data: {\"id\":\"chatcmpl-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n";

fn stream(events: &[String]) -> Option<String> {
    answer(
        "200 OK",
        "content-type: text/event-stream\r\n",
        &events.concat(),
    )
}

fn hello() -> Option<String> {
    stream(&[
        chunk(
            &json!({"role": "assistant", "content": "", "reasoning_content": "hm"}),
            None,
        ),
        ": keep alive\n\n".to_owned(),
        chunk(&json!({"content": "Hel"}), None),
        chunk(&json!({"content": "lo."}), None),
        chunk(&json!({}), Some("stop")),
        USAGE.to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ])
}

#[tokio::test]
async fn a_streamed_answer_is_heard_with_its_tokens_and_is_one_call() {
    let mut server = server(vec![hello()]).await;
    let mut request = request(&server);
    request.system_prompt = Some("Be kind.".to_owned());
    let options = json!({"temperature": 0.5, "max_tokens": 100});
    request.options = options.as_object().unwrap().clone();
    let (answer, ear, _) = ask(&request).await;
    let answer = answer.unwrap();
    assert_eq!(answer.output, "Hello.");
    assert_eq!(answer.model.as_deref(), Some("gpt-test-1"));
    let usage = answer.usage.unwrap();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(6), Some(4), Some(5), Some(2))
    );
    assert_eq!(ear.text, "Hello.");
    assert_eq!(ear.lines(), ["model ok", "thinking hm", "text Hello."]);
    let (Body::ModelCall(call), notes) = &ear.events[0] else {
        panic!("not a call");
    };
    assert_eq!(notes.stop_reason.as_deref(), Some("stop"));
    assert!(notes.duration_ms.is_some() && call.first_token_ms.is_some());
    assert_eq!(notes.usage, Some(usage));
    assert_eq!(
        call.params.as_ref().unwrap().get(),
        r#"{"max_tokens":100,"temperature":0.5}"#
    );
    assert!(ear.events[1].1.usage.is_none(), "tokens are counted once");

    let sent = server.seen.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/chat/completions "), "{sent}");
    assert!(
        sent.contains(&format!("authorization: Bearer {KEY}")),
        "{sent}"
    );
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body, ear.bodies[0], "what is recorded is what was sent");
    assert_eq!(
        body,
        json!({"model": "gpt-test", "stream": true, "stream_options": {"include_usage": true},
            "temperature": 0.5, "max_tokens": 100, "messages": [
                {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Say hi."}]})
    );
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_heard_the_same() {
    let body = json!({"id": "chatcmpl-1", "model": "gpt-test-1", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "Hello.", "reasoning_content": "hm"},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}});
    let json = "content-type: application/json\r\n";
    let server = server(vec![answer("200 OK", json, &body.to_string())]).await;
    let mut request = request(&server);
    request.options = json!({"stream": false}).as_object().unwrap().clone();
    let (answer, ear, _) = ask(&request).await;
    assert_eq!(answer.unwrap().output, "Hello.");
    assert_eq!(ear.lines(), ["model ok", "thinking hm", "text Hello."]);
    assert_eq!(ear.bodies[0]["stream"], json!(false));
}

fn wants_tools() -> Option<String> {
    stream(&[
        chunk(&json!({"content": "Let me shout."}), None),
        chunk(
            &json!({"tool_calls": [
            {"index": 0, "id": "call_a", "type": "function", "function": {"name": "shout", "arguments": ""}},
            {"index": 1, "id": "call_b", "type": "function", "function": {"name": "shout", "arguments": "{\"say\""}}]}),
            None,
        ),
        chunk(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"say\":\"h"}}]}),
            None,
        ),
        chunk(
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": "i\"}"}},
            {"index": 1, "function": {"arguments": ":\"ho\"}"}}]}),
            None,
        ),
        chunk(&json!({}), Some("tool_calls")),
        USAGE.to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ])
}

#[tokio::test]
async fn tools_are_called_by_the_router_with_the_models_own_ids_until_it_answers() {
    let mut server = server(vec![wants_tools(), hello()]).await;
    let mut request = request(&server);
    request.tools = Some(shouting());
    request.keep_session = true;
    let (answer, ear, calls) = ask(&request).await;
    let answer = answer.unwrap();
    assert_eq!(answer.output, "Hello.");
    assert_eq!(
        answer.usage.unwrap().output,
        Some(10),
        "both calls are counted"
    );
    assert_eq!(
        calls,
        [
            "call shout call_a",
            "result shout \"HI\"",
            "call shout call_b",
            "result shout \"HO\""
        ]
    );
    assert_eq!(
        ear.lines(),
        [
            "model ok",
            "text Let me shout.",
            "model ok",
            "thinking hm",
            "text Hello."
        ]
    );
    let sent = bodies(&mut server);
    let second = &sent[1]["messages"];
    assert_eq!(
        second[1]["tool_calls"][0]["function"]["arguments"],
        "{\"say\":\"hi\"}"
    );
    assert_eq!(
        second[2],
        json!({"role": "tool", "tool_call_id": "call_a", "content": "HI"})
    );
    assert_eq!(ear.bodies[0]["tools"][0]["function"]["name"], "shout");

    // The session goes on with all of it.
    let session = answer.session.unwrap();
    assert_eq!(session.messages.len(), 5);
    let again = super::chat::server(vec![hello()]).await;
    let mut request = super::chat::request(&again);
    request.session = Some(session);
    request.prompt = "Again.".to_owned();
    let (answer, ear, _) = ask(&request).await;
    assert!(answer.is_ok());
    let roles: Vec<_> = ear.bodies[0]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "tool", "assistant", "user"]
    );
}

#[tokio::test]
async fn a_model_that_calls_tools_for_ever_is_stopped() {
    let mut server = server(vec![wants_tools()]).await;
    let mut request = request(&server);
    request.tools = Some(shouting());
    request.options = json!({"max_rounds": 2}).as_object().unwrap().clone();
    let (answer, ear, calls) = ask(&request).await;
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("after 2 rounds"), "{error}");
    assert_eq!(error.heard.output, "Let me shout.");
    assert_eq!((bodies(&mut server).len(), calls.len()), (3, 8));
    assert_eq!(ear.bodies.len(), 1, "the question is asked once");
    assert!(ear.met("budget", "max_rounds"), "{:?}", ear.lines());
}

#[tokio::test]
async fn arguments_that_are_not_json_are_sent_back_as_an_error() {
    let broken = stream(&[
        chunk(
            &json!({"tool_calls": [{"index": 0, "id": "call_a", "function": {"name": "shout", "arguments": "{\"say\":"}}]}),
            Some("tool_calls"),
        ),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let mut server = server(vec![broken, hello()]).await;
    let mut request = request(&server);
    request.tools = Some(shouting());
    let (answer, ear, calls) = ask(&request).await;
    assert_eq!(answer.unwrap().output, "Hello.");
    assert_eq!(calls.len(), 2, "{calls:?}");
    let sent = bodies(&mut server);
    let told = sent[1]["messages"][2]["content"].as_str().unwrap();
    assert_eq!(ear.bodies[0], sent[0]);
    assert!(told.contains("not JSON"), "{told}");
}

#[tokio::test]
async fn limits_and_errors_of_the_server_are_tried_again_and_each_is_on_the_record() {
    let limited = answer(
        "429 Too Many Requests",
        "retry-after: 0\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let down = answer("503 Service Unavailable", "retry-after-ms: 1\r\n", "down");
    let server = server(vec![limited, down, hello()]).await;
    let (answer, ear, _) = ask(&request(&server)).await;
    assert_eq!(answer.unwrap().output, "Hello.");
    assert_eq!(
        ear.lines(),
        [
            "model the server answered 429: slow down",
            "harness rate_limit.try_again",
            "model the server answered 503: down",
            "harness retry.try_again",
            "model ok",
            "thinking hm",
            "text Hello.",
        ]
    );
}

#[tokio::test]
async fn trying_again_ends_and_a_refusal_is_not_tried_again() {
    let limited = answer("429 Too Many Requests", "retry-after: 0\r\n", "{}");
    let mut server_ = server(vec![limited]).await;
    let mut asked = request(&server_);
    asked.options = json!({"retries": 2}).as_object().unwrap().clone();
    let (answer_, ear, _) = ask(&asked).await;
    assert!(matches!(
        answer_.unwrap_err().why,
        AskFailure::Server {
            status: 429,
            retryable: true,
            ..
        }
    ));
    assert_eq!(bodies(&mut server_).len(), 3);
    assert_eq!(ear.bodies.len(), 1);

    let said = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
    let server_ = server(vec![answer("401 Unauthorized", "", &said)]).await;
    let (answer_, ear, _) = ask(&request(&server_)).await;
    let error = answer_.unwrap_err().to_string();
    assert_eq!(
        error,
        "the server answered 401: Incorrect API key provided: ***."
    );
    assert_eq!(ear.bodies.len(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_what_was_said() {
    for (end, why) in [
        (String::new(), "broke off"),
        (
            "data: {\"error\":{\"message\":\"overloaded\"}}\n\n".to_owned(),
            "overloaded",
        ),
    ] {
        let broken = stream(&[
            chunk(&json!({"content": "Hel"}), None),
            chunk(
                &json!({"tool_calls": [{"index": 0, "id": "call_a", "function": {"name": "shout", "arguments": "{\"sa"}}]}),
                None,
            ),
            end,
        ]);
        let mut server = server(vec![broken]).await;
        let (answer, ear, _) = ask(&request(&server)).await;
        let error = answer.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.heard.output, "Hel");
        assert_eq!(
            bodies(&mut server).len(),
            1,
            "what was begun is not tried again"
        );
        let lines = ear.lines();
        assert_eq!(lines[1..3], ["text Hel", "call shout call_a"], "{lines:?}");
        assert!(ear.met("stream_interrupt", "broken_off"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_in_the_middle_leaves_what_was_said() {
    let begun = chunk(&json!({"content": "Hel"}), None);
    let cut = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{begun}"
    );
    let server = server(vec![Some(cut)]).await;
    let (answer, ear, _) = ask(&request(&server)).await;
    let error = answer.unwrap_err();
    assert!(matches!(error.why, AskFailure::Connection(_)), "{error}");
    assert_eq!(error.heard.output, "Hel");
    assert!(
        ear.met("stream_interrupt", "broken_off"),
        "{:?}",
        ear.lines()
    );
}

#[tokio::test]
async fn cancelling_and_the_time_limit_end_the_request_at_once() {
    let server = server(vec![None]).await;
    let mut asked = request(&server);
    asked.timeout = Some(Duration::from_millis(100));
    let began = Instant::now();
    let (answer, ear, _) = ask(&asked).await;
    assert!(
        matches!(answer.unwrap_err().why, AskFailure::TimedOut(it) if it == Duration::from_millis(100))
    );
    assert!(
        ear.met("stream_interrupt", "timed_out"),
        "{:?}",
        ear.lines()
    );

    asked.timeout = None;
    let cancel = CancellationToken::new();
    let (mut ear, calls, agents) = (Ear::default(), Calls::default(), Agents::default());
    let (answer, ()) = tokio::join!(agents.ask(&asked, &mut ear, &calls, &cancel), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    assert!(matches!(answer.unwrap_err().why, AskFailure::Cancelled));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_again_and_named() {
    let mut asked = AskRequest::new("openai_compatible", "x", "/");
    // Nothing listens on port 1.
    let options = json!({"base_url": "http://127.0.0.1:1/v1", "model": "m", "retries": 1});
    asked.options = options.as_object().unwrap().clone();
    let (answer, ear, _) = ask(&asked).await;
    let error = answer.unwrap_err();
    assert!(matches!(error.why, AskFailure::Connection(_)), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    assert!(ear.met("retry", "try_again"), "{:?}", ear.lines());
}

#[tokio::test]
async fn chunks_are_on_the_record_only_when_asked_for() {
    let server = server(vec![hello()]).await;
    let mut asked = request(&server);
    asked.options = json!({"record_chunks": true}).as_object().unwrap().clone();
    let (_, ear, _) = ask(&asked).await;
    let chunks: Vec<_> = ear
        .events
        .iter()
        .filter_map(|(body, _)| match body {
            Body::Chunk(chunk) => Some((chunk.index, chunk.text.as_str(), chunk.is_last)),
            _ => None,
        })
        .collect();
    assert_eq!(
        chunks,
        [
            (0, "", false),
            (1, "Hel", false),
            (2, "lo.", false),
            (3, "", false),
            (4, "", true)
        ]
    );
}

#[tokio::test]
async fn a_stream_is_read_the_same_however_it_is_divided() {
    let whole = hello().unwrap();
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    let kind = "transfer-encoding: chunked\r\ncontent-type: text/event-stream";
    assert!(head.contains("event-stream"));
    for size in [1, 2, 3, 7, 100] {
        let pieces = body.as_bytes().chunks(size).map(|piece| {
            format!(
                "{:x}\r\n{}\r\n",
                piece.len(),
                String::from_utf8_lossy(piece)
            )
        });
        let divided = format!(
            "HTTP/1.1 200 OK\r\n{kind}\r\n\r\n{}0\r\n\r\n",
            pieces.collect::<String>()
        );
        let server = server(vec![Some(divided)]).await;
        let (answer, ear, _) = ask(&request(&server)).await;
        assert_eq!(answer.unwrap().output, "Hello.", "{size}");
        assert_eq!(
            ear.lines(),
            ["model ok", "thinking hm", "text Hello."],
            "{size}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused() {
    let long = "x".repeat(1 << 20);
    let events: Vec<String> = (0..11)
        .map(|_| chunk(&json!({"content": long}), None))
        .collect();
    let server = server(vec![stream(&events)]).await;
    let (answer, _, _) = ask(&request(&server)).await;
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
    assert!(error.heard.output.len() <= 11 << 20);
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let mut asked = AskRequest::new("openai_compatible", "x", "/");
    asked.env.insert(
        "OPENAI_BASE_URL".to_owned(),
        "http://127.0.0.1:1".to_owned(),
    );
    asked.env.insert("OPENAI_MODEL".to_owned(), " ".to_owned());
    let (answer, ..) = ask(&asked).await;
    assert!(answer.unwrap_err().to_string().contains("OPENAI_MODEL"));
}
