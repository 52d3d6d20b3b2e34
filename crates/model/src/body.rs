//! What an event reports.

use crate::vocabulary::vocabulary;
use crate::{
    Attachment, Block, Content, EventType, Fidelity, Json, Note, RunId, Step, StepEnd, Timestamp,
    ToolCallId,
};

/// What an event reports. Each variant holds the payload of its event type, so a payload that does
/// not belong to the type cannot be expressed.
///
/// A format may hold less than this. Which kinds a file may hold is a rule of the format's writer.
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
    /// `message.system`: instructions and texts that a program put into the conversation.
    SystemMessage(Vec<Block>),
    /// `tool.call`
    ToolCall(ToolCall),
    /// `tool.result`
    ToolResult(ToolResult),
    /// `model.call`
    ModelCall(ModelCall),
    /// `chunk`
    Chunk(Chunk),
    /// `harness`
    Harness(HarnessEvent),
    /// `blob`: bytes that are kept outside of events.
    Blob(Attachment),
    /// `error`
    Error(Failure),
    /// `note`: something the agent wrote down that does not belong to the conversation.
    Note(Note),
    /// Anything else, as it was read.
    Unknown(Unknown),
}

impl Body {
    /// The event type this is the body of; `None` when the vocabulary does not have it, or when the payload does
    /// not fit the type that was written.
    pub fn event_type(&self) -> Option<EventType> {
        Some(match self {
            Self::RunStarted(_) => EventType::RunStarted,
            Self::RunCompleted(_) => EventType::RunCompleted,
            Self::StepStarted(_) => EventType::StepStarted,
            Self::StepCompleted(_) => EventType::StepCompleted,
            Self::CallStarted { .. } => EventType::CallStarted,
            Self::CallCompleted { .. } => EventType::CallCompleted,
            Self::UserMessage(_) => EventType::UserMessage,
            Self::AssistantMessage(_) => EventType::AssistantMessage,
            Self::SystemMessage(_) => EventType::SystemMessage,
            Self::ToolCall(_) => EventType::ToolCall,
            Self::ToolResult(_) => EventType::ToolResult,
            Self::ModelCall(_) => EventType::ModelCall,
            Self::Chunk(_) => EventType::Chunk,
            Self::Harness(_) => EventType::Harness,
            Self::Blob(_) => EventType::Blob,
            Self::Error(_) => EventType::Error,
            Self::Note(_) => EventType::Note,
            Self::Unknown(_) => return None,
        })
    }

    /// The event type as it is written.
    pub fn type_word(&self) -> &str {
        match self {
            Self::Unknown(unknown) => &unknown.event_type,
            known => known.event_type().map_or("", EventType::as_str),
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

    /// The blocks of a message.
    pub fn blocks(&self) -> Option<&[Block]> {
        match self {
            Self::UserMessage(blocks)
            | Self::AssistantMessage(blocks)
            | Self::SystemMessage(blocks) => Some(blocks),
            _ => None,
        }
    }

    /// The text blocks of a message, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let blocks = self.blocks().unwrap_or_default();
        blocks.iter().filter_map(|block| match &block.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// One call to a model: a request, and what came of it. Which call it is, the model, the tokens, the cost, the time it
/// took and why the answer ended are annotations of the event, as they are of messages that belong to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelCall {
    /// Who served it, e.g. `anthropic`.
    pub provider: Option<String>,
    /// The parameters of the request beside its messages, as they were sent: temperature, limits.
    pub params: Option<Json>,
    /// The request as it was sent, kept as a blob.
    pub request: Option<Attachment>,
    /// The response as it was received, kept as a blob.
    pub response: Option<Attachment>,
    /// How long it took until the first token came.
    pub first_token_ms: Option<u64>,
    /// Why it failed; `None` when it did not.
    pub error: Option<String>,
}

/// One chunk of a response that was streamed. Which call it belongs to is an annotation of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its place among the chunks of the call, from 0.
    pub index: u64,
    /// The text that it adds; empty where it adds none.
    pub text: String,
    /// The chunk as the provider sent it.
    pub delta: Option<Json>,
    /// When it arrived, where that is known better than when it was recorded.
    pub arrived_at: Option<Timestamp>,
    /// Whether it is the last of its call.
    pub is_last: bool,
    /// Who saw it.
    pub fidelity: Fidelity,
}

/// Something that the program around the model did or met: a retry, a rate limit, a context that was trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessEvent {
    /// What it has to do with: `retry`, `rate_limit`, `model_switch`, `context_trim`, `cache`, `guardrail`, `budget`,
    /// `stream_interrupt`, `tool_lifecycle`, or another word.
    pub category: String,
    /// What happened, within the category.
    pub name: String,
    /// How bad it is.
    pub severity: Option<Severity>,
    /// What else is known of it.
    pub attributes: Option<Json>,
}

vocabulary! {
    /// How bad something is.
    Severity, "severity" {
        /// It is as it should be.
        Info = "info",
        /// It may need a look.
        Warning = "warning",
        /// It failed.
        Error = "error",
        /// Nothing goes on after it.
        Fatal = "fatal",
    }
}

/// Something that went wrong outside of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// What it happened in: `sdk`, `llm`, `tool`, `user`, or another word.
    pub source: Option<String>,
    /// What the source calls it.
    pub code: Option<String>,
    /// What it says.
    pub message: String,
    /// Whether trying again may help.
    pub retryable: Option<bool>,
}

/// An event that does not fit the vocabulary, intact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The type as written.
    pub event_type: String,
    /// The child run as written.
    pub child_run_id: Option<String>,
    /// The payload as written.
    pub payload: Json,
}

/// A tool invocation as it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The token its result will carry.
    pub call_id: ToolCallId,
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
    pub call_id: ToolCallId,
    /// The arguments again, where the source repeats them; `None` is written as `null`.
    pub input: Option<Json>,
    /// What the tool gave back; `None` is written as `null`.
    pub output: Option<Json>,
    /// Why it failed; `None` when it did not.
    pub error: Option<String>,
    /// Who saw it.
    pub fidelity: Fidelity,
}
