//! Events, numbered and dated as they are made.

use quipu_model::{
    Annotations, Block, Body, Content, Event, Fidelity, Header, Json, Note, NoteKind, Timestamp,
    ToolCall, ToolResult,
};

use super::tell::Told;
use crate::flow::shape::{self, Data, Statement, Who};

/// Hands events over, and keeps the header in step.
pub(super) struct Emit<'s> {
    header: Header,
    sink: &'s mut dyn FnMut(Event),
    seq: u64,
    last: Timestamp,
}

impl<'s> Emit<'s> {
    pub(super) fn new(header: Header, sink: &'s mut dyn FnMut(Event)) -> Self {
        Self {
            header,
            sink,
            seq: 0,
            last: Timestamp::UNIX_EPOCH,
        }
    }

    /// Says what run it is.
    pub(super) fn begin(&mut self, header: Header) {
        self.header = header;
    }

    /// Hands over an event. Without a time of its own it has the last one, and says so.
    pub(super) fn take(&mut self, told: Told) {
        let Told {
            place,
            at,
            body,
            mut notes,
        } = told;
        self.seq += 1;
        match at {
            Some(at) => self.last = at,
            None => notes.flags.undated = true,
        }
        let event = Event {
            seq: self.seq,
            run_id: self.header.run_id.clone(),
            parent_run_id: self.header.parent_run_id.clone(),
            timestamp: self.last,
            place,
            body,
            annotations: Annotations::from(notes),
        };
        self.header.observe(&event);
        (self.sink)(event);
    }

    /// What is known when all was handed over.
    pub(super) fn finish(self) -> Header {
        self.header
    }
}

pub(super) fn note(kind: NoteKind, text: Option<String>, raw: Option<Json>) -> Body {
    Body::Note(Note { kind, text, raw })
}

/// What something that was said is in the model.
pub(super) fn body(said: &Statement<'_>) -> Body {
    let fidelity = Fidelity::AgentEmitted;
    match said {
        Statement::Message { who, content, .. } => {
            let blocks = vec![Block {
                fidelity,
                content: block(content),
            }];
            match who {
                Who::System => Body::SystemMessage(blocks),
                Who::User => Body::UserMessage(blocks),
                Who::Assistant => Body::AssistantMessage(blocks),
            }
        }
        Statement::Call { name, id, input } => Body::ToolCall(ToolCall {
            name: name.to_string(),
            call_id: (&**id).into(),
            input: input.as_ref().map(Data::to_json),
            fidelity,
        }),
        Statement::Result {
            name,
            id,
            output,
            error,
            ..
        } => Body::ToolResult(ToolResult {
            name: name.to_string(),
            call_id: (&**id).into(),
            input: None,
            output: output.as_ref().map(Data::to_json),
            error: error.as_deref().map(str::to_owned),
            fidelity,
        }),
        Statement::Note { kind, text } => note(*kind, text.as_deref().map(str::to_owned), None),
    }
}

fn block(content: &shape::Content<'_>) -> Content {
    match content {
        shape::Content::Text(text) => Content::Text(text.to_string()),
        shape::Content::Thinking(text) => Content::Thinking(text.to_string()),
        shape::Content::Command(text) => Content::Command(text.to_string()),
        shape::Content::Stream(text) => Content::Stream(text.to_string()),
        shape::Content::ToolUse { name, id, input } => Content::ToolUse {
            name: name.to_string(),
            id: (&**id).into(),
            input: input.as_ref().map(Data::to_json),
        },
        shape::Content::ToolResult { id, content } => Content::ToolResult {
            id: (&**id).into(),
            content: content.as_ref().map(Data::to_json),
        },
    }
}
