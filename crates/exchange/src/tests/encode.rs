//! Written lines, to the byte, and that they read back.

use proptest::prelude::*;
use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Draft, Event, Fidelity, Flags, Json, Notes,
    Place, RunId, Source, Status, Timestamp, ToolCall, ToolResult, Usage,
};

use super::{encode, event, known, read_one, step};
use crate::{Escapes, Template, write_timestamp};
use quipu_formats::arbitrary;

/// What comes before the payload, where nothing else is said.
const HEAD: &str = r#"{"seq":1,"run_id":"r1","type":""#;
const MIDDLE: &str =
    r#"","path":"a","iteration":0,"timestamp":"2026-06-08T08:14:42.123Z","payload":"#;

/// Checks the whole line of an event, and that it reads back.
#[track_caller]
fn check_line(event: &Event, expected: &str) {
    assert_eq!(encode(event, Escapes::Plain), format!("{expected}\n"));
    let read = read_one(&format!("{expected}\n"));
    assert_eq!(read.warnings, []);
    assert_eq!(read.event, *event);
}

/// Checks the payload of an event, and that the rest is as always.
#[track_caller]
fn check(body: Body, payload: &str) {
    let event = event(body);
    let event_type = event.body.type_word();
    check_line(&event, &format!("{HEAD}{event_type}{MIDDLE}{payload}}}"));
}

#[track_caller]
fn check_block(content: &Content, fields: &str) {
    let block = |fidelity| Block {
        fidelity,
        content: content.clone(),
    };
    let blocks = [block(Fidelity::Router), block(Fidelity::AgentEmitted)];
    let block_type = blocks[0].block_type().unwrap();
    check(
        Body::AssistantMessage(blocks.to_vec()),
        &format!(
            concat!(
                r#"{{"role":"assistant","blocks":[{{"type":"{0}","fidelity":"router"{1}}},"#,
                r#"{{"type":"{0}","fidelity":"agent_emitted"{1}}}]}}"#
            ),
            block_type, fields
        ),
    );
}

fn json(text: &str) -> Option<Json> {
    Json::parse(text).ok()
}

fn child() -> RunId {
    RunId::new("c1").unwrap()
}

#[test]
fn runs() {
    check(Body::RunStarted(None), "null");
    check(
        Body::RunStarted(Some(step("workflow"))),
        r#"{"name":"a","kind":"workflow"}"#,
    );
    check(Body::RunCompleted(None), "null");
    check(
        Body::RunCompleted(Some(step("workflow").failed("no"))),
        r#"{"name":"a","kind":"workflow","error":"no"}"#,
    );
}

#[test]
fn steps() {
    check(
        Body::StepStarted(step("agent")),
        r#"{"name":"a","kind":"agent"}"#,
    );
    check(
        Body::StepCompleted(step("agent").succeeded(None)),
        r#"{"name":"a","kind":"agent"}"#,
    );
    // A result that is there is written, whatever it is.
    for result in ["false", "null", "\"\"", r#"{"b":1,"a":1.0}"#] {
        check(
            Body::StepCompleted(step("agent").succeeded(json(result))),
            &format!(r#"{{"name":"a","kind":"agent","result":{result}}}"#),
        );
    }
    let mut both = step("agent").failed("exit status 1");
    both.result = json("false");
    check(
        Body::StepCompleted(both),
        r#"{"name":"a","kind":"agent","error":"exit status 1","result":false}"#,
    );
}

#[test]
fn calls_name_the_child_before_the_type() {
    for (body, event_type, more) in [
        (
            Body::CallStarted {
                child_run_id: child(),
                step: step("call_workflow"),
            },
            "step.call_workflow.started",
            "",
        ),
        (
            Body::CallCompleted {
                child_run_id: child(),
                end: step("call_workflow").failed("x"),
            },
            "step.call_workflow.completed",
            r#","error":"x""#,
        ),
    ] {
        let mut event = event(body);
        event.parent_run_id = Some(RunId::new("p1").unwrap());
        check_line(
            &event,
            &format!(
                concat!(
                    r#"{{"seq":1,"run_id":"r1","parent_run_id":"p1","child_run_id":"c1","#,
                    r#""type":"{}{}{{"name":"a","kind":"call_workflow"{}}}}}"#
                ),
                event_type, MIDDLE, more
            ),
        );
    }
}

#[test]
fn messages() {
    check(
        Body::UserMessage(Vec::new()),
        r#"{"role":"user","blocks":[]}"#,
    );
    check(
        Body::UserMessage(vec![Block::text(
            Fidelity::Router,
            "Review main.go for bugs.",
        )]),
        r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"Review main.go for bugs."}]}"#,
    );
}

