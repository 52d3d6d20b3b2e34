//! Events: the knots on the cord.

use std::ops::{Deref, DerefMut};

use jiff::Timestamp;

use crate::{
    Attachment, Block, Content, EventType, Fidelity, Json, Money, Role, RunId, Status, Usage,
};

/// One event of a run, complete: a line of a transcript.
///
/// `B` is [`Body`] wherever events are made, so nothing outside the vocabulary can be. A reader
/// yields `Event<AnyBody>`, because files hold what their writers put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<B = Body> {
    /// The place in the run's order, from 1, dense. The only order there is: times may collide or
    /// run backwards.
    pub seq: u64,
    /// The run this belongs to.
    pub run_id: RunId,
    /// The run that called this one.
    pub parent_run_id: Option<RunId>,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// Where in the workflow it happened.
    pub place: Place,
    /// What happened.
    pub body: B,
    /// What other sources know beyond the exchange format.
    pub annotations: Annotations,
}

/// Where in a workflow an event belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// Dot-separated step path, e.g. `build.lint`; empty for the run itself.
    pub path: String,
    /// Zero-based iteration of the innermost loop; 0 outside loops.
    pub iteration: u64,
}

impl Place {
    /// The run itself.
    pub fn run() -> Self {
        Self::default()
    }

    /// A step outside loops.
    pub fn step(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            iteration: 0,
        }
    }

    /// The same step in another iteration.
    #[must_use]
    pub fn iteration(mut self, iteration: u64) -> Self {
        self.iteration = iteration;
        self
    }
}

/// An event before it is recorded: all that its author decides. The recorder adds the sequence
/// number, the run and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where it happened.
    pub place: Place,
    /// What happened.
    pub body: Body,
    /// What else is known.
    pub annotations: Annotations,
}

impl Draft {
    /// A draft without annotations.
    pub fn new(place: Place, body: Body) -> Self {
        Self {
            place,
            body,
            annotations: Annotations::default(),
        }
    }
}

/// What an event reports. Each variant holds the payload of its event type, so a payload that does
/// not belong to the type cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// `run.started`
    RunStarted(Option<Step>),
    /// `run.completed`
    RunCompleted(Option<StepEnd>),
    /// `step.started`
    StepStarted(Step),
    /// `step.completed`
    StepCompleted(StepEnd),
    /// `step.call_workflow.started`
    CallStarted {
        /// The run that is called.
        child_run_id: RunId,
        /// The calling step.
        step: Step,
    },
    /// `step.call_workflow.completed`
    CallCompleted {
        /// The run that was called.
        child_run_id: RunId,
        /// The calling step and how it ended.
        end: StepEnd,
    },
    /// `message.user`
    UserMessage(Vec<Block>),
    /// `message.assistant`
    AssistantMessage(Vec<Block>),
    /// `tool.call`
    ToolCall(ToolCall),
    /// `tool.result`
    ToolResult(ToolResult),
}

impl Body {
    /// The event type this is the body of.
    pub fn event_type(&self) -> EventType {
        match self {
            Self::RunStarted(_) => EventType::RunStarted,
            Self::RunCompleted(_) => EventType::RunCompleted,
            Self::StepStarted(_) => EventType::StepStarted,
            Self::StepCompleted(_) => EventType::StepCompleted,
            Self::CallStarted { .. } => EventType::CallStarted,
            Self::CallCompleted { .. } => EventType::CallCompleted,
            Self::UserMessage(_) => EventType::UserMessage,
            Self::AssistantMessage(_) => EventType::AssistantMessage,
            Self::ToolCall(_) => EventType::ToolCall,
            Self::ToolResult(_) => EventType::ToolResult,
        }
    }

    /// The run this event links down to.
    pub fn child_run_id(&self) -> Option<&RunId> {
        match self {
            Self::CallStarted { child_run_id, .. } | Self::CallCompleted { child_run_id, .. } => {
                Some(child_run_id)
            }
            _ => None,
        }
    }
}

