//! Sessions as transcripts, and transcripts as sessions.
//!
//! What is imported has system messages and notes, for which the closed vocabulary has no word. A transcript that
//! is written here is one that every reader of the format understands, so these are left out and counted. What
//! reads them all the same (`encode_log`, which `quipu show --jsonl` uses) is read back.

use std::io::{self, Write};

use quipu_model::json::{Node, Tape};
use quipu_model::{
    AnyBlock, AnyBody, Block, Body, Content, Event, Fidelity, Foreign, Header, Json, LogBody, Note,
    NoteKind, Role,
};

use super::{Escapes, encode};
use crate::loss::{Field, Loss};
use crate::projection::{Beside, Projection};

/// How deep a payload nests at most.
const DEPTH: usize = 128;

/// How much is gathered before it is written.
const CHUNK: usize = 64 << 10;

/// What the format has a place for: everything that events say, and nothing of the session as a whole but
/// what events repeat.
pub const CARRIES: &[Field] = &[
    Field::Timestamp,
    Field::RunLinks,
    Field::Place,
    Field::Fidelity,
    Field::NativeId,
    Field::ParentId,
    Field::Subagent,
    Field::Model,
    Field::Usage,
    Field::UsageCache,
    Field::UsageCache1h,
    Field::UsageReasoning,
    Field::Cost,
    Field::ModelCall,
    Field::StopReason,
    Field::Duration,
    Field::Status,
    Field::Child,
    Field::Children,
    Field::Attachments,
    Field::Extra,
    Field::Opaque,
    Field::Synthetic,
    Field::Superseded,
    Field::Undated,
    Field::Dangling,
];

/// Nothing can be chosen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options;

/// Writes a session as a transcript.
///
/// # Errors
///
/// None before the first event.
pub fn writer<'w>(
    header: &Header,
    _options: &Options,
    out: Box<dyn Write + 'w>,
    _beside: Box<dyn Beside + 'w>,
) -> io::Result<Box<dyn Projection + 'w>> {
    let mut loss = Loss::default();
    loss.header(header, CARRIES);
    Ok(Box::new(Lines {
        out,
        held: Vec::with_capacity(CHUNK + (CHUNK >> 2)),
        loss,
        last: 0,
    }))
}

struct Lines<'w> {
    out: Box<dyn Write + 'w>,
    held: Vec<u8>,
    loss: Loss,
    /// The number of the last line. Numbers are dense, so what is left out closes up.
    last: u64,
}

impl Projection for Lines<'_> {
    fn event(&mut self, event: &Event<LogBody>) -> io::Result<()> {
        let loss = &mut self.loss;
        loss.events += 1;
        let body = match &event.body {
            LogBody::Exchange(body) => body,
            LogBody::System(_) => {
                loss.dropped(LogBody::SYSTEM, event.seq);
                return Ok(());
            }
            LogBody::Note(note) => {
                loss.dropped(format!("note:{}", note.kind), event.seq);
                return Ok(());
            }
        };
        loss.fields(event, CARRIES);
        for _ in &event.annotations.attachments {
            loss.dropped("attachment bytes", event.seq);
        }
        loss.carried += 1;
        self.last += 1;
        if self.last != event.seq {
            loss.inferred("seq, because what is left out closes up", event.seq);
        }
        let event = Event {
            seq: self.last,
            run_id: event.run_id.clone(),
            parent_run_id: event.parent_run_id.clone(),
            timestamp: event.timestamp,
            place: event.place.clone(),
            body: body.clone(),
            annotations: event.annotations.clone(),
        };
        encode(&event, Escapes::Plain, &mut self.held);
        if self.held.len() >= CHUNK {
            self.out.write_all(&self.held)?;
            self.held.clear();
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        self.out.write_all(&self.held)?;
        self.out.flush()?;
        Ok(self.loss)
    }
}

/// An event of a transcript as one of a session. What is outside of the vocabulary becomes a note that keeps it.
pub fn into_log(event: Event<AnyBody>) -> Event<LogBody> {
    let body = match event.body {
        AnyBody::Known(body) => LogBody::Exchange(body),
        AnyBody::Message { role, blocks } => message(role, blocks),
        AnyBody::Foreign(foreign) => of_foreign(foreign),
    };
    Event {
        seq: event.seq,
        run_id: event.run_id,
        parent_run_id: event.parent_run_id,
        timestamp: event.timestamp,
        place: event.place,
        body,
        annotations: event.annotations,
    }
}

