//! An event as an adapter hands it over: borrowing from the record it was read from.
//!
//! Most of an import looks at what kind of event it is, whose it is and what it cost, and never at the
//! text. So texts and values stay where they are until someone asks; [`Entry::to_event`] makes an
//! event that owns them.

use std::borrow::Cow;
use std::ops::Range;

use quipu_model::json::{Node, RawJson, RawStr};
use quipu_model::{
    Annotations, Attachment, Block, Body, Content, Event, Fidelity, Flags, Json, Money, Note,
    NoteKind, Notes, Place, RunId, Service, Source, Status, Timestamp, ToolCall, ToolResult, Usage,
};

use crate::calls::{Charge, Missed, Repeat};
use crate::{Extra, Position};

/// One event of a log.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own; they combine freely"
)]
pub struct Entry<'a> {
    /// What happened.
    pub what: What<'a>,
    /// When, where the log says.
    pub at: Option<Timestamp>,
    /// Its id in the log.
    pub native_id: Option<Cow<'a, str>>,
    /// The id of what it follows.
    pub parent_id: Option<Cow<'a, str>>,
    /// The sub-agent that acted, where it shares the log with others.
    pub subagent: Option<Cow<'a, str>>,
    /// The model that produced it.
    pub model: Option<Cow<'a, str>>,
    /// The call to the model that it belongs to.
    pub model_call: Option<Cow<'a, str>>,
    /// The tokens of that call. May be repeated on every event of the call, and may grow from one to
    /// the next: what is counted is the largest, once.
    pub usage: Option<Usage>,
    /// How many calls those tokens are of, where the log says so; otherwise it is one.
    pub calls: Option<u64>,
    /// What that call cost, where the log says. Like the tokens it may be repeated and may grow, and what is
    /// counted is the largest, once. Nothing more than was told before is zero where there are tokens.
    pub cost: Option<Money>,
    /// Searches of the web that are paid for beside the tokens. With tokens, they are those of the call and are
    /// counted like them; without, they are counted as they come.
    pub searches: Option<u64>,
    /// How that call was served.
    pub service: Service,
    /// Why the answer of that call ended, in the provider's own word.
    pub stop_reason: Option<Cow<'a, str>>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How a tool call ended.
    pub status: Option<Status>,
    /// How a tool call ended and how long it took is what the log says, and nothing else: it is not worked out
    /// from times and errors.
    pub as_told: bool,
    /// The session of the sub-agent that it begins or ends, by its id in the log.
    pub child: Option<Cow<'a, str>>,
    /// What it refers to that is kept outside.
    pub attachments: Vec<Attachment>,
    /// Fields of the record that have no place of their own.
    pub extra: Extra<'a>,
    /// The content exists but cannot be read.
    pub opaque: bool,
    /// Put there by a program, not said by a person or a model.
    pub synthetic: bool,
    /// Taken back by a later event, where the log says so of this one itself.
    pub superseded: bool,
    /// The events, by sequence number, that no longer count because of this one.
    pub voids: Option<Range<u64>>,
    /// The record it belongs to, as other logs that copy it know it. Set when it is taken in.
    pub unit: Option<u64>,
    /// Whether its usage is the first that is counted of a call. Set when it is taken in.
    pub begins_call: bool,
    /// A usage that it repeats and that is not counted again. Set when it is taken in.
    pub repeats: Option<Usage>,
    /// Where its usage is counted. Set when it is taken in.
    pub charge: Option<Charge>,
    /// Its time, or the last before it in the log. Set when it is taken in.
    pub when: Option<Timestamp>,
    /// The time since the event before it, where that was no pause. Set when it is taken in.
    pub active_ms: u64,
    /// What of its prompt was paid for again. Set when it is taken in.
    pub missed: Option<Missed>,
    /// That it is a tool call that was made before. Set when it is taken in.
    pub repeat: Option<Repeat>,
    /// What only runs of workflows, traces and transcripts tell of their events. Most logs are none of these.
    pub in_run: Option<Box<InRun>>,
}

