//! Notes that belong to a message: what is attached to it.
//!
//! Logs tell of an image in a prompt beside the prompt, before or after its text. In a trajectory it is a part of the
//! same message, so that every reader sees it; what else the note says stands with the step.

use quipu_model::json::Tape;
use quipu_model::{Body, Event, Json, Note, NoteKind};

use super::attach::Gallery;
use super::details;
use super::json::{Object, comma};
use super::step::Step;
use super::take::json_field;
use super::write::Writer;
use crate::loss::Loss;

/// How many notes wait for their message.
const EARLY: usize = 64;

/// Whether a note may be a part of a message: it says of which, and of one thing that is attached.
pub(super) fn is_one(event: &Event, note: &Note, gallery: &Gallery<'_>) -> bool {
    let notes = &event.annotations;
    note.kind == NoteKind::Attachment
        && notes.native_id.is_some()
        && match notes.attachments.len() {
            0 => part_of(note, gallery).is_some(),
            n => n == 1,
        }
}

/// Whether a note says that a step was copied, as that stands in a trajectory that was read.
pub(super) fn says_copied(note: &Note) -> bool {
    const FIELD: &str = "is_copied_context";
    let raw = note.raw.as_ref().map(Json::get);
    let Some(raw) = raw.filter(|raw| note.kind == NoteKind::Context && raw.contains(FIELD)) else {
        return false;
    };
    let mut tape = Tape::new();
    let object = tape.read(raw, Json::MAX_DEPTH).ok();
    let field = object.and_then(|object| object.get(FIELD)?.as_bool());
    field == Some(true)
}

fn part_of<'n>(note: &'n Note, gallery: &Gallery<'_>) -> Option<&'n str> {
    let raw = note.raw.as_ref().map(Json::get);
    raw.filter(|raw| gallery.is_part(raw))
}

/// Adds the part of a note to the message of a step, and the note beside it.
pub(super) fn show(step: &mut Step, event: &Event, gallery: &Gallery<'_>, loss: &mut Loss) {
    let Body::Note(note) = &event.body else {
        return;
    };
    let notes = &event.annotations;
    let before = step.parts.len();
    let at = step.parts.count();
    let here = notes
        .attachments
        .iter()
        .find(|it| gallery.path(&it.sha256).is_some());
    let missing = match (here, part_of(note, gallery), notes.attachments.first()) {
        (Some(attachment), _, _) | (None, None, Some(attachment)) => {
            !gallery.part(attachment, step.parts.add())
        }
        (None, Some(part), _) => {
            let out = step.parts.add();
            comma(out);
            out.extend_from_slice(part.as_bytes());
            true
        }
        (None, None, None) => false,
    };
    if missing {
        loss.dropped("attachment bytes", event.seq);
    }
    let mut about = Vec::new();
    let mut object = Object::begin(&mut about);
    object.text("kind", note.kind.as_str());
    object.number("part", at);
    object.maybe("text", note.text.as_deref());
    if let Some(raw) = &note.raw {
        json_field("raw", raw, &mut object);
    }
    details::fields(event, details::StepFacts::default(), gallery, &mut object);
    object.end();
    comma(&mut step.notes);
    step.notes.extend_from_slice(&about);
    step.size += about.len() + step.parts.len() - before;
}

impl Writer<'_> {
    /// Makes a part of a note, now or when its message comes. `false` when there is no place to wait.
    pub(super) fn picture(&mut self, track: usize, event: &Event) -> bool {
        let of = &mut self.tracks[track];
        let native = event.annotations.native_id.as_deref().unwrap_or_default();
        if let Some(step) = of.noted_message(native) {
            show(step, event, &self.gallery, &mut self.loss);
            self.spend_apart(track, event);
            return true;
        }
        if of.early.len() >= EARLY || super::take::tells_usage(event) {
            return false;
        }
        of.early.push(event.clone());
        true
    }

    /// Gives up waiting for the message of some notes, unless this is it, or another of them.
    pub(super) fn settle_early(&mut self, track: usize, next: Option<&Event>) {
        use quipu_model::Body;
        let Some(first) = self.tracks[track].early.first() else {
            return;
        };
        let goes_on = next.is_some_and(|next| {
            let fits = match &next.body {
                Body::Note(note) => note.kind == NoteKind::Attachment,
                body => body.blocks().is_some(),
            };
            fits && next.annotations.native_id == first.annotations.native_id
        });
        if goes_on {
            return;
        }
        for event in std::mem::take(&mut self.tracks[track].early) {
            if let Body::Note(note) = &event.body {
                self.plain_note(track, &event, note);
            }
        }
    }
}
