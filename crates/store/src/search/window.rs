//! Reading some events of a transcript, without the rest of it.

use std::sync::Arc;

use quipu_agents::{Entry, Position, Sink, What};
use quipu_model::{Place, Timestamp};
use quipu_redact::Guard;

use super::document::{EventText, role};
use crate::catalogue::TranscriptRow;
use crate::import::ImportError;
use crate::transcript::Kept;

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Its number in the transcript.
    pub seq: u64,
    /// When, where the log says.
    pub at: Option<Timestamp>,
    /// Who speaks: the word that a query has for it.
    pub role: &'static str,
    /// The tool that is called or answers, where that is known.
    pub tool: Option<String>,
    /// The step that it happened in, where it is an event of a run.
    pub place: Option<Place>,
    /// What is said.
    pub text: String,
}

/// The step that an event happened in.
pub(super) fn place_of(entry: &Entry<'_>) -> Option<Place> {
    let in_run = entry.in_run.as_ref()?;
    (!in_run.place.path.is_empty()).then(|| in_run.place.clone())
}

/// Reads the events from `first` to `last`.
pub(super) fn events(
    kept: &Kept,
    row: &TranscriptRow,
    guard: Option<&Arc<Guard>>,
    first: u64,
    last: u64,
) -> Result<Vec<Spoken>, ImportError> {
    let mut window = Window {
        said: said(guard),
        found: Vec::new(),
    };
    let wanted = first..=last;
    kept.open(row, &wanted)?.replay(&wanted, &mut window)?;
    Ok(window.found)
}

/// What takes the text out of events.
pub(super) fn said(guard: Option<&Arc<Guard>>) -> EventText {
    guard.map_or_else(EventText::default, EventText::guarded)
}

struct Window {
    said: EventText,
    found: Vec<Spoken>,
}

impl Sink for Window {
    fn entry(&mut self, seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        let entry = self.said.named(entry);
        let tool = match &entry.what {
            What::Call { name, .. } | What::Result { name, .. } if !name.is_empty() => {
                Some(name.clone().into_owned())
            }
            _ => None,
        };
        self.found.push(Spoken {
            seq,
            at: entry.at,
            role: role(&entry.what),
            tool,
            place: place_of(&entry),
            text: self.said.text(&entry).to_owned(),
        });
    }
}
