//! What was said, as attributes of a span: the one place where the two conventions are wholly unlike.
//!
//! The `GenAI` conventions have one attribute with all messages, a JSON document as text. `OpenInference` has an
//! attribute for every part, with the place of the part in its name. Both are written as the parts come, in
//! a bounded room: what is too long is cut, with a mark in the text that says so.

use quipu_model::json::Tape;
use quipu_model::{Content, Json};

use super::Convention;
use super::json::{self, Attrs};

/// Which messages they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// What the model is told before all else. Parts without messages around them, and of the `GenAI`
    /// conventions only.
    System,
    Input,
    Output,
}

/// How a part is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Text,
    Reasoning,
    Command,
    Stream,
}

impl Speech {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Command => "command",
            Self::Stream => "stream",
        }
    }
}

/// Messages, as they are put together.
#[derive(Debug)]
pub(super) struct Talk {
    convention: Convention,
    side: Side,
    /// `GenAI`: messages as JSON, without the brackets around them.
    json: Vec<u8>,
    /// `OpenInference`: attributes.
    attrs: Attrs,
    room: usize,
    left: usize,
    /// Messages that were written.
    messages: usize,
    open: Open,
    /// How often something was cut, or left out.
    pub(super) cuts: u64,
}

/// The message that parts go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    No,
    /// It came when there was no room any more.
    LeftOut,
    /// The place of the message, and how many parts and calls it has so far.
    Yes {
        message: usize,
        parts: usize,
        calls: usize,
    },
}

