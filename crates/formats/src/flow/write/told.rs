//! What an earlier receipt said of a step that the events have no place for.
//!
//! A run that is read gives such a receipt as a note. What is known of it here is written again, so that nothing
//! looks better than it was.

use quipu_model::json::Tape;
use quipu_model::{Json, Note, NoteKind};

use crate::flow::names;
use crate::flow::receipt::{Document, Receipt, ToolCalls, classify};
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

    /// What ran the step, in the words of whoever wrote the receipt.
    pub(super) fn engine(&self) -> Option<&str> {
        self.receipt.engine.as_deref()
    }

    /// The same, as it stands in the name of a transcript.
    pub(super) fn engine_word(&self) -> Option<String> {
        let engine = self.engine()?;
        Some(names::engine(
            engine.strip_suffix("-step").unwrap_or(engine),
        ))
    }

    /// Whether it said that nothing was done, only pretended.
    pub(super) fn is_stub(&self) -> bool {
        self.receipt.is_stub()
    }

    /// The session that it named.
    pub(super) fn session_id(&self) -> Option<&str> {
        self.receipt.session_id.as_deref()
    }

    /// What it said beside what every receipt says, in order.
    pub(super) fn more(&self) -> Vec<(&str, String)> {
        let receipt = &self.receipt;
        let mut more = Vec::new();
        if let Some(mode) = &receipt.mode {
            more.push(("mode", Json::string(mode).get().to_owned()));
        }
        if receipt.lifecycle {
            more.push(("lifecycle_mode", "true".to_owned()));
        }
        if let ToolCalls::List(calls) = &receipt.tool_calls {
            let calls: Vec<&str> = calls.iter().map(Json::get).collect();
            more.push(("tool_calls", format!("[{}]", calls.join(", "))));
        }
        let rest = receipt.rest.iter();
        more.extend(rest.map(|(key, value)| (key.as_str(), value.get().to_owned())));
        more
    }

    /// The transcript that it named.
    pub(super) fn transcript_path(&self) -> Option<&str> {
        self.receipt.transcript_path.as_deref()
    }
}
