//! The kinds of events that the closed vocabulary has no type for.
//!
//! In a file, such an event is a line of a type that the vocabulary has, with a payload that any reader understands.
//! Two more fields of the envelope carry the event: `as` names the kind, `event` holds its fields. Where a line may
//! have any type (`quipu show --jsonl`, `quipu emit`), the same fields are the payload.
//!
//! | kind | carried by | payload for other readers | `event` |
//! |---|---|---|---|
//! | `message.system` | `message.user` | the blocks themselves | none |
//! | `chunk` | `message.assistant` | a stream block with the text | all but the text and who saw it |
//! | all others | `message.assistant` | one text block: a short sentence | all of it |

use std::borrow::Cow;

use quipu_model::json::{Cursor, RawJson, SyntaxError};
use quipu_model::{
    Annotations, Attachment, Block, Body, Chunk, Content, EventType, Failure, Fidelity,
    HarnessEvent, Json, ModelCall, Note, NoteKind, Severity, Timestamp,
};

use super::Warning;
use super::decode::{Misfit, fidelity, optional_text};
use super::encode::Writer;
use super::scan::{Blocks, PayloadObject};

/// How many characters of a text a sentence repeats.
const REPEATED: usize = 200;

/// The type of the line that carries a kind in a file; the type itself where the vocabulary has it.
pub(super) fn carrier(event_type: EventType) -> EventType {
    match event_type {
        EventType::SystemMessage => EventType::UserMessage,
        EventType::ModelCall
        | EventType::Chunk
        | EventType::Harness
        | EventType::Blob
        | EventType::Error
        | EventType::Note => EventType::AssistantMessage,
        known => known,
    }
}

/// What an event says, in a short sentence, for readers that do not know its kind. Empty for messages, tools and
/// steps.
pub fn sentence(body: &Body, model: Option<&str>) -> String {
    match body {
        Body::ModelCall(call) => {
            let model = model.map_or("a model", start_of);
            let by = call.provider.as_deref().map(start_of);
            let by = by.map_or_else(String::new, |by| format!(" ({by})"));
            match &call.error {
                Some(error) => format!("Call to {model}{by} failed: {}", start_of(error)),
                None => format!("Call to {model}{by}"),
            }
        }
        Body::Chunk(chunk) => format!("Chunk {} of a response", chunk.index),
        Body::Harness(event) => format!(
            "Harness event: {}, {}",
            start_of(&event.category),
            start_of(&event.name)
        ),
        Body::Blob(blob) => {
            let mime = match blob.mime.as_str() {
                "" => "unknown type",
                mime => start_of(mime),
            };
            let hash = start_of(&blob.sha256);
            format!("Blob: {} bytes of {mime}, sha256 {hash}", blob.bytes)
        }
        Body::Error(failure) => {
            let code = failure.code.as_deref().map(start_of);
            let code = code.map_or_else(String::new, |code| format!(" {code}"));
            format!("Error{code}: {}", start_of(&failure.message))
        }
        Body::Note(note) => match &note.text {
            Some(said) => format!("Note ({}): {}", note.kind, start_of(said)),
            None => format!("Note ({})", note.kind),
        },
        _ => String::new(),
    }
}

/// The fields of an event of a kind that the vocabulary has no type for, as one object.
pub fn fields_json(body: &Body) -> Option<Json> {
    let mut text = Vec::new();
    Writer::new(&mut text).kind(body, false);
    Json::parse(std::str::from_utf8(&text).ok()?).ok()
}

fn start_of(text: &str) -> &str {
    text.char_indices()
        .nth(REPEATED)
        .map_or(text, |(at, _)| &text[..at])
}

/// The message that carries an event in a file.
pub(super) fn message(body: &Body, annotations: &Annotations) -> Block {
    match body {
        Body::Chunk(chunk) => Block {
            fidelity: chunk.fidelity,
            content: Content::Stream(chunk.text.clone()),
        },
        // The program that records says it, not the agent.
        _ => Block::text(
            Fidelity::Router,
            sentence(body, annotations.model.as_deref()),
        ),
    }
}

