//! Calls of tools that are under way. How many, and how much they hold, is bounded: the oldest give way.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::ids::SpanId;
use super::span::{Nanos, Span};

/// How many calls may wait for their results, and how many bytes they may hold.
const MAX_OPEN: usize = 4_096;
const MAX_BYTES: usize = 16 << 20;

/// How many calls that ended are remembered, to know a result that is told twice.
const MAX_ENDED: usize = 4_096;

/// A call under way.
#[derive(Debug)]
pub(super) struct OpenTool {
    pub(super) span: Span,
    pub(super) id: String,
    pub(super) name: String,
}

/// Calls under way, and those that ended lately.
#[derive(Debug, Default)]
pub(super) struct Tools {
    open: BTreeMap<u64, OpenTool>,
    by_id: HashMap<String, u64>,
    next: u64,
    bytes: usize,
    ended: HashSet<String>,
    ended_order: VecDeque<String>,
}

impl Tools {
    /// The call of this id.
    pub(super) fn get(&self, id: &str) -> Option<&OpenTool> {
        self.open.get(self.by_id.get(id)?)
    }

    /// Changes the call of this id, if there is one.
    pub(super) fn change<T>(&mut self, id: &str, by: impl FnOnce(&mut OpenTool) -> T) -> Option<T> {
        let tool = self.open.get_mut(self.by_id.get(id)?)?;
        let before = tool.span.weight();
        let made = by(tool);
        self.bytes = (self.bytes + tool.span.weight()).saturating_sub(before);
        Some(made)
    }

    /// Has the call of this span last from one time to another. `false` when it is not under way.
    pub(super) fn touch(&mut self, id: SpanId, from: Nanos, to: Nanos) -> bool {
        let mut spans = self.open.values_mut().map(|it| &mut it.span);
        let found = spans.find(|it| it.id == id);
        let is_open = found.is_some();
        if let Some(span) = found {
            span.touch(from);
            span.touch(to);
        }
        is_open
    }

    pub(super) fn is_ended(&self, id: &str) -> bool {
        self.ended.contains(id)
    }

    /// A call begins.
    pub(super) fn begin(&mut self, tool: OpenTool) {
        self.bytes += tool.span.weight();
        if !tool.id.is_empty() {
            self.by_id.insert(tool.id.clone(), self.next);
            // The id may be used again; then it is not the one that ended.
            self.ended.remove(&tool.id);
        }
        self.open.insert(self.next, tool);
        self.next += 1;
    }

    /// The call that a result ends. Where results have no ids, it is that of the last call of the tool
    /// that has none either.
    pub(super) fn end(&mut self, id: &str, name: &str) -> Option<OpenTool> {
        let place = if id.is_empty() {
            let mut latest = self.open.iter().rev();
            let found = latest.find(|(_, it)| it.id.is_empty() && it.name == name);
            *found?.0
        } else {
            *self.by_id.get(id)?
        };
        self.remove(place)
    }

    /// Remembers that there was a result.
    pub(super) fn ended(&mut self, id: &str) {
        if id.is_empty() || !self.ended.insert(id.to_owned()) {
            return;
        }
        self.ended_order.push_back(id.to_owned());
        while self.ended_order.len() > MAX_ENDED {
            if let Some(oldest) = self.ended_order.pop_front() {
                self.ended.remove(&oldest);
            }
        }
    }

    /// A call that has to give way, if there are too many.
    pub(super) fn excess(&mut self) -> Option<OpenTool> {
        if self.open.len() <= MAX_OPEN && self.bytes <= MAX_BYTES {
            return None;
        }
        self.oldest()
    }

    /// The call that has waited the longest.
    pub(super) fn oldest(&mut self) -> Option<OpenTool> {
        let place = *self.open.first_key_value()?.0;
        self.remove(place)
    }

    fn remove(&mut self, place: u64) -> Option<OpenTool> {
        let tool = self.open.remove(&place)?;
        if self.by_id.get(&tool.id) == Some(&place) {
            self.by_id.remove(&tool.id);
        }
        self.bytes = self.bytes.saturating_sub(tool.span.weight());
        Some(tool)
    }
}
