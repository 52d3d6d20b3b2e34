//! Events: the knots on the cord.

use std::ops::{Deref, DerefMut};

use jiff::Timestamp;

use crate::{
    Attachment, Body, Json, ModelCallId, Money, NativeId, Place, RunId, Status, SubagentId, Usage,
};

/// One event of a transcript. The recorder, the readers of logs, the store and every format share this type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The place in the run's order, from 1, dense. The only order there is: times may collide or
    /// run backwards.
    pub seq: u64,
    /// The run this belongs to.
    pub run_id: RunId,
    /// The run that called this one.
    pub parent_run_id: Option<RunId>,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// Where in the workflow it happened.
    pub place: Place,
    /// What happened.
    pub body: Body,
    /// What other sources know beyond the exchange format.
    pub annotations: Annotations,
}

impl Event {
    /// The blobs that it refers to, whatever for.
    pub fn blobs(&self) -> impl Iterator<Item = &Attachment> {
        let of_body = match &self.body {
            Body::Blob(blob) => [Some(blob), None],
            Body::ModelCall(call) => [call.request.as_ref(), call.response.as_ref()],
            _ => [None, None],
        };
        let of_body = of_body.into_iter().flatten();
        of_body.chain(&self.annotations.attachments)
    }
}

/// An event before it is recorded: all that its author decides. The recorder adds the sequence
/// number, the run and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where it happened.
    pub place: Place,
    /// What happened.
    pub body: Body,
    /// What else is known.
    pub annotations: Annotations,
}

impl Draft {
    /// A draft without annotations.
    pub fn new(place: Place, body: Body) -> Self {
        Self {
            place,
            body,
            annotations: Annotations::default(),
        }
    }
}

/// What sources other than a workflow engine know of an event. Readers of the exchange format
/// ignore these fields; nothing is lost by carrying them.
///
/// Read and set its fields directly, as those of [`Notes`]. Most events of a recorded run have none,
/// so none cost nothing.
#[derive(Debug, Clone, Default)]
pub struct Annotations(Option<Box<Notes>>);

/// The fields of [`Annotations`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notes {
    /// The event's id in the log it was read from.
    pub native_id: Option<NativeId>,
    /// The native id of the event this one follows.
    pub parent_id: Option<NativeId>,
    /// The sub-agent that acted, where a run has several.
    pub subagent_id: Option<SubagentId>,
    /// The model that produced it.
    pub model: Option<String>,
    /// The tokens this event adds to those counted before it.
    pub usage: Option<Usage>,
    /// What those tokens cost, where the source says or it was worked out.
    pub cost: Option<Money>,
    /// The call to the model that the event belongs to, as the provider names it. Several events may
    /// belong to one call; their usages add up to its usage.
    pub model_call: Option<ModelCallId>,
    /// Why the answer that the event belongs to ended, in the provider's own word: `end_turn`, `length`.
    pub stop_reason: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How a tool call ended.
    pub status: Option<Status>,
    /// The run that the event begins or ends: that of a sub-agent.
    pub child: Option<RunId>,
    /// Content that is kept outside of the event.
    pub attachments: Vec<Attachment>,
    /// Which bytes it was read from.
    pub source: Option<Source>,
    /// Fields of the record it was read from that have no place of their own: one JSON object, or a text that stands
    /// for what was removed.
    pub extra: Option<Json>,
    /// Marks on the event.
    pub flags: Flags,
}

const NO_NOTES: &Notes = &Notes {
    native_id: None,
    parent_id: None,
    subagent_id: None,
    model: None,
    usage: None,
    cost: None,
    model_call: None,
    stop_reason: None,
    duration_ms: None,
    status: None,
    child: None,
    attachments: Vec::new(),
    source: None,
    extra: None,
    flags: Flags {
        opaque: false,
        synthetic: false,
        superseded: false,
        undated: false,
        dangling: false,
    },
};

impl Annotations {
    /// Whether nothing is annotated.
    pub fn is_empty(&self) -> bool {
        self.0.is_none() || **self == *NO_NOTES
    }
}

impl Deref for Annotations {
    type Target = Notes;

    fn deref(&self) -> &Notes {
        self.0.as_deref().unwrap_or(NO_NOTES)
    }
}

impl DerefMut for Annotations {
    fn deref_mut(&mut self) -> &mut Notes {
        self.0.get_or_insert_default()
    }
}

impl From<Notes> for Annotations {
    fn from(notes: Notes) -> Self {
        Self(Some(Box::new(notes)))
    }
}

impl PartialEq for Annotations {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Annotations {}

/// The bytes an event was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The file, as its reader names it.
    pub file: String,
    /// The first byte of the record.
    pub offset: u64,
    /// The line of the record, from 1.
    pub line: u64,
}

/// Marks on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own; they combine freely"
)]
pub struct Flags {
    /// The content exists but cannot be read, such as encrypted reasoning.
    pub opaque: bool,
    /// Made by a tool, not said by a person or a model.
    pub synthetic: bool,
    /// A later event takes its place, as after a rewind or a retry.
    pub superseded: bool,
    /// The source gives no time; the timestamp is that of the last event that has one.
    pub undated: bool,
    /// A tool call whose result is not there.
    pub dangling: bool,
}
