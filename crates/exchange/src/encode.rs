//! From an event to its line.

use std::io::Write as _;

use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Draft, Event, EventType, Flags, Json, Notes,
    Place, RunId, Step, StepEnd, Timestamp, Usage,
};
use serde::Serialize as _;

use super::Closed;
use super::kinds::{self, carrier};
use super::seal::SEAL_LEN;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// How strings are escaped. Both read back the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escapes {
    /// What JSON requires and no more.
    #[default]
    Plain,
    /// Also `<`, `>`, `&`, U+2028 and U+2029, as Go's encoder does. With this, transcripts that a Go
    /// engine wrote are written again byte for byte.
    Go,
}

/// Writes an event as one line of a file, its end included.
///
/// # Errors
///
/// When a file of this format may not hold it. Nothing is written then.
pub fn encode(event: &Event, escapes: Escapes, out: &mut Vec<u8>) -> Result<(), Closed> {
    check(&event.body)?;
    write_line(event, escapes, Form::File, out);
    Ok(())
}

/// Writes an event as one line that may have any type, its end included: what `quipu show --jsonl` writes. It is
/// a line of the exchange format but for the types that the format does not have, such as `message.system` and
/// `note`. [`super::decode_text`] gives back the same event.
pub fn encode_log(event: &Event, out: &mut Vec<u8>) {
    write_line(event, Escapes::Plain, Form::Open, out);
}

fn write_line(event: &Event, escapes: Escapes, form: Form, out: &mut Vec<u8>) {
    let mut template = Template::new(escapes);
    let Event {
        seq,
        run_id,
        parent_run_id,
        timestamp,
        place,
        body,
        annotations,
    } = event;
    template.write(
        form,
        (run_id, parent_run_id.as_ref()),
        place,
        body,
        annotations,
    );
    let mut time = Vec::with_capacity(32);
    write_timestamp(*timestamp, &mut time);
    template.render(*seq, &time, out);
}

/// Which lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Those of a file: of one of the ten types.
    File,
    /// Of any type.
    Open,
}

/// Whether a file of this format may hold an event. Its vocabulary is closed, so what was read and not understood
/// stays outside.
fn check(body: &Body) -> Result<(), Closed> {
    let is_unknown = |block: &Block| matches!(block.content, Content::Unknown(_));
    match body {
        Body::Unknown(unknown) => Err(Closed::EventType(unknown.event_type.clone())),
        body if body.blocks().is_some_and(|all| all.iter().any(is_unknown)) => Err(Closed::Block),
        _ => Ok(()),
    }
}

/// Writes a time as RFC 3339 in UTC, to the nanosecond, without trailing zeros.
pub fn write_timestamp(timestamp: Timestamp, out: &mut Vec<u8>) {
    write!(out, "{timestamp}").expect("writing to a Vec cannot fail");
}

/// A line but for its sequence number and time.
///
/// A recorder fills one before it takes its lock, so that all that is left to do inside is to copy
/// bytes around two holes.
#[derive(Debug, Default)]
pub struct Template {
    escapes: Escapes,
    bytes: Vec<u8>,
    /// Where in `bytes` the time goes. The sequence number goes before all of it.
    hole: usize,
}

impl Template {
    /// An empty template.
    pub fn new(escapes: Escapes) -> Self {
        Self {
            escapes,
            ..Self::default()
        }
    }

    /// Fills the template with a draft, in place of what it held.
    ///
    /// # Errors
    ///
    /// When a file of this format may not hold it.
    pub fn fill(
        &mut self,
        run_id: &RunId,
        parent_run_id: Option<&RunId>,
        draft: &Draft,
    ) -> Result<(), Closed> {
        let Draft {
            place,
            body,
            annotations,
        } = draft;
        check(body)?;
        self.write(
            Form::File,
            (run_id, parent_run_id),
            place,
            body,
            annotations,
        );
        Ok(())
    }

    /// How long the line can become, its checksum included.
    pub fn max_len(&self) -> usize {
        let seq = br#"{"seq":18446744073709551615"#.len();
        let time = b"-009999-01-02T01:59:59.123456789Z".len();
        self.bytes.len() + seq + time + SEAL_LEN
    }

