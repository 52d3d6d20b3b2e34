//! A decoder that knows the published format and nothing of Quipu: ten types, six blocks, closed payloads. Of the
//! envelope it passes over fields it does not know, as the format asks. It reads every file that is written here.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{encode, event};
use crate::{Closed, Escapes, encode_log};
use quipu_formats::arbitrary;
use quipu_model::{Block, Body, Json, Timestamp, Unknown};

#[derive(Deserialize)]
struct Envelope<'a> {
    seq: u64,
    run_id: String,
    parent_run_id: Option<String>,
    child_run_id: Option<String>,
    #[serde(rename = "type")]
    event_type: String,
    #[serde(rename = "path")]
    _path: String,
    #[serde(rename = "iteration")]
    _iteration: u64,
    timestamp: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "kind")]
    _kind: String,
    error: Option<String>,
    result: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    role: String,
    blocks: Vec<ContentBlock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "call_id")]
    _call_id: String,
    #[serde(rename = "input")]
    _input: Box<RawValue>,
    output: Box<RawValue>,
    error: Option<String>,
    fidelity: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentBlock {
    #[serde(rename = "type")]
    block_type: String,
    fidelity: String,
    text: Option<String>,
    thinking: Option<String>,
    tool_name: Option<String>,
    tool_id: Option<String>,
    tool_input: Option<Box<RawValue>>,
    tool_content: Option<Box<RawValue>>,
    command: Option<String>,
    chunk: Option<String>,
}

impl ContentBlock {
    fn check(&self) -> Result<(), String> {
        let active: &[&str] = match self.block_type.as_str() {
            "text" => &["text"],
            "thinking" => &["thinking"],
            "tool_use" => &["tool_name", "tool_id", "tool_input"],
            "tool_result" => &["tool_id", "tool_content"],
            "command" => &["command"],
            "stream" => &["chunk", "text"],
            other => return Err(format!("block type {other:?}")),
        };
        let set = [
            ("text", self.text.is_some()),
            ("thinking", self.thinking.is_some()),
            ("tool_name", self.tool_name.is_some()),
            ("tool_id", self.tool_id.is_some()),
            ("tool_input", self.tool_input.is_some()),
            ("tool_content", self.tool_content.is_some()),
            ("command", self.command.is_some()),
            ("chunk", self.chunk.is_some()),
        ];
        match set
            .iter()
            .find(|(name, is_set)| *is_set && !active.contains(name))
        {
            Some((name, _)) => Err(format!("{name} in a {} block", self.block_type)),
            None => fidelity(&self.fidelity),
        }
    }
}

fn fidelity(word: &str) -> Result<(), String> {
    match word {
        "router" | "agent_emitted" => Ok(()),
        other => Err(format!("fidelity {other:?}")),
    }
}

