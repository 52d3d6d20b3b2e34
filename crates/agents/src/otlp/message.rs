//! What was said, whichever convention has the names.
//!
//! | convention | input | output |
//! |---|---|---|
//! | GenAI | `gen_ai.system_instructions`, `gen_ai.input.messages` | `gen_ai.output.messages` |
//! | GenAI before 1.37 | events `gen_ai.user.message` and the like, `gen_ai.content.prompt` | `gen_ai.choice`, `gen_ai.content.completion` |
//! | OpenInference | `llm.input_messages.0.message.…`, or `input.value` | `llm.output_messages.0.message.…`, or `output.value` |
//! | OpenLLMetry | `gen_ai.prompt.0.…` | `gen_ai.completion.0.…` |

use std::borrow::Cow;
use std::collections::BTreeMap;

use quipu_model::Json;
use quipu_model::json::{Kind, Node, Tape};

use super::wire::{self, Attrs, parsed};
use crate::extra::leftover;

/// The deepest JSON in a text.
const DEPTH: usize = 128;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
    /// Why it ended.
    pub(super) finish: Option<String>,
    /// What else stands in it.
    pub(super) rest: Option<Json>,
}

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    System,
    Tool,
    Other(String),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Reasoning(String),
    Call {
        id: String,
        name: String,
        input: Option<Json>,
    },
    Response {
        id: String,
        name: String,
        output: Option<Json>,
    },
    /// Bytes that stand in it, as base64.
    Media {
        mime: String,
        data: String,
    },
    /// Anything else: its kind, and all of it.
    Other(String, Json),
}

impl Role {
    pub(super) fn of(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "user" | "human" => Self::User,
            "assistant" | "model" | "ai" => Self::Assistant,
            "system" | "developer" => Self::System,
            "tool" | "function" => Self::Tool,
            _ => Self::Other(word.to_owned()),
        }
    }

    /// The word by which messages are compared.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
            Self::Other(word) => word,
        }
    }
}

impl Message {
    pub(super) fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            finish: None,
            rest: None,
        }
    }

    fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::Text(text.into())])
    }
}

/// What was put to a model, and what it said.
#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) input: Vec<Message>,
    pub(super) output: Vec<Message>,
}

impl Talk {
    /// What the attributes of a span or an event hold, by convention. A program may write several, and then each says all
    /// of it.
    pub(super) fn of(attrs: &Attrs<'_>) -> Vec<Self> {
        let mut gen_ai = Self::default();
        if let Some(text) = attrs.document("gen_ai.system_instructions") {
            let parts = instructions(&text);
            gen_ai.input.push(Message::new(Role::System, parts));
        }
        let of = |key: &str, role: &Role| {
            let text = attrs.document(key);
            text.map_or_else(Vec::new, |text| messages(&text, role))
        };
        let (user, assistant) = (&Role::User, &Role::Assistant);
        gen_ai.input.extend(of("gen_ai.input.messages", user));
        gen_ai.output = of("gen_ai.output.messages", assistant);
        // What some frameworks call the same, and old events.
        let frameworks = Self {
            input: of("gen_ai.prompt", user),
            output: of("gen_ai.completion", assistant),
        };
        let inference = Self {
            input: open_inference(attrs, "llm.input_messages.", user),
            output: open_inference(attrs, "llm.output_messages.", assistant),
        };
        let llmetry = Self {
            input: open_llmetry(attrs, "gen_ai.prompt.", user),
            output: open_llmetry(attrs, "gen_ai.completion.", assistant),
        };
        let mut all = vec![gen_ai, frameworks, inference, llmetry];
        all.retain(|talk| !talk.is_empty());
        all
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }

    /// What a call to a model has where it says nothing of its messages: the text that was put to it, and the answer.
    pub(super) fn of_values(attrs: &Attrs<'_>) -> Self {
        let of = |side: &str, role: Role| {
            let kind = attrs.peek(&format!("{side}.mime_type"));
            if kind.is_some_and(|kind| kind.contains("json")) {
                return Vec::new();
            }
            let value = attrs.text(&format!("{side}.value"));
            let message = value.map(|text| Message::text(role, text));
            message.into_iter().collect()
        };
        Self {
            input: of("input", Role::User),
            output: of("output", Role::Assistant),
        }
    }
}