/// What the run of a workflow, a trace or a transcript tells of an event.
#[derive(Debug, Clone, Default)]
pub struct InRun {
    /// The step that it happened in.
    pub place: Place,
    /// What happened, where [`What`] has no variant for it: a step that began or ended, a chunk, an error, a block of
    /// another kind than text.
    pub body: Option<Body>,
    /// Where it stands, as a file below that of the log.
    pub source: Option<Source>,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum What<'a> {
    /// Something was put to the agent.
    User(Text<'a>),
    /// The agent said something.
    Assistant(Text<'a>),
    /// The model reasoned. The text is empty where it is withheld.
    Reasoning(Text<'a>),
    /// A program put something into the conversation.
    System(Text<'a>),
    /// A tool was called.
    Call {
        /// The tool.
        name: Cow<'a, str>,
        /// What its result will name.
        id: Cow<'a, str>,
        /// The arguments, structured where the log has them structured.
        input: Option<Value<'a>>,
    },
    /// A tool gave back.
    Result {
        /// The tool; left empty it is taken from the call.
        name: Cow<'a, str>,
        /// The call.
        id: Cow<'a, str>,
        /// What it gave back.
        output: Option<Value<'a>>,
        /// Why it failed.
        error: Option<Text<'a>>,
    },
    /// Anything else.
    Note {
        /// What it is about.
        kind: NoteKind,
        /// What it says to a person.
        text: Option<Text<'a>>,
        /// The record, where nothing else keeps what is in it.
        raw: Option<Value<'a>>,
    },
}

/// A text that may still be a JSON string.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// As it stands in the log.
    Raw(RawStr<'a>),
    /// As it reads.
    Plain(Cow<'a, str>),
}

/// A JSON value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// As it stands in the log.
    Raw(RawJson<'a>),
    /// A string.
    Text(Text<'a>),
    /// Made anew, such as a value whose images were taken out.
    Owned(Json),
}

impl<'a> Text<'a> {
    /// No text.
    pub const EMPTY: Text<'static> = Text::Plain(Cow::Borrowed(""));

    /// What it says.
    pub fn read(&self) -> Cow<'_, str> {
        match self {
            Self::Raw(raw) => raw.to_text_lossy(),
            Self::Plain(text) => Cow::Borrowed(text),
        }
    }

    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.is(""),
            Self::Plain(text) => text.is_empty(),
        }
    }

    /// What it begins with, without looking at the rest.
    pub fn starts_with(&self, prefix: &str) -> bool {
        match self {
            Self::Plain(text) => text.starts_with(prefix),
            Self::Raw(raw) => raw.starts_with(prefix),
        }
    }

    /// The string of a node; `None` when it is no string.
    pub fn of(node: Node<'a>) -> Option<Self> {
        node.as_raw_str().map(Self::Raw)
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Plain(text)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Plain(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Plain(Cow::Owned(text))
    }
}

impl<'a> From<Node<'a>> for Value<'a> {
    fn from(node: Node<'a>) -> Self {
        Self::Raw(node.raw())
    }
}

impl Value<'_> {
    /// The value as JSON of its own.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Raw(raw) => (*raw).into(),
            Self::Text(Text::Raw(raw)) => raw.raw().into(),
            Self::Text(Text::Plain(text)) => Json::string(text),
            Self::Owned(json) => json.clone(),
        }
    }
}

impl InRun {
    /// An event of a kind that [`What`] has no variant for.
    pub(crate) fn of(place: Place, body: Body) -> Box<Self> {
        Box::new(Self {
            place,
            body: Some(body),
            source: None,
        })
    }
}

impl<'a> Entry<'a> {
    /// An event of which nothing else is known.
    pub fn new(what: What<'a>) -> Self {
        Self {
            what,
            at: None,
            native_id: None,
            parent_id: None,
            subagent: None,
            model: None,
            model_call: None,
            usage: None,
            calls: None,
            cost: None,
            searches: None,
            service: Service::Standard,
            stop_reason: None,
            duration_ms: None,
            status: None,
            as_told: false,
            child: None,
            attachments: Vec::new(),
            extra: Extra::default(),
            opaque: false,
            synthetic: false,
            superseded: false,
            voids: None,
            unit: None,
            begins_call: false,
            repeats: None,
            charge: None,
            when: None,
            active_ms: 0,
            missed: None,
            repeat: None,
            in_run: None,
        }
    }

    /// A note that says something.
    pub fn note(kind: NoteKind, text: impl Into<Text<'a>>) -> Self {
        Self::new(What::Note {
            kind,
            text: Some(text.into()),
            raw: None,
        })
    }