    /// Appends the line to `out`. `time` is what [`write_timestamp`] writes.
    pub fn render(&self, seq: u64, time: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"seq":"#);
        out.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
        out.extend_from_slice(&self.bytes[..self.hole]);
        out.extend_from_slice(time);
        out.extend_from_slice(&self.bytes[self.hole..]);
    }

    fn write(
        &mut self,
        form: Form,
        (run_id, parent_run_id): (&RunId, Option<&RunId>),
        place: &Place,
        body: &Body,
        annotations: &Annotations,
    ) {
        self.bytes.clear();
        let mut json = Writer {
            out: &mut self.bytes,
            escapes: self.escapes,
        };
        let event_type = body.event_type();
        let kind = event_type.filter(|it| form == Form::File && !it.is_exchange());
        // Run ids and event types hold nothing that needs an escape.
        json.raw(r#","run_id":""#);
        json.raw(run_id.as_str());
        if let Some(parent) = parent_run_id {
            json.raw(r#"","parent_run_id":""#);
            json.raw(parent.as_str());
        }
        if let Some(child) = body.child_run_id() {
            json.raw(r#"","child_run_id":""#);
            json.raw(child.as_str());
        }
        match (body, event_type) {
            (Body::Unknown(unknown), _) => {
                if let Some(child) = &unknown.child_run_id {
                    json.raw(r#"","child_run_id":"#);
                    json.string(child);
                    json.raw(r#","type":"#);
                } else {
                    json.raw(r#"","type":"#);
                }
                json.string(&unknown.event_type);
                json.raw(r#","path":"#);
            }
            (_, event_type) => {
                json.raw(r#"","type":""#);
                json.raw(
                    kind.map(carrier)
                        .or(event_type)
                        .map_or("", EventType::as_str),
                );
                json.raw(r#"","path":"#);
            }
        }
        json.string(&place.path);
        json.raw(r#","iteration":"#);
        json.number(place.iteration());
        json.raw(r#","timestamp":""#);
        let hole = json.out.len();
        json.raw(r#"","payload":"#);
        match kind {
            None => json.body(body),
            Some(kind) => json.carried(kind, body, annotations),
        }
        json.place(place);
        json.annotations(annotations);
        json.raw("}\n");
        self.hole = hole;
    }
}

/// Strings up to this length are looked through for anything that needs an escape.
const SHORT: usize = 48;

/// Writes JSON in the key order of the specification.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    escapes: Escapes,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            escapes: Escapes::Plain,
        }
    }

    pub(super) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn number(&mut self, n: u64) {
        self.raw(itoa::Buffer::new().format(n));
    }

    pub(super) fn string(&mut self, text: &str) {
        // Paths, names and ids need no escape of either kind, and there are several on each line.
        if text.len() <= SHORT
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-/:# ".contains(&b))
        {
            self.raw("\"");
            self.raw(text);
            return self.raw("\"");
        }
        let out = &mut *self.out;
        match self.escapes {
            Escapes::Plain => text.serialize(&mut Serializer::new(out)),
            Escapes::Go => text.serialize(&mut Serializer::with_formatter(out, GoFormatter)),
        }
        .expect("a str serialises and a Vec takes it");
    }

    fn value(&mut self, value: Option<&Json>) {
        self.raw(value.map_or("null", Json::get));
    }

    /// A field with a string, left out when the string is empty.
    fn text_field(&mut self, key: &str, text: &str) {
        if !text.is_empty() {
            self.raw(key);
            self.string(text);
        }
    }

    fn value_field(&mut self, key: &str, value: Option<&Json>) {
        if let Some(value) = value {
            self.raw(key);
            self.raw(value.get());
        }
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::RunStarted(None) | Body::RunCompleted(None) => self.raw("null"),
            Body::RunStarted(Some(step))
            | Body::StepStarted(step)
            | Body::CallStarted { step, .. } => {
                self.step(step);
                self.raw("}");
            }
            Body::RunCompleted(Some(end))
            | Body::StepCompleted(end)
            | Body::CallCompleted { end, .. } => self.step_end(end),
            Body::UserMessage(blocks) => self.message("user", blocks),
            Body::AssistantMessage(blocks) => self.message("assistant", blocks),
            Body::SystemMessage(blocks) => self.message("system", blocks),
            Body::Unknown(unknown) => self.raw(unknown.payload.get()),
            Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Note(_) => self.kind(body, false),
            Body::ToolCall(call) => {
                self.tool(&call.name, &call.call_id, call.input.as_ref());
                self.raw(r#","output":null,"fidelity":""#);
                self.raw(call.fidelity.as_str());
                self.raw("\"}");
            }
            Body::ToolResult(result) => {
                self.tool(&result.name, &result.call_id, result.input.as_ref());
                self.raw(r#","output":"#);
                self.value(result.output.as_ref());
                self.text_field(r#","error":"#, result.error.as_deref().unwrap_or_default());
                self.raw(r#","fidelity":""#);
                self.raw(result.fidelity.as_str());
                self.raw("\"}");
            }
        }
    }

    /// The payload of a line that carries another kind, and what says which.
    fn carried(&mut self, kind: EventType, body: &Body, annotations: &Annotations) {
        let role = match carrier(kind) {
            EventType::UserMessage => "user",
            _ => "assistant",
        };
        match body {
            Body::SystemMessage(blocks) => self.message(role, blocks),
            _ => self.message(role, &[kinds::message(body, annotations)]),
        }
        self.raw(r#","as":""#);
        self.raw(kind.as_str());
        self.raw("\"");
        if kind != EventType::SystemMessage {
            self.raw(r#","event":"#);
            self.kind(body, true);
        }
    }

    /// What a place says beyond its path and the iteration of its innermost loop.
    fn place(&mut self, place: &Place) {
        if !matches!(place.iterations.as_slice(), [] | [1..=u64::MAX]) {
            for (index, iteration) in place.iterations.iter().enumerate() {
                self.raw(if index == 0 {
                    r#","iterations":["#
                } else {
                    ","
                });
                self.number(*iteration);
            }
            self.raw("]");
        }
        if place.attempt != 1 {
            self.raw(r#","attempt":"#);
            self.number(place.attempt);
        }
    }

    /// A step, its object left open.
    fn step(&mut self, step: &Step) {
        self.raw(r#"{"name":"#);
        self.string(&step.name);
        self.raw(r#","kind":"#);
        self.string(&step.kind);
    }

    fn step_end(&mut self, end: &StepEnd) {
        self.step(&end.step);
        self.text_field(r#","error":"#, end.error.as_deref().unwrap_or_default());
        self.value_field(r#","result":"#, end.result.as_ref());
        self.raw("}");
    }

    /// What tool calls and results begin with, the object left open.
    fn tool(&mut self, name: &str, call_id: &str, input: Option<&Json>) {
        self.raw(r#"{"name":"#);
        self.string(name);
        self.raw(r#","call_id":"#);
        self.string(call_id);
        self.raw(r#","input":"#);
        self.value(input);
    }

    fn message(&mut self, role: &str, blocks: &[Block]) {
        self.raw(r#"{"role":""#);
        self.raw(role);
        self.raw(r#"","blocks":["#);
        for (index, block) in blocks.iter().enumerate() {
            if index > 0 {
                self.raw(",");
            }
            self.block(block);
        }
        self.raw("]}");
    }

    fn block(&mut self, block: &Block) {
        let Some(block_type) = block.block_type() else {
            if let Content::Unknown(whole) = &block.content {
                self.raw(whole.get());
            }
            return;
        };
        self.raw(r#"{"type":""#);
        self.raw(block_type.as_str());
        self.raw(r#"","fidelity":""#);
        self.raw(block.fidelity.as_str());
        self.raw("\"");
        match &block.content {
            Content::Text(text) => self.text_field(r#","text":"#, text),
            // As the engine that the format comes from names it; readers take `text` as well.
            Content::Stream(text) => self.text_field(r#","chunk":"#, text),
            Content::Thinking(text) => self.text_field(r#","thinking":"#, text),
            Content::Command(text) => self.text_field(r#","command":"#, text),
            Content::ToolUse { name, id, input } => {
                self.text_field(r#","tool_name":"#, name);
                self.text_field(r#","tool_id":"#, id);
                self.value_field(r#","tool_input":"#, input.as_ref());
            }
            Content::ToolResult { id, content } => {
                self.text_field(r#","tool_id":"#, id);
                self.value_field(r#","tool_content":"#, content.as_ref());
            }
            Content::Unknown(_) => {}
        }
        self.raw("}");
    }

    /// The buckets of a usage that are known.
    fn usage(&mut self, usage: &Usage) {
        let buckets = [
            (r#""input":"#, usage.input),
            (r#""cache_read":"#, usage.cache_read),
            (r#""cache_write":"#, usage.cache_write),
            (r#""cache_write_1h":"#, usage.cache_write_1h),
            (r#""output":"#, usage.output),
            (r#""reasoning":"#, usage.reasoning),
        ];
        self.raw(r#","usage":{"#);
        for (index, (key, n)) in buckets
            .iter()
            .filter_map(|(k, n)| n.map(|n| (k, n)))
            .enumerate()
        {
            if index > 0 {
                self.raw(",");
            }
            self.raw(key);
            self.number(n);
        }
        self.raw("}");
    }

    pub(super) fn attachment(&mut self, attachment: &Attachment) {
        self.raw(r#"{"mime":"#);
        self.string(&attachment.mime);
        self.raw(r#","bytes":"#);
        self.number(attachment.bytes);
        self.raw(r#","sha256":"#);
        self.string(&attachment.sha256);
        self.raw("}");
    }

    /// The additive fields, behind all that the specification names.
    fn annotations(&mut self, annotations: &Annotations) {
        if annotations.is_empty() {
            return;
        }
        let Notes {
            native_id,
            parent_id,
            subagent_id,
            model,
            usage,
            cost,
            model_call,
            stop_reason,
            duration_ms,
            status,
            child,
            attachments,
            source,
            extra,
            flags,
        } = &**annotations;
        for (key, text) in [
            (r#","native_id":"#, native_id.as_deref()),
            (r#","parent_id":"#, parent_id.as_deref()),
            (r#","subagent_id":"#, subagent_id.as_deref()),
            (r#","model":"#, model.as_deref()),
        ] {
            if let Some(text) = text {
                self.raw(key);
                self.string(text);
            }
        }
        if let Some(usage) = usage {
            self.usage(usage);
        }
        if let Some(cost) = cost {
            self.raw(r#","cost_usd":"#);
            self.raw(&cost.to_string());
        }
        if let Some(call) = model_call {
            self.raw(r#","model_call":"#);
            self.string(call);
        }
        if let Some(reason) = stop_reason {
            self.raw(r#","stop_reason":"#);
            self.string(reason);
        }
        if let Some(duration_ms) = duration_ms {
            self.raw(r#","duration_ms":"#);
            self.number(*duration_ms);
        }
        if let Some(status) = status {
            self.raw(r#","status":""#);
            self.raw(status.as_str());
            self.raw("\"");
        }
        if let Some(child) = child {
            self.raw(r#","child":""#);
            self.raw(child.as_str());
            self.raw("\"");
        }
        for (index, attachment) in attachments.iter().enumerate() {
            self.raw(if index == 0 {
                r#","attachments":["#
            } else {
                ","
            });
            self.attachment(attachment);
        }
        if !attachments.is_empty() {
            self.raw("]");
        }
        if let Some(source) = source {
            self.raw(r#","source":{"file":"#);
            self.string(&source.file);
            self.raw(r#","offset":"#);
            self.number(source.offset);
            self.raw(r#","line":"#);
            self.number(source.line);
            self.raw("}");
        }
        self.value_field(r#","extra":"#, extra.as_ref());
        self.flags(*flags);
    }

    fn flags(&mut self, flags: Flags) {
        let set = [
            (flags.opaque, "\"opaque\""),
            (flags.synthetic, "\"synthetic\""),
            (flags.superseded, "\"superseded\""),
            (flags.undated, "\"undated\""),
            (flags.dangling, "\"dangling\""),
        ];
        let set: Vec<&str> = set
            .into_iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1)
            .collect();
        if !set.is_empty() {
            self.raw(r#","flags":["#);
            self.raw(&set.join(","));
            self.raw("]");
        }
    }
}

/// Escapes what Go's encoder escapes by default.
struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_string_fragment<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            CompactFormatter.write_string_fragment(writer, &rest[..at])?;
            let special = rest[at..]
                .chars()
                .next()
                .expect("find gives the start of a char");
            write!(writer, "\\u{:04x}", u32::from(special))?;
            rest = &rest[at + special.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}
