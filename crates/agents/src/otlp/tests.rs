use std::collections::BTreeSet;
use std::io::Write as _;

use proptest::prelude::*;
use quipu_model::json::Tape;
use quipu_model::{Body, Status, Usage};

use super::{DOCUMENT, LINES, Otlp};
use crate::testkit::{Read, hostile, read, read_as};
use crate::{Family as _, Gathered};

const GEN_AI: &str = include_str!("../../fixtures/otlp/gen-ai.jsonl");
const OLD: &str = include_str!("../../fixtures/otlp/old-events.jsonl");
const OPEN_INFERENCE: &str = include_str!("../../fixtures/otlp/open-inference.jsonl");
const OPEN_LLMETRY: &str = include_str!("../../fixtures/otlp/open-llmetry.jsonl");
const MIXED: &str = include_str!("../../fixtures/otlp-document/mixed.json");

const ALL: [&str; 5] = [GEN_AI, OLD, OPEN_INFERENCE, OPEN_LLMETRY, MIXED];

fn open(log: &str) -> Read {
    read(log.as_bytes(), "log.jsonl").unwrap()
}

/// A line with one span that has these attributes, as JSON without braces.
fn call(id: u64, attributes: &[(&str, &str)]) -> String {
    let attributes: Vec<String> = attributes
        .iter()
        .map(|(key, value)| format!(r#"{{"key":"{key}","value":{value}}}"#))
        .collect();
    format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"{id:016x}","startTimeUnixNano":"{}","attributes":[{{"key":"gen_ai.operation.name","value":{{"stringValue":"chat"}}}},{}]}}]}}]}}]}}"#,
        1_780_906_480_000_000_000_u64 + id,
        attributes.join(",")
    )
}

fn text(text: &str) -> String {
    let json = serde_json::to_string(text).unwrap();
    format!(r#"{{"stringValue":{json}}}"#)
}

/// A call with messages: `u` what a user said, `a` what the model did.
fn talk(id: u64, input: &[&str], output: &str) -> String {
    let said = |word: &&str| {
        let (role, words) = word.split_once(' ').unwrap();
        let role = if role == "u" { "user" } else { "assistant" };
        serde_json::json!({"role": role, "parts": [{"type": "text", "content": words}]})
    };
    let input: Vec<_> = input.iter().map(said).collect();
    let output = vec![said(&&*format!("a {output}"))];
    let tokens = format!(r#"{{"intValue":"{}"}}"#, 10 + id);
    call(
        id,
        &[
            (
                "gen_ai.input.messages",
                &text(&serde_json::to_string(&input).unwrap()),
            ),
            (
                "gen_ai.output.messages",
                &text(&serde_json::to_string(&output).unwrap()),
            ),
            ("gen_ai.usage.input_tokens", &tokens),
        ],
    )
}

/// What was said, without regard to order.
fn said(read: &Read) -> Vec<String> {
    let mut said: Vec<String> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::UserMessage(_) | Body::AssistantMessage(_) | Body::SystemMessage(_) => {
                let texts: Vec<&str> = event.body.texts().collect();
                Some(format!("{} {}", event.body.type_word(), texts.join("|")))
            }
            Body::ToolCall(call) => Some(format!("call {} {}", call.call_id, call.name)),
            Body::ToolResult(result) => Some(format!("result {}", result.call_id)),
            _ => None,
        })
        .collect();
    said.sort();
    said
}