impl Writer<'_> {
    /// The fields of a kind, as an object. `carried` leaves out what the message around it says.
    pub(super) fn kind(&mut self, body: &Body, carried: bool) {
        let mut object = Object::begin(self);
        match body {
            Body::ModelCall(call) => object.model_call(call),
            Body::Chunk(chunk) => object.chunk(chunk, carried),
            Body::Harness(event) => object.harness(event),
            Body::Blob(blob) => object.blob(blob),
            Body::Error(failure) => object.failure(failure),
            Body::Note(note) => object.note(note),
            _ => {}
        }
        object.end();
    }
}

/// The fields of an object, as they are written.
struct Object<'w, 'o> {
    to: &'w mut Writer<'o>,
    lead: &'static str,
}

impl<'w, 'o> Object<'w, 'o> {
    fn begin(to: &'w mut Writer<'o>) -> Self {
        Self { to, lead: "{\"" }
    }

    fn end(self) {
        self.to.raw(if self.lead == "{\"" { "{}" } else { "}" });
    }

    fn key(&mut self, key: &str) -> &mut Writer<'o> {
        self.to.raw(std::mem::replace(&mut self.lead, ",\""));
        self.to.raw(key);
        self.to.raw("\":");
        self.to
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key).string(text);
    }

    fn some_text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    fn json(&mut self, key: &str, json: Option<&Json>) {
        if let Some(json) = json {
            self.key(key).raw(json.get());
        }
    }

    fn number(&mut self, key: &str, number: Option<u64>) {
        if let Some(number) = number {
            self.key(key).number(number);
        }
    }

    fn flag(&mut self, key: &str, flag: Option<bool>) {
        if let Some(flag) = flag {
            self.key(key).raw(if flag { "true" } else { "false" });
        }
    }

    fn model_call(&mut self, call: &ModelCall) {
        let ModelCall {
            provider,
            params,
            request,
            response,
            first_token_ms,
            error,
        } = call;
        self.some_text("provider", provider.as_deref());
        self.json("params", params.as_ref());
        for (key, blob) in [("request", request), ("response", response)] {
            if let Some(blob) = blob {
                self.key(key).attachment(blob);
            }
        }
        self.number("first_token_ms", *first_token_ms);
        self.some_text("error", error.as_deref());
    }

    fn chunk(&mut self, chunk: &Chunk, carried: bool) {
        let Chunk {
            index,
            text,
            delta,
            arrived_at,
            is_last,
            fidelity,
        } = chunk;
        self.number("index", Some(*index));
        if !carried {
            self.text("text", text);
        }
        self.json("delta", delta.as_ref());
        if let Some(at) = arrived_at {
            self.text("arrived_at", &at.to_string());
        }
        self.flag("is_last", Some(true).filter(|_| *is_last));
        if !carried {
            self.text("fidelity", fidelity.as_str());
        }
    }

    fn harness(&mut self, event: &HarnessEvent) {
        let HarnessEvent {
            category,
            name,
            severity,
            attributes,
        } = event;
        self.text("category", category);
        self.text("name", name);
        self.some_text("severity", severity.map(Severity::as_str));
        self.json("attributes", attributes.as_ref());
    }

    fn blob(&mut self, blob: &Attachment) {
        self.text("mime", &blob.mime);
        self.number("bytes", Some(blob.bytes));
        self.text("sha256", &blob.sha256);
    }

    fn failure(&mut self, failure: &Failure) {
        let Failure {
            source,
            code,
            message,
            retryable,
        } = failure;
        self.some_text("source", source.as_deref());
        self.some_text("code", code.as_deref());
        self.text("message", message);
        self.flag("retryable", *retryable);
    }

    fn note(&mut self, note: &Note) {
        let Note { kind, text, raw } = note;
        self.text("kind", kind.as_str());
        self.some_text("text", text.as_deref());
        self.json("raw", raw.as_ref());
    }
}

/// The fields of an object, as they are read. What is left in the end is not known.
struct Fields<'a>(Vec<(Cow<'a, str>, RawJson<'a>)>);

