//! An event as the projection looks at it.

use quipu_model::{
    Block, Body, Content, Event, EventType, Json, Note, Notes, Place, RunId, Step, StepEnd,
    Timestamp, ToolCall, ToolResult, Unknown,
};

use super::events;
use super::text::Object;
use crate::agentlog::Kind;

/// An event as the projection looks at it.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) place: &'a Place,
    pub(super) notes: &'a Notes,
    pub(super) what: What<'a>,
}

/// What an event reports.
#[derive(Debug, Clone)]
pub(super) enum What<'a> {
    User(Vec<Part<'a>>),
    Assistant(Vec<Part<'a>>),
    System(Vec<Part<'a>>),
    Call(&'a ToolCall),
    Result(&'a ToolResult),
    Step(StepView<'a>),
    Note(&'a Note),
    /// An event that is one record.
    Single(Kind, &'a Body),
    Unknown(&'a Unknown),
}

/// A step, a run or a sub-workflow, as it begins or ends.
#[derive(Debug, Clone)]
pub(super) struct StepView<'a> {
    pub(super) word: &'static str,
    pub(super) step: Option<&'a Step>,
    pub(super) end: Option<&'a StepEnd>,
    pub(super) child: Option<&'a RunId>,
}

/// A block of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Known(&'a Content),
    Unknown(&'a Json),
}

impl<'a> View<'a> {
    /// `None` for the kinds that are put as notes.
    pub(super) fn new(event: &'a Event) -> Option<Self> {
        Some(Self {
            seq: event.seq,
            at: event.timestamp,
            place: &event.place,
            notes: &event.annotations,
            what: what(&event.body)?,
        })
    }
}

fn parts(blocks: &[Block]) -> Vec<Part<'_>> {
    fn part(block: &Block) -> Part<'_> {
        match &block.content {
            Content::Unknown(json) => Part::Unknown(json),
            known => Part::Known(known),
        }
    }
    blocks.iter().map(part).collect()
}

fn what(body: &Body) -> Option<What<'_>> {
    let word = body.event_type().map_or("", EventType::as_str);
    let begin = |step, child| {
        What::Step(StepView {
            word,
            step,
            end: None,
            child,
        })
    };
    let ended = |end: Option<_>, child| {
        What::Step(StepView {
            word,
            step: None,
            end,
            child,
        })
    };
    Some(match body {
        Body::UserMessage(blocks) => What::User(parts(blocks)),
        Body::AssistantMessage(blocks) => What::Assistant(parts(blocks)),
        Body::SystemMessage(blocks) => What::System(parts(blocks)),
        Body::ToolCall(call) => What::Call(call),
        Body::ToolResult(result) => What::Result(result),
        Body::RunStarted(step) => begin(step.as_ref(), None),
        Body::StepStarted(step) => begin(Some(step), None),
        Body::CallStarted { child_run_id, step } => begin(Some(step), Some(child_run_id)),
        Body::RunCompleted(end) => ended(end.as_ref(), None),
        Body::StepCompleted(end) => ended(Some(end), None),
        Body::CallCompleted { child_run_id, end } => ended(Some(end), Some(child_run_id)),
        Body::Note(note) => What::Note(note),
        Body::Unknown(unknown) => What::Unknown(unknown),
        single => What::Single(events::kind(single)?, single),
    })
}

impl StepView<'_> {
    /// Whether it failed.
    pub(super) fn failed(&self) -> bool {
        self.end.is_some_and(|end| end.error.is_some())
    }

    /// What is known of it.
    pub(super) fn attributes(&self, place: &Place) -> String {
        let step = self.step.or(self.end.map(|end| &end.step));
        let mut object = Object::new()
            .text("path", &place.path)
            .number("iteration", place.iteration())
            .text_if("name", step.map(|step| step.name.as_str()))
            .text_if("kind", step.map(|step| step.kind.as_str()))
            .text_if("child_run_id", self.child.map(RunId::as_str));
        if let Some(end) = self.end {
            object = object.text_if("error", end.error.as_deref());
            if let Some(result) = &end.result {
                object = object.raw("result", result.get());
            }
        }
        object.end()
    }
}
