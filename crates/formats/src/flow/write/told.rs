//! What an earlier receipt said of a step that the events have no place for.
//!
//! A run that is read gives such a receipt as a note. What is known of it here is written again, so that nothing
//! looks better than it was.

use quipu_model::json::Tape;
use quipu_model::{Note, NoteKind};

use crate::flow::receipt::{Document, Receipt, classify};
use crate::flow::run::NO_TRANSCRIPT;
use crate::flow::scan::DEPTH;

/// An earlier receipt.
#[derive(Debug)]
pub(super) struct Told {
    receipt: Box<Receipt>,
    is_without_transcript: bool,
}

impl Told {
    /// The receipt that a note keeps, if it keeps one.
    pub(super) fn of(note: &Note) -> Option<Self> {
        if !matches!(
            note.kind,
            NoteKind::Context | NoteKind::ModelCall | NoteKind::Error
        ) {
            return None;
        }
        let raw = note.raw.as_ref()?;
        // Most notes keep something else, which need not be read for that.
        if !raw.get().contains("\"step_id\"") {
            return None;
        }
        let mut tape = Tape::new();
        let node = tape.read(raw.get(), DEPTH).ok()?;
        match classify(node) {
            Document::Step(receipt) => Some(Self {
                receipt,
                is_without_transcript: note.kind == NoteKind::Error
                    && note.text.as_deref() == Some(NO_TRANSCRIPT),
            }),
            Document::Prompt { .. } | Document::Other => None,
        }
    }

    /// The status, where it is none of the two that may be written.
    pub(super) fn native_status(&self) -> Option<&str> {
        self.receipt.unknown_status()
    }

    /// How many counts of tokens are none.
    pub(super) fn unread_tokens(&self) -> u64 {
        self.receipt.tokens.unread
    }

    /// Whether its transcript was not there.
    pub(super) fn is_without_transcript(&self) -> bool {
        self.is_without_transcript
    }

    /// The transcript that it named.
    pub(super) fn transcript_path(&self) -> Option<&str> {
        self.receipt.transcript_path.as_deref()
    }
}