impl<'a> Fields<'a> {
    /// The value of a field; `None` when it is missing or null.
    fn take(&mut self, name: &str) -> Option<RawJson<'a>> {
        self.take_any(name).filter(|raw| !raw.is_null())
    }

    fn take_any(&mut self, name: &str) -> Option<RawJson<'a>> {
        let at = self.0.iter().rposition(|(key, _)| key == name)?;
        let found = self.0[at].1;
        self.0.retain(|(key, _)| key != name);
        Some(found)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Misfit> {
        let text = |raw: RawJson<'_>| {
            raw.as_str()
                .map(Cow::into_owned)
                .ok_or_else(|| Misfit(format!("{name:?} is not a string")))
        };
        self.take(name).map(text).transpose()
    }

    fn required(&mut self, name: &str) -> Result<String, Misfit> {
        self.text(name)?
            .ok_or_else(|| Misfit(format!("{name:?} is missing")))
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>, Misfit> {
        let number = |raw: RawJson<'_>| {
            raw.as_u64()
                .ok_or_else(|| Misfit(format!("{name:?} is not a whole number")))
        };
        self.take(name).map(number).transpose()
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, Misfit> {
        match self.take(name).as_ref().map(RawJson::get) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(Misfit(format!("{name:?} is neither true nor false"))),
        }
    }

    fn json(&mut self, name: &str) -> Option<Json> {
        self.take_any(name).map(Json::from)
    }

    fn word<T>(
        &mut self,
        name: &str,
        from_word: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Misfit> {
        let known = |word: String| {
            from_word(&word)
                .ok_or_else(|| Misfit(format!("{name:?} is {word:?}, which is unknown")))
        };
        self.text(name)?.map(known).transpose()
    }

    fn blob(&mut self, name: &str) -> Result<Option<Attachment>, Misfit> {
        let Some(raw) = self.take(name) else {
            return Ok(None);
        };
        let mut fields = fields_of(raw)?;
        let blob = attachment(&mut fields)?;
        match fields.0.first() {
            Some((key, _)) => Err(Misfit(format!("{name:?} has an unknown field {key:?}"))),
            None => Ok(Some(blob)),
        }
    }
}

fn attachment(fields: &mut Fields<'_>) -> Result<Attachment, Misfit> {
    Ok(Attachment {
        mime: fields.text("mime")?.unwrap_or_default(),
        bytes: fields
            .number("bytes")?
            .ok_or_else(|| Misfit::from("\"bytes\" is missing"))?,
        sha256: fields.required("sha256")?,
    })
}