fn usage_of(attributes: &[(&str, u64)]) -> Usage {
    let counts: Vec<(&str, String)> = attributes
        .iter()
        .map(|(key, count)| (*key, format!(r#"{{"intValue":"{count}"}}"#)))
        .collect();
    let counts: Vec<(&str, &str)> = counts.iter().map(|(key, it)| (*key, &**it)).collect();
    open(&call(1, &counts)).usage()
}

#[test]
fn cached_tokens_are_part_of_the_prompt_unless_that_cannot_be() {
    let usage = usage_of(&[
        ("gen_ai.usage.input_tokens", 120),
        ("gen_ai.usage.cache_read.input_tokens", 100),
        ("gen_ai.usage.cache_creation.input_tokens", 15),
        ("gen_ai.usage.output_tokens", 7),
    ]);
    let buckets = (
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
    );
    assert_eq!(buckets, (Some(5), Some(100), Some(15), Some(7)));
    // More was cached than the prompt has: the program counts as one vendor does, beside it.
    let usage = usage_of(&[
        ("gen_ai.usage.input_tokens", 3),
        ("gen_ai.usage.cache_read_input_tokens", 900),
    ]);
    assert_eq!((usage.input, usage.cache_read), (Some(3), Some(900)));
    // What is not told is not zero.
    let usage = usage_of(&[("llm.token_count.prompt", 9)]);
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(9), None, None)
    );
    assert!(usage_of(&[("gen_ai.usage.other", 9)]).is_empty());
}

#[test]
fn each_convention_reads() {
    let read = open(GEN_AI);
    assert_eq!(read.session.id.as_deref(), Some("conv-oslo-0001"));
    assert_eq!(read.session.agent.as_deref(), Some("weather-agent"));
    assert_eq!(
        said(&read),
        [
            "call call_oslo get_weather",
            "message.assistant ",
            "message.assistant It is -4 degrees.",
            "message.system Be brief.",
            "message.user Weather in Oslo?",
            "result call_oslo",
        ]
    );
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output, usage.reasoning),
        (Some(180), Some(100), Some(39), Some(12))
    );
    assert_eq!(read.summary.calls(), 2);

    let read = open(OLD);
    assert_eq!(
        said(&read),
        [
            "call toolu_77 run",
            "message.assistant Again?",
            "message.assistant On it.",
            "message.assistant They are here.",
            "message.assistant indeed",
            "message.system You help.",
            "message.user And the logs?",
            "message.user structured",
            "message.user yes",
            "message.user yes",
            "result toolu_77",
        ]
    );
    assert_eq!(read.usage().input, Some(53));

    let read = open(OPEN_INFERENCE);
    assert_eq!(read.session.id.as_deref(), Some("phoenix-session-9"));
    let failed = read
        .events
        .iter()
        .find(|event| matches!(event.body, Body::ToolResult(_)))
        .unwrap();
    assert_eq!(failed.annotations.status, Some(Status::Error));
    let Body::ToolResult(result) = &failed.body else {
        unreachable!()
    };
    assert_eq!(result.error.as_deref(), Some("no such picture"));
    assert_eq!(result.output.as_ref().unwrap().get(), "\"nothing there\"");
    let usage = read.usage();
    assert_eq!(
        (usage.input, usage.cache_read, usage.output),
        (Some(60), Some(150), Some(22))
    );

    let read = open(OPEN_LLMETRY);
    assert_eq!(read.session.id.as_deref(), Some("loop-session-4"));
    assert_eq!(
        said(&read),
        [
            "call call_joke1 laugh",
            "message.assistant Knock knock.",
            "message.user Tell a joke",
            "result call_joke1",
        ]
    );
    assert_eq!(
        (read.usage().input, read.usage().output),
        (Some(11), Some(7))
    );

    let read = open(MIXED);
    assert_eq!(read.dialect, DOCUMENT);
    assert_eq!(
        read.session.id.as_deref(),
        Some("e1b2c3d4e5f60718293a4b5c6d7e8f90")
    );
    let scout: Vec<&str> = read
        .events
        .iter()
        .filter(|event| event.annotations.subagent_id.as_deref() == Some("scout-1"))
        .map(|event| event.body.type_word())
        .collect();
    assert_eq!(scout, ["message.user", "model.call", "message.assistant"]);
}

#[test]
fn a_history_is_told_once_and_answers_as_often_as_they_were_given() {
    let log = [
        talk(1, &["u yes"], "ok"),
        talk(2, &["u yes", "a ok", "u yes"], "ok"),
        talk(3, &["u yes", "a ok", "u yes", "a ok", "u stop"], "bye"),
    ];
    let expected = [
        "message.assistant bye",
        "message.assistant ok",
        "message.assistant ok",
        "message.user stop",
        "message.user yes",
        "message.user yes",
    ];
    assert_eq!(said(&open(&log.join("\n"))), expected);
    // The first spans were lost: the history tells what was in them.
    assert_eq!(said(&open(&log[2])), expected);
    // A model may say the same twice to programs that do not repeat what was said.
    let twice = [talk(1, &["u a?"], "ok"), talk(2, &["u b?"], "ok")].join("\n");
    let answers = said(&open(&twice));
    assert_eq!(answers.iter().filter(|it| it.ends_with(" ok")).count(), 2);
}

