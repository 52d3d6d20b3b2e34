//! Writes the lines.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};

use quipu_model::{Block, Body, Content, Event, Header, Json, ModelCallId, Notes, SubagentId};

use super::{CARRIES, StsOptions};
use crate::atif::json::{Object, comma};
use crate::loss::Loss;
use crate::plain;
use crate::projection::Projection;

/// As much is written at once.
const CHUNK: usize = 64 << 10;

/// A message that has grown to this is written, and goes on in another.
const LONGEST: usize = 8 << 20;

/// How many calls and results are remembered that may be told twice.
const REMEMBERED: usize = 16 << 10;

/// See [`super::writer`].
pub(super) struct Writer<'w> {
    out: Box<dyn Write + 'w>,
    bytes: Vec<u8>,
    loss: Loss,
    /// The message of the agent that is being put together.
    open: Option<Open>,
    /// What was told in a message, and may be told again by an event; and the other way round.
    told: HashSet<u64>,
}

/// A message of the agent.
struct Open {
    key: Key,
    time: Option<i64>,
    stage: Stage,
    reasoning: Option<String>,
    content: Option<String>,
    /// The inside of a list.
    calls: Vec<u8>,
}

/// A message as it is written.
#[derive(Default)]
struct Message<'m> {
    role: &'static str,
    content: TextForm<'m>,
    reasoning: Option<&'m str>,
    /// The inside of a list.
    calls: &'m [u8],
    call_id: Option<&'m str>,
    time: Option<i64>,
    model: Option<&'m str>,
}

/// What is said.
#[derive(Clone, Copy)]
enum TextForm<'m> {
    Text(&'m str),
    /// A string as it stands in JSON.
    Json(&'m str),
}

impl Default for TextForm<'_> {
    fn default() -> Self {
        Self::Text("")
    }
}

/// What may stand in one message.
struct Key {
    call: Option<ModelCallId>,
    model: Option<String>,
    subagent: Option<SubagentId>,
}

impl Key {
    fn is_of(&self, notes: &Notes) -> bool {
        self.call == notes.model_call
            && self.model == notes.model
            && self.subagent == notes.subagent_id
    }
}

/// How far a message is: what it holds comes in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Reasoning,
    Content,
    Calls,
}

impl<'w> Writer<'w> {
    pub(super) fn new(header: &Header, options: &StsOptions, out: Box<dyn Write + 'w>) -> Self {
        let mut loss = Loss::default();
        loss.header(header, CARRIES);
        let mut bytes = Vec::new();
        let mut line = Object::begin(&mut bytes);
        line.text("type", "session");
        let harness = options.harness.as_deref().or(header.agent());
        if harness.is_none() {
            loss.inferred("harness", 0);
        }
        line.text("harness", harness.unwrap_or("quipu"));
        let origin = header.origin.as_ref();
        let id = origin.and_then(|origin| origin.session_id.as_deref());
        line.text("id", id.unwrap_or(header.run_id.as_str()));
        or_null(&mut line, "name", header.title.as_deref());
        line.end();
        bytes.push(b'\n');
        Self {
            out,
            bytes,
            loss,
            open: None,
            told: HashSet::new(),
        }
    }

    /// When an event happened, in milliseconds.
    fn time(&mut self, event: &Event) -> Option<i64> {
        if event.annotations.flags.undated {
            return None;
        }
        if event.timestamp.subsec_nanosecond() % 1_000_000 != 0 {
            self.loss.dropped("time below a millisecond", event.seq);
        }
        Some(event.timestamp.as_millisecond())
    }

    /// The agent's message that something at this stage goes into.
    fn agent(&mut self, event: &Event, stage: Stage) -> &mut Open {
        let notes = &event.annotations;
        let fits = self.open.as_ref().is_some_and(|open| {
            let later = open.stage < stage || stage == Stage::Calls;
            later && open.key.is_of(notes) && open.calls.len() < LONGEST
        });
        if !fits {
            self.close();
        }
        let time = self.time(event);
        if let Some(open) = &self.open
            && open.time != time
        {
            self.loss.dropped("time", event.seq);
        }
        let open = self.open.get_or_insert_with(|| Open {
            key: Key {
                call: notes.model_call.clone(),
                model: notes.model.clone(),
                subagent: notes.subagent_id.clone(),
            },
            time,
            stage,
            reasoning: None,
            content: None,
            calls: Vec::new(),
        });
        open.stage = stage;
        open
    }

