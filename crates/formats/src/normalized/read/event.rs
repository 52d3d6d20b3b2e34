//! One event.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{
    Annotations, Block, BlockType, Body, Content, Event, EventType, Fidelity, Json, Note, NoteKind,
    Notes, Place, RunId, Status, Step, StepEnd, Timestamp, ToolCall, ToolResult, Unknown,
};

use super::head::Mention;
use super::value::{
    attachments, money, of_kind, redactions, run_id, set, set_mark, set_text, source, usage, word,
};
use crate::normalized::{AsIs, Beyond, OTHER, Redaction};
use crate::text::said;
use quipu_exchange::from_fields;

/// The fields of events that are known.
pub const EVENT_FIELDS: &[&str] = &[
    "id",
    "seq",
    "timestamp",
    "type",
    "role",
    "text",
    "tool",
    "redactions",
    "blocks",
    "meta",
    "fidelity",
    "runId",
    "parentRunId",
    "path",
    "iteration",
    "iterations",
    "attempt",
    "model",
    "usage",
    "costUsd",
    "nativeId",
    "parentId",
    "agentId",
    "sidechain",
    "modelCall",
    "stopReason",
    "child",
    "status",
    "durationMs",
    "source",
    "attachments",
    "extra",
    "opaque",
    "superseded",
    "synthetic",
    "undated",
    "dangling",
];

/// The fields of `tool` that are known.
const TOOL_FIELDS: &[&str] = &[
    "name",
    "callId",
    "input",
    "callIdKnown",
    "output",
    "outputValue",
    "error",
    "status",
    "nativeStatus",
    "durationMs",
];

/// What the events of a document have in common, and what one has from the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The run.
    pub run_id: RunId,
    /// The run that called it.
    pub parent_run_id: Option<RunId>,
    /// The time of the last event that has one.
    pub last: Timestamp,
    /// The log that events are of which name none.
    pub log: Option<String>,
}

/// Reads an event. Whatever it is, it becomes one: a type that is not known becomes a note that keeps it, and
/// fields that are not known, or hold something else than they should, are given beside it.
pub fn decode(node: Node<'_>, index: u64, base: &mut Base) -> (Event, Beyond) {
    let mut found = Found {
        place: Place::run(),
        parent_run_id: base.parent_run_id.clone(),
        ..Found::default()
    };
    for (key, value) in node.fields() {
        match key.plain() {
            Some(key) => found.field(key, value),
            None => found.field(&key.to_text_lossy(), value),
        }
    }
    if found.is_sidechain && found.notes.subagent_id.is_none() {
        found.keep("sidechain", Json::from(true));
    }
    if let Some(node) = found.source {
        found.notes.source = source(node, base.log.as_deref());
        match &found.notes.source {
            // The document says of its log what was removed from its name.
            Some(source) if base.log.as_deref() == Some(&source.file) => {
                let of_log = |redaction: &Redaction| redaction.field == "source.file";
                found.beyond.redactions.retain(|it| !of_log(it));
            }
            None if !node.is_null() => found.keep("source", node.raw().into()),
            _ => {}
        }
    }
    match found.at {
        Some(at) => base.last = at,
        None => found.notes.flags.undated = true,
    }
    let seq = found.seq.unwrap_or(index + 1);
    let body = body(node, &mut found);
    if found.id.as_deref().is_some_and(|id| is_number(id, seq)) {
        found.id = None;
    }
    found.beyond.id = found.id;
    let event = Event {
        seq,
        run_id: found.run_id.unwrap_or_else(|| base.run_id.clone()),
        parent_run_id: found.parent_run_id,
        timestamp: base.last,
        place: found.place,
        body,
        annotations: if found.notes == Notes::default() {
            Annotations::default()
        } else {
            found.notes.into()
        },
    };
    (event, found.beyond)
}

/// Whether an id is the one that the event has by its number.
fn is_number(id: &str, seq: u64) -> bool {
    let padded = |digits: &str| digits.len() == 3 || !digits.starts_with('0');
    id.strip_prefix("ev_").is_some_and(|digits| {
        digits.len() >= 3
            && padded(digits)
            && digits.bytes().all(|b| b.is_ascii_digit())
            && digits.parse() == Ok(seq)
    })
}