#[test]
fn a_span_that_is_sent_again_counts_once() {
    let line = talk(1, &["u hello"], "hi");
    let read = open(&format!("{line}\n{line}\n"));
    assert_eq!(read.ledger.dropped.values().sum::<u64>(), 1);
    assert_eq!(read.usage().input, Some(11));
    // With something else in it, it is kept and not counted.
    let other = line.replace("\"11\"", "\"99\"");
    let read = open(&format!("{line}\n{other}\n"));
    assert_eq!(read.usage().input, Some(11));
    assert_eq!(read.words().last().unwrap(), "note.progress");
    // On one line with others, it is counted by name.
    let spans = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
    let mut both = spans(&line);
    let more = spans(&talk(2, &["u hello"], "there"));
    let at = "/resourceSpans/0/scopeSpans/0/spans";
    let one = both.pointer(at).unwrap()[0].clone();
    let two = more.pointer(at).unwrap()[0].clone();
    *both.pointer_mut(at).unwrap() = serde_json::json!([one, one, two]);
    let read = open(&both.to_string());
    let left_out: Vec<_> = read.ledger.drift.names_left_out().collect();
    assert_eq!(left_out, [("batch.repeated", 1)]);
    assert_eq!(read.usage().input, Some(23));
}

/// A program may be instrumented by two libraries: both spans of a call have the id of its response.
#[test]
fn a_call_that_two_spans_tell_of_counts_once() {
    let tokens = r#"{"intValue":"40"}"#;
    let id = text("chatcmpl-1");
    let attributes = [
        ("gen_ai.response.id", id.as_str()),
        ("gen_ai.usage.input_tokens", tokens),
    ];
    let log = [call(1, &attributes), call(2, &attributes)].join("\n");
    assert_eq!(open(&log).usage().input, Some(40));
}

/// The span of a tool need not have the id of the call that the model asked for, and may come before it.
#[test]
fn a_tool_without_an_id_is_paired_by_what_was_asked() {
    let line: serde_json::Value = serde_json::from_str(OPEN_LLMETRY).unwrap();
    let mut turned = line.clone();
    let at = "/resourceSpans/0/scopeSpans/0/spans";
    let spans = turned.pointer_mut(at).unwrap().as_array_mut().unwrap();
    spans.reverse();
    for (log, id) in [(line, "call_joke1"), (turned, "0000000000000d02")] {
        let said = said(&open(&log.to_string()));
        let calls: Vec<&String> = said.iter().filter(|it| it.contains(id)).collect();
        assert_eq!(
            calls,
            [&format!("call {id} laugh"), &format!("result {id}")]
        );
        assert_eq!(said.len(), 4);
    }
}

/// A program may write what was said in several conventions, each of which says all of it.
#[test]
fn what_two_conventions_say_is_told_once() {
    let line = talk(1, &["u hello", "a hm", "u hello"], "hi");
    let both = line.replace(
        "\"attributes\":[",
        r#""events":[{"name":"gen_ai.user.message","attributes":[{"key":"content","value":{"stringValue":"hello"}}]},{"name":"gen_ai.choice","attributes":[{"key":"message","value":{"stringValue":"{\"content\":\"hi\"}"}}]}],"attributes":[{"key":"gen_ai.completion.0.content","value":{"stringValue":"hi"}},"#,
    );
    assert_ne!(line, both);
    assert_eq!(said(&open(&line)), said(&open(&both)));
    assert_eq!(said(&open(&line)).len(), 4);
}

/// Every attribute of a log is found again in its events.
#[test]
fn every_attribute_is_mapped_or_kept() {
    for (at, log) in ALL.into_iter().enumerate() {
        let read = open(log);
        let mut lines = Vec::new();
        for event in &read.events {
            quipu_exchange::encode_log(event, &mut lines);
        }
        let mut all = String::from_utf8(lines).unwrap();
        let session = format!("{:?}", read.session);
        all.push_str(&session);
        let mut values = BTreeSet::new();
        let mut open = vec![
            serde_json::Deserializer::from_str(log)
                .into_iter::<serde_json::Value>()
                .map(Result::unwrap)
                .collect::<serde_json::Value>(),
        ];
        while let Some(value) = open.pop() {
            match value {
                serde_json::Value::Array(items) => open.extend(items),
                serde_json::Value::Object(fields) => {
                    for (key, value) in fields {
                        if matches!(&*key, "stringValue" | "traceState" | "name") {
                            values.insert(value.as_str().unwrap().to_owned());
                        }
                        open.push(value);
                    }
                }
                _ => {}
            }
        }
        assert!(values.len() > 5);
        for value in values {
            // What is JSON in a text, and names that say what an event is, are there in another form.
            if value.starts_with(['[', '{']) || KINDS.contains(&value.as_str()) {
                continue;
            }
            assert!(all.contains(&value), "log {at}: {value} is in no event");
        }
    }
}

