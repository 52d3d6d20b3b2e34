//! What becomes of what.

use quipu_model::{
    Block, Body, Content, Event, Fidelity, Json, Money, Note, NoteKind, Notes, Place, RunId,
    Status, Step, Timestamp, Usage,
};

use super::{Session, assistant, attr, block, call, named, of_call, result, spans, text, user};
use crate::otlp::{CONTENT, Convention, OtlpOptions};

fn with_content() -> OtlpOptions {
    OtlpOptions {
        content: true,
        ..OtlpOptions::default()
    }
}

/// Puts a word wherever content can be.
pub(super) fn put_everywhere(events: &mut [Event], word: &str) {
    let json = || Some(Json::string(word));
    let said = |blocks: &mut Vec<Block>| {
        for block in blocks {
            block.content = match &block.content {
                Content::Text(_) => Content::Text(word.to_owned()),
                Content::Thinking(_) => Content::Thinking(word.to_owned()),
                Content::Command(_) => Content::Command(word.to_owned()),
                Content::Stream(_) => Content::Stream(word.to_owned()),
                Content::ToolUse { name, id, .. } => Content::ToolUse {
                    name: name.clone(),
                    id: id.clone(),
                    input: json(),
                },
                Content::ToolResult { id, .. } => Content::ToolResult {
                    id: id.clone(),
                    content: json(),
                },
                Content::Unknown(_) => Content::Unknown(Json::string(word)),
            };
        }
    };
    for event in events {
        match &mut event.body {
            Body::SystemMessage(blocks)
            | Body::UserMessage(blocks)
            | Body::AssistantMessage(blocks) => {
                said(blocks);
            }
            Body::Note(note) => {
                note.text = Some(word.to_owned());
                note.raw = json();
            }
            Body::ToolCall(call) => call.input = json(),
            Body::ToolResult(result) => {
                result.input = json();
                result.output = json();
                result.error = Some(word.to_owned());
            }
            Body::StepCompleted(end)
            | Body::CallCompleted { end, .. }
            | Body::RunCompleted(Some(end)) => {
                end.error = Some(word.to_owned());
                end.result = json();
            }
            Body::Error(failure) => word.clone_into(&mut failure.message),
            Body::Chunk(chunk) => {
                word.clone_into(&mut chunk.text);
                chunk.delta = json();
            }
            Body::Harness(event) => event.attributes = json(),
            Body::ModelCall(call) => {
                call.params = json();
                call.error = Some(word.to_owned());
            }
            _ => {}
        }
    }
}

fn tokens(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        input: Some(input),
        cache_read: Some(cached),
        output: Some(output),
        ..Usage::default()
    }
}

