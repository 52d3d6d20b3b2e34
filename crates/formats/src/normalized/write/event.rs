//! One event.

use std::borrow::Cow;

use quipu_model::{
    Block, BlockType, Body, Content, Event, Fidelity, Header, Json, Note, Status, Step, StepEnd,
    ToolCall, ToolResult, Usage,
};

use super::json::Object;
use crate::normalized::{AsIs, Beyond, OTHER, Redaction, ToolOutput};
use crate::text::said;
use quipu_exchange::fields_json;

/// Writes an event. `header` is that of the session, which events need not repeat.
pub(super) fn event(header: &Header, event: &Event, beyond: &Beyond, out: &mut Vec<u8>) {
    if let Some(whole) = as_is(event, beyond, AsIs::Event) {
        // Its type is not known, and nothing that is written here would be what it was.
        out.extend_from_slice(whole.get().as_bytes());
        return;
    }
    let mut object = Object::begin(out);
    match &beyond.id {
        Some(id) => object.string("id", id),
        None => object.field("id", |out| {
            // At least three digits, as published; more where there are more events.
            let number = itoa::Buffer::new().format(event.seq).to_owned();
            out.extend_from_slice(b"\"ev_");
            out.extend(std::iter::repeat_n(
                b'0',
                3_usize.saturating_sub(number.len()),
            ));
            out.extend_from_slice(number.as_bytes());
            out.push(b'"');
        }),
    }
    object.number("seq", event.seq);
    object.time("timestamp", event.timestamp);
    let kind = kind(&event.body);
    object.string("type", kind.word());
    match beyond.extra.iter().find(|(key, _)| key == "role") {
        Some((_, role)) => object.json("role", role),
        None => object.string("role", kind.role()),
    }
    let said = body(&mut object, event, beyond);
    redactions(&mut object, &beyond.redactions);
    links(&mut object, header, event);
    annotations(&mut object, header, event);
    if let Some((_, text)) = beyond.extra.iter().find(|(key, _)| key == "text" && !said) {
        object.json("text", text);
    }
    rest(&mut object, &beyond.extra, |key| {
        is_written(header, event, key)
    });
    object.end();
}

/// What was read of an event, or of its `meta`, when all of that is what the note keeps.
fn as_is<'e>(event: &'e Event, beyond: &Beyond, part: AsIs) -> Option<&'e Json> {
    match &event.body {
        Body::Note(note) if beyond.as_is == part => note.raw.as_ref(),
        _ => None,
    }
}

/// Fields that are not known here, as they are. What was read in place of one stands there already.
fn rest(object: &mut Object<'_>, extra: &[(String, Json)], is_written: impl Fn(&str) -> bool) {
    for (key, value) in extra {
        if !is_written(key) {
            object.any(key, value);
        }
    }
}

/// Whether a field is written because of what the event is.
pub(super) fn is_written(header: &Header, event: &Event, key: &str) -> bool {
    let notes = &event.annotations;
    match key {
        "id" | "seq" | "timestamp" | "type" | "role" | "text" => true,
        "tool" => event.body.is_tool(),
        "meta" => kind(&event.body) == Kind::Meta,
        "blocks" => {
            blocks(&event.body).is_some_and(|(blocks, thinks)| single(blocks, thinks).is_none())
        }
        "fidelity" => is_of_router(&event.body),
        "runId" => event.run_id != header.run_id,
        "parentRunId" => event.parent_run_id != header.parent_run_id,
        "path" => !event.place.path.is_empty(),
        "iteration" => event.place.iteration() != 0,
        "iterations" | "attempt" => !event.place.is_flat(),
        "model" => notes.model.is_some(),
        "usage" => notes.usage.is_some(),
        "costUsd" => notes.cost.is_some(),
        "nativeId" => notes.native_id.is_some(),
        "parentId" => notes.parent_id.is_some(),
        "agentId" | "sidechain" => notes.subagent_id.is_some(),
        "modelCall" => notes.model_call.is_some(),
        "stopReason" => notes.stop_reason.is_some(),
        "extra" => notes.extra.is_some(),
        "child" => notes.child.is_some(),
        "status" => notes.status.is_some() && !event.body.is_tool(),
        "durationMs" => notes.duration_ms.is_some() && !event.body.is_tool(),
        "source" => notes.source.is_some(),
        "attachments" => !notes.attachments.is_empty(),
        "opaque" => notes.flags.opaque,
        "superseded" => notes.flags.superseded,
        "synthetic" => notes.flags.synthetic,
        "undated" => notes.flags.undated,
        "dangling" => notes.flags.dangling,
        _ => false,
    }
}

