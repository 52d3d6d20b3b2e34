//! What a line of the journal says.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Target, check};

/// The version that lines are written in. A line of a later one is left alone.
pub(super) const VERSION: u32 = 1;

/// How long a line is at most. Every character of a note may take six bytes.
pub(super) const LONGEST_LINE: usize = 6 * check::LONGEST_NOTE + 4096;

/// Something that a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// The version.
    pub(super) v: u32,
    /// The id of the line, and of the label or note that it adds.
    pub(super) id: String,
    /// When.
    pub(super) at: String,
    /// Who.
    pub(super) by: String,
    /// On which transcript: its address.
    pub(super) transcript: String,
    /// On which event; null for the transcript as a whole.
    pub(super) seq: Option<u64>,
    /// What.
    #[serde(flatten)]
    pub(super) act: Act,
}

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Act {
    LabelAdd { label: String },
    LabelRemove { label: String },
    NoteAdd { text: String },
    NoteEdit { note: String, text: String },
    NoteDelete { note: String },
}

impl Line {
    /// Reads a line. `None` when it is not one that this version would write: then it is left alone.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > LONGEST_LINE {
            return None;
        }
        let line: Self = serde_json::from_slice(bytes).ok()?;
        let on = Target {
            transcript: &line.transcript,
            seq: line.seq,
        };
        let act = match &line.act {
            Act::LabelAdd { label } | Act::LabelRemove { label } => check::label(label),
            Act::NoteAdd { text } | Act::NoteEdit { text, .. } => check::note(text),
            Act::NoteDelete { .. } => Ok(()),
        };
        let is_sound = line.v == VERSION
            && (1..=64).contains(&line.id.len())
            && line.at.parse::<Timestamp>().is_ok()
            && check::target(on).is_ok()
            && check::name(&line.by).is_ok()
            && act.is_ok();
        is_sound.then_some(line)
    }
}
