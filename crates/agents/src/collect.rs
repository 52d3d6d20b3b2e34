//! A sink that keeps events.

use quipu_model::{Attachment, Body, Event, LogBody, RunId, Timestamp};

use crate::{Entry, Ledger, Position, Sink};

/// Keeps every event, owned, in order.
#[derive(Debug)]
pub struct Collect {
    /// What was read.
    pub events: Vec<Event<LogBody>>,
    /// The content that was kept outside, in order.
    pub blobs: Vec<(Attachment, Vec<u8>)>,
    run_id: RunId,
    file: String,
    voids: Vec<std::ops::Range<u64>>,
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
            voids: Vec::new(),
        }
    }

    /// Marks what only the whole log tells: events that later ones took the place of, and calls without
    /// a result.
    pub fn mark(&mut self, ledger: &Ledger) {
        let open: std::collections::HashSet<u64> = ledger.open_calls().collect();
        // Both are walked once, in order: a hostile log may take back as much as it says.
        self.voids.sort_by_key(|range| range.start);
        let (mut voids, mut void_until) = (self.voids.iter().peekable(), 0);
        for event in &mut self.events {
            while let Some(range) = voids.next_if(|range| range.start <= event.seq) {
                void_until = void_until.max(range.end);
            }
            if event.seq < void_until {
                event.annotations.flags.superseded = true;
            }
            if open.contains(&event.seq)
                && matches!(event.body, LogBody::Exchange(Body::ToolCall(_)))
            {
                event.annotations.flags.dangling = true;
            }
        }
    }
}

impl Sink for Collect {
    fn entry(&mut self, seq: u64, at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.voids.extend(entry.voids.clone());
        let event = entry.to_event(seq, at, &self.run_id, position, &self.file);
        self.events.push(event);
    }

    fn blob(&mut self, attachment: &Attachment, bytes: &[u8]) {
        self.blobs.push((attachment.clone(), bytes.to_vec()));
    }
}