/// Reads a line as the published format has it. Gives its type.
fn decode(line: &str, seq: u64) -> Result<String, String> {
    let envelope: Envelope<'_> = serde_json::from_str(line).map_err(|e| e.to_string())?;
    if envelope.seq != seq || envelope.run_id.is_empty() {
        return Err(format!("seq {} in line {seq}", envelope.seq));
    }
    if envelope.parent_run_id.as_deref() == Some("") {
        return Err("an empty parent".to_owned());
    }
    envelope
        .timestamp
        .parse::<Timestamp>()
        .map_err(|e| e.to_string())?;
    let calls = envelope.event_type.starts_with("step.call_workflow.");
    if calls != envelope.child_run_id.is_some() {
        return Err("child_run_id".to_owned());
    }
    let text = envelope.payload.get();
    let no = |error: serde_json::Error| error.to_string();
    match envelope.event_type.as_str() {
        "run.started" | "run.completed" if text == "null" => {}
        "run.started" | "step.started" | "step.call_workflow.started" => {
            let step: Step = serde_json::from_str(text).map_err(no)?;
            if step.error.is_some() || step.result.is_some() {
                return Err("the end of a step that begins".to_owned());
            }
        }
        "run.completed" | "step.completed" | "step.call_workflow.completed" => {
            let _: Step = serde_json::from_str(text).map_err(no)?;
        }
        word @ ("message.user" | "message.assistant") => {
            let message: Message = serde_json::from_str(text).map_err(no)?;
            if word.strip_prefix("message.") != Some(&message.role) {
                return Err(format!("role {:?} of {word}", message.role));
            }
            message.blocks.iter().try_for_each(ContentBlock::check)?;
        }
        word @ ("tool.call" | "tool.result") => {
            let tool: Tool = serde_json::from_str(text).map_err(no)?;
            fidelity(&tool.fidelity)?;
            if word == "tool.call" && (tool.error.is_some() || tool.output.get() != "null") {
                return Err("the result of a call that begins".to_owned());
            }
        }
        other => return Err(format!("event type {other:?}")),
    }
    Ok(envelope.event_type)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever kind an event is of, a decoder that knows ten types reads its line.
    #[test]
    fn a_decoder_of_the_published_format_reads_every_line(
        (_, events) in arbitrary::session(),
        go in any::<bool>(),
    ) {
        let escapes = if go { Escapes::Go } else { Escapes::Plain };
        for (event, seq) in events.iter().zip(1..) {
            let line = encode(event, escapes);
            let read = decode(&line, seq);
            prop_assert!(read.is_ok(), "{:?}: {}", read, line);
        }
    }

    /// What was read and not understood cannot be written to a file. As a line of any type it reads back as it was.
    #[test]
    fn the_writer_of_files_is_closed(body in arbitrary::unknown()) {
        let given = event(body);
        let has_odd_block = |blocks: &[Block]| blocks.iter().any(|block| block.block_type().is_none());
        let is_odd = given.body.event_type().is_none() || given.body.blocks().is_some_and(has_odd_block);
        let mut line = Vec::new();
        let written = crate::encode(&given, Escapes::Plain, &mut line);
        prop_assert_eq!(written.is_err(), is_odd);
        prop_assert_eq!(line.is_empty(), is_odd, "nothing is written of what is refused");
        line.clear();
        encode_log(&given, &mut line);
        let (read, _) = crate::decode_text(&String::from_utf8(line).unwrap()).unwrap();
        prop_assert_eq!(read, given);
    }

    /// The open form says every kind by its own word, and reads back.
    #[test]
    fn lines_of_any_type_read_back((_, events) in arbitrary::session()) {
        for event in &events {
            let mut line = Vec::new();
            encode_log(event, &mut line);
            let line = String::from_utf8(line).unwrap();
            let word = format!(r#""type":"{}""#, event.body.type_word());
            prop_assert!(line.contains(&word), "{}", line);
            let (read, _) = crate::decode_text(&line).unwrap();
            prop_assert_eq!(&read, event);
        }
    }
}

#[test]
fn a_reader_that_does_not_know_a_kind_sees_a_message() {
    let bodies = [
        Body::Note(quipu_model::Note {
            kind: quipu_model::NoteKind::Title,
            text: Some("Mend the tests".to_owned()),
            raw: None,
        }),
        Body::Error(quipu_model::Failure {
            message: "no".repeat(10_000),
            ..quipu_model::Failure::default()
        }),
        Body::SystemMessage(vec![Block::text(
            quipu_model::Fidelity::Router,
            "Be brief.",
        )]),
    ];
    let expected = [
        (
            "message.assistant",
            "Note (title): Mend the tests".to_owned(),
        ),
        ("message.assistant", format!("Error: {}", "no".repeat(100))),
        ("message.user", "Be brief.".to_owned()),
    ];
    for (body, (word, text)) in bodies.into_iter().zip(expected) {
        let line = encode(&event(body), Escapes::Plain);
        assert_eq!(decode(&line, 1).as_deref(), Ok(word), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["payload"]["blocks"][0]["text"], text);
    }
}

#[test]
fn what_says_that_it_is_something_else_and_is_not_is_read_by_its_type() {
    let said = r#"{"role":"assistant","blocks":[{"type":"text","fidelity":"router","text":"x"}]}"#;
    for (more, why) in [
        (r#""as":"opinion","event":{}"#, r#"unknown field "as""#),
        (r#""as":7"#, r#"unknown field "as""#),
        (r#""as":"tool.call""#, r#"unknown field "as""#),
        (r#""event":{"index":0}"#, r#"unknown field "event""#),
        (
            r#""as":"message.system""#,
            r#"field "as" is not understood: message.system is carried by message.user"#,
        ),
        (
            r#""as":"note""#,
            r#"field "event" is not understood: it is missing"#,
        ),
        (
            r#""as":"note","event":[]"#,
            r#"field "event" is not understood: it is not an object"#,
        ),
        (
            r#""as":"note","event":{"kind":"odd"}"#,
            r#"field "event" is not understood: "kind" is "odd", which is unknown"#,
        ),
        (
            r#""as":"chunk","event":{"index":0}"#,
            r#"field "event" is not understood: a chunk is one stream block"#,
        ),
        (
            r#""as":"error","event":{"message":"no","retryable":1}"#,
            r#"field "event" is not understood: "retryable" is neither true nor false"#,
        ),
        (
            r#""iterations":[1,2]"#,
            r#"field "iterations" is not understood: the last is not "iteration""#,
        ),
        (
            r#""attempt":0"#,
            r#"field "attempt" is not understood: it is not a whole number from 1"#,
        ),
    ] {
        let line = super::line(1, "message.assistant", said);
        let line = format!("{},{more}}}\n", line.trim_end().strip_suffix('}').unwrap());
        let read = super::read_one(&line);
        assert_eq!(read.warnings[0].to_string(), why, "{more}");
        assert_eq!(read.event.body.type_word(), "message.assistant", "{more}");
        assert_eq!(read.event.place.attempt, 1);
    }
    let odd = Body::Unknown(Unknown {
        event_type: "run.paused".to_owned(),
        child_run_id: None,
        payload: Json::null(),
    });
    let refused = crate::encode(&event(odd), Escapes::Plain, &mut Vec::new());
    assert_eq!(refused, Err(Closed::EventType("run.paused".to_owned())));
}
