//! Reading some events of a transcript, without the rest of it.

use std::sync::Arc;

use quipu_agents::{Entry, Feed, Framing, Origin, Position, Sink, What};
use quipu_model::Timestamp;
use quipu_redact::Guard;

use super::document::{Place, Said, role};
use crate::archive::Archive;
use crate::catalogue::TranscriptRow;
use crate::import::ImportError;

/// A log up to this long is read as a whole: what came before may say more of an event.
const SHORT: u64 = 256 * 1024;

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
    /// What is said.
    pub text: String,
}

/// Reads the events from `first` to `last`.
pub(super) fn events(
    archive: &Archive,
    row: &TranscriptRow,
    guard: Option<&Arc<Guard>>,
    first: u64,
    last: u64,
) -> Result<Vec<Spoken>, ImportError> {
    let mut window = Window {
        first,
        last,
        said: said(guard),
        found: Vec::new(),
        passed: false,
    };
    crate::transcript::feed_until(archive, row, &mut window, |window| window.passed)?;
    Ok(window.found)
}

/// Reads the event at a place, if it can be read without those before it.
pub(super) fn event(
    archive: &Archive,
    row: &TranscriptRow,
    guard: Option<&Arc<Guard>>,
    seq: u64,
    place: u64,
) -> Option<Spoken> {
    if row.size <= SHORT {
        return None;
    }
    let row = &*crate::transcript::located(archive, row).ok()?;
    let (family, dialect) = row.dialect.as_deref().and_then(quipu_agents::dialect)?;
    if dialect.framing != Framing::Lines {
        return None;
    }
    let (offset, nth) = Place::parse(place);
    if nth == Place::MOST {
        return None;
    }
    let snapshot = crate::transcript::snapshot(archive, row).ok()?;
    let mut record = archive.peek_line(&snapshot, offset).ok()??;
    record.push(b'\n');
    let origin = Origin {
        path: &row.path,
        part: row.part.as_deref(),
    };
    let reader = family.open(&dialect, &origin, None)?;
    let mut feed = Feed::new(dialect.framing, reader);
    let mut window = Window {
        first: nth + 1,
        last: nth + 1,
        said: said(guard),
        found: Vec::new(),
        passed: false,
    };
    feed.push(&record, &mut window);
    let mut found = window.found.pop()?;
    found.seq = seq;
    Some(found)
}

/// What takes the text out of events.
pub(super) fn said(guard: Option<&Arc<Guard>>) -> Said {
    guard.map_or_else(Said::default, Said::guarded)
}

struct Window {
    first: u64,
    last: u64,
    said: Said,
    found: Vec<Spoken>,
    passed: bool,
}

impl Sink for Window {
    fn entry(&mut self, seq: u64, _at: Timestamp, _position: Position, entry: &Entry<'_>) {
        if (self.first..=self.last).contains(&seq) {
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
                text: self.said.text(&entry).to_owned(),
            });
        }
        self.passed |= seq >= self.last;
    }
}
