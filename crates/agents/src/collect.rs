//! A sink that keeps events.

use quipu_model::{Attachment, Event, RunId, Timestamp};

use crate::{Entry, Ledger, Marks, Position, Sink};

/// Keeps every event, owned, in order.
#[derive(Debug)]
pub struct Collect {
    /// What was read.
    pub events: Vec<Event>,
    /// The content that was kept outside, in order.
    pub blobs: Vec<(Attachment, Vec<u8>)>,
    run_id: RunId,
    file: String,
    marks: Marks,
}

impl Default for Collect {
    fn default() -> Self {
        Self::new(crate::run_id("session"), "")
    }
}

impl Collect {
    /// Events get this run id, and this file as their source.
    pub fn new(run_id: RunId, file: &str) -> Self {
        Self {
            events: Vec::new(),
            blobs: Vec::new(),
            run_id,
            file: file.to_owned(),
            marks: Marks::default(),
        }
    }

    /// Marks what only the whole log tells: events that later ones took the place of, and calls without
    /// a result.
    pub fn mark(&mut self, ledger: &Ledger) {
        self.marks.close(ledger.open_calls());
        for event in &mut self.events {
            self.marks.mark(event);
        }
    }
}

impl Sink for Collect {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.marks.observe(entry);
        let event = entry.to_event(seq, at, &self.run_id, position, &self.file);
        self.events.push(event);
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.blobs.push((attachment.clone(), bytes.to_vec()));
    }

    fn wants_blobs(&self) -> bool {
        true
    }
}
