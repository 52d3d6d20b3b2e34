//! The journal of a run that was read, written again line by line.

use quipu_model::json::Tape;
use quipu_model::{Event, Note};

use crate::flow::run::{JOURNAL, kind_of};
use crate::flow::scan::DEPTH;

/// Lines of a journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    lines: Vec<u8>,
    events: u64,
}

impl Journal {
    /// Takes a note that keeps a line of a journal; `false` when it keeps something else.
    pub(super) fn take(&mut self, event: &Event, note: &Note) -> bool {
        let Some(raw) = &note.raw else {
            return false;
        };
        let source = event.annotations.source.as_ref();
        let file = source.map(|source| source.file.rsplit('/').next().unwrap_or_default());
        let is_line = match file {
            Some(file) => file == JOURNAL,
            // A copy that says nothing of files is known by what it keeps.
            None => is_record(raw.get()),
        };
        if !is_line {
            return false;
        }
        match raw.as_str() {
            // Not JSON.
            Some(text) if !text.contains('\n') => self.lines.extend_from_slice(text.as_bytes()),
            Some(_) => return false,
            None => self.lines.extend_from_slice(raw.get().as_bytes()),
        }
        self.lines.push(b'\n');
        self.events += 1;
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.lines
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }
}

fn is_record(text: &str) -> bool {
    if !text.contains("\"run_id\"") {
        return false;
    }
    let mut tape = Tape::new();
    tape.read(text, DEPTH).is_ok_and(|node| {
        kind_of(node).is_some() && (node.get("ts").is_some() || node.get("timestamp").is_some())
    })
}
