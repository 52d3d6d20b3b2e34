//! What an event says, in small: how much of what, and which tool call.

use quipu_model::{Block, Body, Content, Event, Fidelity, Json, Status};

/// A part of a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'e> {
    /// Put to the agent: by a person, or by a program.
    User { bytes: u64, person: bool },
    /// Said by the model.
    Assistant(u64),
    /// Reasoned by the model.
    Thinking(u64),
    /// Put there by a program.
    System(u64),
    /// A tool call.
    Call(Call<'e>),
    /// What a tool gave back.
    Result(Outcome<'e>),
}

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'e> {
    pub(super) name: &'e str,
    pub(super) id: &'e str,
    pub(super) input: Option<&'e Json>,
    pub(super) fidelity: Fidelity,
    /// Whether it is a block of a message. Another event may tell of the same call.
    pub(super) in_message: bool,
}

/// What a tool gave back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome<'e> {
    pub(super) name: &'e str,
    pub(super) id: &'e str,
    pub(super) bytes: u64,
    /// How it ended; `None` where nothing says so.
    pub(super) status: Option<Status>,
    pub(super) in_message: bool,
}

fn length(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| {
        if json.is_null() {
            0
        } else {
            json.get().len() as u64
        }
    })
}

/// The parts of an event, in order. What does not belong to a conversation has none.
pub(super) fn each<'e>(event: &'e Event, recorded: bool, mut take: impl FnMut(Part<'e>)) {
    match &event.body {
        Body::ToolCall(call) => take(Part::Call(Call {
            name: &call.name,
            id: &call.call_id,
            input: call.input.as_ref(),
            fidelity: call.fidelity,
            in_message: false,
        })),
        Body::ToolResult(result) => {
            let failed = result.error.as_ref().map(|_| Status::Error);
            // The recorder writes why a tool failed. Where it does not, the tool did what it was asked.
            let done = recorded.then_some(Status::Ok);
            take(Part::Result(Outcome {
                name: &result.name,
                id: &result.call_id,
                bytes: length(result.output.as_ref())
                    + result.error.as_ref().map_or(0, |error| error.len() as u64),
                status: event.annotations.status.or(failed).or(done),
                in_message: false,
            }));
        }
        Body::UserMessage(blocks) => {
            for block in blocks {
                let command = matches!(block.content, Content::Command(_));
                let person = !event.annotations.flags.synthetic && !command;
                take(of_block(block, |bytes| Part::User { bytes, person }));
            }
        }
        Body::AssistantMessage(blocks) => {
            for block in blocks {
                take(of_block(block, Part::Assistant));
            }
        }
        Body::SystemMessage(blocks) => {
            for block in blocks {
                take(of_block(block, Part::System));
            }
        }
        _ => {}
    }
}

fn of_block(block: &Block, said: impl Fn(u64) -> Part<'static>) -> Part<'_> {
    match &block.content {
        Content::Text(text) | Content::Stream(text) | Content::Command(text) => {
            said(text.len() as u64)
        }
        Content::Thinking(text) => Part::Thinking(text.len() as u64),
        Content::ToolUse { name, id, input } => Part::Call(Call {
            name,
            id,
            input: input.as_ref(),
            fidelity: block.fidelity,
            in_message: true,
        }),
        Content::ToolResult { id, content } => Part::Result(Outcome {
            name: "",
            id,
            bytes: length(content.as_ref()),
            status: None,
            in_message: true,
        }),
        Content::Unknown(json) => said(json.get().len() as u64),
    }
}

/// Bytes of the arguments of a call.
pub(super) fn input_bytes(call: &Call<'_>) -> u64 {
    length(call.input)
}