fn fields_of(raw: RawJson<'_>) -> Result<Fields<'_>, Misfit> {
    let mut fields = Vec::new();
    let mut cursor = Cursor::new(raw.get(), usize::MAX);
    if cursor.peek() != Some(b'{') {
        return Err("it is not an object".into());
    }
    let read = cursor.object(|key, cursor| {
        fields.push((key.to_text_lossy(), cursor.value()?));
        Ok::<(), SyntaxError>(())
    });
    read.map_err(|error| Misfit(error.to_string()))?;
    Ok(Fields(fields))
}

/// The event of a kind that the vocabulary has no type for, by its fields as [`fields_json`] gives them. `None` when
/// they do not fit, or when there is anything else among them.
pub fn from_fields(event_type: EventType, fields: RawJson<'_>) -> Option<Body> {
    let (mut fields, mut warnings) = (fields_of(fields).ok()?, Vec::new());
    let body = read(event_type, &mut fields, None, &mut warnings).ok()?;
    (fields.0.is_empty() && warnings.is_empty()).then_some(body)
}

/// The kind that a payload holds, where lines may have any type.
pub(super) fn read_open(
    event_type: EventType,
    payload: &PayloadObject<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Body, Misfit> {
    let named = [
        ("role", payload.role),
        ("call_id", payload.call_id),
        ("kind", payload.kind),
        ("name", payload.name),
        ("error", payload.error),
        ("result", payload.result),
        ("input", payload.input),
        ("output", payload.output),
        ("fidelity", payload.fidelity),
    ];
    let named = named
        .into_iter()
        .filter_map(|(key, raw)| raw.map(|raw| (Cow::Borrowed(key), raw)));
    let mut fields = Fields(named.chain(payload.others.iter().cloned()).collect());
    if !matches!(payload.blocks, Blocks::Missing) {
        return Err(Misfit(format!(
            "\"blocks\" does not belong to {event_type}"
        )));
    }
    let body = read(event_type, &mut fields, None, warnings)?;
    unknown("payload", &fields, warnings);
    Ok(body)
}

/// The kind that a line of another type carries. `message` is what the line says to others; `None` is the message
/// of a system.
pub(super) fn read_carried(
    event_type: EventType,
    event: Option<RawJson<'_>>,
    message: &[Block],
    warnings: &mut Vec<Warning>,
) -> Result<Option<Body>, Misfit> {
    if event_type == EventType::SystemMessage {
        return match event {
            Some(_) => Err("it does not belong to message.system".into()),
            None => Ok(None),
        };
    }
    let mut fields = fields_of(event.ok_or("it is missing")?)?;
    let body = read(event_type, &mut fields, Some(message), warnings)?;
    unknown("event", &fields, warnings);
    Ok(Some(body))
}

fn unknown(at: &str, fields: &Fields<'_>, warnings: &mut Vec<Warning>) {
    let names = fields.0.iter().map(|(name, _)| format!("{at}.{name}"));
    warnings.extend(names.map(Warning::UnknownField));
}

fn read(
    event_type: EventType,
    fields: &mut Fields<'_>,
    message: Option<&[Block]>,
    warnings: &mut Vec<Warning>,
) -> Result<Body, Misfit> {
    Ok(match event_type {
        EventType::ModelCall => Body::ModelCall(ModelCall {
            provider: fields.text("provider")?,
            params: fields.json("params"),
            request: fields.blob("request")?,
            response: fields.blob("response")?,
            first_token_ms: fields.number("first_token_ms")?,
            error: fields.text("error")?,
        }),
        EventType::Chunk => {
            let (text, fidelity) = match message {
                None => (
                    optional_text("text", fields.take("text"))?,
                    fidelity(fields.take("fidelity"), warnings)?,
                ),
                Some(
                    [
                        Block {
                            fidelity,
                            content: Content::Stream(text),
                        },
                    ],
                ) => (text.clone(), *fidelity),
                Some(_) => return Err("a chunk is one stream block".into()),
            };
            Body::Chunk(Chunk {
                index: fields
                    .number("index")?
                    .ok_or_else(|| Misfit::from("\"index\" is missing"))?,
                text,
                delta: fields.json("delta"),
                arrived_at: match fields.text("arrived_at")? {
                    Some(at) => Some(at.parse::<Timestamp>().map_err(|_| {
                        Misfit(format!("\"arrived_at\" is not an RFC 3339 time: {at:?}"))
                    })?),
                    None => None,
                },
                is_last: fields.flag("is_last")?.unwrap_or(false),
                fidelity,
            })
        }
        EventType::Harness => Body::Harness(HarnessEvent {
            category: fields.required("category")?,
            name: fields.required("name")?,
            severity: fields.word("severity", Severity::from_word)?,
            attributes: fields.json("attributes"),
        }),
        EventType::Blob => Body::Blob(attachment(fields)?),
        EventType::Error => Body::Error(Failure {
            source: fields.text("source")?,
            code: fields.text("code")?,
            message: fields.required("message")?,
            retryable: fields.flag("retryable")?,
        }),
        EventType::Note => Body::Note(Note {
            kind: fields
                .word("kind", NoteKind::from_word)?
                .ok_or_else(|| Misfit::from("\"kind\" is missing"))?,
            text: fields.text("text")?,
            raw: fields.json("raw"),
        }),
        // The vocabulary has these.
        _ => return Err(Misfit(format!("{event_type} has a type of its own"))),
    })
}