impl Talk {
    pub(super) fn new(convention: Convention, side: Side, room: usize) -> Self {
        Self {
            convention,
            side,
            json: Vec::new(),
            attrs: Attrs::default(),
            room,
            left: room,
            messages: 0,
            open: Open::No,
            cuts: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Begins a message, unless one is open.
    pub(super) fn begin(&mut self, role: &str) {
        if self.open != Open::No {
            return;
        }
        if self.left == 0 {
            self.cuts += 1;
            self.open = Open::LeftOut;
            return;
        }
        let message = self.next_message(role);
        self.open = Open::Yes {
            message,
            parts: 0,
            calls: 0,
        };
    }

    fn next_message(&mut self, role: &str) -> usize {
        let message = self.messages;
        self.messages += 1;
        // A message costs something even when nothing is in it.
        self.left = self.left.saturating_sub(64);
        match self.convention {
            Convention::GenAi if self.side == Side::System => {}
            Convention::GenAi => {
                if message > 0 {
                    self.json.push(b',');
                }
                self.json.extend_from_slice(b"{\"role\":");
                json::string(role, &mut self.json);
                self.json.extend_from_slice(b",\"parts\":[");
            }
            Convention::OpenInference => self.attrs.text(&self.key(message, "role"), role),
        }
        message
    }

    /// Ends the open message. What a model says has to say why it ended there.
    pub(super) fn end(&mut self, finish_reason: Option<&str>) {
        if self.side == Side::System {
            return;
        }
        let open = std::mem::replace(&mut self.open, Open::No);
        if self.convention != Convention::GenAi || !matches!(open, Open::Yes { .. }) {
            return;
        }
        self.json.push(b']');
        if let Some(reason) = finish_reason {
            self.json.extend_from_slice(b",\"finish_reason\":");
            json::string(reason, &mut self.json);
        }
        self.json.push(b'}');
    }

    /// A block of the open message.
    pub(super) fn block(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.say(Speech::Text, text),
            Content::Thinking(text) => self.say(Speech::Reasoning, text),
            Content::Command(text) => self.say(Speech::Command, text),
            Content::Stream(text) => self.say(Speech::Stream, text),
            Content::ToolUse { name, id, input } => self.call(id, name, input.as_ref()),
            Content::ToolResult { id, content } => self.response(id, content.as_ref(), None),
            Content::Unknown(json) => self.say(Speech::Text, json.get()),
        }
    }

    /// A text in the open message.
    pub(super) fn say(&mut self, speech: Speech, text: &str) {
        let Some((message, part)) = self.part(false) else {
            return;
        };
        let text = self.fit(text);
        match self.convention {
            Convention::GenAi => {
                let out = self.json_part(part, speech.word());
                out.extend_from_slice(b",\"content\":\"");
                text.escape(out);
                out.extend_from_slice(b"\"}");
            }
            Convention::OpenInference => {
                let field = |name: &str| format!("contents.{part}.message_content.{name}");
                let key = self.key(message, &field("type"));
                self.attrs.text(&key, speech.word());
                let key = self.key(message, &field("text"));
                self.attrs.text_with(&key, |out| text.escape(out));
            }
        }
    }

    /// A call of a tool in the open message.
    pub(super) fn call(&mut self, id: &str, name: &str, input: Option<&Json>) {
        let Some((message, part)) = self.part(true) else {
            return;
        };
        let input = self.fit(input.map_or("null", Json::get));
        match self.convention {
            Convention::GenAi => {
                let out = self.json_part(part, "tool_call");
                out.extend_from_slice(b",\"id\":");
                json::string(id, out);
                out.extend_from_slice(b",\"name\":");
                json::string(name, out);
                out.extend_from_slice(b",\"arguments\":");
                input.value(out);
                out.push(b'}');
            }
            Convention::OpenInference => {
                let field = |name: &str| format!("tool_calls.{part}.tool_call.{name}");
                let key = self.key(message, &field("id"));
                self.attrs.text(&key, id);
                let key = self.key(message, &field("function.name"));
                self.attrs.text(&key, name);
                let key = self.key(message, &field("function.arguments"));
                self.attrs.text_with(&key, |out| input.escape(out));
            }
        }
    }

    /// What a tool gave back, in the open message; or the error in place of it. `OpenInference` has a message
    /// for each.
    pub(super) fn response(&mut self, id: &str, output: Option<&Json>, error: Option<&str>) {
        let Some((_, part)) = self.part(false) else {
            return;
        };
        if self.convention == Convention::GenAi {
            let response = match (output, error) {
                (None, Some(error)) => Fit::quoted(self.fit(error)),
                _ => self.fit(output.map_or("null", Json::get)),
            };
            let out = self.json_part(part, "tool_call_response");
            out.extend_from_slice(b",\"id\":");
            json::string(id, out);
            out.extend_from_slice(b",\"response\":");
            response.value(out);
            out.push(b'}');
            return;
        }
        let message = self.next_message("tool");
        let key = self.key(message, "tool_call_id");
        self.attrs.text(&key, id);
        let key = self.key(message, "content");
        if let (None, Some(error)) = (output, error) {
            let error = self.fit(error);
            self.attrs.text_with(&key, |out| error.escape(out));
            return;
        }
        let cut = json_text(&mut self.attrs, &key, output, self.left);
        let length = output.map_or(4, |output| output.get().len());
        self.left = self.left.saturating_sub(length);
        self.cuts += u64::from(cut);
    }

    /// The place of the next part. `None` when there is no room for it, or nothing that it could be in.
    fn part(&mut self, is_call: bool) -> Option<(usize, usize)> {
        let Open::Yes {
            message,
            parts,
            calls,
        } = &mut self.open
        else {
            self.cuts += 1;
            return None;
        };
        let count = if is_call && self.convention == Convention::OpenInference {
            calls
        } else {
            parts
        };
        let place = (*message, *count);
        if self.left == 0 {
            self.cuts += 1;
            return None;
        }
        *count += 1;
        self.left = self.left.saturating_sub(48);
        Some(place)
    }

    fn json_part(&mut self, part: usize, kind: &str) -> &mut Vec<u8> {
        if part > 0 {
            self.json.push(b',');
        }
        self.json.extend_from_slice(b"{\"type\":\"");
        self.json.extend_from_slice(kind.as_bytes());
        self.json.push(b'"');
        &mut self.json
    }

    fn key(&self, message: usize, field: &str) -> String {
        let side = match self.side {
            Side::System | Side::Input => "input",
            Side::Output => "output",
        };
        format!("llm.{side}_messages.{message}.message.{field}")
    }

    fn fit<'t>(&mut self, text: &'t str) -> Fit<'t> {
        let fit = Fit::new(text, self.left);
        self.left = self.left.saturating_sub(text.len());
        self.cuts += u64::from(fit.cut);
        fit
    }

    /// Writes the messages as attributes.
    pub(super) fn write(&mut self, attrs: &mut Attrs) {
        self.end(None);
        if self.is_empty() {
            return;
        }
        match (self.convention, self.side) {
            (Convention::GenAi, side) => {
                let key = match side {
                    Side::System => "gen_ai.system_instructions",
                    Side::Input => "gen_ai.input.messages",
                    Side::Output => "gen_ai.output.messages",
                };
                attrs.text_with(key, |out| {
                    out.push(b'[');
                    json::escape(&self.json, out);
                    out.push(b']');
                });
            }
            (Convention::OpenInference, _) => attrs.append(self.attrs.as_bytes()),
        }
    }

    /// Empties it, for the next span. What was allocated is kept, unless it is much.
    pub(super) fn clear(&mut self) {
        self.json.clear();
        self.attrs.clear();
        self.left = self.room;
        self.messages = 0;
        self.open = Open::No;
        self.cuts = 0;
    }
}

