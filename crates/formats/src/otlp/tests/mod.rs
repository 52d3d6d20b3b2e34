//! Sessions as spans.

pub(crate) mod golden;
mod property;
mod requests;
mod rules;
mod times;

use quipu_model::{
    Annotations, Block, Body, Event, Fidelity, Header, Json, Notes, Origin, Place, RunId,
    Timestamp, ToolCall, ToolResult,
};
use serde_json::Value;

use super::{OtlpOptions, writer};
use crate::loss::Loss;
use crate::projection::Nowhere;

/// Writes a session.
pub(crate) fn write(header: &Header, events: &[Event], options: &OtlpOptions) -> (Vec<u8>, Loss) {
    let mut out = Vec::new();
    let mut projection = writer(header, options, Box::new(&mut out), Box::new(Nowhere)).unwrap();
    for event in events {
        projection.event(event).unwrap();
    }
    let loss = projection.finish().unwrap();
    (out, loss)
}

/// All spans of what was written, in order.
pub(crate) fn spans(out: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(out).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    let mut all = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let spans = &line["resourceSpans"][0]["scopeSpans"][0]["spans"];
        all.extend(spans.as_array().unwrap().iter().cloned());
    }
    all
}

/// The span of a name.
pub(crate) fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let names: Vec<&Value> = spans.iter().map(|span| &span["name"]).collect();
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no {name:?} in {names:?}"))
}

/// The value of an attribute, without the name of its type.
pub(crate) fn attr<'a>(of: &'a Value, key: &str) -> Option<&'a Value> {
    let list = of["attributes"].as_array().unwrap();
    let found = list.iter().find(|it| it["key"] == key)?;
    found["value"].as_object().unwrap().values().next()
}

/// The value of an attribute that is a text.
pub(crate) fn text<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    attr(of, key).and_then(Value::as_str)
}

/// Puts sessions together.
pub(crate) struct Session {
    pub(crate) header: Header,
    pub(crate) events: Vec<Event>,
    at: Timestamp,
}

impl Session {
    pub(crate) fn new() -> Self {
        let mut header = Header::new(RunId::new("run-1").unwrap());
        header.origin = Some(Origin {
            agent: "claude-code".to_owned(),
            agent_version: Some("2.1.0".to_owned()),
            adapter: Some("claude".to_owned()),
            session_id: Some("5f0c".into()),
            path: Some("/home/ada/log.jsonl".to_owned()),
        });
        Self {
            header,
            events: Vec::new(),
            at: "2026-06-08T08:14:42Z".parse().unwrap(),
        }
    }

    /// Adds an event, a second after the one before.
    pub(crate) fn add(&mut self, body: Body, notes: Notes) -> &mut Self {
        self.at += std::time::Duration::from_secs(1);
        self.add_at(self.at, Place::run(), body, notes)
    }

    pub(crate) fn add_at(
        &mut self,
        timestamp: Timestamp,
        place: Place,
        body: Body,
        notes: Notes,
    ) -> &mut Self {
        let event = Event {
            seq: self.events.len() as u64 + 1,
            run_id: self.header.run_id.clone(),
            parent_run_id: None,
            timestamp,
            place,
            body,
            annotations: Annotations::from(notes),
        };
        self.header.observe(&event);
        self.events.push(event);
        self
    }

    pub(crate) fn step(&mut self, path: &str, body: Body) -> &mut Self {
        self.at += std::time::Duration::from_secs(1);
        self.add_at(self.at, Place::step(path), body, Notes::default())
    }

    pub(crate) fn user(&mut self, said: &str) -> &mut Self {
        self.add(user(said), Notes::default())
    }

    pub(crate) fn write(&self, options: &OtlpOptions) -> (Vec<u8>, Loss) {
        write(&self.header, &self.events, options)
    }

    pub(crate) fn spans(&self, options: &OtlpOptions) -> Vec<Value> {
        spans(&self.write(options).0)
    }
}

pub(crate) fn block(said: &str) -> Block {
    Block::text(Fidelity::AgentEmitted, said)
}

pub(crate) fn user(said: &str) -> Body {
    Body::UserMessage(vec![block(said)])
}

pub(crate) fn assistant(blocks: Vec<Block>) -> Body {
    Body::AssistantMessage(blocks)
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> Body {
    Body::ToolCall(ToolCall {
        name: name.to_owned(),
        call_id: id.into(),
        input: Some(Json::parse(input).unwrap()),
        fidelity: Fidelity::AgentEmitted,
    })
}

pub(crate) fn result(id: &str, name: &str, output: Option<&str>, error: Option<&str>) -> Body {
    Body::ToolResult(ToolResult {
        name: name.to_owned(),
        call_id: id.into(),
        input: None,
        output: output.map(|output| Json::parse(output).unwrap()),
        error: error.map(ToOwned::to_owned),
        fidelity: Fidelity::AgentEmitted,
    })
}

/// Notes of an event of a call to a model.
pub(crate) fn of_call(model: &str, call: &str) -> Notes {
    Notes {
        model: Some(model.to_owned()),
        model_call: Some(call.into()),
        ..Notes::default()
    }
}
