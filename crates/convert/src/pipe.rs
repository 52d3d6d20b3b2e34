//! From a source to a writer.
//!
//! One thread reads and another writes, so that a conversion takes as long as the slower of the two. What is on
//! the way between them is bounded by its size. What was written goes back to be freed where it was made: freeing what
//! another thread allocates would have both wait for each other.

use std::io;
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::thread;

use quipu_formats::loss::Loss;
use quipu_formats::normalized::Beyond;
use quipu_formats::projection::Projection;
use quipu_model::{Attachment, Block, Body, Content, Event, Fidelity, Json, Notes};

use crate::source::{Account, Receiver, Source, SourceError};

/// How much is handed over at once, at least.
const BATCH: usize = 256 << 10;

/// How many batches wait.
const WAITING: usize = 2;

enum Item {
    Blob(Attachment, Vec<u8>),
    Event(Event),
    More(Event, Box<Beyond>),
}

/// How it is counted that receipts of what was removed from an event are left behind.
const RECEIPTS: &str = "redactions";

/// How what the model has no place for is counted where it is left behind.
const MORE: &str = "fields of a normalized transcript that are not known";

/// Reads all events of a source into a writer. The source's header is read before. Gives the account of the reading,
/// and what was lost that the writer was not asked about.
///
/// # Errors
///
/// What keeps the source from being read, or the writer from writing: [`SourceError::Refused`].
pub fn pump(
    source: &mut dyn Source,
    to: &mut (dyn Projection + '_),
) -> Result<(Account, Loss), SourceError> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Vec<Item>>(WAITING);
        let (back, done) = sync_channel::<Vec<Item>>(2 * WAITING);
        let reading = scope.spawn(move || {
            let mut sending = Sending {
                sender,
                done,
                batch: Vec::new(),
                weight: 0,
            };
            let account = source.read(&mut sending)?;
            sending.send().map_err(SourceError::Refused)?;
            Ok::<_, SourceError>(account)
        });
        let (mut written, mut left) = (Ok(()), Loss::default());
        for batch in receiver {
            written = write(&batch, to, &mut left);
            // Whoever reads may be gone, or slow to take it back; then it is freed here.
            drop(back.try_send(batch));
            if written.is_err() {
                // Who reads is told by the receiver that goes.
                break;
            }
        }
        let read = match reading.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        match written {
            Ok(()) => read.map(|account| (account, left)),
            Err(error) => Err(SourceError::Refused(error)),
        }
    })
}

fn write(batch: &[Item], to: &mut (dyn Projection + '_), left: &mut Loss) -> io::Result<()> {
    for item in batch {
        match item {
            Item::Blob(attachment, bytes) => to.blob(attachment, bytes)?,
            Item::Event(event) => to.event(event)?,
            Item::More(event, more) if to.takes_more() => {
                to.event_and_more(event, more)?;
            }
            Item::More(event, more) => {
                let said = said(event, more);
                if let Some(said) = &said {
                    to.event(said)?;
                }
                to.event(event)?;
                let text = |(key, _): &(String, Json)| key == "text" && said.is_some();
                if !more.redactions.is_empty() {
                    left.dropped(RECEIPTS, event.seq);
                }
                let rest = Beyond {
                    id: None,
                    redactions: Vec::new(),
                    extra: more.extra.iter().filter(|it| !text(it)).cloned().collect(),
                    ..more.as_ref().clone()
                };
                if !rest.is_empty() {
                    left.dropped(MORE, event.seq);
                }
            }
        }
    }
    Ok(())
}

/// What an agent says in the event with which it calls a tool. Formats but one have it as a message before the call.
fn said(event: &Event, more: &Beyond) -> Option<Event> {
    let Body::ToolCall(_) = event.body else {
        return None;
    };
    let (_, text) = more.extra.iter().find(|(key, _)| key == "text")?;
    let text = text.as_str().filter(|text| !text.is_empty())?;
    let block = Block {
        fidelity: Fidelity::AgentEmitted,
        content: Content::Text(text.into_owned()),
    };
    Some(Event {
        body: Body::AssistantMessage(vec![block]),
        annotations: Notes {
            model: event.annotations.model.clone(),
            model_call: event.annotations.model_call.clone(),
            subagent_id: event.annotations.subagent_id.clone(),
            ..Notes::default()
        }
        .into(),
        ..event.clone()
    })
}

struct Sending {
    sender: SyncSender<Vec<Item>>,
    /// What was written.
    done: mpsc::Receiver<Vec<Item>>,
    batch: Vec<Item>,
    weight: usize,
}

impl Sending {
    fn put(&mut self, item: Item, weight: usize) -> io::Result<()> {
        self.batch.push(item);
        self.weight += weight;
        if self.weight >= BATCH {
            return self.send();
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        self.weight = 0;
        let mut free = Vec::new();
        while let Ok(mut written) = self.done.try_recv() {
            written.clear();
            free = written;
        }
        let batch = std::mem::replace(&mut self.batch, free);
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.send(batch).map_err(gone)
    }
}

impl Receiver for Sending {
    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) -> io::Result<()> {
        let item = Item::Blob(attachment.clone(), bytes.to_vec());
        self.put(item, bytes.len())
    }

    fn event(&mut self, event: Event) -> io::Result<()> {
        let weight = weight(&event.body);
        self.put(Item::Event(event), weight)
    }

    fn event_and_more(&mut self, event: Event, more: Beyond) -> io::Result<()> {
        let weight = weight(&event.body);
        self.put(Item::More(event, Box::new(more)), weight)
    }
}

/// About how much memory an event takes.
fn weight(body: &Body) -> usize {
    const BASE: usize = 512;
    let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
    let blocks = |blocks: &[Block]| -> usize {
        let size = |block: &Block| match &block.content {
            Content::Text(text)
            | Content::Thinking(text)
            | Content::Command(text)
            | Content::Stream(text) => text.len(),
            Content::ToolUse { input, .. } => json(input),
            Content::ToolResult { content, .. } => json(content),
            Content::Unknown(json) => json.get().len(),
        };
        blocks.iter().map(size).sum()
    };
    BASE + match body {
        Body::UserMessage(said) | Body::AssistantMessage(said) | Body::SystemMessage(said) => {
            blocks(said)
        }
        Body::ToolCall(call) => json(&call.input),
        Body::ToolResult(result) => json(&result.input) + json(&result.output),
        Body::RunCompleted(Some(end))
        | Body::StepCompleted(end)
        | Body::CallCompleted { end, .. } => json(&end.result),
        Body::Note(note) => json(&note.raw) + note.text.as_ref().map_or(0, String::len),
        Body::ModelCall(call) => json(&call.params),
        Body::Chunk(chunk) => json(&chunk.delta) + chunk.text.len(),
        Body::Harness(event) => json(&event.attributes),
        Body::Error(failure) => failure.message.len(),
        Body::Unknown(unknown) => unknown.payload.get().len(),
        Body::RunStarted(_)
        | Body::RunCompleted(None)
        | Body::StepStarted(_)
        | Body::CallStarted { .. }
        | Body::Blob(_) => 0,
    }
}