/// Blocks that are not known keep their place: as text that is their JSON.
fn message(role: Role, blocks: Vec<AnyBlock>) -> LogBody {
    let known = |block| match block {
        AnyBlock::Known(block) => block,
        AnyBlock::Unknown(json) => Block::text(Fidelity::AgentEmitted, json.get()),
    };
    let blocks = blocks.into_iter().map(known).collect();
    LogBody::Exchange(match role {
        Role::User => Body::UserMessage(blocks),
        Role::Assistant => Body::AssistantMessage(blocks),
    })
}

fn of_foreign(foreign: Foreign) -> LogBody {
    let mut tape = Tape::new();
    let read = tape.read(foreign.payload.get(), DEPTH).ok();
    let known = read.and_then(|payload| match foreign.event_type.as_str() {
        LogBody::SYSTEM => system(payload),
        LogBody::NOTE => note(payload),
        _ => None,
    });
    known.unwrap_or(LogBody::Note(Note {
        kind: NoteKind::UnknownRecord,
        text: Some(foreign.event_type),
        raw: Some(foreign.payload),
    }))
}

fn system(payload: Node<'_>) -> Option<LogBody> {
    let blocks = payload.get("blocks")?.items().map(block);
    blocks.collect::<Option<Vec<_>>>().map(LogBody::System)
}

fn block(node: Node<'_>) -> Option<Block> {
    let text = |key: &str| node.text(key).unwrap_or_default().into_owned();
    let value = |key: &str| node.get(key).map(|value| Json::from(value.raw()));
    let content = match &*node.text("type")? {
        "text" => Content::Text(text("text")),
        "thinking" => Content::Thinking(text("text")),
        "command" => Content::Command(text("text")),
        "stream" => Content::Stream(text("text")),
        "tool_use" => Content::ToolUse {
            name: text("name"),
            id: text("id"),
            input: value("input"),
        },
        "tool_result" => Content::ToolResult {
            id: text("id"),
            content: value("content"),
        },
        _ => return None,
    };
    let fidelity = node.text("fidelity")?;
    Some(Block {
        fidelity: Fidelity::from_word(&fidelity)?,
        content,
    })
}

fn note(payload: Node<'_>) -> Option<LogBody> {
    let kind = NoteKind::from_word(&payload.text("kind")?)?;
    Some(LogBody::Note(Note {
        kind,
        text: payload.text("text").map(Into::into),
        raw: payload.get("raw").map(|raw| raw.raw().into()),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::exchange::{Reader, encode_log};
    use crate::projection::Nowhere;

    fn read(bytes: &[u8]) -> Vec<Event<LogBody>> {
        let mut reader = Reader::new(bytes);
        let mut events = Vec::new();
        while let Some(item) = reader.next_decoded().unwrap() {
            events.push(into_log(item.unwrap().event));
        }
        events
    }

    proptest! {
        /// What has a word in the vocabulary comes back as it was, but for its number.
        #[test]
        fn a_session_reads_back((header, events) in arbitrary::session()) {
            let mut bytes = Vec::new();
            let out: Box<dyn Write> = Box::new(&mut bytes);
            let mut to = writer(&header, &Options, out, Box::new(Nowhere)).unwrap();
            for event in &events {
                to.event(event).unwrap();
            }
            let loss = to.finish().unwrap();
            let kept: Vec<_> = events
                .iter()
                .filter(|event| matches!(event.body, LogBody::Exchange(_)))
                .zip(1..)
                .map(|(event, seq)| Event { seq, ..event.clone() })
                .collect();
            prop_assert_eq!(loss.carried, kept.len() as u64);
            prop_assert_eq!(loss.events, events.len() as u64);
            prop_assert_eq!(read(&bytes), kept);
        }
    }

    #[test]
    fn what_imported_logs_say_reads_back() {
        let mut runner = proptest::test_runner::TestRunner::default();
        runner
            .run(&arbitrary::session(), |(_, events)| {
                let mut bytes = Vec::new();
                for event in &events {
                    encode_log(event, &mut bytes);
                }
                let same = |event: &Event<LogBody>| match &event.body {
                    // An empty text and none, null and none are the same in the format.
                    LogBody::Note(note) => LogBody::Note(Note {
                        text: note.text.clone(),
                        raw: note.raw.clone(),
                        kind: note.kind,
                    }),
                    other => other.clone(),
                };
                for (read, was) in read(&bytes).iter().zip(&events) {
                    if matches!(was.body, LogBody::Note(_)) {
                        prop_assert_eq!(same(read), same(was));
                    }
                    prop_assert_eq!(read.body.type_word(), was.body.type_word());
                }
                Ok(())
            })
            .unwrap();
    }
}