#[test]
fn tools() {
    let call = |input| ToolCall {
        name: "Read".to_owned(),
        call_id: "t1".into(),
        input,
        fidelity: Fidelity::Router,
    };
    check(
        Body::ToolCall(call(json(r#"{"path":"main.go"}"#))),
        r#"{"name":"Read","call_id":"t1","input":{"path":"main.go"},"output":null,"fidelity":"router"}"#,
    );
    check(
        Body::ToolCall(call(None)),
        r#"{"name":"Read","call_id":"t1","input":null,"output":null,"fidelity":"router"}"#,
    );
    let result = |output, error: Option<&str>| ToolResult {
        name: "Read".to_owned(),
        call_id: "t1".into(),
        input: None,
        output,
        error: error.map(ToOwned::to_owned),
        fidelity: Fidelity::AgentEmitted,
    };
    check(
        Body::ToolResult(result(json("\"\""), None)),
        r#"{"name":"Read","call_id":"t1","input":null,"output":"","fidelity":"agent_emitted"}"#,
    );
    check(
        Body::ToolResult(result(None, Some("denied"))),
        r#"{"name":"Read","call_id":"t1","input":null,"output":null,"error":"denied","fidelity":"agent_emitted"}"#,
    );
}

#[test]
fn blocks() {
    let text = |text: &str| text.to_owned();
    check_block(&Content::Text(text("Found 2.")), r#","text":"Found 2.""#);
    check_block(&Content::Thinking(text("First")), r#","thinking":"First""#);
    check_block(
        &Content::Command(text("go test ./...")),
        r#","command":"go test ./...""#,
    );
    check_block(&Content::Stream(text("par")), r#","chunk":"par""#);
    check_block(
        &Content::ToolUse {
            name: text("Read"),
            id: text("toolu_01").into(),
            input: json(r#"{"path":"main.go"}"#),
        },
        r#","tool_name":"Read","tool_id":"toolu_01","tool_input":{"path":"main.go"}"#,
    );
    check_block(
        &Content::ToolResult {
            id: text("toolu_01").into(),
            content: json("\"package main\\n\""),
        },
        r#","tool_id":"toolu_01","tool_content":"package main\n""#,
    );
    // Nothing is left of what is empty, but a null that is there stays.
    for empty in [
        Content::Text,
        Content::Thinking,
        Content::Command,
        Content::Stream,
    ] {
        check_block(&empty(String::new()), "");
    }
    for (input, written) in [(None, ""), (json("null"), r#","tool_input":null"#)] {
        let (name, id) = (String::new(), String::new());
        check_block(
            &Content::ToolUse {
                name,
                id: id.into(),
                input,
            },
            written,
        );
    }
    let id = String::new();
    check_block(
        &Content::ToolResult {
            id: id.into(),
            content: None,
        },
        "",
    );
}

#[test]
fn annotations_stand_behind_the_payload() {
    let text = |text: &str| Some(text.to_owned());
    let mut all = event(Body::RunStarted(None));
    all.annotations = Annotations::from(Notes {
        native_id: text("n").map(Into::into),
        parent_id: text("p").map(Into::into),
        subagent_id: text("s").map(Into::into),
        model: text("m-1"),
        usage: Some(Usage {
            input: Some(1),
            cache_read: Some(2),
            cache_write: Some(3),
            cache_write_1h: Some(2),
            output: Some(4),
            reasoning: Some(5),
        }),
        cost: quipu_model::Money::parse("0.0125"),
        model_call: text("msg_1").map(Into::into),
        stop_reason: text("max_tokens"),
        extra: Json::parse(r#"{"requestId":"req_1"}"#).ok(),
        duration_ms: Some(6),
        status: Some(Status::Denied),
        child: Some(RunId::new("child-1").unwrap()),
        attachments: vec![Attachment {
            mime: "image/png".to_owned(),
            bytes: 3,
            sha256: "ab".to_owned(),
        }],
        source: Some(Source {
            file: "log.jsonl".to_owned(),
            offset: 7,
            line: 8,
        }),
        flags: Flags {
            opaque: true,
            synthetic: true,
            superseded: true,
            undated: true,
            dangling: true,
        },
    });
    check_line(
        &all,
        &format!(
            "{HEAD}run.started{MIDDLE}{}",
            concat!(
                r#"null,"native_id":"n","parent_id":"p","subagent_id":"s","model":"m-1","#,
                r#""usage":{"input":1,"cache_read":2,"cache_write":3,"cache_write_1h":2,"#,
                r#""output":4,"reasoning":5},"cost_usd":0.0125,"#,
                r#""model_call":"msg_1","stop_reason":"max_tokens","duration_ms":6,"status":"denied","child":"child-1","#,
                r#""attachments":[{"mime":"image/png","bytes":3,"sha256":"ab"}],"#,
                r#""source":{"file":"log.jsonl","offset":7,"line":8},"extra":{"requestId":"req_1"},"#,
                r#""flags":["opaque","synthetic","superseded","undated","dangling"]}"#
            )
        ),
    );
    let mut some = event(Body::RunStarted(None));
    some.annotations.model = text("");
    some.annotations.usage = Some(Usage {
        cache_read: Some(0),
        reasoning: Some(u64::MAX),
        ..Usage::default()
    });
    some.annotations.flags.synthetic = true;
    check_line(
        &some,
        &format!(
            "{HEAD}run.started{MIDDLE}{}",
            concat!(
                r#"null,"model":"","usage":{"cache_read":0,"reasoning":18446744073709551615},"#,
                r#""flags":["synthetic"]}"#
            )
        ),
    );
}

#[test]
fn escapes() {
    let said = "\0\u{1}\u{8}\t\n\u{c}\r\"\\/<>&\u{7f}é\u{2028}\u{2029}\u{1f600}";
    let event = event(Body::UserMessage(vec![Block::text(Fidelity::Router, said)]));
    for (escapes, expected) in [
        (
            Escapes::Plain,
            "\\u0000\\u0001\\b\\t\\n\\f\\r\\\"\\\\/<>&\u{7f}é\u{2028}\u{2029}\u{1f600}",
        ),
        (
            Escapes::Go,
            "\\u0000\\u0001\\b\\t\\n\\f\\r\\\"\\\\/\\u003c\\u003e\\u0026\u{7f}é\\u2028\\u2029\u{1f600}",
        ),
    ] {
        let line = encode(&event, escapes);
        let expected = format!(r#""text":"{expected}"}}]}}}}"#);
        assert!(line.trim_end().ends_with(&expected), "{escapes:?}: {line}");
        assert_eq!(known(&read_one(&line)), &event.body);
    }
}

#[test]
fn times_are_utc_without_trailing_zeros() {
    for (read, written) in [
        ("2026-06-08T08:14:42Z", "2026-06-08T08:14:42Z"),
        ("2026-06-08T08:14:42.120000000Z", "2026-06-08T08:14:42.12Z"),
        (
            "2026-06-08T08:14:42.000000001Z",
            "2026-06-08T08:14:42.000000001Z",
        ),
        ("2026-06-08T08:14:42.123+02:00", "2026-06-08T06:14:42.123Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ] {
        let mut out = Vec::new();
        write_timestamp(read.parse().unwrap(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), written);
    }
}

#[test]
fn a_line_is_never_longer_than_its_template_says() {
    let mut template = Template::new(Escapes::Plain);
    let draft = Draft::new(Place::step("a"), Body::RunStarted(None));
    template.fill(&child(), None, &draft).unwrap();
    for timestamp in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
        let (mut time, mut line) = (Vec::new(), Vec::new());
        write_timestamp(timestamp, &mut time);
        template.render(u64::MAX, &time, &mut line);
        assert!(line.len() <= template.max_len(), "{timestamp}");
    }
}

#[test]
fn the_deepest_value_reads_back() {
    let deepest = "[".repeat(Json::MAX_DEPTH) + &"]".repeat(Json::MAX_DEPTH);
    let event = event(Body::UserMessage(vec![Block {
        fidelity: Fidelity::Router,
        content: Content::ToolResult {
            id: "".into(),
            content: json(&deepest),
        },
    }]));
    let line = encode(&event, Escapes::Plain);
    assert_eq!(known(&read_one(&line)), &event.body);
    assert!(
        serde_json::from_str::<serde_json::Value>(&line).is_ok(),
        "and so it does for others"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn events_read_back(event in arbitrary::event(), go in any::<bool>()) {
        let escapes = if go { Escapes::Go } else { Escapes::Plain };
        let line = encode(&event, escapes);
        prop_assert!(line.ends_with('\n'));
        prop_assert!(!line[..line.len() - 1].contains(['\n', '\r', '\0']), "one line: {}", line);
        prop_assert!(
            serde_json::from_str::<&serde_json::value::RawValue>(&line).is_ok(),
            "others read it too: {}", line
        );
        let read = read_one(&line);
        prop_assert_eq!(&read.warnings, &[]);
        let read = read.event;
        prop_assert_eq!(&read, &event);
        prop_assert_eq!(encode(&read, escapes), line);
    }

    #[test]
    fn a_template_renders_what_encode_writes(event in arbitrary::event()) {
        let draft = Draft {
            place: event.place.clone(),
            body: event.body.clone(),
            annotations: event.annotations.clone(),
        };
        let mut template = Template::new(Escapes::Plain);
        // What it held before does not matter.
        let before = Draft::new(Place::step("before"), Body::RunCompleted(None));
        template.fill(&child(), Some(&child()), &before).unwrap();
        template.fill(&event.run_id, event.parent_run_id.as_ref(), &draft).unwrap();
        let (mut time, mut line) = (Vec::new(), Vec::new());
        write_timestamp(event.timestamp, &mut time);
        template.render(event.seq, &time, &mut line);
        prop_assert!(line.len() <= template.max_len());
        prop_assert_eq!(String::from_utf8(line).unwrap(), encode(&event, Escapes::Plain));
    }
}