#[test]
fn a_call_to_a_model_is_one_span_however_many_events_it_has() {
    let mut session = Session::new();
    session.user("hello");
    let mut first = of_call("claude-opus-4-5", "msg_1");
    first.usage = Some(tokens(10, 100, 5));
    first.cost = Money::parse("0.1");
    session.add(assistant(vec![block("a")]), first);
    let mut second = of_call("claude-opus-4-5", "msg_1");
    second.usage = Some(tokens(0, 0, 7));
    second.cost = Money::parse("0.2");
    session.add(call("c1", "Bash", r#"{"command":"ls"}"#), second);
    session.add(result("c1", "Bash", Some("\"x\""), None), Notes::default());
    session.add(
        assistant(vec![block("b")]),
        of_call("claude-opus-4-5", "msg_1"),
    );
    session.add(
        assistant(vec![block("c")]),
        of_call("claude-opus-4-5", "msg_2"),
    );
    let spans = session.spans(&with_content());
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let chat = named(&spans, "chat claude-opus-4-5");
    assert_eq!(chat["kind"], 3);
    assert_eq!(text(chat, "gen_ai.operation.name"), Some("chat"));
    assert_eq!(text(chat, "gen_ai.provider.name"), Some("anthropic"));
    assert_eq!(text(chat, "gen_ai.response.id"), Some("msg_1"));
    assert_eq!(text(chat, "gen_ai.usage.input_tokens"), Some("110"));
    assert_eq!(text(chat, "gen_ai.usage.output_tokens"), Some("12"));
    assert_eq!(
        text(chat, "gen_ai.usage.cache_read.input_tokens"),
        Some("100")
    );
    assert_eq!(attr(chat, "quipu.cost_usd").unwrap().as_f64(), Some(0.3));
    assert_eq!(
        chat["startTimeUnixNano"], "1780906483000000000",
        "when it was asked"
    );
    let said = text(chat, "gen_ai.output.messages").unwrap();
    assert_eq!(
        said,
        concat!(
            r#"[{"role":"assistant","parts":[{"type":"text","content":"a"},"#,
            r#"{"type":"tool_call","id":"c1","name":"Bash","arguments":{"command":"ls"}},"#,
            r#"{"type":"text","content":"b"}],"finish_reason":"tool_call"}]"#,
        )
    );
    let asked = text(chat, "gen_ai.input.messages").unwrap();
    assert_eq!(
        asked,
        r#"[{"role":"user","parts":[{"type":"text","content":"hello"}]}]"#
    );
    let next = &spans[2];
    let asked = text(next, "gen_ai.input.messages").unwrap();
    assert_eq!(
        asked,
        r#"[{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"x"}]}]"#
    );
    assert!(
        attr(next, "gen_ai.usage.input_tokens").is_none(),
        "unknown is not zero"
    );
}

#[test]
fn a_call_ends_for_the_reason_that_the_log_gives_and_for_no_other() {
    for (word, told) in [
        (Some("max_tokens"), "length"),
        (Some("end_turn"), "stop"),
        (Some("SAFETY"), "content_filter"),
        (Some("pause_turn"), "pause_turn"),
        (None, "unknown"),
    ] {
        for convention in [Convention::GenAi, Convention::OpenInference] {
            let mut session = Session::new();
            session.add(user("go"), Notes::default());
            let ended = Notes {
                stop_reason: word.map(str::to_owned),
                ..of_call("claude-opus-4-5", "msg_1")
            };
            session.add(assistant(vec![block("a")]), ended);
            let options = OtlpOptions {
                convention,
                ..with_content()
            };
            let (out, loss) = session.write(&options);
            let spans = spans(&out);
            let chat = named(&spans, "chat claude-opus-4-5");
            assert_eq!(attr(chat, "quipu.stop_reason"), None, "it is said already");
            if convention == Convention::OpenInference {
                assert_eq!(text(chat, "llm.finish_reason"), word);
                continue;
            }
            let said = text(chat, "gen_ai.output.messages").unwrap();
            let said: serde_json::Value = serde_json::from_str(said).unwrap();
            assert_eq!(said[0]["finish_reason"], told);
            let reasons = attr(chat, "gen_ai.response.finish_reasons");
            let reasons = reasons.map(|it| it["values"][0]["stringValue"].clone());
            assert_eq!(reasons, word.map(serde_json::Value::from));
            let inferred = loss.inferred.keys().any(|it| it.contains("finish_reason"));
            assert_eq!(inferred, word.is_none());
        }
    }
}

#[test]
fn a_tool_is_a_span_from_its_call_to_its_result() {
    let mut session = Session::new();
    session.add(call("a", "Bash", r#"{"command":"ls"}"#), Notes::default());
    session.add(call("b", "Read", "{}"), Notes::default());
    let denied = Notes {
        status: Some(Status::Denied),
        duration_ms: Some(1_500),
        ..Notes::default()
    };
    session.add(result("a", "", None, Some("not allowed")), denied);
    let (out, loss) = session.write(&with_content());
    let spans = spans(&out);
    let bash = named(&spans, "execute_tool Bash");
    assert_eq!(bash["kind"], 1);
    assert_eq!(text(bash, "gen_ai.tool.name"), Some("Bash"));
    assert_eq!(
        text(bash, "gen_ai.tool.call.arguments"),
        Some(r#"{"command":"ls"}"#)
    );
    assert_eq!(text(bash, "gen_ai.tool.call.result"), Some("not allowed"));
    assert_eq!(text(bash, "error.type"), Some("denied"));
    assert_eq!(bash["status"]["code"], 2);
    assert_eq!(bash["status"]["message"], "not allowed");
    assert_eq!(bash["startTimeUnixNano"], "1780906483000000000");
    assert_eq!(bash["endTimeUnixNano"], "1780906485000000000");
    let ended = &bash["events"][0];
    assert_eq!(ended["name"], "tool.result");
    assert_eq!(text(ended, "quipu.duration_ms"), Some("1500"));
    let read = named(&spans, "execute_tool Read");
    assert_eq!(text(read, "quipu.end"), Some("unknown"));
    assert_eq!(read["status"], serde_json::json!({}));
    assert_eq!(loss.inferred["end of a call that has no result"].count, 1);
    let root = spans.last().unwrap();
    assert_eq!(read["parentSpanId"], root["spanId"]);
    assert_eq!(root["name"], "invoke_agent claude-code");
    assert_eq!(text(root, "gen_ai.conversation.id"), Some("5f0c"));
}

#[test]
fn calls_without_ids_find_their_results() {
    let mut session = Session::new();
    session.add(call("", "Bash", "{}"), Notes::default());
    session.add(call("", "Read", "{}"), Notes::default());
    session.add(result("", "Bash", Some("1"), None), Notes::default());
    session.add(result("", "Read", Some("2"), None), Notes::default());
    session.add(result("", "Read", Some("3"), None), Notes::default());
    let (out, loss) = session.write(&with_content());
    let spans = spans(&out);
    assert_eq!(
        text(
            named(&spans, "execute_tool Bash"),
            "gen_ai.tool.call.result"
        ),
        Some("1")
    );
    let reads = spans.iter().filter(|it| it["name"] == "execute_tool Read");
    assert_eq!(reads.count(), 2);
    assert_eq!(
        loss.inferred["calls of which only the result is there"].count,
        1
    );
}

#[test]
fn what_two_channels_report_is_one_span() {
    let mut session = Session::new();
    let used = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::ToolUse {
            name: "Bash".to_owned(),
            id: "a".into(),
            input: None,
        },
    };
    session.add(assistant(vec![used]), Notes::default());
    session.add(call("a", "Bash", "{}"), Notes::default());
    session.add(result("a", "Bash", Some("1"), None), Notes::default());
    session.add(result("a", "Bash", Some("1"), None), Notes::default());
    let (out, loss) = session.write(&with_content());
    let spans = spans(&out);
    assert_eq!(spans.len(), 3, "{spans:#?}");
    let twice = "calls and results that two channels report, as one";
    assert_eq!(loss.wrapped[twice].count, 2);
    let output = text(named(&spans, "chat"), "gen_ai.output.messages").unwrap();
    assert_eq!(
        output.matches("tool_call\"").count(),
        2,
        "one part and the reason: {output}"
    );
}

#[test]
fn steps_hold_what_happens_in_them() {
    let mut session = Session::new();
    session.step("", Body::RunStarted(Some(Step::new("ship", "workflow"))));
    session.step("build", Body::StepStarted(Step::new("build", "parallel")));
    session.step("build.lint", Body::StepStarted(Step::new("lint", "agent")));
    session.step("build.lint", Body::AssistantMessage(vec![block("done")]));
    let failed = Step::new("lint", "agent").failed("no luck");
    session.step("build.lint", Body::StepCompleted(failed));
    let child_run_id = RunId::new("child-1").unwrap();
    let step = Step::new("deploy", "call_workflow");
    session.step("deploy", Body::CallStarted { child_run_id, step });
    let spans = session.spans(&OtlpOptions::default());
    let [root, build, lint] =
        ["ship", "build", "lint"].map(|name| named(&spans, &format!("invoke_workflow {name}")));
    assert_eq!(build["parentSpanId"], root["spanId"]);
    assert_eq!(lint["parentSpanId"], build["spanId"]);
    assert_eq!(named(&spans, "chat")["parentSpanId"], lint["spanId"]);
    assert_eq!(
        lint["status"],
        serde_json::json!({"code": 2}),
        "in words only with content"
    );
    assert_eq!(text(lint, "gen_ai.workflow.name"), Some("lint"));
    assert_eq!(text(lint, "quipu.step.kind"), Some("agent"));
    let deploy = named(&spans, "invoke_workflow deploy");
    let link = &deploy["links"][0];
    assert_eq!(text(link, "quipu.run_id"), Some("child-1"));
    let mut child = Session::new();
    child.header.run_id = RunId::new("child-1").unwrap();
    let child = child.spans(&OtlpOptions::default());
    assert_eq!(child[0]["traceId"], link["traceId"]);
    assert_eq!(child[0]["spanId"], link["spanId"]);
}

#[test]
fn sub_agents_are_agents_below_the_call_that_began_them() {
    let sub = |id: &str| Notes {
        subagent_id: Some(id.into()),
        ..Notes::default()
    };
    let mut session = Session::new();
    session.add(call("t1", "Task", "{}"), Notes::default());
    session.add(user("look around"), sub("t1"));
    session.add(assistant(vec![block("done")]), sub("t1"));
    session.add(assistant(vec![block("other")]), sub("x9"));
    session.add(result("t1", "Task", Some("1"), None), Notes::default());
    let spans = session.spans(&OtlpOptions::default());
    let task = named(&spans, "execute_tool Task");
    let agent = named(&spans, "invoke_agent t1");
    assert_eq!(agent["parentSpanId"], task["spanId"]);
    assert_eq!(text(agent, "gen_ai.agent.id"), Some("t1"));
    assert_eq!(spans.iter().filter(|it| it["name"] == "chat").count(), 2);
    let chat = spans.iter().find(|it| it["name"] == "chat").unwrap();
    assert_eq!(chat["parentSpanId"], agent["spanId"]);
    let root = spans.last().unwrap();
    assert_eq!(
        named(&spans, "invoke_agent x9")["parentSpanId"],
        root["spanId"]
    );
}

#[test]
fn what_is_too_long_is_cut_with_a_mark_and_counted() {
    let long = "é".repeat(100);
    let mut session = Session::new();
    session.user(&long);
    session.add(assistant(vec![block("ok")]), of_call("gpt-5", "r1"));
    session.add(
        call("a", "Bash", &format!("[\"{long}\"]")),
        Notes::default(),
    );
    let options = OtlpOptions {
        max_attribute_bytes: 141,
        ..with_content()
    };
    let (out, loss) = session.write(&options);
    let spans = spans(&out);
    let asked = text(named(&spans, "chat gpt-5"), "gen_ai.input.messages").unwrap();
    assert!(
        asked.contains("é… [cut by quipu: 28 of 200 bytes]"),
        "{asked}"
    );
    let arguments = text(
        named(&spans, "execute_tool Bash"),
        "gen_ai.tool.call.arguments",
    )
    .unwrap();
    let arguments: String = serde_json::from_str(arguments).unwrap();
    assert!(arguments.starts_with("[\"éé"), "{arguments}");
    assert_eq!(loss.dropped["content beyond max_attribute_bytes"].count, 2);
}

#[test]
fn content_that_is_not_asked_for_is_counted_once_an_event() {
    let mut session = Session::new();
    session.user("secret");
    session.add(assistant(vec![block("secret")]), Notes::default());
    session.add(call("a", "Bash", "\"secret\""), Notes::default());
    session.add(
        result("a", "Bash", Some("\"secret\""), Some("secret")),
        Notes::default(),
    );
    session.header.title = Some("secret".to_owned());
    let (out, loss) = session.write(&OtlpOptions::default());
    assert!(!String::from_utf8_lossy(&out).contains("secret"));
    assert_eq!(loss.dropped[CONTENT].count, 5);
    assert_eq!((loss.events, loss.carried), (4, 4));
    assert!(session.write(&with_content()).1.is_complete());
}

#[test]
fn notes_are_events_of_the_span_they_happen_in() {
    let note = |kind, text: &str| {
        Body::Note(Note {
            kind,
            text: Some(text.to_owned()),
            raw: Some(Json::parse("{\"a\":1}").unwrap()),
        })
    };
    let mut session = Session::new();
    session.add(note(NoteKind::Title, "a title"), Notes::default());
    let call = Notes {
        usage: Some(tokens(1, 0, 0)),
        ..of_call("gpt-5", "r1")
    };
    session.add(note(NoteKind::ModelCall, ""), call);
    session.add(note(NoteKind::Error, "overloaded"), Notes::default());
    let spans = session.spans(&with_content());
    let chat = named(&spans, "chat gpt-5");
    assert_eq!(chat["status"]["message"], "overloaded");
    assert_eq!(chat["events"][1]["name"], "exception");
    assert_eq!(
        text(&chat["events"][1], "exception.message"),
        Some("overloaded")
    );
    assert_eq!(text(chat, "gen_ai.usage.input_tokens"), Some("1"));
    let root = spans.last().unwrap();
    assert_eq!(root["events"][0]["name"], "note.title");
    assert_eq!(text(&root["events"][0], "quipu.raw"), Some("{\"a\":1}"));
}

#[test]
fn times_that_otlp_does_not_have_are_moved_and_counted() {
    let mut session = Session::new();
    for at in [Timestamp::MIN, Timestamp::MAX] {
        session.add_at(at, Place::run(), user("x"), Notes::default());
    }
    let (out, loss) = session.write(&OtlpOptions::default());
    let root = &spans(&out)[0];
    assert_eq!(root["startTimeUnixNano"], "0");
    assert_eq!(root["endTimeUnixNano"], u64::MAX.to_string());
    let moved = "time, of which OTLP has only the years 1970 to 2554";
    assert_eq!(
        loss.inferred[moved].count, 4,
        "two events, and both ends of the session"
    );
}

#[test]
fn memory_is_bounded_by_writing_early() {
    let mut session = Session::new();
    for n in 0..3_000 {
        session.add(
            Body::Note(Note {
                kind: NoteKind::Progress,
                text: None,
                raw: None,
            }),
            Notes::default(),
        );
        session.add(call(&format!("c{n}"), "Bash", "{}"), Notes::default());
        session.user("and");
    }
    for n in 0..2_000 {
        session.add(call(&format!("d{n}"), "Bash", "{}"), Notes::default());
    }
    let (out, loss) = session.write(&OtlpOptions::default());
    let spans = spans(&out);
    assert!(
        spans
            .iter()
            .filter(|it| it["name"] == "quipu.notes")
            .count()
            > 10
    );
    assert_eq!(
        spans
            .iter()
            .filter(|it| it["name"] == "execute_tool Bash")
            .count(),
        5_000
    );
    let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.len() > 2 && lines.iter().all(|line| line.len() <= 512 << 10));
    let mut seen = 0;
    for span in &spans {
        seen += span["events"].as_array().map_or(0, Vec::len);
    }
    assert_eq!(seen, 6_000);
    assert_eq!(loss.carried, loss.events);
}

#[test]
fn open_inference_has_its_own_names() {
    let mut session = Session::new();
    session.user("hello");
    let mut notes = of_call("claude-opus-4-5", "msg_1");
    notes.usage = Some(tokens(10, 100, 5));
    notes.cost = Money::parse("0.123456789012345678");
    let thinking = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Thinking("hm".to_owned()),
    };
    session.add(assistant(vec![thinking, block("a")]), notes);
    session.add(
        call("c1", "Bash", r#"{"a":1}"#),
        of_call("claude-opus-4-5", "msg_1"),
    );
    session.add(
        result("c1", "Bash", Some(r#""é\ud800\n""#), None),
        Notes::default(),
    );
    let options = OtlpOptions {
        convention: Convention::OpenInference,
        project: Some("demo".to_owned()),
        ..with_content()
    };
    let (out, loss) = session.write(&options);
    assert!(loss.is_complete(), "{loss}");
    assert!(String::from_utf8_lossy(&out).contains("\"doubleValue\":0.123456789012345678}"));
    let spans = spans(&out);
    let chat = named(&spans, "chat claude-opus-4-5");
    for (key, value) in [
        ("openinference.span.kind", "LLM"),
        ("llm.system", "anthropic"),
        ("llm.model_name", "claude-opus-4-5"),
        ("session.id", "5f0c"),
        ("llm.token_count.prompt", "110"),
        ("llm.token_count.completion", "5"),
        ("llm.token_count.total", "115"),
        ("llm.token_count.prompt_details.cache_read", "100"),
        ("llm.input_messages.0.message.role", "user"),
        (
            "llm.input_messages.0.message.contents.0.message_content.text",
            "hello",
        ),
        ("llm.output_messages.0.message.role", "assistant"),
        (
            "llm.output_messages.0.message.contents.0.message_content.type",
            "reasoning",
        ),
        (
            "llm.output_messages.0.message.contents.1.message_content.text",
            "a",
        ),
        (
            "llm.output_messages.0.message.tool_calls.0.tool_call.id",
            "c1",
        ),
        (
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
            "Bash",
        ),
        (
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments",
            r#"{"a":1}"#,
        ),
    ] {
        assert_eq!(text(chat, key), Some(value), "{key}");
    }
    let tool = named(&spans, "execute_tool Bash");
    for (key, value) in [
        ("openinference.span.kind", "TOOL"),
        ("tool.name", "Bash"),
        ("tool.id", "c1"),
        ("input.value", r#"{"a":1}"#),
        ("output.value", "é\u{fffd}\n"),
        ("output.mime_type", "text/plain"),
    ] {
        assert_eq!(text(tool, key), Some(value), "{key}");
    }
    let root = spans.last().unwrap();
    assert_eq!(text(root, "input.value"), Some("hello"));
    assert_eq!(text(root, "output.value"), Some("a"));
}