/// The fields of an event, as they were met.
#[derive(Default)]
struct Found<'a> {
    id: Option<String>,
    seq: Option<u64>,
    at: Option<Timestamp>,
    kind: Option<Cow<'a, str>>,
    role: Option<Node<'a>>,
    text: Option<Node<'a>>,
    tool: Option<Node<'a>>,
    blocks: Option<Node<'a>>,
    meta: Option<Node<'a>>,
    source: Option<Node<'a>>,
    fidelity: Option<Fidelity>,
    run_id: Option<RunId>,
    parent_run_id: Option<RunId>,
    place: Place,
    is_sidechain: bool,
    notes: Notes,
    beyond: Beyond,
}

impl<'a> Found<'a> {
    fn keep(&mut self, key: &str, value: Json) {
        self.beyond.extra.push((key.to_owned(), value));
    }

    fn field(&mut self, key: &str, value: Node<'a>) {
        let is_absent = value.is_null() && EVENT_FIELDS.contains(&key);
        if !self.take(key, value) && !is_absent {
            self.keep(key, value.raw().into());
        }
    }

    /// Takes a field in. Whether it is known and holds what it should.
    fn take(&mut self, key: &str, value: Node<'a>) -> bool {
        let notes = &mut self.notes;
        match key {
            "id" => set_text(&mut self.id, value),
            "seq" => set(&mut self.seq, value.as_u64()),
            "timestamp" => set(&mut self.at, value.as_str().and_then(|at| at.parse().ok())),
            "type" => set(&mut self.kind, value.as_str()),
            "role" => set(&mut self.role, Some(value)),
            "text" => set(&mut self.text, of_kind(value, Kind::String)),
            "tool" => set(&mut self.tool, of_kind(value, Kind::Object)),
            "blocks" => set(&mut self.blocks, of_kind(value, Kind::List)),
            "meta" => set(&mut self.meta, of_kind(value, Kind::Object)),
            "fidelity" => set(&mut self.fidelity, word(value, Fidelity::from_word)),
            "redactions" => match redactions(value) {
                Some(redactions) => {
                    self.beyond.redactions = redactions;
                    true
                }
                None => false,
            },
            "runId" => set(&mut self.run_id, run_id(value)),
            "parentRunId" => {
                self.parent_run_id = run_id(value);
                self.parent_run_id.is_some() || value.is_null()
            }
            "path" => match value.as_str() {
                Some(path) => {
                    self.place.path = path.into_owned();
                    true
                }
                None => false,
            },
            "iteration" => match value.as_u64() {
                Some(iteration) => {
                    if self.place.iteration() != iteration {
                        self.place.iterations = vec![iteration];
                    }
                    true
                }
                None => false,
            },
            "iterations" => {
                let all: Option<Vec<u64>> = value.items().map(|item| item.as_u64()).collect();
                let last = |all: &Vec<u64>| all.last().copied().unwrap_or(0);
                let innermost = self.place.iteration();
                match all.filter(|all| value.kind() == Kind::List && last(all) == innermost) {
                    Some(all) => {
                        self.place.iterations = all;
                        true
                    }
                    None => false,
                }
            }
            "attempt" => match value.as_u64() {
                Some(attempt @ 1..) => {
                    self.place.attempt = attempt;
                    true
                }
                _ => false,
            },
            "model" => set_text(&mut notes.model, value),
            "nativeId" => set_text(&mut notes.native_id, value),
            "parentId" => set_text(&mut notes.parent_id, value),
            "agentId" => set_text(&mut notes.subagent_id, value),
            "modelCall" => set_text(&mut notes.model_call, value),
            "stopReason" => set_text(&mut notes.stop_reason, value),
            // A text is what stands for an object that was taken out.
            "extra" => set(
                &mut notes.extra,
                of_kind(value, Kind::Object)
                    .or(of_kind(value, Kind::String))
                    .map(|extra| extra.raw().into()),
            ),
            "sidechain" => {
                self.is_sidechain = value.as_bool() == Some(true);
                value.kind() == Kind::Bool
            }
            "usage" => set(&mut notes.usage, usage(value)),
            "costUsd" => set(&mut notes.cost, money(value)),
            "child" => set(&mut notes.child, run_id(value)),
            "status" => set(&mut notes.status, word(value, Status::from_word)),
            "durationMs" => set(&mut notes.duration_ms, value.as_u64()),
            "source" => {
                self.source = Some(value);
                true
            }
            "attachments" => match attachments(value) {
                Some(attachments) => {
                    notes.attachments = attachments;
                    true
                }
                None => false,
            },
            "opaque" => set_mark(&mut notes.flags.opaque, value),
            "superseded" => set_mark(&mut notes.flags.superseded, value),
            "synthetic" => set_mark(&mut notes.flags.synthetic, value),
            "undated" => set_mark(&mut notes.flags.undated, value),
            "dangling" => set_mark(&mut notes.flags.dangling, value),
            _ => false,
        }
    }