/// A text, or as much of it as there is room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit<'t> {
    text: &'t str,
    whole: usize,
    pub(super) cut: bool,
    /// Whether it is to be a JSON string, and not the JSON that it is.
    quoted: bool,
}

impl<'t> Fit<'t> {
    pub(super) fn new(text: &'t str, room: usize) -> Self {
        let cut = text.len() > room;
        Self {
            text: &text[..boundary(text, room)],
            whole: text.len(),
            cut,
            quoted: false,
        }
    }

    fn quoted(self) -> Self {
        Self {
            quoted: true,
            ..self
        }
    }

    /// What is said in place of the rest.
    fn mark(self) -> String {
        format!(
            "… [cut by quipu: {} of {} bytes]",
            self.text.len(),
            self.whole
        )
    }

    /// As the inside of a JSON string.
    pub(super) fn escape(self, out: &mut Vec<u8>) {
        json::escape(self.text.as_bytes(), out);
        if self.cut {
            json::escape(self.mark().as_bytes(), out);
        }
    }

    /// As a JSON value: JSON that was cut is none any more, so it becomes a string.
    fn value(self, out: &mut Vec<u8>) {
        if self.cut || self.quoted {
            out.push(b'"');
            self.escape(out);
            out.push(b'"');
        } else {
            out.extend_from_slice(self.text.as_bytes());
        }
    }

    /// As a text.
    pub(super) fn to_text(self) -> String {
        let mut text = self.text.to_owned();
        if self.cut {
            text.push_str(&self.mark());
        }
        text
    }
}

/// An attribute that holds JSON as text. Whether it had to be cut.
pub(super) fn json_document(attrs: &mut Attrs, key: &str, json: &str, room: usize) -> bool {
    let fit = Fit::new(json, room);
    attrs.text_with(key, |out| {
        if fit.cut {
            // What is left of it is no JSON; as a JSON string it is.
            let mut value = Vec::new();
            fit.value(&mut value);
            json::escape(&value, out);
        } else {
            fit.escape(out);
        }
    });
    fit.cut
}

/// An attribute that holds what a JSON string says, or else JSON as text. Whether it had to be cut.
pub(super) fn json_text(attrs: &mut Attrs, key: &str, value: Option<&Json>, room: usize) -> bool {
    let Some(json) = value else {
        attrs.text(key, "");
        return false;
    };
    let raw = json.get();
    if !is_string(raw) {
        return json_document(attrs, key, raw, room);
    }
    let inner = &raw[1..raw.len() - 1];
    // Its escapes are good as they are, but for half of a surrogate pair, which protobuf refuses.
    if inner.len() <= room && !has_surrogates(inner) {
        attrs.text_with(key, |out| out.extend_from_slice(inner.as_bytes()));
        return false;
    }
    let text = text_of(json);
    let fit = Fit::new(&text, room);
    attrs.text_with(key, |out| fit.escape(out));
    fit.cut
}

/// Whether JSON is a string.
pub(super) fn is_string(raw: &str) -> bool {
    raw.len() >= 2 && raw.starts_with('"')
}

/// What a JSON string says, with U+FFFD in place of half surrogate pairs.
fn text_of(json: &Json) -> String {
    let mut tape = Tape::new();
    let read = tape.read(json.get(), 1).ok();
    let text = read.and_then(|node| node.as_raw_str());
    text.map_or_else(String::new, |text| text.to_text_lossy().into_owned())
}

/// The last place between two characters that is not behind `at`.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn has_surrogates(inner: &str) -> bool {
    let bytes = inner.as_bytes();
    memchr::memmem::find(bytes, b"\\ud").is_some() || memchr::memmem::find(bytes, b"\\uD").is_some()
}
