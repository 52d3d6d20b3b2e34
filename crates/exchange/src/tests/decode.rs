//! What becomes of fields and payloads that are not as they should be.

use std::borrow::Cow;

use quipu_model::{Block, Body, Content, Fidelity, Json, Role, StepKind};

use crate::Shape;

use super::reader::{check, read_with};
use super::{known, line, read_one, step};
use crate::lines::Limits;
use crate::{Item, Reader, Warning};

/// Replaces a part of a line, once.
fn with(from: &str, to: &str) -> String {
    let line = line(1, "step.started", r#"{"name":"a","kind":"agent"}"#);
    assert_eq!(line.matches(from).count(), 1, "{from}");
    line.replace(from, to) + "\n"
}

#[test]
fn fields_of_the_envelope() {
    let whole = "not a whole number that is zero or greater";
    for (from, to, why) in [
        (r#""seq":1,"#, "", r#""seq": missing"#),
        (r#""seq":1"#, r#""seq":"1""#, &format!(r#""seq": {whole}"#)),
        (r#""seq":1"#, r#""seq":-1"#, &format!(r#""seq": {whole}"#)),
        (r#""seq":1"#, r#""seq":1.0"#, &format!(r#""seq": {whole}"#)),
        (
            r#""seq":1"#,
            r#""seq":18446744073709551616"#,
            &format!(r#""seq": {whole}"#),
        ),
        (r#""seq":1"#, r#""seq":null"#, &format!(r#""seq": {whole}"#)),
        (r#""type":"step.started","#, "", r#""type": missing"#),
        (
            r#""type":"step.started""#,
            r#""type":7"#,
            r#""type": not a string"#,
        ),
        (r#""run_id":"r1","#, "", r#""run_id": missing"#),
        (
            r#""run_id":"r1""#,
            r#""run_id":null"#,
            r#""run_id": missing"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"""#,
            r#""run_id": a run id cannot be empty"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":1"#,
            r#""run_id": not a string"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"../x""#,
            r#""run_id": a run id cannot begin with '.'"#,
        ),
        (
            r#""run_id":"r1""#,
            r#""run_id":"r1","parent_run_id":"a b""#,
            r#""parent_run_id": a run id holds letters, digits, '.', '_' and '-' only, not ' '"#,
        ),
        (
            r#""timestamp":"2026-06-08T08:14:42Z","#,
            "",
            r#""timestamp": missing"#,
        ),
        (
            r#""2026-06-08T08:14:42Z""#,
            r#""yesterday""#,
            r#""timestamp": not an RFC 3339 time: "yesterday""#,
        ),
        (
            "T08:14:42Z",
            "T08:14:42",
            r#""timestamp": not an RFC 3339 time: "2026-06-08T08:14:42""#,
        ),
        (
            r#""2026-06-08T08:14:42Z""#,
            "1780906482",
            r#""timestamp": not a string"#,
        ),
        (r#""path":"a""#, r#""path":null"#, r#""path": not a string"#),
        (
            r#""iteration":0"#,
            r#""iteration":-1"#,
            &format!(r#""iteration": {whole}"#),
        ),
    ] {
        check(with(from, to), &[&format!("1:0 bad: bad field {why}")]);
    }
}

#[test]
fn fields_that_may_be_missing_or_new() {
    for (from, to, said) in [
        (r#""path":"a","#, "", r#" [missing field "path"]"#),
        (r#""iteration":0,"#, "", r#" [missing field "iteration"]"#),
        (
            r#""seq":1"#,
            r#""seq":18,"colour":"red""#,
            r#" [unknown field "colour"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"Seq":2"#,
            r#" [unknown field "Seq"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"\ud800":2"#,
            " [unknown field \"\u{fffd}\"]",
        ),
        (
            r#""kind":"agent""#,
            r#""kind":"agent","x":{}"#,
            r#" [unknown field "payload.x"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"model":7"#,
            r#" [field "model" is not understood: invalid type: integer `7`, expected a string at line 1 column 1]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"flags":["shiny"]"#,
            r#" [field "flags" is not understood: unknown flag "shiny"]"#,
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"parent_run_id":"","child_run_id":"""#,
            "",
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"parent_run_id":null,"child_run_id":null"#,
            "",
        ),
        (
            r#""seq":1"#,
            r#""seq":1,"model":null,"duration_ms":null"#,
            "",
        ),
    ] {
        let read = read_with(with(from, to).as_bytes(), Limits::default());
        let seq = if to.contains("18") { 18 } else { 1 };
        assert_eq!(read, [format!("1:0 {seq} step.started{said}")], "{to}");
    }
    for annotation in [
        r#""usage":{"tokens":1}"#,
        r#""usage":{"input":-1}"#,
        r#""usage":null"#,
        r#""source":{"file":"x"}"#,
        r#""duration_ms":1.5"#,
        r#""native_id":[]"#,
    ] {
        let read = read_one(&with(r#""seq":1"#, &format!(r#""seq":1,{annotation}"#)));
        assert!(
            matches!(&read.warnings[..], [Warning::Annotation { .. }]),
            "{annotation}"
        );
        assert!(read.event.annotations.is_empty());
    }
}

#[test]
fn the_last_of_repeated_keys_wins() {
    let read = read_one(&with(
        r#""seq":1"#,
        r#""seq":4,"seq":1,"type":"x","path":"y""#,
    ));
    assert_eq!((read.event.seq, read.event.place.path.as_str()), (1, "a"));
    let read = read_one(&with(
        r#""kind":"agent""#,
        r#""kind":"agent","kind":"while""#,
    ));
    assert!(matches!(known(&read), Body::StepStarted(step) if step.kind == StepKind::While));
    let twice = line(1, "new", "{}").replace("\"payload\"", "\"payload\":[1],\"payload\"");
    let Body::Unknown(foreign) = read_one(&twice).event.body else {
        panic!()
    };
    assert_eq!(foreign.payload.get(), "{}");
}

#[test]
fn unknown_types_are_handed_over_intact() {
    for payload in [
        "null",
        "[ 1, 2 ]",
        r#"{ "b":12345678901234567890123, "a":1.0, "a":"\u0041\ud800" }"#,
        r#"{"role":null}"#,
        "\"text\"",
    ] {
        let line =
            line(3, "step.paused", payload).replace("\"type\"", "\"child_run_id\":\"c\",\"type\"");
        let read = read_one(&line);
        assert_eq!(
            read.warnings[0].to_string(),
            r#"unknown event type "step.paused""#
        );
        assert_eq!(read.event.body.event_type(), None);
        assert_eq!(read.event.body.type_word(), "step.paused");
        let Body::Unknown(foreign) = read.event.body else {
            panic!()
        };
        assert_eq!(foreign.payload.get(), payload, "to the byte");
        assert_eq!(foreign.child_run_id.as_deref(), Some("c"));
    }
    let missing = line(1, "new", "0").replace(",\"payload\":0", "");
    let Body::Unknown(foreign) = read_one(&missing).event.body else {
        panic!()
    };
    assert_eq!(foreign.payload, Json::null());
}

#[test]
fn payloads_are_told_by_their_shape() {
    for (payload, shape) in [
        ("null", Shape::Null),
        ("[]", Shape::Blocks),
        (r#"[{"type":"text"}]"#, Shape::Blocks),
        (r#"{"role":"user"}"#, Shape::Message),
        (r#"{"kind":1,"call_id":2,"role":null}"#, Shape::Message),
        (r#"{"kind":1,"call_id":null}"#, Shape::Tool),
        (r#"{"kind":null}"#, Shape::Step),
        (r#"{"Kind":"x"}"#, Shape::Other),
        (r#"{"x":{"role":"user"}}"#, Shape::Other),
        ("{}", Shape::Other),
        ("\"role\"", Shape::Other),
        ("7", Shape::Other),
    ] {
        for event_type in ["new", "run.started"] {
            let line = line(1, event_type, payload);
            let mut reader = Reader::new(line.as_bytes());
            let Some(Item::Event(found)) = reader.next().unwrap() else {
                panic!()
            };
            assert_eq!(found.scan.shape(), shape, "{payload}");
            assert_eq!(found.scan.run_id(), Some(Cow::Borrowed("r1")));
        }
    }
}

/// Event type, payload, and what does not fit.
const MISFITS: &[(&str, &str, &str)] = &[
    ("step.started", "null", "it is not an object"),
    ("step.started", "[]", "it is not an object"),
    ("step.started", "{}", r#""name" is missing"#),
    ("step.started", r#"{"name":"a"}"#, r#""kind" is missing"#),
    (
        "step.started",
        r#"{"name":1,"kind":"a"}"#,
        r#""name" is not a string"#,
    ),
    (
        "step.started",
        r#"{"name":"a","kind":"b","result":1}"#,
        r#""result" does not belong to the start of a step"#,
    ),
    (
        "step.completed",
        r#"{"name":"a","kind":"b","call_id":"c"}"#,
        r#""call_id" does not belong to a step"#,
    ),
    (
        "step.completed",
        r#"{"name":"a","kind":"b","blocks":[]}"#,
        r#""blocks" does not belong to a step"#,
    ),
    (
        "step.completed",
        r#"{"name":"a","kind":"b","error":{}}"#,
        r#""error" is not a string"#,
    ),
    (
        "run.completed",
        r#"{"role":"user"}"#,
        r#""role" does not belong to a step"#,
    ),
    (
        "step.call_workflow.started",
        r#"{"name":"a","kind":"b"}"#,
        "child_run_id is missing",
    ),
    ("message.user", r#"{"blocks":[]}"#, r#""role" is missing"#),
    (
        "message.user",
        r#"{"role":"assistant","blocks":[]}"#,
        r#"the role is "assistant""#,
    ),
    (
        "message.user",
        r#"{"role":"user"}"#,
        r#""blocks" is missing"#,
    ),
    (
        "message.user",
        r#"{"role":"user","blocks":{}}"#,
        r#""blocks" is not a list"#,
    ),
    (
        "message.assistant",
        r#"{"role":"assistant","blocks":[],"name":"x"}"#,
        r#""name" does not belong to a message"#,
    ),
    ("tool.call", r#"{"name":"a"}"#, r#""call_id" is missing"#),
    (
        "tool.call",
        r#"{"name":"a","call_id":"c","output":1,"fidelity":"router"}"#,
        r#""output" does not belong to tool.call"#,
    ),
    (
        "tool.result",
        r#"{"name":"a","call_id":"c","fidelity":7}"#,
        r#""fidelity" is not a string"#,
    ),
    (
        "tool.result",
        r#"{"name":"a","call_id":"c","fidelity":"router","blocks":7}"#,
        r#""blocks" does not belong to a tool event"#,
    ),
];

#[test]
fn payloads_that_do_not_fit() {
    for &(event_type, payload, why) in MISFITS {
        let read = read_one(&line(1, event_type, payload));
        assert_eq!(read.warnings.len(), 1);
        let expected = format!("the payload does not fit {event_type}: {why}");
        assert_eq!(read.warnings[0].to_string(), expected);
        let Body::Unknown(foreign) = &read.event.body else {
            panic!()
        };
        assert_eq!(
            (foreign.event_type.as_str(), foreign.payload.get()),
            (event_type, payload)
        );
        assert_eq!(read.event.body.type_word(), event_type);
    }
    // Without a payload at all, and with a link that is none of its business.
    let missing = line(1, "step.started", "0").replace(",\"payload\":0", "");
    let said = read_one(&missing).warnings[0].to_string();
    assert_eq!(said, "the payload does not fit step.started: it is missing");
    for (child, why) in [
        ("c", "child_run_id belongs to call_workflow events only"),
        (
            "/",
            r#"bad field "child_run_id": a run id holds letters, digits, '.', '_' and '-' only, not '/'"#,
        ),
    ] {
        let to = format!(r#""seq":1,"child_run_id":"{child}""#);
        let said = read_one(&with(r#""seq":1"#, &to)).warnings[0].to_string();
        assert_eq!(
            said,
            format!("the payload does not fit step.started: {why}")
        );
    }
}

#[test]
fn what_means_nothing_is_nothing() {
    for (event_type, payload, expected) in [
        (
            "step.completed",
            r#"{"name":"a","kind":"k","error":"","role":null,"blocks":null}"#,
            Body::StepCompleted(step("k").succeeded(None)),
        ),
        (
            "step.completed",
            r#"{"name":"a","kind":"k","error":null,"result":null}"#,
            Body::StepCompleted(step("k").succeeded(Some(Json::null()))),
        ),
        (
            "message.user",
            r#"{"role":"user","blocks":null}"#,
            Body::UserMessage(Vec::new()),
        ),
        (
            "message.user",
            r#"{"role":"user","blocks":[{"type":"text","fidelity":"router","text":null,"chunk":null}]}"#,
            Body::UserMessage(vec![Block::text(Fidelity::Router, "")]),
        ),
    ] {
        let read = read_one(&(line(1, event_type, payload)));
        assert_eq!(known(&read), &expected);
        assert_eq!(read.warnings, []);
    }
}

#[test]
fn a_chunk_may_stand_in_either_field() {
    let stream = |fields: &str| {
        let block = format!(r#"{{"type":"stream","fidelity":"router",{fields}}}"#);
        read_one(
            &(line(
                1,
                "message.user",
                &format!(r#"{{"role":"user","blocks":[{block}]}}"#),
            ) + "\n"),
        )
    };
    for fields in [
        r#""text":"x""#,
        r#""chunk":"x""#,
        r#""text":"x","chunk":"x""#,
        r#""text":"","chunk":"x""#,
    ] {
        let content = Content::Stream("x".to_owned());
        let fidelity = Fidelity::Router;
        let expected = Body::UserMessage(vec![Block { fidelity, content }]);
        assert_eq!(known(&stream(fields)), &expected, "{fields}");
    }
    let read = stream(r#""text":"x","chunk":"y""#);
    let said = r#"block 0 does not fit its type: "text" and "chunk" differ"#;
    assert_eq!(read.warnings[0].to_string(), said);
}

#[test]
fn a_payload_may_be_the_blocks_alone() {
    let blocks = r#"[{"type":"text","fidelity":"router","text":"x"},{"type":"command","fidelity":"router","command":"ls"}]"#;
    for (event_type, role) in [
        ("message.user", Role::User),
        ("message.assistant", Role::Assistant),
    ] {
        let read = read_one(&line(1, event_type, blocks));
        assert_eq!(read.warnings, [Warning::MissingField("payload.role")]);
        let expected = vec![
            Block::text(Fidelity::Router, "x"),
            Block {
                fidelity: Fidelity::Router,
                content: Content::Command("ls".to_owned()),
            },
        ];
        assert_eq!(
            known(&read),
            &match role {
                Role::User => Body::UserMessage(expected),
                Role::Assistant => Body::AssistantMessage(expected),
                Role::System => Body::SystemMessage(expected),
            }
        );
        let none = read_one(&line(1, event_type, "[]"));
        assert_eq!(none.event.body.blocks(), Some(&[][..]), "no blocks at all");
        let odd = read_one(&line(1, event_type, "[7]"));
        assert_eq!(odd.event.body.type_word(), event_type);
        let blocks = odd.event.body.blocks().unwrap();
        assert_eq!(blocks, [Block::unknown(Json::parse("7").unwrap())]);
    }
}

/// Engines write an empty word, or none; what they say is not lost over it.
#[test]
fn a_fidelity_that_is_not_known_is_the_weaker_claim() {
    for (fidelity, word) in [
        (r#","fidelity":"""#, ""),
        ("", ""),
        (r#","fidelity":null"#, ""),
        (r#","fidelity":"Router""#, "Router"),
    ] {
        let block = format!(r#"{{"type":"text","text":"x"{fidelity}}}"#);
        let payload = format!(r#"{{"role":"assistant","blocks":[{block}]}}"#);
        let read = read_one(&line(1, "message.assistant", &payload));
        assert_eq!(read.warnings, [Warning::Fidelity(word.to_owned())]);
        let expected = Block::text(Fidelity::AgentEmitted, "x");
        assert_eq!(known(&read), &Body::AssistantMessage(vec![expected]));
        let payload = format!(r#"{{"name":"a","call_id":"c"{fidelity}}}"#);
        let read = read_one(&line(1, "tool.result", &payload));
        assert_eq!(read.warnings, [Warning::Fidelity(word.to_owned())]);
        assert!(
            matches!(known(&read), Body::ToolResult(it) if it.fidelity == Fidelity::AgentEmitted)
        );
    }
}

#[test]
fn half_of_a_surrogate_pair_is_replaced_wherever_a_text_holds_one() {
    let message = |text: &str| {
        let block = format!(r#"{{"type":"text","fidelity":"router","text":"{text}"}}"#);
        line(
            1,
            "message.user",
            &format!(r#"{{"role":"user","blocks":[{block}]}}"#),
        )
    };
    for (text, expected) in [
        (r"a\ud83d", "a\u{fffd}"),
        (r"\ud83db", "\u{fffd}b"),
        (r"\uDE00\ud83d", "\u{fffd}\u{fffd}"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (r"\\ud83d \udead", "\\ud83d \u{fffd}"),
        (r"\ud83d\n", "\u{fffd}\n"),
    ] {
        let read = read_one(&message(text));
        assert_eq!(read.warnings, [Warning::HalfSurrogate], "{text}");
        let expected = Block::text(Fidelity::Router, expected);
        assert_eq!(known(&read), &Body::UserMessage(vec![expected]), "{text}");
    }
    for whole in [r"\ud83d\ude00", r"\\ud83d", r"\u00e9", "plain"] {
        assert_eq!(read_one(&message(whole)).warnings, [], "{whole}");
        assert_eq!(crate::mend_surrogates(whole), None);
    }
    let read = read_one(&with(r#""path":"a""#, r#""path":"\ud800""#));
    assert_eq!(read.event.place.path, "\u{fffd}");
    // Cut off in the middle of an escape, as a torn line may be.
    for cut in [r"\", r"\u", r"\ud83", r"\ud83d\u", r"é\ud83dé"] {
        assert!(
            crate::mend_surrogates(cut).is_none_or(|text| text.contains(r"\ufffd")),
            "{cut}"
        );
    }
}

#[test]
fn unknown_blocks_do_not_hide_the_others() {
    let text = r#"{"type":"text","fidelity":"router","text":"x"}"#;
    for (odd, why) in [
        (
            r#"{"type":"video", "url":1.0}"#,
            r#"unknown block type "video" in block 1"#,
        ),
        ("{}", r#"unknown block type "" in block 1"#),
        (r#"{"type":7}"#, r#"unknown block type "" in block 1"#),
        (
            "\"text\"",
            "block 1 does not fit its type: it is not an object",
        ),
        (
            r#"{"type":"text","fidelity":"router","text":7}"#,
            r#"block 1 does not fit its type: "text" is not a string"#,
        ),
        (
            r#"{"type":"text","fidelity":"router","command":"ls"}"#,
            r#"block 1 does not fit its type: "command" does not belong to a text block"#,
        ),
    ] {
        let payload = format!(r#"{{"role":"assistant","blocks":[{text},{odd},{text}]}}"#);
        let read = read_one(&line(1, "message.assistant", &payload));
        assert_eq!(read.warnings.len(), 1);
        assert_eq!(read.warnings[0].to_string(), why);
        assert_eq!(read.event.body.type_word(), "message.assistant");
        let Body::AssistantMessage(blocks) = read.event.body else {
            panic!()
        };
        let known = Block::text(Fidelity::Router, "x");
        let odd = Block::unknown(Json::parse(odd).unwrap());
        assert_eq!(blocks, [known.clone(), odd, known]);
    }
    let more = r#"{"type":"text","fidelity":"router","text":"x","signature":"y"}"#;
    let payload = format!(r#"{{"role":"user","blocks":[{more}]}}"#);
    let read = read_one(&line(1, "message.user", &payload));
    assert_eq!(
        read.warnings,
        [Warning::UnknownField(
            "payload.blocks[0].signature".to_owned()
        )]
    );
    let user = format!(r#"{{"role":"user","blocks":[{text},7]}}"#);
    let read = read_one(&line(1, "message.user", &user));
    assert_eq!(read.event.body.type_word(), "message.user");
}

#[test]
fn values_are_kept_to_the_byte() {
    let input = r#"{ "n":123456789012345678901234567890, "f":1.0, "s":"\u0041\/\ud800", "n":-0 }"#;
    let payload = format!(r#"{{"name":"a","call_id":"c","input":{input},"fidelity":"router"}}"#);
    let read = read_one(&line(1, "tool.call", &payload));
    let Body::ToolCall(call) = known(&read) else {
        panic!()
    };
    assert_eq!(call.input.as_ref().unwrap().get(), input);
}