/// What is mapped to what an event is.
const KINDS: [&str; 12] = [
    "chat",
    "execute_tool",
    "execute_tool get_weather",
    "gen_ai.system.message",
    "gen_ai.user.message",
    "gen_ai.assistant.message",
    "gen_ai.choice",
    "application/json",
    "system",
    "user",
    "assistant",
    "text",
];

#[test]
fn conversations_are_taken_out_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("collector.jsonl");
    let loose =
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"hi"}}]}]}]}"#;
    let log = format!("{GEN_AI}{OPEN_INFERENCE}{loose}\n{{\"cut");
    std::fs::File::create(&file)
        .unwrap()
        .write_all(log.as_bytes())
        .unwrap();
    let gather = Otlp.gather().unwrap();
    assert!(gather.holds_file(&log.as_bytes()[..64]));
    assert!(gather.holds_file(&MIXED.as_bytes()[..64]));
    assert!(!gather.holds_file(b"{\"resourceSpans\":[{\"x\":\"vs-copilot\"}"));
    assert!(!gather.holds_file(b"{\"type\":\"user\"}"));
    let from = Gathered::File(&file);
    let parts = gather.parts(&from).unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "conv-oslo-0001",
            "phoenix-session-9",
            "records without a trace"
        ]
    );
    let mut lines = Vec::new();
    gather.write(&from, "conv-oslo-0001", &mut lines).unwrap();
    let read = read_as(&Otlp, LINES, &lines, "part");
    // The spans that do not name the conversation are there as well, in the order in which they began.
    let names: Vec<String> = read
        .words()
        .into_iter()
        .filter(|word| !word.starts_with("note.context"))
        .collect();
    assert_eq!(
        names,
        [
            "message.user",
            "message.assistant",
            "note.turn",
            "message.system",
            "model.call",
            "message.assistant",
            "tool.call",
            "tool.result",
            "model.call",
            "note.progress",
        ]
    );
    assert_eq!(read.usage(), open(GEN_AI).usage());
    assert!(gather.write(&from, "nobody", &mut Vec::new()).is_ok());
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of a test is nobody's secret"
    )]
    std::fs::write(&file, MIXED).unwrap();
    assert_eq!(gather.parts(&from).unwrap().len(), 1);
}

/// A file as collectors leave it behind when they rotate files or are killed.
#[test]
fn lines_that_cannot_be_read_are_kept_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rotated.jsonl");
    let gather = Otlp.gather().unwrap();
    let from = Gathered::File(&file);
    let parts = |log: &[u8]| {
        std::fs::File::create(&file)
            .unwrap()
            .write_all(log)
            .unwrap();
        let parts = gather.parts(&from).unwrap();
        parts.into_iter().map(|part| part.id).collect::<Vec<_>>()
    };
    let loose = "records without a trace";
    // The first line lacks its beginning, one is cut, one is not even text, and the last is still being written.
    let torn = &GEN_AI.lines().next().unwrap()[100..];
    let log = [
        torn.as_bytes(),
        b"\n",
        OPEN_INFERENCE.as_bytes(),
        b"{\"resourceSpans\":[{\"cut\n\xff\xfe\r\n",
        OPEN_LLMETRY.as_bytes(),
        b"{\"resourceSpans\":[",
    ]
    .concat();
    assert_eq!(parts(&log), ["loop-session-4", "phoenix-session-9", loose]);
    let mut lines = Vec::new();
    gather.write(&from, loose, &mut lines).unwrap();
    assert_eq!(lines.split(|byte| *byte == b'\n').count(), 3 + 1);
    assert!(lines.starts_with(torn.as_bytes()));
    let read = read_as(&Otlp, LINES, &lines, "part");
    assert_eq!(read.words(), ["note.malformed_line"; 3]);
    let mut lines = Vec::new();
    gather.write(&from, "loop-session-4", &mut lines).unwrap();
    let read = read_as(&Otlp, LINES, &lines, "part");
    assert_eq!(said(&read), said(&open(OPEN_LLMETRY)));
}

/// Behind a first line that is cut there may be more than is tried as one document.
#[test]
fn a_long_file_whose_first_line_is_cut_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rotated.jsonl");
    let mut to = std::fs::File::create(&file).unwrap();
    to.write_all(b"cut\n").unwrap();
    let blank = vec![b' '; 1 << 20];
    for _ in 0..65 {
        to.write_all(&blank).unwrap();
        to.write_all(b"\n").unwrap();
    }
    to.write_all(OPEN_INFERENCE.as_bytes()).unwrap();
    let parts = Otlp
        .gather()
        .unwrap()
        .parts(&Gathered::File(&file))
        .unwrap();
    let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["phoenix-session-9", "records without a trace"]);
}