    /// The role is told by the type. Where it is another, it is kept.
    fn expect_role(&mut self, expected: &str) {
        if let Some(role) = self.role.filter(|role| !role.is(expected)) {
            self.keep("role", role.raw().into());
        }
    }

    fn said(&self) -> Option<String> {
        self.text
            .and_then(|text| text.as_str())
            .map(Cow::into_owned)
    }

    fn fidelity(&self) -> Fidelity {
        self.fidelity.unwrap_or(Fidelity::AgentEmitted)
    }

    /// What this type of event has no use for is kept.
    fn unused(&mut self, fields: &[(&str, Option<Node<'a>>)]) {
        for (key, node) in fields {
            if let Some(node) = node {
                self.keep(key, node.raw().into());
            }
        }
    }
}

fn body(node: Node<'_>, found: &mut Found<'_>) -> Body {
    match found.kind.as_deref() {
        Some("user_message") => {
            found.expect_role("user");
            Body::UserMessage(message(found, Content::Text))
        }
        Some("assistant_message") => {
            found.expect_role("assistant");
            Body::AssistantMessage(message(found, Content::Text))
        }
        Some("reasoning") => {
            found.expect_role("assistant");
            let mut blocks = message(found, Content::Thinking);
            if blocks.is_empty() && found.blocks.is_none() {
                blocks.push(Block {
                    fidelity: found.fidelity(),
                    content: Content::Thinking(String::new()),
                });
            }
            Body::AssistantMessage(blocks)
        }
        Some("system") => {
            found.expect_role("system");
            Body::SystemMessage(message(found, Content::Text))
        }
        Some("tool_call") => {
            found.expect_role("assistant");
            Body::ToolCall(tool_call(found))
        }
        Some("tool_result") => {
            found.expect_role("tool");
            Body::ToolResult(tool_result(found))
        }
        Some("meta") => {
            found.expect_role("system");
            meta(found)
        }
        _ => unknown(node, found),
    }
}

/// An event of a type that is not known, kept whole.
fn unknown(node: Node<'_>, found: &mut Found<'_>) -> Body {
    let text = found.said();
    found.beyond = Beyond {
        as_is: AsIs::Event,
        ..Beyond::default()
    };
    // Its id is in what is kept.
    found.id = None;
    Body::Note(Note {
        kind: NoteKind::UnknownRecord,
        text,
        raw: Some(node.raw().into()),
    })
}

fn message(found: &mut Found<'_>, content: fn(String) -> Content) -> Vec<Block> {
    found.unused(&[("tool", found.tool), ("meta", found.meta)]);
    if let Some(list) = found.blocks {
        let blocks: Option<Vec<Block>> = list.items().map(block).collect();
        if let Some(blocks) = blocks {
            return blocks;
        }
        found.keep("blocks", list.raw().into());
    }
    let fidelity = found.fidelity();
    let block = |text| Block {
        fidelity,
        content: content(text),
    };
    found.said().map(block).into_iter().collect()
}

/// A block; `None` when there is anything in it that is not known.
fn block(node: Node<'_>) -> Option<Block> {
    let (mut kind, mut fidelity) = (None, Fidelity::AgentEmitted);
    let (mut text, mut name, mut id, mut value) = (None, None, None, None);
    let mut whole = None;
    for (key, node) in node.fields() {
        match key.plain()? {
            "type" if node.is("unknown") => {}
            "type" => kind = Some(word(node, BlockType::from_word)?),
            "value" => whole = Some(Json::from(node.raw())),
            "fidelity" => fidelity = word(node, Fidelity::from_word)?,
            "text" => text = Some(node.as_str()?.into_owned()),
            "name" => name = Some(node.as_str()?.into_owned()),
            "callId" => id = Some(node.as_str()?.into_owned()),
            key @ ("input" | "content") => value = Some((key == "input", Json::from(node.raw()))),
            _ => return None,
        }
    }
    match (kind, whole) {
        (None, Some(whole)) if text.is_none() && name.is_none() && id.is_none() => {
            let content = Content::Unknown(whole);
            return value.is_none().then_some(Block { fidelity, content });
        }
        (_, Some(_)) => return None,
        (_, None) => {}
    }
    let is_input = value.as_ref().map(|(is_input, _)| *is_input);
    let value = value.map(|(_, json)| json);
    let content = match (kind?, text, name, id) {
        (BlockType::Text, Some(text), None, None) => Content::Text(text),
        (BlockType::Thinking, Some(text), None, None) => Content::Thinking(text),
        (BlockType::Command, Some(text), None, None) => Content::Command(text),
        (BlockType::Stream, Some(text), None, None) => Content::Stream(text),
        (BlockType::ToolUse, None, name, id) if is_input != Some(false) => {
            return Some(Block {
                fidelity,
                content: Content::ToolUse {
                    name: name.unwrap_or_default(),
                    id: id.unwrap_or_default().into(),
                    input: value,
                },
            });
        }
        (BlockType::ToolResult, None, None, id) if is_input != Some(true) => {
            return Some(Block {
                fidelity,
                content: Content::ToolResult {
                    id: id.unwrap_or_default().into(),
                    content: value,
                },
            });
        }
        _ => return None,
    };
    value.is_none().then_some(Block { fidelity, content })
}

/// The fields of `tool`.
#[derive(Default)]
struct Tool {
    name: String,
    call_id: String,
    input: Option<Json>,
    output: Option<Json>,
    /// What was given back, where it is no text.
    value: Option<Json>,
    error: Option<String>,
    native_status: Mention<Status>,
    /// A word for the status that is not known.
    foreign: Option<Json>,
}

/// What a foreign word for the end of a call stands for. What is not known to be good is not called good.
fn foreign_status(word: &str) -> Status {
    let letters = word.chars().filter(|mark| mark.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    match plain.as_str() {
        "ok" | "success" | "succeeded" | "successful" | "completed" | "complete" | "done"
        | "passed" => Status::Ok,
        "denied" | "permissiondenied" | "rejected" | "userrejected" | "declined" | "forbidden"
        | "blocked" => Status::Denied,
        "timeout" | "timedout" | "deadlineexceeded" => Status::Timeout,
        _ => Status::Error,
    }
}

fn tool(found: &mut Found<'_>) -> Tool {
    let mut tool = Tool::default();
    let mut nameless = false;
    found.unused(&[("meta", found.meta), ("blocks", found.blocks)]);
    let Some(node) = found.tool else {
        return tool;
    };
    let json = |node: Node<'_>| Some(Json::from(node.raw())).filter(|json| !json.is_null());
    for (key, value) in node.fields() {
        let key = key.to_text_lossy();
        let notes = &mut found.notes;
        let taken = match &*key {
            "name" => set(&mut tool.name, value.as_str().map(Cow::into_owned)),
            "callId" => set(&mut tool.call_id, value.as_str().map(Cow::into_owned)),
            "input" => {
                tool.input = json(value);
                true
            }
            // It has none; what stands there is made up.
            "callIdKnown" if value.as_bool() == Some(false) => {
                nameless = true;
                true
            }
            "output" => {
                tool.output = json(value);
                true
            }
            "outputValue" => {
                tool.value = json(value);
                true
            }
            "error" => set_text(&mut tool.error, value),
            "status" if word(value, Status::from_word).is_none() && value.as_str().is_some() => {
                tool.foreign = Some(value.raw().into());
                true
            }
            "status" => set(&mut notes.status, word(value, Status::from_word)),
            "nativeStatus" => {
                tool.native_status = match word(value, Status::from_word) {
                    Some(status) => Mention::Known(status),
                    None if value.is_null() => Mention::Unknown,
                    None => Mention::Nothing,
                };
                !matches!(tool.native_status, Mention::Nothing)
            }
            "durationMs" => set(&mut notes.duration_ms, value.as_u64()),
            _ => false,
        };
        let is_absent = value.is_null() && TOOL_FIELDS.contains(&&*key);
        if !taken && !is_absent {
            let kept = (key.into_owned(), value.raw().into());
            found.beyond.tool.push(kept);
        }
    }
    if nameless {
        tool.call_id.clear();
    }
    found.notes.status = tool.native_status.or(found.notes.status.as_ref());
    tool
}

fn tool_call(found: &mut Found<'_>) -> ToolCall {
    // A call has no text in the model; what a document says beside it is kept.
    found.unused(&[("text", found.text)]);
    let mut tool = tool(found);
    if let Some(word) = tool.foreign.take() {
        // Of a call that has not ended, it says nothing that is known.
        found.beyond.tool.push(("status".to_owned(), word));
    }
    let error = tool.error.map(|error| Json::string(&error));
    for (key, value) in [
        ("output", tool.output),
        ("outputValue", tool.value),
        ("error", error),
    ] {
        if let Some(value) = value {
            found.beyond.tool.push((key.to_owned(), value));
        }
    }
    ToolCall {
        name: tool.name,
        call_id: tool.call_id.into(),
        input: tool.input,
        fidelity: found.fidelity(),
    }
}

fn tool_result(found: &mut Found<'_>) -> ToolResult {
    let mut tool = tool(found);
    if let Some(word) = tool.foreign.take() {
        let kept = &mut found.beyond.tool;
        if matches!(tool.native_status, Mention::Known(_)) {
            kept.push(("status".to_owned(), word));
        } else {
            let text = word.as_str().unwrap_or_default();
            found.notes.status = Some(foreign_status(&text));
            let has_own = kept.iter().any(|(key, _)| key == "nativeStatus");
            let key = if has_own { "status" } else { "nativeStatus" };
            kept.push((key.to_owned(), word));
        }
    }
    match (&tool.output, found.said()) {
        // Some writers put what the tool gave back where texts are.
        (None, Some(text)) => tool.output = Some(Json::string(&text)),
        (Some(_), _) => found.unused(&[("text", found.text)]),
        (None, None) => {}
    }
    let is_text_of = |value: &Json, output: &Json| {
        let text = output.as_str();
        text.is_some_and(|text| text == said(value))
    };
    match (tool.value.take(), &tool.output) {
        (Some(value), Some(output)) if !is_text_of(&value, output) => {
            // Somebody changed one of them: both are kept.
            let kept = ("outputValue".to_owned(), value);
            found.beyond.tool.push(kept);
        }
        (Some(value), _) => tool.output = Some(value),
        // Why it failed, told twice for readers that know no reason.
        (None, Some(output))
            if tool
                .error
                .as_deref()
                .is_some_and(|error| output.as_str().is_some_and(|text| text == error)) =>
        {
            tool.output = None;
        }
        (None, _) => {}
    }
    renamed(&mut found.beyond.redactions, tool.output.as_ref());
    ToolResult {
        name: tool.name,
        call_id: tool.call_id.into(),
        input: tool.input,
        output: tool.output,
        error: tool.error,
        fidelity: found.fidelity(),
    }
}

/// Documents of before have what is no text where texts are now, and name what was removed from it by that.
fn renamed(redactions: &mut [Redaction], output: Option<&Json>) {
    if output.is_none_or(|output| output.get().starts_with('"')) {
        return;
    }
    for redaction in redactions {
        if let Some(rest) = redaction.field.strip_prefix("tool.output")
            && rest.starts_with(['.', '[', '{'])
        {
            redaction.field = format!("tool.outputValue{rest}");
        }
    }
}

fn meta(found: &mut Found<'_>) -> Body {
    found.unused(&[("tool", found.tool), ("blocks", found.blocks)]);
    let text = found.said();
    let Some(node) = found.meta else {
        return Body::Note(Note {
            kind: NoteKind::Context,
            text,
            raw: None,
        });
    };
    if let Some(step) = step(node, found) {
        found.unused(&[("text", found.text)]);
        return step;
    }
    if let Some(other) = other(node, found) {
        return other;
    }
    let kind = node
        .get("kind")
        .and_then(|kind| word(kind, NoteKind::from_word));
    let Some(kind) = kind else {
        // A kind that is not known: all that is said of it is kept.
        found.beyond.as_is = AsIs::Meta;
        return Body::Note(Note {
            kind: NoteKind::UnknownRecord,
            text,
            raw: Some(node.raw().into()),
        });
    };
    let mut raw = None;
    for (key, value) in node.fields() {
        match &*key.to_text_lossy() {
            "kind" => {}
            "raw" => raw = Some(value.raw().into()),
            other => found
                .beyond
                .meta
                .push((other.to_owned(), value.raw().into())),
        }
    }
    Body::Note(Note { kind, text, raw })
}

/// An event of another kind; `None` when it is something else, or not all of it is there.
fn other(node: Node<'_>, found: &mut Found<'_>) -> Option<Body> {
    if !node.get("kind").is_some_and(|kind| kind.is(OTHER)) {
        return None;
    }
    let event_type = node.get("event")?.as_str()?;
    let fields = node.get("fields")?.raw();
    let known = EventType::from_word(&event_type);
    let body = known.and_then(|known| from_fields(known, fields));
    let is_known = body.is_some();
    let (mut child, mut kept) = (None, Vec::new());
    for (key, value) in node.fields() {
        match &*key.to_text_lossy() {
            "kind" | "event" | "fields" => {}
            "childRunId" if !is_known && value.as_str().is_some() => {
                child = value.as_str().map(Cow::into_owned);
            }
            other => kept.push((other.to_owned(), value.raw().into())),
        }
    }
    let body = body.unwrap_or_else(|| {
        Body::Unknown(Unknown {
            event_type: event_type.into_owned(),
            child_run_id: child,
            payload: fields.into(),
        })
    });
    found.unused(&[("text", found.text)]);
    found.beyond.meta.extend(kept);
    Some(body)
}

/// What happened to a run or a step; `None` when it is something else, or not all of it is there.
fn step(node: Node<'_>, found: &mut Found<'_>) -> Option<Body> {
    if !node
        .get("kind")
        .is_some_and(|kind| ["run", "step", "call"].iter().any(|k| kind.is(k)))
    {
        return None;
    }
    let event = word(node.get("event")?, EventType::from_word)?;
    let (mut name, mut kind, mut error, mut result, mut child) = (None, None, None, None, None);
    let mut kept = Vec::new();
    for (key, value) in node.fields() {
        match &*key.to_text_lossy() {
            "kind" | "event" => {}
            "name" => name = Some(value.as_str()?.into_owned()),
            "stepKind" => kind = Some(value.as_str()?.into_owned()),
            "error" => error = Some(value.as_str()?.into_owned()),
            "result" => result = Some(value.raw().into()),
            "childRunId" => child = Some(run_id(value)?),
            other => kept.push((other.to_owned(), value.raw().into())),
        }
    }
    let step = match (name, kind) {
        (Some(name), Some(kind)) => Some(Step::new(name, kind)),
        (None, None) => None,
        _ => return None,
    };
    let ends = error.is_some() || result.is_some();
    let end = |step| StepEnd {
        step,
        error,
        result,
    };
    let body = match (event, child) {
        (EventType::RunStarted, None) if !ends => Body::RunStarted(step),
        (EventType::RunCompleted, None) if step.is_some() || !ends => {
            Body::RunCompleted(step.map(end))
        }
        (EventType::StepStarted, None) if !ends => Body::StepStarted(step?),
        (EventType::StepCompleted, None) => Body::StepCompleted(end(step?)),
        (EventType::CallStarted, Some(child_run_id)) if !ends => Body::CallStarted {
            child_run_id,
            step: step?,
        },
        (EventType::CallCompleted, Some(child_run_id)) => Body::CallCompleted {
            child_run_id,
            end: end(step?),
        },
        _ => return None,
    };
    found.beyond.meta.extend(kept);
    Some(body)
}
