//! A session of our own, for tests and for pictures of the page: a bug in a timetable, found and mended.
//!
//! `session.jsonl` has a line for each event, in words of its own that [`session`] makes events of.

use quipu_model::{
    Annotations, Attachment, Block, Body, Environment, Event, Fidelity, Header, Json, Money, Note,
    NoteKind, Notes, Origin, Place, RunId, Status, ToolCall, ToolResult, Usage,
};
use serde_json::Value;
use sha2::Digest as _;

/// The picture that is attached to the first message.
pub(crate) const HARBOUR: &[u8] = include_bytes!("harbour.png");

pub(crate) fn harbour() -> Attachment {
    let hash = sha2::Sha256::digest(HARBOUR);
    let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
    Attachment {
        mime: "image/png".to_owned(),
        bytes: HARBOUR.len() as u64,
        sha256: hash
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect(),
    }
}

/// The session.
pub(crate) fn session() -> (Header, Vec<Event>) {
    let run_id = RunId::new("ferry-2026-03-17").unwrap();
    let mut header = Header {
        title: Some("Departures an hour off after the clock change".to_owned()),
        origin: Some(Origin {
            agent: "claude-code".to_owned(),
            agent_version: Some("2.1.34".to_owned()),
            adapter: Some("claude-code".to_owned()),
            session_id: Some("5c1f0a9e-3b7d-4e21-9a55-0d6f6b1c2e88".into()),
            path: None,
        }),
        environment: Environment {
            cwd: Some("/code/ferry".to_owned()),
            git_branch: Some("fix/summer-time".to_owned()),
            repository: Some("https://git.example.org/ada/ferry.git".to_owned()),
            commit: Some("4be1a90c77d2".to_owned()),
            os: Some("linux".to_owned()),
            shell: Some("zsh".to_owned()),
        },
        ..Header::new(run_id.clone())
    };
    let events = events(&run_id, include_str!("session.jsonl"));
    for event in &events {
        header.observe(event);
    }
    (header, events)
}

/// The events of some lines.
pub(crate) fn events(run_id: &RunId, lines: &str) -> Vec<Event> {
    let event = |(seq, line): (u64, &str)| {
        let line: Value = serde_json::from_str(line).unwrap();
        Event {
            seq,
            run_id: run_id.clone(),
            parent_run_id: None,
            timestamp: line["at"].as_str().unwrap().parse().unwrap(),
            place: Place::run(),
            body: body(&line),
            annotations: annotations(&line),
        }
    };
    (1..).zip(lines.lines()).map(event).collect()
}

fn text(line: &Value, key: &str) -> Option<String> {
    line[key].as_str().map(ToOwned::to_owned)
}

fn json(line: &Value, key: &str) -> Option<Json> {
    line.get(key).map(|value| Json::of(value).unwrap())
}

fn body(line: &Value) -> Body {
    let fidelity = Fidelity::AgentEmitted;
    let said = || vec![Block::text(fidelity, text(line, "text").unwrap())];
    let tool = ToolResult {
        name: text(line, "tool").unwrap_or_default(),
        call_id: text(line, "id").unwrap_or_default().into(),
        input: json(line, "input"),
        output: json(line, "output"),
        error: text(line, "error"),
        fidelity,
    };
    match line["kind"].as_str().unwrap() {
        "user" => Body::UserMessage(said()),
        "assistant" => Body::AssistantMessage(said()),
        "thinking" => Body::AssistantMessage(vec![Block {
            fidelity,
            content: quipu_model::Content::Thinking(text(line, "text").unwrap()),
        }]),
        "system" => Body::SystemMessage(said()),
        "call" => Body::ToolCall(ToolCall {
            name: tool.name,
            call_id: tool.call_id,
            input: tool.input,
            fidelity,
        }),
        "result" => Body::ToolResult(tool),
        "note" => Body::Note(Note {
            kind: NoteKind::from_word(line["note"].as_str().unwrap()).unwrap(),
            text: text(line, "text"),
            raw: json(line, "raw"),
        }),
        other => panic!("no kind of line: {other}"),
    }
}

fn annotations(line: &Value) -> Annotations {
    let usage = line.get("usage").map(|usage| Usage {
        input: usage["input"].as_u64(),
        cache_read: usage["cacheRead"].as_u64(),
        cache_write: usage["cacheWrite"].as_u64(),
        cache_write_1h: None,
        output: usage["output"].as_u64(),
        reasoning: usage["reasoning"].as_u64(),
    });
    let mut notes = Notes {
        model: text(line, "model"),
        usage,
        cost: line["cost"].as_str().and_then(Money::parse),
        model_call: text(line, "call").map(Into::into),
        native_id: text(line, "native").map(Into::into),
        subagent_id: text(line, "sub").map(Into::into),
        child: line["child"].as_str().map(|id| RunId::new(id).unwrap()),
        duration_ms: line["ms"].as_u64(),
        status: line["status"].as_str().and_then(Status::from_word),
        ..Notes::default()
    };
    notes.flags.opaque = line["opaque"] == true;
    notes.flags.superseded = line["superseded"] == true;
    if line.get("attachments").is_some() {
        notes.attachments.push(harbour());
    }
    notes.into()
}
