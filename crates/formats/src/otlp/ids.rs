//! Ids of traces and spans. They follow from the run and the event, so that a second export of a session
//! says the same spans and not new ones.

use quipu_model::RunId;
use quipu_model::hex;
use sha2::{Digest as _, Sha256};

/// The id of a trace: one per run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceId([u8; 16]);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanId([u8; 8]);

/// What a span is made of. It is part of the id, because one event may begin several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Root,
    Agent,
    Chat,
    Tool,
    Step,
    Notes,
    Unanswered,
}

impl Of {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Root => b"root",
            Self::Agent => b"agent",
            Self::Chat => b"chat",
            Self::Tool => b"tool",
            Self::Step => b"step",
            Self::Notes => b"notes",
            Self::Unanswered => b"unanswered",
        }
    }
}

impl TraceId {
    pub(super) fn of(run: &RunId) -> Self {
        Self(digest(&[b"quipu/trace", run.as_str().as_bytes()]))
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        hex::write(&self.0, out);
    }
}

impl SpanId {
    /// The span of some kind that an event of a run begins; `seq` is 0 for the run itself. `part` tells
    /// several of one kind apart.
    pub(super) fn of(run: &RunId, what: Of, seq: u64, part: u64) -> Self {
        let (seq, part) = (seq.to_be_bytes(), part.to_be_bytes());
        let run = run.as_str().as_bytes();
        Self(digest(&[b"quipu/span", run, what.word(), &seq, &part]))
    }

    pub(super) fn root(run: &RunId) -> Self {
        Self::of(run, Of::Root, 0, 0)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        hex::write(&self.0, out);
    }
}

fn digest<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let whole = hash.finalize();
    let mut id = [0; N];
    id.copy_from_slice(&whole[..N]);
    // An id of zeros means that there is none.
    if id.iter().all(|byte| *byte == 0) {
        id[0] = 1;
    }
    id
}