    /// A note that keeps a record.
    pub fn keep(kind: NoteKind, record: Node<'a>) -> Self {
        Self::new(What::Note {
            kind,
            text: None,
            raw: Some(record.into()),
        })
    }

    /// Whether it is a note. That a step of a run began or ended is an event.
    pub fn is_note(&self) -> bool {
        let body = self.in_run.as_deref().and_then(|run| run.body.as_ref());
        let is_event = body.is_some_and(|body| !matches!(body, Body::Note(_)));
        matches!(self.what, What::Note { .. }) && !is_event
    }

    /// How many calls begin with it.
    pub fn calls_begun(&self) -> u64 {
        if self.begins_call {
            self.calls.unwrap_or(1)
        } else {
            0
        }
    }

    /// Whether it is a note that keeps all of a record.
    pub(crate) fn keeps(&self, record: Node<'_>) -> bool {
        let What::Note {
            raw: Some(Value::Raw(raw)),
            ..
        } = &self.what
        else {
            return false;
        };
        std::ptr::eq(raw.get().as_bytes(), record.bytes())
    }

    /// The event, owned.
    pub fn to_event(
        &self,
        seq: u64,
        at: Timestamp,
        run_id: &RunId,
        position: Position,
        file: &str,
    ) -> Event {
        let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let in_run = self.in_run.as_deref();
        let body = in_run.and_then(|run| run.body.clone());
        let body = body.unwrap_or_else(|| self.what.to_body());
        let source = in_run.and_then(|run| run.source.clone());
        let source = source.map(|source| Source {
            file: format!("{file}/{}", source.file),
            ..source
        });
        Event {
            seq,
            run_id: run_id.clone(),
            parent_run_id: None,
            timestamp: at,
            place: in_run.map_or_else(Place::run, |run| run.place.clone()),
            annotations: Annotations::from(Notes {
                native_id: owned(&self.native_id).map(Into::into),
                parent_id: owned(&self.parent_id).map(Into::into),
                subagent_id: owned(&self.subagent).map(Into::into),
                model: owned(&self.model),
                model_call: owned(&self.model_call).map(Into::into),
                stop_reason: owned(&self.stop_reason),
                usage: self.usage,
                cost: self.cost,
                duration_ms: self.duration_ms,
                status: self.status,
                child: self.child.as_deref().map(crate::run_id),
                attachments: match &body {
                    // What the event is is not attached to it.
                    Body::Blob(blob) => {
                        let others = self.attachments.iter().filter(|it| *it != blob);
                        others.cloned().collect()
                    }
                    _ => self.attachments.clone(),
                },
                source: Some(source.unwrap_or_else(|| Source {
                    file: file.to_owned(),
                    offset: position.offset,
                    line: position.line,
                })),
                extra: self.extra.to_json(),
                flags: Flags {
                    opaque: self.opaque,
                    synthetic: self.synthetic,
                    superseded: self.superseded,
                    undated: self.at.is_none(),
                    ..Flags::default()
                },
            }),
            body,
        }
    }
}

impl What<'_> {
    fn to_body(&self) -> Body {
        let fidelity = Fidelity::AgentEmitted;
        let block = |content| vec![Block { fidelity, content }];
        let text = |text: &Text<'_>| text.read().into_owned();
        match self {
            Self::User(said) => Body::UserMessage(block(Content::Text(text(said)))),
            Self::Assistant(said) => Body::AssistantMessage(block(Content::Text(text(said)))),
            Self::Reasoning(said) => Body::AssistantMessage(block(Content::Thinking(text(said)))),
            Self::System(said) => Body::SystemMessage(block(Content::Text(text(said)))),
            Self::Call { name, id, input } => Body::ToolCall(ToolCall {
                name: name.clone().into_owned(),
                call_id: id.clone().into(),
                input: input.as_ref().map(Value::to_json),
                fidelity,
            }),
            Self::Result {
                name,
                id,
                output,
                error,
            } => Body::ToolResult(ToolResult {
                name: name.clone().into_owned(),
                call_id: id.clone().into(),
                input: None,
                output: output.as_ref().map(Value::to_json),
                error: error.as_ref().map(text),
                fidelity,
            }),
            Self::Note {
                kind,
                text: said,
                raw,
            } => Body::Note(Note {
                kind: *kind,
                text: said.as_ref().map(text),
                raw: raw.as_ref().map(Value::to_json),
            }),
        }
    }
}