/// Whether a field of `tool` is written because of what the event is.
pub(super) fn is_written_in_tool(event: &Event, key: &str) -> bool {
    let notes = &event.annotations;
    let (input, result) = match &event.body {
        Body::ToolCall(call) => (call.input.is_some(), None),
        Body::ToolResult(result) => (result.input.is_some(), Some(result)),
        _ => return true,
    };
    match key {
        "name" | "callId" => true,
        "input" => input,
        "output" => result.is_some_and(|result| given(result).is_some() || result.error.is_some()),
        "outputValue" => result.is_some_and(is_valued),
        "callIdKnown" => match &event.body {
            Body::ToolCall(call) => call.call_id.is_empty(),
            _ => result.is_some_and(|result| result.call_id.is_empty()),
        },
        "error" => result.is_some_and(|result| result.error.is_some()),
        "status" => result.is_some() || notes.status.is_some(),
        "nativeStatus" => result.is_some_and(|result| {
            notes.status != Some(status(notes.status, result.error.is_some()))
        }),
        "durationMs" => notes.duration_ms.is_some(),
        _ => false,
    }
}

/// The blocks of a message, and whether its only block may be reasoning.
fn blocks(body: &Body) -> Option<(&[Block], bool)> {
    match body {
        Body::AssistantMessage(blocks) => Some((blocks, true)),
        Body::UserMessage(blocks) | Body::SystemMessage(blocks) => Some((blocks, false)),
        _ => None,
    }
}

/// The text of a message that is nothing else.
fn single(blocks: &[Block], thinks: bool) -> Option<(&str, Fidelity)> {
    let [Block { fidelity, content }] = blocks else {
        return None;
    };
    match content {
        Content::Text(text) => Some((text, *fidelity)),
        Content::Thinking(text) if thinks => Some((text, *fidelity)),
        _ => None,
    }
}

fn is_of_router(body: &Body) -> bool {
    let fidelity = match body {
        Body::ToolCall(call) => Some(call.fidelity),
        Body::ToolResult(result) => Some(result.fidelity),
        body => blocks(body)
            .and_then(|(blocks, thinks)| single(blocks, thinks))
            .map(|(_, fidelity)| fidelity),
    };
    fidelity.is_some_and(|fidelity| fidelity != Fidelity::AgentEmitted)
}

/// The published types of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    Assistant,
    Reasoning,
    Call,
    Result,
    System,
    Meta,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::User => "user_message",
            Self::Assistant => "assistant_message",
            Self::Reasoning => "reasoning",
            Self::Call => "tool_call",
            Self::Result => "tool_result",
            Self::System => "system",
            Self::Meta => "meta",
        }
    }

    const fn role(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant | Self::Reasoning | Self::Call => "assistant",
            Self::Result => "tool",
            Self::System | Self::Meta => "system",
        }
    }
}

fn kind(body: &Body) -> Kind {
    match body {
        Body::UserMessage(_) => Kind::User,
        Body::AssistantMessage(blocks) => match blocks.as_slice() {
            [
                Block {
                    content: Content::Thinking(_),
                    ..
                },
            ] => Kind::Reasoning,
            _ => Kind::Assistant,
        },
        Body::ToolCall(_) => Kind::Call,
        Body::ToolResult(_) => Kind::Result,
        Body::SystemMessage(_) => Kind::System,
        _ => Kind::Meta,
    }
}