/// Reads JSON that stands in a text.
fn read<T>(text: &str, then: impl FnOnce(Node<'_>) -> T) -> Option<T> {
    let mut tape = Tape::new();
    let node = tape.read(text, DEPTH).ok()?;
    matches!(node.kind(), Kind::Object | Kind::List).then(|| then(node))
}

/// Instructions: a list of parts, of texts, or a text.
fn instructions(text: &str) -> Vec<Part> {
    let parts = read(text, |node| match node.kind() {
        Kind::List => node.items().map(|item| part(item, &Role::System)).collect(),
        _ => vec![part(node, &Role::System)],
    });
    parts.unwrap_or_else(|| vec![Part::Text(text.to_owned())])
}

/// Messages as JSON: a list of them, one, or a text that is the message.
pub(super) fn messages(text: &str, role: &Role) -> Vec<Message> {
    let messages = read(text, |node| match node.kind() {
        Kind::List => node.items().map(|item| message(item, role)).collect(),
        // Some put the whole request there.
        _ => match node.get("messages").filter(|it| it.kind() == Kind::List) {
            Some(list) => list.items().map(|item| message(item, role)).collect(),
            None => vec![message(node, role)],
        },
    });
    messages.unwrap_or_else(|| vec![Message::text(role.clone(), text)])
}

/// One message.
pub(super) fn message(node: Node<'_>, role: &Role) -> Message {
    if let Some(text) = node.as_str() {
        return Message::text(role.clone(), text);
    }
    // A choice has the message inside.
    let inner = node
        .get("message")
        .filter(|inner| inner.kind() == Kind::Object);
    let of = inner.unwrap_or(node);
    let role = of.text("role").map_or(role.clone(), |word| Role::of(&word));
    let mut parts = Vec::new();
    let content = of.get("parts").or(of.get("content"));
    match content {
        Some(content) if content.kind() == Kind::List => {
            parts.extend(content.items().map(|item| part(item, &role)));
        }
        Some(content) if content.kind() == Kind::Object => parts.push(part(content, &role)),
        Some(content) => {
            let text = content.as_str().unwrap_or_default();
            if role == Role::Tool {
                parts.push(response(of, Some(content)));
            } else if !text.is_empty() {
                parts.push(Part::Text(text.into_owned()));
            }
        }
        None => {}
    }
    if role == Role::Tool && !parts.iter().any(|it| matches!(it, Part::Response { .. })) {
        let given = content.filter(|content| !content.is_null());
        parts = vec![response(of, given)];
    }
    for call in of.get("tool_calls").into_iter().flat_map(Node::items) {
        parts.push(self::call(call));
    }
    let known: &[&str] = &[
        "role",
        "parts",
        "content",
        "tool_calls",
        "finish_reason",
        "message",
        "id",
        "tool_call_id",
        "name",
    ];
    let name = leftover(of, &known[..known.len() - 1]);
    Message {
        finish: node.text("finish_reason").map(Cow::into_owned),
        rest: match inner {
            Some(_) => leftover(node, &["message", "finish_reason"]).or(name),
            None if role == Role::Tool => leftover(of, known),
            None => name,
        },
        role,
        parts,
    }
}

/// What a tool gave back, in a message of its own.
fn response(of: Node<'_>, content: Option<Node<'_>>) -> Part {
    let id = ["tool_call_id", "id"].iter().find_map(|key| of.text(key));
    Part::Response {
        id: id.unwrap_or_default().into_owned(),
        name: of.text("name").unwrap_or_default().into_owned(),
        output: content.map(|content| content.raw().into()),
    }
}

/// A call, as Chat Completions have it or with its fields side by side.
fn call(call: Node<'_>) -> Part {
    let function = call.get("function").unwrap_or(call);
    let id = call.text("id").or(call.text("tool_call_id"));
    let given = ["arguments", "input", "args"]
        .iter()
        .find_map(|key| function.get(key));
    Part::Call {
        id: id.unwrap_or_default().into_owned(),
        name: function.text("name").unwrap_or_default().into_owned(),
        input: given.filter(|given| !given.is_null()).map(|given| {
            let text = given.as_str();
            let structured = text.as_deref().and_then(|text| arguments(text, false));
            structured.unwrap_or_else(|| given.raw().into())
        }),
    }
}

/// JSON in a text that is an object or a list; with `any` a string, a number and the like as well.
pub(super) fn arguments(text: &str, any: bool) -> Option<Json> {
    let mut tape = Tape::new();
    let node = tape.read(text, DEPTH).ok()?;
    let is_structured = matches!(node.kind(), Kind::Object | Kind::List);
    (any || is_structured).then(|| node.raw().into())
}

fn part(node: Node<'_>, role: &Role) -> Part {
    if let Some(text) = node.as_str() {
        return Part::Text(text.into_owned());
    }
    let kind = node.text("type").unwrap_or_default();
    let text = ["content", "text", "thinking", "refusal"]
        .iter()
        .find_map(|key| node.text(key));
    match (&*kind, text) {
        ("text" | "input_text" | "output_text" | "refusal" | "", Some(text)) => {
            Part::Text(text.into_owned())
        }
        ("reasoning" | "thinking", text) => Part::Reasoning(text.unwrap_or_default().into_owned()),
        ("tool_call" | "tool_use" | "function_call", _) => call(node),
        ("tool_call_response" | "tool_result", _) => {
            let given = ["response", "result", "content"]
                .iter()
                .find_map(|key| node.get(key));
            let id = ["id", "tool_use_id", "tool_call_id"]
                .iter()
                .find_map(|key| node.text(key));
            Part::Response {
                id: id.unwrap_or_default().into_owned(),
                name: node.text("name").unwrap_or_default().into_owned(),
                output: given
                    .filter(|given| !given.is_null())
                    .map(|given| given.raw().into()),
            }
        }
        ("blob", Some(data)) => Part::Media {
            mime: node.text("mime_type").unwrap_or_default().into_owned(),
            data: data.into_owned(),
        },
        _ if *role == Role::Tool && kind.is_empty() => response(node, Some(node)),
        _ => Part::Other(kind.into_owned(), node.raw().into()),
    }
}

/// The message of an event of its own: `gen_ai.user.message` and the like. What is in it stands in the attributes, or in
/// one of them as JSON, or in the body of a log record.
pub(super) fn of_event(name: &str, attrs: &Attrs<'_>, body: Option<Node<'_>>) -> Option<Message> {
    let role = match name {
        "gen_ai.user.message" => Role::User,
        "gen_ai.system.message" => Role::System,
        "gen_ai.assistant.message" | "gen_ai.choice" => Role::Assistant,
        "gen_ai.tool.message" => Role::Tool,
        _ => return None,
    };
    let document = match body {
        Some(body) => Some(wire::said(body)),
        None => attrs.document("gen_ai.event.content").map(Cow::into_owned),
    };
    if let Some(document) = document.filter(|document| !document.is_empty()) {
        let one = read(&document, |node| message(node, &role));
        return Some(one.unwrap_or_else(|| Message::text(role, document)));
    }
    // The fields as attributes of the event; structured ones as JSON in a text.
    let mut made = String::from("{\"role\":");
    let word = attrs.text("role");
    made.push_str(Json::string(word.as_deref().unwrap_or(role.word())).get());
    let mut any = false;
    for key in [
        "content",
        "tool_calls",
        "message",
        "id",
        "name",
        "finish_reason",
        "index",
    ] {
        let Some(value) = attrs.any(key) else {
            continue;
        };
        any = true;
        let text = value.get("stringValue").and_then(|text| text.as_str());
        let json = match text {
            Some(text) => arguments(&text, false).unwrap_or_else(|| Json::string(&text)),
            None => parsed(&wire::plain_text(value)),
        };
        made.push_str(",\"");
        made.push_str(key);
        made.push_str("\":");
        made.push_str(json.get());
    }
    made.push('}');
    let one = read(&made, |node| message(node, &role));
    one.filter(|_| any)
        .or_else(|| Some(Message::new(role, Vec::new())))
}

/// A message whose fields are attributes.
#[derive(Debug, Default)]
struct Flat {
    role: Option<String>,
    text: Option<String>,
    reasoning: Option<String>,
    id: Option<String>,
    name: Option<String>,
    finish: Option<String>,
    contents: BTreeMap<u64, Content>,
    calls: BTreeMap<u64, Calling>,
    rest: BTreeMap<String, Json>,
}

#[derive(Debug, Default)]
struct Content {
    kind: Option<String>,
    text: Option<String>,
    rest: BTreeMap<String, Json>,
}

#[derive(Debug, Default)]
struct Calling {
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
}

impl Flat {
    /// Takes in `contents.0.message_content.text` and `tool_calls.0.tool_call.id`, or what is called alike.
    fn listed(&mut self, field: &str, any: Node<'_>) -> bool {
        let mut words = field.splitn(3, '.');
        let (list, at, field) = (words.next(), words.next(), words.next());
        let (Some(at), Some(field)) = (at.and_then(|at| at.parse().ok()), field) else {
            return false;
        };
        let text = || Some(wire::said(any));
        match list {
            Some("contents") => {
                let content = self.contents.entry(at).or_default();
                match field.strip_prefix("message_content.").unwrap_or(field) {
                    "type" => content.kind = text(),
                    "text" => content.text = text(),
                    other => {
                        let json = parsed(&wire::plain_text(any));
                        content.rest.insert(other.to_owned(), json);
                    }
                }
            }
            Some("tool_calls") => {
                let call = self.calls.entry(at).or_default();
                match field.strip_prefix("tool_call.").unwrap_or(field) {
                    "id" => call.id = text(),
                    "function.name" | "name" => call.name = text(),
                    "function.arguments" | "arguments" => call.arguments = text(),
                    _ => return false,
                }
            }
            _ => return false,
        }
        true
    }

    /// What a tool gave back: a text, or a list where it is in several parts. Programs of ours begin with a message that
    /// only has a role.
    fn response(&mut self) -> Option<Part> {
        let mut given: Vec<Json> = Vec::new();
        given.extend(self.text.take().map(|text| Json::string(&text)));
        let contents = std::mem::take(&mut self.contents);
        given.extend(contents.into_values().map(|it| match it.into_part() {
            Part::Text(text) | Part::Reasoning(text) => Json::string(&text),
            Part::Other(_, json) => json,
            // Contents are one of these.
            _ => Json::null(),
        }));
        if given.is_empty() && self.id.is_none() {
            return None;
        }
        let output = match &given[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => {
                let items: Vec<&str> = several.iter().map(Json::get).collect();
                Some(parsed(&format!("[{}]", items.join(","))))
            }
        };
        Some(Part::Response {
            id: self.id.take().unwrap_or_default(),
            name: self.name.take().unwrap_or_default(),
            output,
        })
    }

    /// Quipu writes any JSON as arguments, others what is in an object.
    fn into_message(mut self, role: &Role, ours: bool) -> Message {
        let own = self.role.take();
        let role = own.map_or(role.clone(), |word| Role::of(&word));
        let mut parts = Vec::new();
        parts.extend(self.reasoning.take().map(Part::Reasoning));
        if role == Role::Tool {
            parts.extend(self.response());
        } else {
            parts.extend(self.text.take().map(Part::Text));
            parts.extend(
                std::mem::take(&mut self.contents)
                    .into_values()
                    .map(Content::into_part),
            );
            // Only what tools give back has these.
            for (key, value) in [("tool_call_id", self.id.take()), ("name", self.name.take())] {
                let json = value.map(|value| (key.to_owned(), Json::string(&value)));
                self.rest.extend(json);
            }
        }
        for call in self.calls.into_values() {
            let given = call.arguments.filter(|given| !given.is_empty());
            let given = given.filter(|given| !(ours && given == "null"));
            parts.push(Part::Call {
                id: call.id.unwrap_or_default(),
                name: call.name.unwrap_or_default(),
                input: given
                    .map(|text| arguments(&text, ours).unwrap_or_else(|| Json::string(&text))),
            });
        }
        Message {
            role,
            parts,
            finish: self.finish,
            rest: (!self.rest.is_empty()).then(|| fields(&self.rest)),
        }
    }
}

impl Content {
    fn into_part(self) -> Part {
        let kind = self.kind.unwrap_or_default();
        let is_text = self.rest.is_empty();
        match (kind.as_str(), self.text) {
            ("reasoning" | "thinking", Some(text)) => Part::Reasoning(text),
            ("text" | "", Some(text)) if is_text => Part::Text(text),
            (_, text) => {
                let mut all = self.rest;
                all.insert("type".to_owned(), Json::string(&kind));
                all.extend(text.map(|text| ("text".to_owned(), Json::string(&text))));
                Part::Other(kind, fields(&all))
            }
        }
    }
}

fn fields(of: &BTreeMap<String, Json>) -> Json {
    let mut made = String::from("{");
    for (key, value) in of {
        if made.len() > 1 {
            made.push(',');
        }
        made.push_str(Json::string(key).get());
        made.push(':');
        made.push_str(value.get());
    }
    made.push('}');
    parsed(&made)
}

/// Messages whose fields are attributes: `{prefix}{index}.{field}`.
fn flat(
    attrs: &Attrs<'_>,
    prefix: &str,
    role: &Role,
    mut take: impl FnMut(&mut Flat, &str, Node<'_>) -> bool,
) -> Vec<Message> {
    let mut found: BTreeMap<u64, Flat> = BTreeMap::new();
    for (field, any) in attrs.below(prefix) {
        let (at, name) = field.split_once('.').unwrap_or((field, ""));
        // An index that is none is kept with the first message.
        let flat = found.entry(at.parse().unwrap_or(0)).or_default();
        if !take(flat, name, any) {
            let json = parsed(&wire::plain_text(any));
            flat.rest.insert(field.to_owned(), json);
        }
    }
    let ours = attrs.has("quipu.run_id");
    found
        .into_values()
        .map(|flat| flat.into_message(role, ours))
        .collect()
}

fn open_inference(attrs: &Attrs<'_>, prefix: &str, role: &Role) -> Vec<Message> {
    flat(attrs, prefix, role, |flat, field, any| {
        let Some(field) = field.strip_prefix("message.") else {
            return false;
        };
        match field {
            "role" => flat.role = Some(wire::said(any)),
            "content" => flat.text = Some(wire::said(any)),
            "tool_call_id" => flat.id = Some(wire::said(any)),
            "name" => flat.name = Some(wire::said(any)),
            _ => return flat.listed(field, any),
        }
        true
    })
}

fn open_llmetry(attrs: &Attrs<'_>, prefix: &str, role: &Role) -> Vec<Message> {
    let messages = flat(attrs, prefix, role, |flat, field, any| {
        match field {
            "role" => flat.role = Some(wire::said(any)),
            "content" => flat.text = Some(wire::said(any)),
            "reasoning" | "reasoning_content" => flat.reasoning = Some(wire::said(any)),
            "tool_call_id" => flat.id = Some(wire::said(any)),
            "finish_reason" => flat.finish = Some(wire::said(any)),
            _ => return flat.listed(field, any),
        }
        true
    });
    // A content of several parts is JSON in a text.
    messages.into_iter().map(with_parts).collect()
}

fn with_parts(mut message: Message) -> Message {
    let parts = match &message.parts[..] {
        [Part::Text(text), ..] if text.starts_with("[{") && text.contains("\"type\"") => {
            read(text, |node| {
                let parts = node.items().map(|item| part(item, &message.role));
                parts.collect::<Vec<_>>()
            })
        }
        _ => None,
    };
    if let Some(parts) = parts {
        message.parts.splice(..1, parts);
    }
    message
}
