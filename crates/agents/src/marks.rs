//! What only the whole log tells of its events.

use std::collections::HashSet;
use std::ops::Range;

use quipu_model::{Body, Event};

use crate::Entry;

/// Which events later ones took the place of, and which calls have no result.
///
/// Gathered while a log is read, and put on its events afterwards: on those that were kept, or on those of a
/// second reading, in order. What is held is small, however long the log is.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    voids: Vec<Range<u64>>,
    open: HashSet<u64>,
    /// How many of `voids` were passed, and how far they reach.
    passed: usize,
    void_until: u64,
}

impl Marks {
    /// Marks that are known already: which events were taken back, and which calls have no result.
    pub fn new(
        voids: impl IntoIterator<Item = Range<u64>>,
        open: impl IntoIterator<Item = u64>,
    ) -> Self {
        let mut marks = Self {
            voids: voids.into_iter().collect(),
            ..Self::default()
        };
        marks.close(open);
        marks
    }

    /// Takes in an entry.
    pub fn observe(&mut self, entry: &Entry<'_>) {
        self.voids.extend(entry.voids.clone());
    }

    /// Takes in which calls have no result. From now on events can be marked, from any of them on, in order.
    pub fn close(&mut self, open: impl IntoIterator<Item = u64>) {
        self.open = open.into_iter().collect();
        // Both are walked once, in order: a hostile log may take back as much as it says.
        self.voids.sort_by_key(|range| range.start);
        (self.passed, self.void_until) = (0, 0);
    }

    /// Marks an event. They have to come in order.
    pub fn mark(&mut self, event: &mut Event) {
        while let Some(range) = self.voids.get(self.passed)
            && range.start <= event.seq
        {
            self.void_until = self.void_until.max(range.end);
            self.passed += 1;
        }
        if event.seq < self.void_until {
            event.annotations.flags.superseded = true;
        }
        if self.open.contains(&event.seq) && matches!(event.body, Body::ToolCall(_)) {
            event.annotations.flags.dangling = true;
        }
    }
}