/// What the event says. Whether that is in `text`.
fn body(object: &mut Object<'_>, event: &Event, beyond: &Beyond) -> bool {
    match &event.body {
        Body::AssistantMessage(blocks) => message(object, blocks, true),
        Body::UserMessage(blocks) | Body::SystemMessage(blocks) => message(object, blocks, false),
        Body::ToolCall(call) => {
            tool_call(object, call, event, beyond);
            false
        }
        Body::ToolResult(result) => {
            tool_result(object, result, event, beyond);
            false
        }
        Body::Note(note) => {
            match as_is(event, beyond, AsIs::Meta) {
                Some(meta) => {
                    object.optional("text", note.text.as_deref());
                    object.json("meta", meta);
                }
                None => self::note(object, note, beyond),
            }
            note.text.is_some()
        }
        Body::ModelCall(_)
        | Body::Chunk(_)
        | Body::Harness(_)
        | Body::Blob(_)
        | Body::Error(_)
        | Body::Unknown(_) => {
            other(object, event, beyond);
            false
        }
        body => {
            step(object, body, beyond);
            false
        }
    }
}

/// A message. One text is the event's text; what is more than that is in blocks, and the texts among them
/// are the event's text as well, for readers that know no blocks.
fn message(object: &mut Object<'_>, blocks: &[Block], thinks: bool) -> bool {
    if let Some((text, fidelity)) = single(blocks, thinks) {
        object.string("text", text);
        self::fidelity(object, fidelity);
        return true;
    }
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match &block.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    if !texts.is_empty() {
        object.string("text", &texts.join("\n\n"));
    }
    object.list("blocks", blocks, self::block);
    !texts.is_empty()
}

fn fidelity(object: &mut Object<'_>, fidelity: Fidelity) {
    if fidelity != Fidelity::AgentEmitted {
        object.string("fidelity", fidelity.as_str());
    }
}

fn block(out: &mut Vec<u8>, block: &Block) {
    let mut object = Object::begin(out);
    object.string(
        "type",
        block.block_type().map_or("unknown", BlockType::as_str),
    );
    match &block.content {
        Content::Text(text)
        | Content::Thinking(text)
        | Content::Command(text)
        | Content::Stream(text) => object.string("text", text),
        Content::ToolUse { name, id, input } => {
            object.string("name", name);
            object.string("callId", id);
            object.optional_json("input", input.as_ref());
        }
        Content::ToolResult { id, content } => {
            object.string("callId", id);
            object.optional_json("content", content.as_ref());
        }
        Content::Unknown(whole) => object.json("value", whole),
    }
    fidelity(&mut object, block.fidelity);
    object.end();
}

fn tool_call(object: &mut Object<'_>, call: &ToolCall, event: &Event, beyond: &Beyond) {
    let notes = &event.annotations;
    object.object("tool", |tool| {
        tool.string("name", &call.name);
        call_id(tool, &call.call_id, event.seq);
        tool.optional_json("input", call.input.as_ref());
        tool.optional("status", notes.status.map(Status::as_str));
        tool.count("durationMs", notes.duration_ms);
        rest(tool, &beyond.tool, |key| is_written_in_tool(event, key));
    });
    fidelity(object, call.fidelity);
}

fn tool_result(object: &mut Object<'_>, result: &ToolResult, event: &Event, beyond: &Beyond) {
    let notes = &event.annotations;
    let status = status(notes.status, result.error.is_some());
    object.object("tool", |tool| {
        tool.string("name", &result.name);
        call_id(tool, &result.call_id, event.seq);
        tool.optional_json("input", result.input.as_ref());
        output(tool, result);
        tool.optional("error", result.error.as_deref());
        tool.string("status", status.as_str());
        if notes.status != Some(status) {
            // What the log said itself, where the status was worked out.
            tool.nullable("nativeStatus", notes.status.map(Status::as_str));
        }
        tool.count("durationMs", notes.duration_ms);
        rest(tool, &beyond.tool, |key| is_written_in_tool(event, key));
    });
    fidelity(object, result.fidelity);
}

/// The id of a call. Readers go by it, so a call that has none gets one, and it is said that it is made up.
fn call_id(tool: &mut Object<'_>, id: &str, seq: u64) {
    if id.is_empty() {
        tool.string("callId", &format!("call_{seq}"));
        tool.bool("callIdKnown", false);
    } else {
        tool.string("callId", id);
    }
}

