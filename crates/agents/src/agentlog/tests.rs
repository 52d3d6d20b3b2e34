//! Each kind of record, sessions, and what is promised of every log.

mod kinds;
mod repeats;

use insta::assert_snapshot;
use quipu_model::{Body, HarnessEvent, NoteKind, Severity, Usage};
use serde_json::{Value, json};

use super::{AgentLog, TRACE};
use crate::corpus::fixtures;
use crate::testkit::{Read, hostile, read, read_as};

/// A trace as it is written: each record after the one before it, a second later.
struct Log {
    text: String,
    last: Value,
    seconds: u32,
}

impl Log {
    fn new() -> Self {
        Self::of(&json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"env": "dev"}}))
    }

    fn of(root: &Value) -> Self {
        let mut log = Self {
            text: String::new(),
            last: Value::Null,
            seconds: 0,
        };
        log.add("metadata", root);
        log
    }

    /// Adds a record, and gives its id: the same for the same payload.
    fn add(&mut self, kind: &str, payload: &Value) -> Value {
        let parent = self.last.clone();
        self.under(&parent, kind, payload)
    }

    fn under(&mut self, parent: &Value, kind: &str, payload: &Value) -> Value {
        use sha2::Digest as _;
        let hash = quipu_model::hex::encode(&sha2::Sha256::digest(payload.to_string()));
        let id = json!(format!("sha256:{hash}"));
        let (minute, second) = (self.seconds / 60, self.seconds % 60);
        let ts = format!("2026-04-21T10:{minute:02}:{second:02}.000Z");
        let record = json!({
            "version": "0.1", "id": id, "kind": kind, "ts": ts, "parent": parent, "payload": payload
        });
        self.text.push_str(&record.to_string());
        self.text.push('\n');
        self.seconds += 1;
        self.last = id.clone();
        id
    }

    fn ask(&mut self, messages: &Value) -> Value {
        let payload = json!({"model": "m", "messages": messages, "params": {}});
        self.add("chat_request", &payload)
    }

    fn answer(&mut self, content: &Value) -> Value {
        self.add("chat_response", &answer(content))
    }

    fn read(&self) -> Read {
        let read = read(self.text.as_bytes(), "trace.agentlog").unwrap();
        assert_eq!(read.dialect.name, "agentlog");
        read
    }
}