/// What stands in a message beside its parts is kept once, also where the message has no parts.
#[test]
fn what_else_stands_in_a_message_without_parts_is_kept() {
    let message = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"","reasoning_content":"because"}]"#;
    let line = |id: u64| call(id, &[("gen_ai.input.messages", &text(message))]);
    let read = open(&[line(1), line(2)].join("\n"));
    assert_eq!(said(&read), ["message.user hi"]);
    let notes: Vec<String> = read
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Note(note) => Some(note.raw.as_ref()?.get().to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(notes, [r#"{"reasoning_content":"because"}"#]);
}

/// `OpenInference` has the content of a message as one text, or in parts.
#[test]
fn what_a_tool_gave_back_in_parts_is_its_result() {
    let at = "llm.input_messages.0.message.";
    let part = |at_: usize, name: &str| format!("{at}contents.{at_}.message_content.{name}");
    let (role, id) = (format!("{at}role"), format!("{at}tool_call_id"));
    let (kind, said, more) = (part(0, "type"), part(0, "text"), part(1, "text"));
    let values = ["tool", "call_123456", "text", "four degrees", "and rain"].map(text);
    let keys = [&role, &id, &kind, &said, &more];
    let attributes: Vec<(&str, &str)> = keys
        .iter()
        .zip(&values)
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    for (given, output) in [
        (&attributes[..4], r#""four degrees""#),
        (&attributes[..], r#"["four degrees","and rain"]"#),
    ] {
        let read = open(&call(1, given));
        let results: Vec<_> = read
            .events
            .iter()
            .filter_map(|event| match &event.body {
                Body::ToolResult(result) => Some(result),
                Body::SystemMessage(_) => panic!("a tool is not the system"),
                _ => None,
            })
            .collect();
        let [result] = results[..] else {
            panic!("{:?}", read.words());
        };
        assert_eq!(result.call_id, "call_123456");
        assert_eq!(result.output.as_ref().unwrap().get(), output);
    }
}

#[test]
fn what_is_broken_is_read_without_harm() {
    let line = OPEN_LLMETRY.trim_end();
    hostile(&Otlp, LINES, &talk(1, &["u yes"], "no"));
    let whole = GEN_AI.lines().nth(1).unwrap();
    assert!(crate::identify(whole.as_bytes(), true).is_some());
    // Ids of any kind, no ids, and a megabyte in an attribute.
    let long = "x".repeat(1 << 20);
    for wrong in [
        line.replace("d1b2c3d4e5f60718293a4b5c6d7e8f90", "../../etc/passwd"),
        line.replace("0000000000000d01", ""),
        line.replace("Knock knock.", &long),
        line.replace("\"attributes\":[", "\"attributes\":[1,{\"key\":2},"),
    ] {
        let read = open(&wrong);
        assert_eq!(read.ledger.records, 1);
        assert!(read.usage().input.is_some());
    }
    let deep = format!(
        r#"{{"stringValue":{}}}"#,
        serde_json::to_string(&format!("{}1{}", "[".repeat(500), "]".repeat(500))).unwrap()
    );
    let read = open(&call(1, &[("gen_ai.input.messages", &deep)]));
    assert_eq!(read.words()[0], "message.user");
    let mut tape = Tape::new();
    assert!(tape.read(&deep, 8).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the order of spans, and however often they are sent, the sums are the same and everything is told once.
    #[test]
    fn order_and_repetition_change_nothing(
        order in Just((0..5_usize).collect::<Vec<_>>()).prop_shuffle(),
        again in proptest::collection::vec(0..5_usize, 0..6),
    ) {
        let spans = [
            talk(1, &["u yes"], "ok"),
            talk(2, &["u yes", "a ok", "u yes"], "ok"),
            talk(3, &["u yes", "a ok", "u yes", "a ok", "u more"], "no"),
            talk(4, &["u yes", "a ok", "u yes", "a ok", "u more", "a no", "u yes"], "ok"),
            talk(5, &["u else"], "no"),
        ];
        let plain = open(&spans.join("\n"));
        let mixed: Vec<&str> = order.iter().chain(&again).map(|at| spans[*at].as_str()).collect();
        let mixed = open(&mixed.join("\n"));
        prop_assert_eq!(said(&plain), said(&mixed));
        prop_assert_eq!(plain.usage(), mixed.usage());
        prop_assert_eq!(plain.summary.calls(), mixed.summary.calls());
    }
}
