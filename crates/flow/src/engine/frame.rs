//! Where in a run the steps of one container are: the workflow itself, a branch, or a pass through a loop.

use std::collections::HashMap;

use quipu_model::Place;

/// The steps of one container. Attempts are numbered here.
#[derive(Debug, Default)]
pub(super) struct Frame {
    path: String,
    passes: Vec<u64>,
    /// Attempts at steps in here have higher numbers than this: the container itself may be visited again.
    base: u64,
    next: HashMap<String, u64>,
    /// The highest attempt inside the containers of this one, by their name.
    inner: HashMap<String, u64>,
    visits: HashMap<String, u32>,
    high: u64,
}

impl Frame {
    /// The highest number of an attempt inside a container of this one so far.
    pub(super) fn inner(&self, name: &str) -> u64 {
        self.inner.get(name).copied().unwrap_or_default()
    }

    /// Attempts were made inside a container, up to this number.
    pub(super) fn saw_inside(&mut self, name: &str, high: u64) {
        let inner = self.inner.entry(name.to_owned()).or_default();
        *inner = (*inner).max(high);
    }

    /// The frame of a container inside this one, whose attempts have higher numbers than `base`.
    pub(super) fn inside(&self, name: &str, pass: Option<u64>, base: u64) -> Self {
        let mut passes = self.passes.clone();
        passes.extend(pass);
        Self {
            path: self.path_of(name),
            passes,
            base: base.max(self.base),
            ..Self::default()
        }
    }

    fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// Where a step is, at its first attempt.
    pub(super) fn place(&self, name: &str) -> Place {
        Place {
            path: self.path_of(name),
            iterations: self.passes.clone(),
            attempt: 1,
        }
    }

    /// The number that the next attempt at a step has at least.
    pub(super) fn next_attempt(&self, name: &str) -> u64 {
        self.next.get(name).copied().unwrap_or(self.base + 1)
    }

    /// An attempt at a step was made.
    pub(super) fn used(&mut self, name: &str, attempt: u64) {
        self.next.insert(name.to_owned(), attempt + 1);
        self.high = self.high.max(attempt).max(self.inner(name));
    }

    /// The highest number of an attempt in here.
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Counts a visit of a step, and gives the count.
    pub(super) fn visit(&mut self, name: &str) -> u32 {
        let visits = self.visits.entry(name.to_owned()).or_default();
        *visits += 1;
        *visits
    }
}