fn answer(content: &Value) -> Value {
    json!({
        "model": "m", "content": content, "stop_reason": "end_turn", "latency_ms": 5,
        "usage": {"input_tokens": 10, "output_tokens": 2}
    })
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// Who said what, without notes: `user: hello`.
fn talk(read: &Read) -> Vec<String> {
    let said = |body: &Body| {
        Some(match body {
            Body::Note(_) => return None,
            Body::SystemMessage(blocks) => format!("system: {}", words(blocks)),
            Body::UserMessage(blocks) => format!("user: {}", words(blocks)),
            Body::AssistantMessage(blocks) => {
                format!("assistant: {}", words(blocks))
            }
            Body::ToolCall(call) => format!("call {}", call.call_id),
            Body::ToolResult(result) => {
                let output = result.output.as_ref().map_or("", |json| json.get());
                let error = result.error.as_deref().unwrap_or_default();
                format!("result {} {output}{error}", result.call_id)
            }
            other => panic!("{other:?}"),
        })
    };
    read.events
        .iter()
        .filter_map(|event| said(&event.body))
        .collect()
}

fn words(blocks: &[quipu_model::Block]) -> String {
    use quipu_model::Content;
    let text = |block: &quipu_model::Block| match &block.content {
        Content::Text(text) => text.clone(),
        Content::Thinking(text) => format!("({text})"),
        other => panic!("{other:?}"),
    };
    blocks.iter().map(text).collect()
}

/// A trace with a record of every kind.
fn every_kind() -> Log {
    let mut log = Log::of(&json!({
        "sdk": {"name": "shadow", "version": "3.2.5"},
        "tags": {"env": "dev", "cwd": "/code/shop", "branch": "main", "title": "Refunds"}
    }));
    let call = json!({"type": "tool_use", "id": "t1", "name": "lookup", "input": {"order": 7}});
    let tools = json!([{"name": "lookup", "description": "", "input_schema": {}}]);
    let first = json!({
        "model": "claude-opus-4-7", "params": {"max_tokens": 256}, "tools": tools,
        "messages": [{"role": "system", "content": "Be brief."}, user("Where is order 7?")]
    });
    let request = log.add("chat_request", &first);
    for index in 0..2 {
        let chunk = json!({"chunk_index": index, "time_unix_nano": 1_745_552_520_123_456_789_u64,
            "delta": {"text": "Let"}, "is_final": index == 1});
        log.under(&request, "chunk", &chunk);
    }
    let content =
        json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Let me see."}, call]);
    let response = json!({
        "model": "claude-opus-4-7", "content": content, "stop_reason": "tool_use", "stop_sequence": null,
        "latency_ms": 1200, "stream_timings": [{"token_index": 0, "ts_delta_ms": 3}],
        "usage": {"input_tokens": 100, "output_tokens": 20, "thinking_tokens": 5,
            "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 50}
    });
    log.under(&request, "chat_response", &response);
    let made = json!({"tool_name": "lookup", "tool_call_id": "t1", "arguments": {"order": 7}});
    log.add("tool_call", &made);
    let given = json!({"tool_call_id": "t1", "output": {"at": "depot"}, "is_error": false, "latency_ms": 40});
    log.add("tool_result", &given);
    let retry = json!({"category": "retry", "name": "backoff", "severity": "warning", "attributes": {"n": 1}});
    log.add("harness_event", &retry);
    let error =
        json!({"source": "llm", "code": "overloaded", "message": "try later", "retriable": true});
    log.add("error", &error);
    let result =
        json!({"type": "tool_result", "tool_use_id": "t1", "content": "{\"at\":\"depot\"}"});
    let second = json!({
        "model": "claude-opus-4-7", "params": {"max_tokens": 512}, "tools": tools,
        "messages": [{"role": "system", "content": "Be brief."}, user("Where is order 7?"),
            {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    });
    log.add("chat_request", &second);
    log.add(
        "chat_response",
        &json!({
            "model": "claude-opus-4-7", "content": text("At the depot."), "stop_reason": "end_turn",
            "latency_ms": 300.5, "usage": {"input_tokens": 30, "output_tokens": 4}
        }),
    );
    let blob = json!({"mime": "image/png", "size_bytes": 12, "blob_id": format!("sha256:{}", "ab".repeat(32))});
    log.add("blob_ref", &blob);
    log.add(
        "metadata",
        &json!({"sdk": {"name": "shadow", "version": "3.2.5"}, "tags": {"session": "2"}}),
    );
    let end = json!({"baseline_trace_id": "sha256:1", "backend_id": "mock", "input_count": 2,
        "output_count": 2, "error_count": 0, "duration_ms": 77});
    log.add("replay_summary", &end);
    log
}

#[test]
fn a_trace() {
    let read = every_kind().read();
    assert_snapshot!(read.lines());
    let session = &read.session;
    assert_eq!(session.title.as_deref(), Some("Refunds"));
    assert_eq!(session.branch.as_deref(), Some("main"));
    assert_eq!(
        session.started().unwrap().to_string(),
        "2026-04-21T10:00:00Z"
    );
    assert_eq!(read.dialect.brand, "shadow");
    let usage = Usage {
        input: Some(130),
        cache_read: Some(1000),
        cache_write: Some(50),
        cache_write_1h: None,
        output: Some(24),
        reasoning: Some(5),
    };
    assert_eq!(read.usage(), usage);
    assert_eq!(read.blobs, 0, "the bytes of a blob are not in a trace");
    assert_eq!(read.ledger.orphans, 0);
    assert_eq!(read.ledger.open_calls().count(), 0);
}

#[test]
fn tokens_are_in_disjoint_buckets() {
    let usage = |model: &str, usage: Value| {
        let mut log = Log::new();
        let response = json!({"model": model, "content": text("x"), "stop_reason": "end_turn",
            "latency_ms": 1, "usage": usage});
        log.add("chat_response", &response);
        let usage = log.read().usage();
        [
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.cache_write_1h,
            usage.output,
            usage.reasoning,
        ]
        .map(|count| count.map_or(-1, |count| i64::try_from(count).unwrap()))
    };
    let cached = json!({"input_tokens": 100, "output_tokens": 9, "cached_input_tokens": 40});
    for (model, counts, buckets) in [
        ("gpt-5.3", cached.clone(), [60, 40, -1, -1, 9, -1]),
        ("claude-opus-4-7", cached, [100, 40, -1, -1, 9, -1]),
        // More than the input cannot be inside of it.
        (
            "gpt-5.3",
            json!({"input_tokens": 10, "output_tokens": 9, "cached_input_tokens": 40}),
            [10, 40, -1, -1, 9, -1],
        ),
        (
            "gpt-5.3",
            json!({"input_tokens": 100.0, "output_tokens": 9.0, "cache_read_input_tokens": 40}),
            [100, 40, -1, -1, 9, -1],
        ),
        (
            "m",
            json!({"input_tokens": 1, "output_tokens": 9, "thinking_tokens": 5}),
            [1, -1, -1, -1, 9, 5],
        ),
        (
            "m",
            json!({"input_tokens": 1, "output_tokens": 9, "thinking_tokens": 50}),
            [1, -1, -1, -1, 59, 50],
        ),
        (
            "m",
            json!({"input_tokens": 1, "output_tokens": 2, "cached_write_5m_tokens": 3, "cached_write_1h_tokens": 4}),
            [1, -1, 7, 4, 2, -1],
        ),
        (
            "m",
            json!({"prompt_tokens": 5, "completion_tokens": 6}),
            [5, -1, -1, -1, 6, -1],
        ),
        ("m", json!({"input_tokens": -1}), [-1; 6]),
        ("m", json!(null), [-1; 6]),
    ] {
        assert_eq!(usage(model, counts.clone()), buckets, "{model} {counts}");
    }
}

#[test]
fn how_a_response_ended_is_told_when_it_is_not_usual() {
    let words = |response: Value| {
        let mut log = Log::new();
        log.add("chat_response", &response);
        log.read().words().split_off(1)
    };
    let content = text("x");
    for (stop, expected) in [
        ("end_turn", None),
        ("tool_use", None),
        ("max_tokens", Some("note.truncated")),
        ("content_filter", Some("note.error")),
        ("policy_blocked", Some("note.error")),
        ("banana", Some("note.model_call")),
    ] {
        let said = words(
            json!({"model": "m", "content": content, "stop_reason": stop, "usage": {}, "latency_ms": 1}),
        );
        let expected = std::iter::once("message.assistant").chain(expected);
        assert!(
            said.iter().map(String::as_str).eq(expected),
            "{stop}: {said:?}"
        );
    }
    let said = words(
        json!({"model": "m", "content": content, "logprobs": [-0.1], "stop_reason": "end_turn"}),
    );
    assert_eq!(said, ["message.assistant", "note.model_call"]);
    let said = words(json!({"model": "m", "content": [], "stop_reason": "end_turn", "usage": {}}));
    assert_eq!(said, ["note.model_call"]);
}

#[test]
fn what_the_harness_does_is_an_event() {
    for (category, severity, kind) in [
        ("retry", "info", NoteKind::Retry),
        ("rate_limit", "warning", NoteKind::Retry),
        ("rate_limit", "fatal", NoteKind::Error),
        ("model_switch", "info", NoteKind::ModelChange),
        ("context_trim", "info", NoteKind::Compaction),
        ("cache", "info", NoteKind::Context),
        ("guardrail", "error", NoteKind::Permission),
        ("budget", "warning", NoteKind::Usage),
        ("stream_interrupt", "error", NoteKind::Truncated),
        ("tool_lifecycle", "info", NoteKind::Progress),
        ("weather", "info", NoteKind::UnknownRecord),
    ] {
        let mut log = Log::new();
        log.add(
            "harness_event",
            &json!({"category": category, "name": "what", "severity": severity}),
        );
        let read = log.read();
        let expected = HarnessEvent {
            category: category.to_owned(),
            name: "what".to_owned(),
            severity: Severity::from_word(severity),
            attributes: None,
        };
        assert_eq!(read.events[1].body, Body::Harness(expected));
        // Where only notes are known, it is a note of this kind.
        let noted = quipu_formats::plain::note(&read.events[1]);
        assert_eq!(noted.map(|note| note.kind), Some(kind), "{category}");
        assert_eq!(read.ledger.drift.is_empty(), category != "weather");
    }
}

#[test]
fn sessions_that_begin_alike_are_told_apart() {
    let id = |text: &str| read(text.as_bytes(), "x").unwrap().session.id.unwrap();
    let mut log = Log::new();
    let plain = log.text.clone();
    let later = plain.replace("10:00:00.000Z", "10:00:00.001Z");
    let traced = plain.replace(
        "\"payload\"",
        "\"meta\":{\"trace_id\":\"0af7\"},\"payload\"",
    );
    let ids = [id(&plain), id(&later), id(&traced)];
    let apart: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(apart.len(), 3, "{ids:?}");
    let root = log.last.as_str().unwrap().strip_prefix("sha256:").unwrap();
    assert!(ids.iter().all(|id| id.starts_with(root)), "{ids:?}");
    assert!(ids.iter().all(|id| crate::run_id(id).as_str() == id));
    // It is the same as the trace grows, and all records are known in a copy of it.
    log.ask(&json!([user("hi")]));
    assert_eq!(id(&log.text), ids[0]);
    let read = log.read();
    assert_eq!(read.ledger.units.len(), 2);
    let other = log.text.replace("10:00:00.000Z", "10:00:00.001Z");
    let other = crate::testkit::read(other.as_bytes(), "x").unwrap();
    assert!(
        other
            .ledger
            .units
            .iter()
            .all(|unit| !read.ledger.units.contains(unit))
    );
}

#[test]
fn a_trace_made_of_a_session_is_an_account_of_it() {
    let root = |sdk: &str, agent: &str, session: Option<&str>| {
        let root = json!({
            "sdk": {"name": sdk, "version": "0.1.0"},
            "imported_from": {"agent": agent, "session_id": session},
            "tags": {"agent": agent, "agent_version": "2.1", "project": "/code/shop"}
        });
        Log::of(&root).read()
    };
    let read = root("quipu", "claude-code", Some("s-1"));
    assert_eq!(read.dialect.brand, "claude-code");
    assert_eq!(read.session.id.as_deref(), Some("s-1"));
    assert_eq!(read.session.cwd.as_deref(), Some("/code/shop"));
    assert_eq!(read.session.version.as_deref(), Some("2.1"));
    // Its copies are known by its records; the session it was made of, by its id.
    assert!(read.session.reconstructed && !read.ledger.units.is_empty());
    // Without the session's own id it stands for itself.
    let read = root("quipu", "claude-code", None);
    assert_eq!(read.dialect.brand, "claude-code");
    assert!(!read.session.reconstructed && !read.ledger.units.is_empty());
    // An agent that nobody knows is not made one, and what others say of agents is not believed.
    for (sdk, agent, brand) in [("quipu", "nobody", "quipu"), ("x", "claude-code", "shadow")] {
        let read = root(sdk, agent, Some("s-1"));
        assert_eq!(read.dialect.brand, brand);
        assert_ne!(read.session.id.as_deref(), Some("s-1"));
        assert!(!read.session.reconstructed);
    }
}

#[test]
fn what_quipu_wrote_down_of_events_is_read_again() {
    let log = |sdk: &str| {
        let mut log = Log::of(&json!({"sdk": {"name": sdk, "version": "0.1.0"}}));
        // One call to a model, told in two answers that repeat its tokens.
        for word in ["one", "two"] {
            log.answer(&text(word));
        }
        let result =
            json!({"tool_call_id": "c", "output": "no", "is_error": true, "latency_ms": 1});
        log.add("tool_result", &result);
        let marks = r#""meta":{"quipu":{"model_call":"msg_1","subagent":"helper","status":"denied"}},"payload""#;
        let text = log.text.replace("\"payload\"", marks);
        read(text.as_bytes(), "x").unwrap()
    };
    let ours = log("quipu");
    assert_eq!(ours.usage().total(), 12);
    let last = &ours.events.last().unwrap().annotations;
    assert_eq!(last.status, Some(quipu_model::Status::Denied));
    assert_eq!(last.subagent_id.as_deref(), Some("helper"));
    let other = log("x");
    assert_eq!(other.usage().total(), 24);
    let last = &other.events.last().unwrap().annotations;
    assert_eq!(
        (last.status, &last.subagent_id),
        (Some(quipu_model::Status::Error), &None)
    );
}

#[test]
fn a_trace_is_known_by_its_envelope_and_to_no_one_else() {
    let log = every_kind();
    let lines: Vec<&str> = log.text.lines().collect();
    for from in 0..lines.len() {
        let rest = lines[from..].join("\n");
        crate::Head::look(rest.as_bytes(), true, |head| {
            let claims = crate::claims(head);
            let names: Vec<_> = claims.iter().map(|(family, _)| family.name()).collect();
            assert_eq!(names, ["agentlog"], "from line {from}");
            assert!(claims[0].1.sure);
        });
    }
    for other in [
        r#"{"version":"0.1","id":"a","kind":"k","ts":"t","parent":null,"payload":{}}"#,
        r#"{"version":"0.1","id":"sha256:a","kind":"k","ts":"t","payload":{}}"#,
        r#"{"version":1,"id":"sha256:a","kind":"k","ts":"t","parent":null,"payload":{}}"#,
        r#"["0.1","sha256:a","k","t",null,{}]"#,
    ] {
        assert!(read(other.as_bytes(), "x").is_none(), "{other}");
    }
}

#[test]
fn records_that_are_none_are_kept() {
    let mut log = Log::new();
    log.add("telepathy", &json!({"a": 1}));
    log.text.push_str(
        "{\"id\":\"sha256:1\"}\n[1,2]\n\"x\"\nnot json\n{\"version\":\"0.1\",\"id\":\"sha2",
    );
    let read = log.read();
    let expected = [
        "note.session",
        "note.unknown_record",
        "note.unknown_record",
        "note.unknown_record",
        "note.unknown_record",
        "note.malformed_line",
    ];
    assert_eq!(read.words(), expected);
    assert!(read.ledger.drift.unknown.contains_key("type:telepathy"));
}

#[test]
fn values_of_the_wrong_kind_are_no_reason_to_stop() {
    hostile(&AgentLog, TRACE, &every_kind().text);
}

/// The small valid and invalid files that lie beside the fixtures. They are not part of the project; where
/// they are absent the test says so.
#[test]
fn the_vectors_are_accounted_for() {
    let Some(cases) = fixtures().map(|root| root.join("../vectors/agentlog/cases")) else {
        return;
    };
    let mut paths = Vec::new();
    crate::corpus::files(&cases, &mut paths);
    assert!(!paths.is_empty());
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let read = read_as(&AgentLog, TRACE, &bytes, name);
        let known = crate::identify(&bytes, true).map(|(family, _)| family.name());
        assert!(
            matches!(known, Some("agentlog") | None),
            "{name}: {known:?}"
        );
        assert!(read.ledger.records > 0, "{name}");
    }
}