/// What a tool gave back. It was published as a text: what is no text stands beside the text that it comes to, and what
/// failed and gave nothing back gave why.
fn output(tool: &mut Object<'_>, result: &ToolResult) {
    match given(result) {
        Some(output) if is_string(output) => tool.json("output", output),
        Some(output) => tool.string("output", &said(output)),
        None => tool.optional("output", result.error.as_deref()),
    }
    if is_valued(result) {
        tool.optional_json("outputValue", given(result));
    }
}

fn given(result: &ToolResult) -> Option<&Json> {
    result.output.as_ref().filter(|output| !output.is_null())
}

fn is_string(json: &Json) -> bool {
    json.get().starts_with('"')
}

/// Whether what a tool gave back does not follow from the text that is written.
fn is_valued(result: &ToolResult) -> bool {
    given(result).is_some_and(|output| {
        let is_error = result
            .error
            .as_deref()
            .is_some_and(|error| output.as_str().is_some_and(|text| text == error));
        !is_string(output) || is_error
    })
}

/// The field that what a tool gave back stands in, when only so much of it is left as a policy says.
pub fn output_field(result: &ToolResult, policy: &ToolOutput) -> &'static str {
    match policy {
        ToolOutput::Full | ToolOutput::Truncated if is_valued(result) => "tool.outputValue",
        _ => "tool.output",
    }
}

/// How a call ended: the first of denied, timeout, error and ok that applies.
fn status(said: Option<Status>, failed: bool) -> Status {
    match said {
        Some(said @ (Status::Denied | Status::Timeout | Status::Error)) => said,
        Some(Status::Ok) | None if failed => Status::Error,
        Some(Status::Ok) | None => Status::Ok,
    }
}

/// What happened to a run or a step, which is no part of the conversation.
fn step(object: &mut Object<'_>, body: &Body, beyond: &Beyond) {
    let (kind, step, end) = match body {
        Body::RunStarted(step) => ("run", step.as_ref(), None),
        Body::RunCompleted(end) => ("run", None, end.as_ref()),
        Body::StepStarted(step) => ("step", Some(step), None),
        Body::StepCompleted(end) => ("step", None, Some(end)),
        Body::CallStarted { step, .. } => ("call", Some(step), None),
        Body::CallCompleted { end, .. } => ("call", None, Some(end)),
        _ => return,
    };
    object.object("meta", |meta| {
        meta.string("kind", kind);
        meta.string("event", body.type_word());
        if let Some(Step { name, kind }) = step.or(end.map(|end| &end.step)) {
            meta.string("name", name);
            meta.string("stepKind", kind);
        }
        if let Some(StepEnd { error, result, .. }) = end {
            meta.optional("error", error.as_deref());
            meta.optional_json("result", result.as_ref());
        }
        meta.optional("childRunId", body.child_run_id().map(AsRef::as_ref));
        // All of these are read or the event is a note, so what is left is not known.
        rest(meta, &beyond.meta, |_| false);
    });
}

/// An event of another kind: its fields.
fn other(object: &mut Object<'_>, event: &Event, beyond: &Beyond) {
    let body = &event.body;
    let (child, fields) = match body {
        Body::Unknown(unknown) => {
            let child = unknown.child_run_id.as_deref();
            (child, Some(Cow::Borrowed(&unknown.payload)))
        }
        known => (None, fields_json(known).map(Cow::Owned)),
    };
    object.object("meta", |meta| {
        meta.string("kind", OTHER);
        meta.string("event", body.type_word());
        meta.optional("childRunId", child);
        meta.optional_json("fields", fields.as_deref());
        rest(meta, &beyond.meta, |key| {
            matches!(key, "kind" | "event" | "fields") || key == "childRunId" && child.is_some()
        });
    });
}

fn note(object: &mut Object<'_>, note: &Note, beyond: &Beyond) {
    object.optional("text", note.text.as_deref());
    object.object("meta", |meta| {
        meta.string("kind", note.kind.as_str());
        meta.optional_json("raw", note.raw.as_ref());
        rest(meta, &beyond.meta, |key| {
            key == "kind" || key == "raw" && note.raw.is_some()
        });
    });
}

