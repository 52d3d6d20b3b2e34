//! From slices of a line to an owned event.

use std::borrow::Cow;

use super::kinds::{self, carrier};
use super::scan::{Block, BlockObject, Blocks, Envelope, Payload, PayloadObject, Scan, Shape};
use super::{Fault, Warning};
use quipu_model::json::{Cursor, RawJson, SyntaxError};
use quipu_model::{
    Annotations, Attachment, BlockType, Body, Content, Event, EventType, Fidelity, Flags, Json,
    Money, Place, Role, RunId, Source, Status, Step, StepEnd, Timestamp, ToolCall, ToolResult,
    Unknown, UnknownWord, Usage,
};

/// Turns scans into events. Keeps the last run ids, which every line of a file repeats.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    run_id: Option<RunId>,
    parent_run_id: Option<RunId>,
    second: Second,
}

impl Decoder {
    /// Decodes a scan of `text`. Oddities go to `warnings`.
    pub(super) fn decode(
        &mut self,
        scan: &Scan<'_>,
        text: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Event, Fault> {
        let envelope = &scan.envelope;
        let run_id = run_id("run_id", envelope.run_id, &mut self.run_id)?
            .ok_or_else(|| fault("run_id", "missing"))?;
        let parent_run_id = run_id_or_empty(
            "parent_run_id",
            envelope.parent_run_id,
            &mut self.parent_run_id,
        )?;
        let timestamp = self.second.timestamp(envelope.timestamp)?;
        let place = place(envelope, warnings)?;
        let body = match EventType::from_word(&scan.event_type) {
            None => {
                warnings.push(Warning::UnknownEventType(scan.event_type.to_string()));
                Body::Unknown(unknown(scan, text))
            }
            Some(event_type) => match body(event_type, envelope, warnings) {
                Ok(body) => carried(event_type, body, envelope, warnings),
                Err(why) => {
                    warnings.push(Warning::PayloadShape {
                        event_type: event_type.as_str(),
                        why: why.0,
                    });
                    Body::Unknown(unknown(scan, text))
                }
            },
        };
        let mut annotations = Annotations::default();
        for (name, value) in &envelope.others {
            match annotate(&mut annotations, name, *value) {
                Annotated::Taken => {}
                Annotated::Unknown => warnings.push(Warning::UnknownField(name.to_string())),
                // Another writer may use the name for something of its own.
                Annotated::Refused(name, why) => warnings.push(Warning::Annotation { name, why }),
            }
        }
        Ok(Event {
            seq: scan.seq,
            run_id,
            parent_run_id,
            timestamp,
            place,
            body,
            annotations,
        })
    }
}

/// Decodes the text of one event, which is known to be JSON, and says what is odd about it.
///
/// # Errors
///
/// When it is not an event.
pub fn decode_text(text: &str) -> Result<(Event, Vec<Warning>), Fault> {
    let (scan, _) = Scan::parse(text, usize::MAX)?;
    let mut warnings = Vec::new();
    let event = Decoder::default().decode(&scan, text, &mut warnings)?;
    Ok((event, warnings))
}

/// What does not fit.
#[derive(Debug)]
pub(super) struct Misfit(pub(super) String);

impl From<&str> for Misfit {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

fn fault(name: &'static str, why: impl Into<String>) -> Fault {
    Fault::Field {
        name,
        why: why.into(),
    }
}

fn run_id(
    name: &'static str,
    raw: Option<RawJson<'_>>,
    last: &mut Option<RunId>,
) -> Result<Option<RunId>, Fault> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else {
        return Ok(None);
    };
    let text = raw.as_str().ok_or_else(|| fault(name, "not a string"))?;
    match last {
        Some(last) if last.as_str() == text => Ok(Some(last.clone())),
        _ => {
            let id = RunId::new(&text).map_err(|e| fault(name, e.to_string()))?;
            *last = Some(id.clone());
            Ok(Some(id))
        }
    }
}

/// Like [`run_id`], but an empty string means there is none.
fn run_id_or_empty(
    name: &'static str,
    raw: Option<RawJson<'_>>,
    last: &mut Option<RunId>,
) -> Result<Option<RunId>, Fault> {
    run_id(name, raw.filter(|raw| raw.get() != "\"\""), last)
}

pub(super) fn parent_run_id(envelope: &Envelope<'_>) -> Result<Option<RunId>, Fault> {
    run_id_or_empty("parent_run_id", envelope.parent_run_id, &mut None)
}

/// The last second that was read. Times of neighbouring events differ in the fraction only, and
/// reading that is much cheaper than reading a date.
#[derive(Debug, Default)]
struct Second {
    /// `2026-06-08T08:14:42`
    text: [u8; 19],
    seconds: i64,
}

impl Second {
    fn timestamp(&mut self, raw: Option<RawJson<'_>>) -> Result<Timestamp, Fault> {
        let name = "timestamp";
        let text = raw
            .ok_or_else(|| fault(name, "missing"))
            .and_then(|raw| text(name, raw))?;
        if let Some((second, fraction)) = text.as_bytes().split_first_chunk::<19>()
            && *second == self.text
            && let Some(nanos) = nanos(fraction)
            && let Ok(timestamp) = Timestamp::new(self.seconds, nanos)
        {
            return Ok(timestamp);
        }
        let timestamp: Timestamp = text
            .parse()
            .map_err(|_| fault(name, format!("not an RFC 3339 time: {text:?}")))?;
        // Before 1970 the fraction counts the other way; with an offset the text is another.
        if let Some((second, b'.' | b'Z')) = text
            .as_bytes()
            .split_first_chunk::<19>()
            .map(|(s, f)| (s, f.first().copied().unwrap_or(0)))
            && text.ends_with('Z')
            && timestamp.as_second() > 0
        {
            self.text = *second;
            self.seconds = timestamp.as_second();
        }
        Ok(timestamp)
    }
}

/// The nanoseconds of `.123Z` or `Z`; `None` for anything else.
fn nanos(fraction: &[u8]) -> Option<i32> {
    let digits = match fraction {
        b"Z" => return Some(0),
        [b'.', digits @ .., b'Z'] if (1..=9).contains(&digits.len()) => digits,
        _ => return None,
    };
    let mut nanos = 0;
    for at in 0..9 {
        let digit = digits.get(at).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        nanos = nanos * 10 + i32::from(digit - b'0');
    }
    Some(nanos)
}

/// The place of an event. Missing parts are warned of.
pub(super) fn place(envelope: &Envelope<'_>, warnings: &mut Vec<Warning>) -> Result<Place, Fault> {
    let path = envelope.path.map(|raw| text("path", raw)).transpose()?;
    let iteration = envelope
        .iteration
        .map(|raw| number("iteration", raw))
        .transpose()?;
    let missing = [("path", path.is_none()), ("iteration", iteration.is_none())];
    warnings.extend(
        missing
            .into_iter()
            .filter(|m| m.1)
            .map(|(name, _)| Warning::MissingField(name)),
    );
    let path = path.map(Cow::into_owned).unwrap_or_default();
    let mut place = Place::flat(path, iteration.unwrap_or(0));
    let refused = |name, why: String| Warning::Annotation { name, why };
    if let Some(raw) = envelope.iterations {
        match parsed::<Vec<u64>>(raw) {
            Ok(all) if all.last().copied().unwrap_or(0) == place.iteration() => {
                place.iterations = all;
            }
            Ok(_) => warnings.push(refused(
                "iterations",
                "the last is not \"iteration\"".to_owned(),
            )),
            Err(why) => warnings.push(refused("iterations", why)),
        }
    }
    if let Some(raw) = envelope.attempt {
        match raw.as_u64() {
            Some(attempt @ 1..) => place.attempt = attempt,
            _ => warnings.push(refused(
                "attempt",
                "it is not a whole number from 1".to_owned(),
            )),
        }
    }
    Ok(place)
}

fn text<'a>(name: &'static str, raw: RawJson<'a>) -> Result<Cow<'a, str>, Fault> {
    raw.as_str().ok_or_else(|| fault(name, "not a string"))
}

fn number(name: &'static str, raw: RawJson<'_>) -> Result<u64, Fault> {
    raw.as_u64()
        .ok_or_else(|| fault(name, "not a whole number that is zero or greater"))
}

/// What a line of one type carries, where it says that it is something else. What does not fit is read by its type.
pub(super) fn carried(
    event_type: EventType,
    body: Body,
    envelope: &Envelope<'_>,
    warnings: &mut Vec<Warning>,
) -> Body {
    let (raw, event) = (envelope.as_kind, envelope.event);
    if raw.is_none() && event.is_none() {
        return body;
    }
    let kind = raw
        .and_then(|raw| EventType::from_word(&raw.as_str()?))
        .filter(|kind| !kind.is_exchange());
    let Some(kind) = kind else {
        // Another writer may use the names for something of its own.
        let names = [("as", raw.is_some()), ("event", event.is_some())];
        let unknown = names.into_iter().filter(|(_, is_set)| *is_set);
        warnings.extend(unknown.map(|(name, _)| Warning::UnknownField(name.to_owned())));
        return body;
    };
    if carrier(kind) != event_type {
        warnings.push(Warning::Annotation {
            name: "as",
            why: format!("{kind} is carried by {}", carrier(kind)),
        });
        return body;
    }
    match kinds::read_carried(kind, event, body.blocks().unwrap_or_default(), warnings) {
        Ok(Some(kind)) => kind,
        Ok(None) => match body {
            Body::UserMessage(blocks) => Body::SystemMessage(blocks),
            other => other,
        },
        Err(Misfit(why)) => {
            warnings.push(Warning::Annotation { name: "event", why });
            body
        }
    }
}

/// The body of an event of a known type.
pub(super) fn body(
    event_type: EventType,
    envelope: &Envelope<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Body, Misfit> {
    if !event_type.is_exchange() {
        warnings.push(Warning::OpenType(event_type.as_str()));
    }
    let child = child_run_id(event_type, envelope)?;
    let object = || match &envelope.payload {
        Payload::Object(object) => Ok(object),
        Payload::Missing => Err(Misfit::from("it is missing")),
        Payload::List(_) | Payload::Other(_) => Err("it is not an object".into()),
    };
    let no_payload = envelope.payload.shape() == Shape::Null;
    let body = match (event_type, child) {
        (EventType::RunStarted, _) if no_payload => Body::RunStarted(None),
        (EventType::RunCompleted, _) if no_payload => Body::RunCompleted(None),
        (EventType::RunStarted, _) => Body::RunStarted(Some(step(object()?)?)),
        (EventType::RunCompleted, _) => Body::RunCompleted(Some(step_end(object()?)?)),
        (EventType::StepStarted, _) => Body::StepStarted(step(object()?)?),
        (EventType::StepCompleted, _) => Body::StepCompleted(step_end(object()?)?),
        (EventType::CallStarted, Some(child_run_id)) => Body::CallStarted {
            child_run_id,
            step: step(object()?)?,
        },
        (EventType::CallCompleted, Some(child_run_id)) => Body::CallCompleted {
            child_run_id,
            end: step_end(object()?)?,
        },
        (EventType::CallStarted | EventType::CallCompleted, None) => {
            return Err("child_run_id is missing".into());
        }
        (EventType::UserMessage | EventType::AssistantMessage | EventType::SystemMessage, _) => {
            let blocks = match &envelope.payload {
                Payload::List(list) => {
                    warnings.push(Warning::MissingField("payload.role"));
                    list_of_blocks(list, warnings)
                }
                _ => blocks(event_type, object()?, warnings)?,
            };
            of_role(role_of(event_type), blocks)
        }
        (EventType::ToolCall, _) => Body::ToolCall(tool_call(object()?, warnings)?),
        (EventType::ToolResult, _) => Body::ToolResult(tool_result(object()?, warnings)?),
        (
            EventType::ModelCall
            | EventType::Chunk
            | EventType::Harness
            | EventType::Blob
            | EventType::Error
            | EventType::Note,
            _,
        ) => return kinds::read_open(event_type, object()?, warnings),
    };
    unknown_payload_fields(envelope, warnings);
    Ok(body)
}

fn unknown_payload_fields(envelope: &Envelope<'_>, warnings: &mut Vec<Warning>) {
    if let Payload::Object(object) = &envelope.payload {
        unknown_fields("payload", &object.others, warnings);
    }
}

fn child_run_id(event_type: EventType, envelope: &Envelope<'_>) -> Result<Option<RunId>, Misfit> {
    let child = run_id_or_empty("child_run_id", envelope.child_run_id, &mut None)
        .map_err(|e| Misfit(e.to_string()))?;
    match event_type {
        EventType::CallStarted | EventType::CallCompleted => Ok(child),
        _ if child.is_some() => Err("child_run_id belongs to call_workflow events only".into()),
        _ => Ok(None),
    }
}

fn required(name: &str, raw: Option<RawJson<'_>>) -> Result<String, Misfit> {
    match raw {
        None => Err(Misfit(format!("{name:?} is missing"))),
        Some(raw) => raw
            .as_str()
            .map(Cow::into_owned)
            .ok_or_else(|| Misfit(format!("{name:?} is not a string"))),
    }
}

/// An optional string, where null, empty and missing all mean there is none.
fn optional(name: &str, raw: Option<RawJson<'_>>) -> Result<Option<String>, Misfit> {
    match raw.filter(|raw| !raw.is_null()) {
        None => Ok(None),
        Some(raw) => required(name, Some(raw)).map(|text| Some(text).filter(|t| !t.is_empty())),
    }
}

/// An optional string, where none is empty.
pub(super) fn optional_text(name: &str, raw: Option<RawJson<'_>>) -> Result<String, Misfit> {
    optional(name, raw).map(Option::unwrap_or_default)
}

fn absent(event: &str, fields: &[(&str, Option<RawJson<'_>>)]) -> Result<(), Misfit> {
    match fields
        .iter()
        .find(|(_, raw)| raw.is_some_and(|raw| !raw.is_null()))
    {
        Some((name, _)) => Err(Misfit(format!("{name:?} does not belong to {event}"))),
        None => Ok(()),
    }
}

fn value(raw: Option<RawJson<'_>>) -> Option<Json> {
    raw.filter(|raw| !raw.is_null()).map(Json::from)
}

fn step(object: &PayloadObject<'_>) -> Result<Step, Misfit> {
    absent(
        "the start of a step",
        &[("error", object.error), ("result", object.result)],
    )?;
    step_fields(object)
}

fn step_fields(object: &PayloadObject<'_>) -> Result<Step, Misfit> {
    absent(
        "a step",
        &[
            ("role", object.role),
            ("call_id", object.call_id),
            ("input", object.input),
            ("output", object.output),
            ("fidelity", object.fidelity),
        ],
    )?;
    no_blocks("a step", object)?;
    Ok(Step {
        name: required("name", object.name)?,
        kind: required("kind", object.kind)?.into(),
    })
}

fn no_blocks(event: &str, object: &PayloadObject<'_>) -> Result<(), Misfit> {
    match object.blocks {
        Blocks::Missing => Ok(()),
        Blocks::Other(raw) if raw.is_null() => Ok(()),
        Blocks::List(_) | Blocks::Other(_) => {
            Err(Misfit(format!("\"blocks\" does not belong to {event}")))
        }
    }
}

fn step_end(object: &PayloadObject<'_>) -> Result<StepEnd, Misfit> {
    Ok(StepEnd {
        step: step_fields(object)?,
        error: optional("error", object.error)?,
        // Only a missing result is none: engines write `false` and `null` and mean them.
        result: object.result.map(Json::from),
    })
}

/// Who saw it. Engines write an empty word where they do not know; of the two words, the one that claims less is
/// taken for it, and for words that are not known.
pub(super) fn fidelity(
    raw: Option<RawJson<'_>>,
    warnings: &mut Vec<Warning>,
) -> Result<Fidelity, Misfit> {
    let word = optional("fidelity", raw)?.unwrap_or_default();
    Ok(Fidelity::from_word(&word).unwrap_or_else(|| {
        warnings.push(Warning::Fidelity(word));
        Fidelity::AgentEmitted
    }))
}

fn tool_call(object: &PayloadObject<'_>, warnings: &mut Vec<Warning>) -> Result<ToolCall, Misfit> {
    absent(
        "tool.call",
        &[("output", object.output), ("error", object.error)],
    )?;
    let ToolResult {
        name,
        call_id,
        input,
        fidelity,
        ..
    } = tool_result(object, warnings)?;
    Ok(ToolCall {
        name,
        call_id,
        input,
        fidelity,
    })
}

fn tool_result(
    object: &PayloadObject<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<ToolResult, Misfit> {
    absent(
        "a tool event",
        &[
            ("role", object.role),
            ("kind", object.kind),
            ("result", object.result),
        ],
    )?;
    no_blocks("a tool event", object)?;
    Ok(ToolResult {
        name: required("name", object.name)?,
        call_id: required("call_id", object.call_id)?.into(),
        input: value(object.input),
        output: value(object.output),
        error: optional("error", object.error)?,
        fidelity: fidelity(object.fidelity, warnings)?,
    })
}

/// The blocks of a message.
fn blocks(
    event_type: EventType,
    object: &PayloadObject<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<quipu_model::Block>, Misfit> {
    absent(
        "a message",
        &[
            ("call_id", object.call_id),
            ("kind", object.kind),
            ("name", object.name),
            ("error", object.error),
            ("result", object.result),
            ("input", object.input),
            ("output", object.output),
            ("fidelity", object.fidelity),
        ],
    )?;
    let role = required("role", object.role)?;
    if Role::from_word(&role) != Some(role_of(event_type)) {
        return Err(Misfit(format!("the role is {role:?}")));
    }
    let list = match &object.blocks {
        Blocks::Missing => return Err("\"blocks\" is missing".into()),
        Blocks::Other(raw) if raw.is_null() => return Ok(Vec::new()),
        Blocks::Other(_) => return Err("\"blocks\" is not a list".into()),
        Blocks::List(list) => list,
    };
    Ok(list_of_blocks(list, warnings))
}

/// Blocks in order. Those that do not fit the vocabulary are handed over as they are.
fn list_of_blocks(list: &[Block<'_>], warnings: &mut Vec<Warning>) -> Vec<quipu_model::Block> {
    let one = |(index, item): (usize, &Block<'_>)| {
        block(index, item, warnings)
            .unwrap_or_else(|| quipu_model::Block::unknown(item.text.into()))
    };
    list.iter().enumerate().map(one).collect()
}

fn role_of(event_type: EventType) -> Role {
    match event_type {
        EventType::UserMessage => Role::User,
        EventType::SystemMessage => Role::System,
        _ => Role::Assistant,
    }
}

/// A message of a role.
pub(super) fn of_role(role: Role, blocks: Vec<quipu_model::Block>) -> Body {
    match role {
        Role::User => Body::UserMessage(blocks),
        Role::Assistant => Body::AssistantMessage(blocks),
        Role::System => Body::SystemMessage(blocks),
    }
}

/// A block, or `None` with a warning that says why not.
fn block(
    index: usize,
    item: &Block<'_>,
    warnings: &mut Vec<Warning>,
) -> Option<quipu_model::Block> {
    let Some(object) = &item.object else {
        warnings.push(Warning::BlockShape {
            index,
            why: "it is not an object".to_owned(),
        });
        return None;
    };
    let word = object
        .block_type
        .and_then(|raw| raw.as_str())
        .unwrap_or_default();
    let Some(block_type) = BlockType::from_word(&word) else {
        warnings.push(Warning::UnknownBlockType {
            index,
            block_type: word.into_owned(),
        });
        return None;
    };
    match block_content(block_type, object, warnings) {
        Ok(content) => {
            if !object.others.is_empty() {
                unknown_fields(
                    &format!("payload.blocks[{index}]"),
                    &object.others,
                    warnings,
                );
            }
            Some(content)
        }
        Err(Misfit(why)) => {
            warnings.push(Warning::BlockShape { index, why });
            None
        }
    }
}

fn block_content(
    block_type: BlockType,
    object: &BlockObject<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<quipu_model::Block, Misfit> {
    let fields = [
        (
            "text",
            object.text,
            matches!(block_type, BlockType::Text | BlockType::Stream),
        ),
        (
            "thinking",
            object.thinking,
            block_type == BlockType::Thinking,
        ),
        (
            "tool_name",
            object.tool_name,
            block_type == BlockType::ToolUse,
        ),
        (
            "tool_id",
            object.tool_id,
            matches!(block_type, BlockType::ToolUse | BlockType::ToolResult),
        ),
        (
            "tool_input",
            object.tool_input,
            block_type == BlockType::ToolUse,
        ),
        (
            "tool_content",
            object.tool_content,
            block_type == BlockType::ToolResult,
        ),
        ("command", object.command, block_type == BlockType::Command),
        ("chunk", object.chunk, block_type == BlockType::Stream),
    ];
    if let Some((name, ..)) = fields
        .iter()
        .find(|(_, raw, fits)| !fits && raw.is_some_and(|raw| !raw.is_null()))
    {
        return Err(Misfit(format!(
            "{name:?} does not belong to a {block_type} block"
        )));
    }
    let text = optional_text;
    let content = match block_type {
        BlockType::Text => Content::Text(text("text", object.text)?),
        BlockType::Thinking => Content::Thinking(text("thinking", object.thinking)?),
        BlockType::ToolUse => Content::ToolUse {
            name: text("tool_name", object.tool_name)?,
            id: text("tool_id", object.tool_id)?.into(),
            input: object.tool_input.map(Json::from),
        },
        BlockType::ToolResult => Content::ToolResult {
            id: text("tool_id", object.tool_id)?.into(),
            content: object.tool_content.map(Json::from),
        },
        BlockType::Command => Content::Command(text("command", object.command)?),
        // The specification names the field `chunk` in one table and `text` in another; `chunk` is written.
        BlockType::Stream => {
            let (in_text, in_chunk) = (text("text", object.text)?, text("chunk", object.chunk)?);
            match (in_text.is_empty(), in_chunk.is_empty()) {
                (false, false) if in_text != in_chunk => {
                    return Err("\"text\" and \"chunk\" differ".into());
                }
                (false, _) => Content::Stream(in_text),
                _ => Content::Stream(in_chunk),
            }
        }
    };
    Ok(quipu_model::Block {
        fidelity: fidelity(object.fidelity, warnings)?,
        content,
    })
}

fn unknown_fields(at: &str, fields: &[(Cow<'_, str>, RawJson<'_>)], warnings: &mut Vec<Warning>) {
    warnings.extend(
        fields
            .iter()
            .map(|(name, _)| Warning::UnknownField(format!("{at}.{name}"))),
    );
}

/// The event as it is written. Walks the text again; such events are rare.
fn unknown(scan: &Scan<'_>, text: &str) -> Unknown {
    Unknown {
        event_type: scan.event_type.to_string(),
        child_run_id: scan
            .envelope
            .child_run_id
            .and_then(|raw| raw.as_str())
            .map(Cow::into_owned),
        payload: raw_payload(text).map_or_else(Json::null, Json::from),
    }
}

fn raw_payload(text: &str) -> Option<RawJson<'_>> {
    let mut payload = None;
    let mut cursor = Cursor::new(text, usize::MAX);
    let walked = cursor.object(|key, cursor| {
        let value = cursor.value()?;
        if key.to_text_lossy() == "payload" {
            payload = Some(value);
        }
        Ok::<(), SyntaxError>(())
    });
    walked.ok().and(payload)
}

/// Reads a payload by its shape, as the format asks of readers that meet a type they do not know. `None` where the
/// shape says too little.
pub fn probe(
    event_type: &str,
    payload: &str,
    max_depth: usize,
    warnings: &mut Vec<Warning>,
) -> Option<Body> {
    let payload = Payload::read(&mut Cursor::new(payload, max_depth)).ok()?;
    let shape = payload.shape();
    let Payload::Object(object) = &payload else {
        return None;
    };
    let probed = match shape {
        Shape::Message => {
            let role = Role::from_word(&required("role", object.role).ok()?)?;
            let Blocks::List(list) = &object.blocks else {
                return None;
            };
            of_role(role, list_of_blocks(list, warnings))
        }
        Shape::Tool if object.output.is_none_or(|it| it.is_null()) && object.error.is_none() => {
            Body::ToolCall(tool_call(object, warnings).ok()?)
        }
        Shape::Tool => Body::ToolResult(tool_result(object, warnings).ok()?),
        Shape::Step if event_type.ends_with(".started") => Body::StepStarted(step(object).ok()?),
        Shape::Step if event_type.ends_with(".completed") => {
            Body::StepCompleted(step_end(object).ok()?)
        }
        Shape::Step | Shape::Null | Shape::Blocks | Shape::Other => return None,
    };
    unknown_fields("payload", &object.others, warnings);
    Some(probed)
}

/// What became of a field that the specification does not name.
pub(super) enum Annotated {
    Taken,
    /// It is not one that Quipu adds.
    Unknown,
    /// It is, by name, but holds something else.
    Refused(&'static str, String),
}

/// Reads one of the additive fields.
pub(super) fn annotate(to: &mut Annotations, name: &str, raw: RawJson<'_>) -> Annotated {
    let (name, result) = match name {
        "native_id" => ("native_id", given(raw).map(|v| to.native_id = v)),
        "parent_id" => ("parent_id", given(raw).map(|v| to.parent_id = v)),
        "subagent_id" => ("subagent_id", given(raw).map(|v| to.subagent_id = v)),
        "model" => ("model", parsed(raw).map(|v| to.model = v)),
        "model_call" => ("model_call", given(raw).map(|v| to.model_call = v)),
        "stop_reason" => ("stop_reason", parsed(raw).map(|v| to.stop_reason = v)),
        "extra" => ("extra", extra(raw).map(|v| to.extra = v)),
        "status" => ("status", status(raw).map(|v| to.status = Some(v))),
        "child" => ("child", child(raw).map(|v| to.child = Some(v))),
        "attachments" => ("attachments", attachments(raw).map(|v| to.attachments = v)),
        "duration_ms" => ("duration_ms", parsed(raw).map(|v| to.duration_ms = v)),
        "cost_usd" => ("cost_usd", cost(raw).map(|v| to.cost = Some(v))),
        "usage" => ("usage", usage(raw).map(|v| to.usage = Some(v))),
        "source" => ("source", source(raw).map(|v| to.source = Some(v))),
        "flags" => ("flags", flags(raw).map(|v| to.flags = v)),
        _ => return Annotated::Unknown,
    };
    match result {
        Ok(()) => Annotated::Taken,
        Err(why) => Annotated::Refused(name, why),
    }
}

fn parsed<'a, T: serde::Deserialize<'a>>(raw: RawJson<'a>) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|e| e.to_string())
}

/// An id that somebody else gave.
fn given<I: From<String>>(raw: RawJson<'_>) -> Result<Option<I>, String> {
    parsed::<Option<String>>(raw).map(|id| id.map(I::from))
}

fn usage(raw: RawJson<'_>) -> Result<Usage, String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        input: Option<u64>,
        cache_read: Option<u64>,
        cache_write: Option<u64>,
        cache_write_1h: Option<u64>,
        output: Option<u64>,
        reasoning: Option<u64>,
    }
    let Wire {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    } = parsed(raw)?;
    Ok(Usage {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    })
}

fn cost(raw: RawJson<'_>) -> Result<Money, String> {
    Money::parse(raw.get()).ok_or_else(|| format!("{:?} is no sum of money", raw.get()))
}

fn source(raw: RawJson<'_>) -> Result<Source, String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        file: String,
        offset: u64,
        line: u64,
    }
    let Wire { file, offset, line } = parsed(raw)?;
    Ok(Source { file, offset, line })
}

fn extra(raw: RawJson<'_>) -> Result<Option<Json>, String> {
    match raw.get().trim_start().as_bytes().first() {
        // A text is what stands for an object that was taken out.
        Some(b'{' | b'"') => Ok(Some(raw.into())),
        Some(b'n') => Ok(None),
        _ => Err("it is not an object".to_owned()),
    }
}

fn status(raw: RawJson<'_>) -> Result<Status, String> {
    parsed::<String>(raw)?
        .parse()
        .map_err(|e: UnknownWord| e.to_string())
}

fn child(raw: RawJson<'_>) -> Result<RunId, String> {
    RunId::new(&parsed::<String>(raw)?).map_err(|e| e.to_string())
}

fn attachments(raw: RawJson<'_>) -> Result<Vec<Attachment>, String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wire {
        mime: String,
        bytes: u64,
        sha256: String,
    }
    let wire: Vec<Wire> = parsed(raw)?;
    Ok(wire
        .into_iter()
        .map(
            |Wire {
                 mime,
                 bytes,
                 sha256,
             }| Attachment {
                mime,
                bytes,
                sha256,
            },
        )
        .collect())
}

fn flags(raw: RawJson<'_>) -> Result<Flags, String> {
    let mut flags = Flags::default();
    for word in parsed::<Vec<String>>(raw)? {
        match word.as_str() {
            "opaque" => flags.opaque = true,
            "synthetic" => flags.synthetic = true,
            "superseded" => flags.superseded = true,
            "undated" => flags.undated = true,
            "dangling" => flags.dangling = true,
            _ => return Err(format!("unknown flag {word:?}")),
        }
    }
    Ok(flags)
}