/// A step, or the workflow itself on `run.*` events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The step's name in the workflow, or the workflow's name.
    pub name: String,
    /// `agent`, `command`, `parallel`, … or a custom step type.
    pub kind: String,
}

impl Step {
    /// A step by name and kind.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
        }
    }

    /// The end of this step, without an error.
    pub fn succeeded(self, result: Option<Json>) -> StepEnd {
        StepEnd {
            step: self,
            error: None,
            result,
        }
    }

    /// The end of this step with an error.
    pub fn failed(self, error: impl Into<String>) -> StepEnd {
        StepEnd {
            step: self,
            error: Some(error.into()),
            result: None,
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnd {
    /// The step.
    pub step: Step,
    /// Why it failed; `None` when it did not.
    pub error: Option<String>,
    /// What it produced.
    pub result: Option<Json>,
}

/// A tool invocation as it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The token its result will carry.
    pub call_id: String,
    /// The arguments; `None` is written as `null`.
    pub input: Option<Json>,
    /// Who saw it.
    pub fidelity: Fidelity,
}

/// A tool invocation as it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The tool's name.
    pub name: String,
    /// The token of the call.
    pub call_id: String,
    /// The arguments again, where the source repeats them; `None` is written as `null`.
    pub input: Option<Json>,
    /// What the tool gave back; `None` is written as `null`.
    pub output: Option<Json>,
    /// Why it failed; `None` when it did not.
    pub error: Option<String>,
    /// Who saw it.
    pub fidelity: Fidelity,
}

/// What sources other than a workflow engine know of an event. Readers of the exchange format
/// ignore these fields; nothing is lost by carrying them.
///
/// Read and set its fields directly, as those of [`Notes`]. Most events of a recorded run have none,
/// so none cost nothing.
#[derive(Debug, Clone, Default)]
pub struct Annotations(Option<Box<Notes>>);

/// The fields of [`Annotations`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// The event's id in the log it was read from.
    pub native_id: Option<String>,
    /// The native id of the event this one follows.
    pub parent_id: Option<String>,
    /// The sub-agent that acted, where a run has several.
    pub subagent_id: Option<String>,
    /// The model that produced it.
    pub model: Option<String>,
    /// The tokens this event adds to those counted before it.
    pub usage: Option<Usage>,
    /// What those tokens cost, where the source says or it was worked out.
    pub cost: Option<Money>,
    /// The call to the model that the event belongs to, as the provider names it. Several events may
    /// belong to one call; their usages add up to its usage.
    pub model_call: Option<String>,
    /// Why the answer that the event belongs to ended, in the provider's own word: `end_turn`, `length`.
    pub stop_reason: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How a tool call ended.
    pub status: Option<Status>,
    /// The run that the event begins or ends: that of a sub-agent.
    pub child: Option<RunId>,
    /// Content that is kept outside of the event.
    pub attachments: Vec<Attachment>,
    /// Which bytes it was read from.
    pub source: Option<Source>,
    /// Fields of the record it was read from that have no place of their own: one JSON object, or a text that stands
    /// for what was removed.
    pub extra: Option<Json>,
    /// Marks on the event.
    pub flags: Flags,
}

const NO_NOTES: &Notes = &Notes {
    native_id: None,
    parent_id: None,
    subagent_id: None,
    model: None,
    usage: None,
    cost: None,
    model_call: None,
    stop_reason: None,
    duration_ms: None,
    status: None,
    child: None,
    attachments: Vec::new(),
    source: None,
    extra: None,
    flags: Flags {
        opaque: false,
        synthetic: false,
        superseded: false,
        undated: false,
        dangling: false,
    },
};

impl Annotations {
    /// Whether nothing is annotated.
    pub fn is_empty(&self) -> bool {
        self.0.is_none() || **self == *NO_NOTES
    }
}

impl Deref for Annotations {
    type Target = Notes;

    fn deref(&self) -> &Notes {
        self.0.as_deref().unwrap_or(NO_NOTES)
    }
}

