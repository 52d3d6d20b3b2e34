//! The shape of a transcript: a letter for each event, so that a page knows what is where without reading all of it.

use std::collections::HashMap;

use quipu_api::cord::{Cord, CordLine};
use quipu_model::{Block, Body, Content, Event, NoteKind, Status};

use crate::Store;
use crate::catalogue::TranscriptRow;
use crate::events::ALL;
use crate::import::ImportError;

/// So many first lines are given, of so many characters.
const LINES: usize = 3_000;
const LINE: usize = 120;

/// A result is far from its call when so many events are between them. A page has those that are nearer at hand.
const FAR: u64 = 32;

impl Store {
    /// The shape of a transcript.
    ///
    /// # Errors
    ///
    /// When the transcript cannot be read.
    pub fn cord(&self, row: &TranscriptRow) -> Result<Cord, ImportError> {
        let mut shape = Shape::default();
        for batch in self.batches(row, &ALL)? {
            for event in batch? {
                shape.take(&event);
            }
        }
        Ok(shape.document(row))
    }
}

#[derive(Debug, Default)]
struct Shape {
    kinds: Vec<u8>,
    far: Vec<Vec<u64>>,
    lines: Vec<CordLine>,
    more_lines: u64,
    /// Calls without a result so far, by a hash of their id.
    open: HashMap<u64, u64>,
}

impl Shape {
    fn take(&mut self, event: &Event) {
        let place = usize::try_from(event.seq).unwrap_or(usize::MAX);
        // Events are dense; what is not there is shown as a note.
        while self.kinds.len() + 1 < place.min(self.kinds.len() + 4096) {
            self.kinds.push(b'q');
        }
        let letter = match &event.body {
            Body::ToolCall(call) => {
                if !call.call_id.is_empty() {
                    let id = quipu_agents::hash(call.call_id.as_bytes());
                    self.open.insert(id, event.seq);
                }
                b't'
            }
            Body::ToolResult(result) => {
                let id = quipu_agents::hash(result.call_id.as_bytes());
                match self.open.remove(&id) {
                    Some(call) => {
                        if event.seq - call > FAR {
                            self.far.push(vec![call, event.seq]);
                        }
                        if is_bad(event) {
                            let at = usize::try_from(call - 1).unwrap_or(usize::MAX);
                            if let Some(letter) = self.kinds.get_mut(at) {
                                letter.make_ascii_uppercase();
                            }
                        }
                        b'p'
                    }
                    None => b'o',
                }
            }
            body => letter(body, event.annotations.flags.synthetic),
        };
        if matches!(letter, b'u' | b'a') && event.annotations.subagent_id.is_none() {
            self.line(event, letter == b'u');
        }
        self.kinds.push(if is_bad(event) {
            letter.to_ascii_uppercase()
        } else {
            letter
        });
    }

    fn line(&mut self, event: &Event, person: bool) {
        let Some(text) = first_line(&event.body) else {
            return;
        };
        if self.lines.len() < LINES {
            self.lines.push(CordLine {
                seq: event.seq,
                person,
                text,
            });
        } else {
            self.more_lines += 1;
        }
    }

    fn document(self, row: &TranscriptRow) -> Cord {
        Cord {
            transcript: super::address(row),
            events: self.kinds.len() as u64,
            kinds: String::from_utf8(self.kinds).unwrap_or_default(),
            far: self.far,
            lines: self.lines,
            more_lines: self.more_lines,
        }
    }
}

fn letter(body: &Body, synthetic: bool) -> u8 {
    match body {
        Body::UserMessage(_) if !synthetic => b'u',
        Body::UserMessage(_) | Body::SystemMessage(_) => b's',
        Body::AssistantMessage(blocks) => match blocks.as_slice() {
            [
                Block {
                    content: Content::Thinking(_),
                    ..
                },
            ] => b'r',
            _ => b'a',
        },
        Body::Harness(_) | Body::Error(_) | Body::Unknown(_) => b'n',
        Body::Note(note) if !is_quiet(note.kind.as_str()) => b'n',
        _ => b'q',
    }
}

/// Whether it is something that agents note for themselves. `QUIET` in the page's modules lists the same.
fn is_quiet(kind: &str) -> bool {
    const QUIET: [&str; 14] = [
        "attachment",
        "context",
        "file_snapshot",
        "hook",
        "mode",
        "model_call",
        "progress",
        "queue",
        "session",
        "title",
        "todo",
        "turn",
        "usage",
        "step",
    ];
    QUIET.contains(&kind)
}

fn is_bad(event: &Event) -> bool {
    let status = event.annotations.status;
    status.is_some_and(|status| status != Status::Ok)
        || match &event.body {
            Body::ToolResult(result) => result.error.is_some(),
            Body::StepCompleted(end)
            | Body::CallCompleted { end, .. }
            | Body::RunCompleted(Some(end)) => end.error.is_some(),
            Body::Error(_) => true,
            Body::Note(note) => note.kind == NoteKind::Error,
            _ => false,
        }
}

fn first_line(body: &Body) -> Option<String> {
    let (Body::UserMessage(blocks) | Body::AssistantMessage(blocks)) = body else {
        return None;
    };
    let texts = blocks.iter().filter_map(|block| match &block.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let mut lines = texts.flat_map(str::lines).map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with("```"))?;
    Some(match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    })
}
