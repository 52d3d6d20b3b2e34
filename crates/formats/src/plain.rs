//! Events for formats that know messages, tools, steps and notes, and no other kinds.

use std::borrow::Cow;

use quipu_model::{Body, Content, Event, HarnessEvent, Note, NoteKind, Severity};

use crate::exchange::unknown_blocks_as_text;
use crate::loss::Loss;
use quipu_exchange::{fields_json, sentence};

/// An event in the kinds that every format has a way with. Other kinds become notes that keep all of them; blocks that
/// are not known become text. [`count`] says so in a loss report.
pub fn plain(event: &Event) -> Cow<'_, Event> {
    let Some(note) = note(event) else {
        let mut event = Cow::Borrowed(event);
        unknown_blocks_as_text(&mut event, |_| {});
        return event;
    };
    let blobs: Vec<_> = event.blobs().cloned().collect();
    let mut event = Event {
        body: Body::Note(note),
        ..event.clone()
    };
    if blobs.len() > event.annotations.attachments.len() {
        event.annotations.attachments = blobs;
    }
    Cow::Owned(event)
}

/// Counts what [`plain`] changes of an event.
pub fn count(event: &Event, loss: &mut Loss) {
    let word = event.body.type_word();
    match &event.body {
        Body::ModelCall(_) | Body::Chunk(_) | Body::Harness(_) | Body::Blob(_) | Body::Error(_) => {
            loss.wrapped(format!("{word} as note"), event.seq);
        }
        Body::Unknown(_) => {
            loss.wrapped(format!("{:?} as note", start_of(word)), event.seq);
        }
        body => {
            for block in body.blocks().unwrap_or_default() {
                if matches!(block.content, Content::Unknown(_)) {
                    loss.wrapped("block of an unknown type as text", event.seq);
                }
            }
        }
    }
}

/// The name under which an event is counted that a format has no place for.
pub fn name(event: &Event) -> Cow<'static, str> {
    match &event.body {
        Body::Note(note) => format!("note:{}", note.kind).into(),
        body => match body.event_type() {
            Some(known) => known.as_str().into(),
            None => start_of(body.type_word()).to_owned().into(),
        },
    }
}

/// A word from a log names what is counted, so it is short.
fn start_of(word: &str) -> &str {
    word.char_indices()
        .nth(100)
        .map_or(word, |(at, _)| &word[..at])
}

/// The note that stands for an event of a kind that not every format has: what it says in short, and all of its
/// fields. `None` for the kinds that every format has a way with.
pub fn note(event: &Event) -> Option<Note> {
    let kind = match &event.body {
        Body::ModelCall(_) => NoteKind::ModelCall,
        Body::Chunk(_) => NoteKind::Progress,
        Body::Harness(harness) => harness_kind(harness),
        Body::Blob(_) => NoteKind::Attachment,
        Body::Error(_) => NoteKind::Error,
        Body::Unknown(unknown) => {
            return Some(Note {
                kind: NoteKind::UnknownRecord,
                text: Some(unknown.event_type.clone()),
                raw: Some(unknown.payload.clone()),
            });
        }
        _ => return None,
    };
    Some(Note {
        kind,
        text: Some(sentence(&event.body, event.annotations.model.as_deref())),
        raw: fields_json(&event.body),
    })
}

/// What a note about a harness event is about.
fn harness_kind(event: &HarnessEvent) -> NoteKind {
    let is_bad = matches!(event.severity, Some(Severity::Error | Severity::Fatal));
    match event.category.as_str() {
        "rate_limit" if is_bad => NoteKind::Error,
        "retry" | "rate_limit" => NoteKind::Retry,
        "model_switch" => NoteKind::ModelChange,
        "context_trim" => NoteKind::Compaction,
        "cache" => NoteKind::Context,
        "guardrail" => NoteKind::Permission,
        "budget" => NoteKind::Usage,
        "stream_interrupt" => NoteKind::Truncated,
        "tool_lifecycle" => NoteKind::Progress,
        _ => NoteKind::UnknownRecord,
    }
}