    /// Writes the agent's message that is open.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.line(&Message {
                role: "assistant",
                content: TextForm::Text(open.content.as_deref().unwrap_or_default()),
                reasoning: open.reasoning.as_deref(),
                calls: &open.calls,
                time: open.time,
                model: open.key.model.as_deref(),
                ..Message::default()
            });
        }
    }

    /// Writes a message, with every key whether there is something to say or not: a table's columns are those of the first
    /// message that is read.
    fn line(&mut self, message: &Message<'_>) {
        let mut line = Object::begin(&mut self.bytes);
        line.text("type", "message");
        let mut object = Object::begin(line.key("message"));
        object.text("role", message.role);
        match message.content {
            TextForm::Text(text) => object.text("content", text),
            TextForm::Json(text) => object.raw("content", text.as_bytes()),
        }
        or_null(&mut object, "reasoningContent", message.reasoning);
        object.around("toolCalls", *b"[]", message.calls);
        or_null(&mut object, "toolCallId", message.call_id);
        match message.time {
            Some(time) => object.number("timestamp", time),
            None => object.raw("timestamp", b"null"),
        }
        or_null(&mut object, "model", message.model);
        object.end();
        line.end();
        self.bytes.push(b'\n');
    }

    /// A message: a line for each text, because a line has one.
    fn said(&mut self, event: &Event, role: &'static str, blocks: &[Block]) {
        let is_agent = role == "assistant";
        for _ in &event.annotations.attachments {
            self.loss.dropped("attachment bytes", event.seq);
        }
        if blocks.is_empty() {
            return self.text(event, role, "");
        }
        for block in blocks {
            match &block.content {
                Content::Text(text) => self.text(event, role, text),
                Content::Thinking(text) if is_agent => {
                    let open = self.agent(event, Stage::Reasoning);
                    open.reasoning = Some(text.clone()).filter(|text| !text.is_empty());
                }
                Content::Thinking(text) => {
                    self.loss.wrapped("block.thinking", event.seq);
                    self.text(event, role, text);
                }
                Content::Command(text) => {
                    self.loss.wrapped("block.command", event.seq);
                    self.text(event, role, text);
                }
                Content::Stream(text) => {
                    self.loss.wrapped("block.stream", event.seq);
                    self.text(event, role, text);
                }
                Content::ToolUse { name, id, input } => {
                    self.loss.wrapped("block.tool_use", event.seq);
                    self.call(event, name, id, input.as_ref(), true);
                }
                Content::ToolResult { id, content } => {
                    self.loss.wrapped("block.tool_result", event.seq);
                    self.result(event, id, content.as_ref(), None, true);
                }
                Content::Unknown(json) => {
                    self.loss
                        .wrapped("block of an unknown type as text", event.seq);
                    self.text(event, role, json.get());
                }
            }
        }
    }

    fn text(&mut self, event: &Event, role: &'static str, text: &str) {
        if role == "assistant" {
            self.agent(event, Stage::Content).content = Some(text.to_owned());
            return;
        }
        self.close();
        let time = self.time(event);
        self.line(&Message {
            role,
            content: TextForm::Text(text),
            time,
            model: event.annotations.model.as_deref(),
            ..Message::default()
        });
    }

    /// Whether the same was told in a message where this is an event, or the other way round.
    fn told_before(&mut self, what: &str, id: &str, value: Option<&Json>, block: bool) -> bool {
        if id.is_empty() {
            return false;
        }
        let hash = |block: bool| {
            let mut hasher = DefaultHasher::new();
            (what, id, value.map(Json::get), block).hash(&mut hasher);
            hasher.finish()
        };
        if self.told.remove(&hash(!block)) {
            return true;
        }
        if self.told.len() == REMEMBERED {
            self.told.clear();
        }
        self.told.insert(hash(block));
        false
    }

    fn call(&mut self, event: &Event, name: &str, id: &str, input: Option<&Json>, block: bool) {
        if self.told_before("call", id, input, block) {
            return;
        }
        if input.is_none() {
            self.loss.inferred("arguments", event.seq);
        }
        let arguments = input.map_or("{}", Json::get);
        let calls = &mut self.agent(event, Stage::Calls).calls;
        comma(calls);
        let mut call = Object::begin(calls);
        call.text("id", id);
        let mut function = Object::begin(call.key("function"));
        function.text("name", name);
        function.text("arguments", arguments);
        function.end();
        call.end();
    }

    fn result(
        &mut self,
        event: &Event,
        id: &str,
        output: Option<&Json>,
        error: Option<&str>,
        block: bool,
    ) {
        if self.told_before("result", id, output, block) {
            return;
        }
        self.close();
        let time = self.time(event);
        let output = output.filter(|output| !output.is_null());
        let is_text = output.is_some_and(|output| output.get().starts_with('"'));
        if output.is_some() {
            if !is_text {
                self.loss.wrapped("output that is no text", event.seq);
            }
            if error.is_some() {
                self.loss.dropped("error", event.seq);
            }
        } else if error.is_some() {
            self.loss.wrapped("error", event.seq);
        }
        self.line(&Message {
            role: "tool",
            content: match output {
                // It is a JSON string already.
                Some(output) if is_text => TextForm::Json(output.get()),
                Some(output) => TextForm::Text(output.get()),
                None => TextForm::Text(error.unwrap_or_default()),
            },
            call_id: Some(id),
            time,
            model: event.annotations.model.as_deref(),
            ..Message::default()
        });
    }
}

fn or_null(object: &mut Object<'_>, key: &'static str, text: Option<&str>) {
    match text {
        Some(text) => object.text(key, text),
        None => object.raw(key, b"null"),
    }
}

impl Projection for Writer<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.loss.events += 1;
        self.loss.fields(event, CARRIES);
        let carried = match &event.body {
            Body::UserMessage(blocks) => {
                self.said(event, "user", blocks);
                true
            }
            Body::AssistantMessage(blocks) => {
                self.said(event, "assistant", blocks);
                true
            }
            Body::SystemMessage(blocks) => {
                self.said(event, "system", blocks);
                true
            }
            Body::ToolCall(call) => {
                let input = call.input.as_ref();
                self.call(event, &call.name, &call.call_id, input, false);
                true
            }
            Body::ToolResult(result) => {
                if result.input.is_some() {
                    self.loss.dropped("input of tool.result", event.seq);
                }
                let error = result.error.as_deref();
                self.result(event, &result.call_id, result.output.as_ref(), error, false);
                true
            }
            _ => {
                self.loss.dropped(plain::name(event), event.seq);
                false
            }
        };
        self.loss.carried += u64::from(carried);
        if self.bytes.len() >= CHUNK {
            self.out.write_all(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.close();
        self.out.write_all(&self.bytes)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}
