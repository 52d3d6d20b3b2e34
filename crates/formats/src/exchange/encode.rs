//! From an event to its line.

use std::io::Write as _;

use quipu_model::{
    Annotations, Block, Body, Content, Draft, Event, Flags, Json, LogBody, Note, Notes, RunId,
    Step, StepEnd, Timestamp, Usage,
};
use serde::Serialize as _;
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

/// Writes an event as one line, its end included.
pub fn encode(event: &Event, escapes: Escapes, out: &mut Vec<u8>) {
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
        run_id,
        parent_run_id.as_ref(),
        &place.path,
        place.iteration,
        body,
        annotations,
    );
    let mut time = Vec::with_capacity(32);
    write_timestamp(*timestamp, &mut time);
    template.render(*seq, &time, out);
}

/// Writes an event of an imported log as one line, its end included. It is a line of the exchange
/// format but for two more types, `message.system` (a message) and `note` (`kind`, `text`,
/// `raw`), which readers of that format hand on as they are.
pub fn encode_log(event: &Event<LogBody>, out: &mut Vec<u8>) {
    let mut template = Template::new(Escapes::Plain);
    let child = match &event.body {
        LogBody::Exchange(body) => body.child_run_id(),
        LogBody::System(_) | LogBody::Note(_) => None,
    };
    let envelope = Envelope {
        run_id: &event.run_id,
        parent_run_id: event.parent_run_id.as_ref(),
        child_run_id: child,
        event_type: event.body.type_word(),
        path: &event.place.path,
        iteration: event.place.iteration,
    };
    template.write_with(&envelope, &event.annotations, |json| match &event.body {
        LogBody::Exchange(body) => json.body(body),
        LogBody::System(blocks) => json.message("system", blocks),
        LogBody::Note(note) => json.note(note),
    });
    let mut time = Vec::with_capacity(32);
    write_timestamp(event.timestamp, &mut time);
    template.render(event.seq, &time, out);
}

/// What a line says before its payload.
struct Envelope<'a> {
    run_id: &'a RunId,
    parent_run_id: Option<&'a RunId>,
    child_run_id: Option<&'a RunId>,
    event_type: &'static str,
    path: &'a str,
    iteration: u64,
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
    pub fn fill(&mut self, run_id: &RunId, parent_run_id: Option<&RunId>, draft: &Draft) {
        let Draft {
            place,
            body,
            annotations,
        } = draft;
        self.write(
            run_id,
            parent_run_id,
            &place.path,
            place.iteration,
            body,
            annotations,
        );
    }

    /// How long the line can become.
    pub fn max_len(&self) -> usize {
        let seq = br#"{"seq":18446744073709551615"#.len();
        let time = b"-009999-01-02T01:59:59.123456789Z".len();
        self.bytes.len() + seq + time
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
        run_id: &RunId,
        parent_run_id: Option<&RunId>,
        path: &str,
        iteration: u64,
        body: &Body,
        annotations: &Annotations,
    ) {
        let envelope = Envelope {
            run_id,
            parent_run_id,
            child_run_id: body.child_run_id(),
            event_type: body.event_type().as_str(),
            path,
            iteration,
        };
        self.write_with(&envelope, annotations, |json| json.body(body));
    }

    fn write_with(
        &mut self,
        envelope: &Envelope<'_>,
        annotations: &Annotations,
        payload: impl FnOnce(&mut Writer<'_>),
    ) {
        self.bytes.clear();
        let mut json = Writer {
            out: &mut self.bytes,
            escapes: self.escapes,
        };
        // Run ids and event types hold nothing that needs an escape.
        json.raw(r#","run_id":""#);
        json.raw(envelope.run_id.as_str());
        if let Some(parent) = envelope.parent_run_id {
            json.raw(r#"","parent_run_id":""#);
            json.raw(parent.as_str());
        }
        if let Some(child) = envelope.child_run_id {
            json.raw(r#"","child_run_id":""#);
            json.raw(child.as_str());
        }
        json.raw(r#"","type":""#);
        json.raw(envelope.event_type);
        json.raw(r#"","path":"#);
        json.string(envelope.path);
        json.raw(r#","iteration":"#);
        json.number(envelope.iteration);
        json.raw(r#","timestamp":""#);
        let hole = json.out.len();
        json.raw(r#"","payload":"#);
        payload(&mut json);
        json.annotations(annotations);
        json.raw("}\n");
        self.hole = hole;
    }
}

/// Strings up to this length are looked through for anything that needs an escape.
const SHORT: usize = 48;

/// Writes JSON in the key order of the specification.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    escapes: Escapes,
}

impl Writer<'_> {
    fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, n: u64) {
        self.raw(itoa::Buffer::new().format(n));
    }

    fn string(&mut self, text: &str) {
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

    fn note(&mut self, note: &Note) {
        self.raw(r#"{"kind":""#);
        self.raw(note.kind.as_str());
        self.raw("\"");
        if let Some(text) = &note.text {
            self.raw(r#","text":"#);
            self.string(text);
        }
        self.value_field(r#","raw":"#, note.raw.as_ref());
        self.raw("}");
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
        self.raw(r#"{"type":""#);
        self.raw(block.block_type().as_str());
        self.raw(r#"","fidelity":""#);
        self.raw(block.fidelity.as_str());
        self.raw("\"");
        match &block.content {
            // The specification says of a stream block that its chunk is in the text field.
            Content::Text(text) | Content::Stream(text) => self.text_field(r#","text":"#, text),
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
        }
        self.raw("}");
    }

    /// The additive fields, behind all that the specification names.
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
            (r#","native_id":"#, native_id),
            (r#","parent_id":"#, parent_id),
            (r#","subagent_id":"#, subagent_id),
            (r#","model":"#, model),
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
            self.raw(r#"{"mime":"#);
            self.string(&attachment.mime);
            self.raw(r#","bytes":"#);
            self.number(attachment.bytes);
            self.raw(r#","sha256":"#);
            self.string(&attachment.sha256);
            self.raw("}");
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