impl DerefMut for Annotations {
    fn deref_mut(&mut self) -> &mut Notes {
        self.0.get_or_insert_default()
    }
}

impl From<Notes> for Annotations {
    fn from(notes: Notes) -> Self {
        Self(Some(Box::new(notes)))
    }
}

impl PartialEq for Annotations {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Annotations {}

/// The bytes an event was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, as its reader names it.
    pub file: String,
    /// The first byte of the record.
    pub offset: u64,
    /// The line of the record, from 1.
    pub line: u64,
}

/// Marks on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own; they combine freely"
)]
pub struct Flags {
    /// The content exists but cannot be read, such as encrypted reasoning.
    pub opaque: bool,
    /// Made by a tool, not said by a person or a model.
    pub synthetic: bool,
    /// A later event takes its place, as after a rewind or a retry.
    pub superseded: bool,
    /// The source gives no time; the timestamp is that of the last event that has one.
    pub undated: bool,
    /// A tool call whose result is not there.
    pub dangling: bool,
}

/// What a reader found. Everything that fits the vocabulary is [`AnyBody::Known`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyBody {
    /// Inside the vocabulary.
    Known(Body),
    /// A message of a known type with at least one block that is not.
    Message {
        /// Who speaks.
        role: Role,
        /// The blocks, in order, none left out.
        blocks: Vec<AnyBlock>,
    },
    /// An unknown event type, or a payload that does not fit its type.
    Foreign(Foreign),
}

/// A block as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyBlock {
    /// Inside the vocabulary.
    Known(Block),
    /// Anything else, intact.
    Unknown(Json),
}

/// An event that does not fit the vocabulary, intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The type as written.
    pub event_type: String,
    /// The child run as written.
    pub child_run_id: Option<String>,
    /// What the payload looks like.
    pub shape: Shape,
    /// The payload as written.
    pub payload: Json,
}

/// What a payload looks like, by the five dispatch rules of the exchange format. It depends on the
/// payload alone, not on the event's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Null or missing.
    Null,
    /// Rule 1: an array of blocks.
    Blocks,
    /// Rule 2: an object with `role`.
    Message,
    /// Rule 3: an object with `call_id`.
    Tool,
    /// Rule 4: an object with `kind`.
    Step,
    /// Rule 5: anything else.
    Other,
}

impl AnyBody {
    /// The event type; `None` when it is not in the vocabulary.
    pub fn event_type(&self) -> Option<EventType> {
        match self {
            Self::Known(body) => Some(body.event_type()),
            Self::Message {
                role: Role::User, ..
            } => Some(EventType::UserMessage),
            Self::Message {
                role: Role::Assistant,
                ..
            } => Some(EventType::AssistantMessage),
            Self::Foreign(foreign) => EventType::from_word(&foreign.event_type),
        }
    }

    /// The event type as written.
    pub fn type_word(&self) -> &str {
        match (self, self.event_type()) {
            (_, Some(known)) => known.as_str(),
            (Self::Foreign(foreign), None) => &foreign.event_type,
            (_, None) => "",
        }
    }
}

impl Event<AnyBody> {
    /// The event, when all of it is inside the vocabulary.
    ///
    /// # Errors
    ///
    /// Hands the event back when it is not.
    pub fn into_known(self) -> Result<Event, Box<Self>> {
        match self.body {
            AnyBody::Known(body) => Ok(Event {
                seq: self.seq,
                run_id: self.run_id,
                parent_run_id: self.parent_run_id,
                timestamp: self.timestamp,
                place: self.place,
                body,
                annotations: self.annotations,
            }),
            _ => Err(Box::new(self)),
        }
    }
}

impl Body {
    /// The text blocks of a message, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let blocks = match self {
            Self::UserMessage(blocks) | Self::AssistantMessage(blocks) => blocks.as_slice(),
            _ => &[],
        };
        blocks.iter().filter_map(|block| match &block.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}