fn redactions(object: &mut Object<'_>, redactions: &[Redaction]) {
    if redactions.is_empty() {
        return;
    }
    object.list("redactions", redactions, redaction);
}

/// What was removed from somewhere.
pub(super) fn redaction(out: &mut Vec<u8>, redaction: &Redaction) {
    let mut object = Object::begin(out);
    object.string("field", &redaction.field);
    object.string("ruleId", &redaction.rule_id);
    object.string("type", &redaction.kind);
    object.string("placeholder", &redaction.placeholder);
    object.count("start", redaction.start);
    object.count("end", redaction.end);
    object.optional("commitment", redaction.commitment.as_deref());
    object.end();
}

/// Whose event it is and where it happened, as far as that is not what is true of all.
fn links(object: &mut Object<'_>, header: &Header, event: &Event) {
    if event.run_id != header.run_id {
        object.string("runId", event.run_id.as_ref());
    }
    if event.parent_run_id != header.parent_run_id {
        let parent = event.parent_run_id.as_ref();
        object.nullable("parentRunId", parent.map(AsRef::as_ref));
    }
    if !event.place.path.is_empty() {
        object.string("path", &event.place.path);
    }
    if event.place.iteration() != 0 {
        object.number("iteration", event.place.iteration());
    }
    if !event.place.is_flat() {
        // What one number cannot say.
        object.list("iterations", &event.place.iterations, |out, number| {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        });
        object.number("attempt", event.place.attempt);
    }
}

fn annotations(object: &mut Object<'_>, header: &Header, event: &Event) {
    if event.annotations.is_empty() {
        return;
    }
    let notes = &event.annotations;
    object.optional("model", notes.model.as_deref());
    if let Some(used) = &notes.usage {
        object.object("usage", |object| usage(object, used));
    }
    if let Some(cost) = notes.cost {
        object.field("costUsd", |out| {
            out.extend_from_slice(cost.to_string().as_bytes());
        });
    }
    object.optional("nativeId", notes.native_id.as_deref());
    object.optional("parentId", notes.parent_id.as_deref());
    if let Some(agent) = &notes.subagent_id {
        object.string("agentId", agent);
        object.bool("sidechain", true);
    }
    object.optional("modelCall", notes.model_call.as_deref());
    object.optional("stopReason", notes.stop_reason.as_deref());
    object.optional("child", notes.child.as_ref().map(AsRef::as_ref));
    if !event.body.is_tool() {
        object.optional("status", notes.status.map(Status::as_str));
        object.count("durationMs", notes.duration_ms);
    }
    if let Some(source) = &notes.source {
        object.object("source", |object| {
            let log = header.origin.as_ref().and_then(|it| it.path.as_deref());
            // That of most events is the one that the document names.
            object.optional("file", Some(&*source.file).filter(|file| log != Some(file)));
            object.number("offset", source.offset);
            object.number("line", source.line);
        });
    }
    if !notes.attachments.is_empty() {
        object.list("attachments", &notes.attachments, |out, attachment| {
            let mut object = Object::begin(out);
            object.string("mime", &attachment.mime);
            object.number("bytes", attachment.bytes);
            object.string("sha256", &attachment.sha256);
            object.end();
        });
    }
    object.optional_json("extra", notes.extra.as_ref());
    object.mark("opaque", notes.flags.opaque);
    object.mark("superseded", notes.flags.superseded);
    object.mark("synthetic", notes.flags.synthetic);
    object.mark("undated", notes.flags.undated);
    object.mark("dangling", notes.flags.dangling);
}

/// The buckets of tokens that are known.
pub(super) fn usage(object: &mut Object<'_>, usage: &Usage) {
    object.count("input", usage.input);
    object.count("output", usage.output);
    object.count("cacheRead", usage.cache_read);
    object.count("cacheWrite", usage.cache_write);
    object.count("cacheWrite1h", usage.cache_write_1h);
    object.count("reasoning", usage.reasoning);
}

trait IsTool {
    fn is_tool(&self) -> bool;
}

impl IsTool for Body {
    fn is_tool(&self) -> bool {
        matches!(self, Body::ToolCall(_) | Body::ToolResult(_))
    }
}
