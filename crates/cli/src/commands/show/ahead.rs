//! Events in order, with the result of a call that comes later.

use std::collections::{HashMap, HashSet, VecDeque};

use quipu_model::{Body, Event, ToolCallId};

use crate::args::Show;
use crate::error::Result;
use crate::foreign;

/// Where events come from.
pub(super) trait Events {
    /// Some more of them, in order.
    fn more(&mut self) -> Option<Result<Vec<Event>>>;

    /// Why the log could not be read wholly. To be asked for at the end.
    fn problem(&self) -> Result<Option<String>>;
}

impl Events for quipu_store::Batches {
    fn more(&mut self) -> Option<Result<Vec<Event>>> {
        self.next().map(|batch| batch.map_err(Into::into))
    }

    fn problem(&self) -> Result<Option<String>> {
        Ok(Self::problem(self)?)
    }
}

/// A log that was read whole.
impl Events for foreign::Log {
    fn more(&mut self) -> Option<Result<Vec<Event>>> {
        let events = std::mem::take(&mut self.events);
        (!events.is_empty()).then_some(Ok(events))
    }

    fn problem(&self) -> Result<Option<String>> {
        Ok(self.problem.as_ref().map(ToString::to_string))
    }
}

/// Walks over events. It reads no further than the result of the call it is at.
pub(super) struct Ahead<'a> {
    args: &'a Show,
    events: &'a mut dyn Events,
    /// Events that were read, from the one it is at on.
    held: VecDeque<Event>,
    /// How many events are behind it.
    passed: usize,
    /// Calls without a result so far, by their id, and whether they are shown. Some agents give one id to several
    /// calls; their results come in the order of the calls.
    open: HashMap<ToolCallId, VecDeque<(usize, bool)>>,
    /// The results of calls that are shown.
    results: HashMap<usize, usize>,
    /// Results that are shown with their call.
    answers: HashSet<usize>,
    began: bool,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(args: &'a Show, events: &'a mut dyn Events) -> Self {
        Self {
            args,
            events,
            held: VecDeque::new(),
            passed: 0,
            open: HashMap::new(),
            results: HashMap::new(),
            answers: HashSet::new(),
            began: false,
        }
    }

    /// Reads more. `false` at the end.
    fn fill(&mut self) -> Result<bool> {
        let Some(batch) = self.events.more() else {
            return Ok(false);
        };
        for event in batch? {
            let at = self.passed + self.held.len();
            match &event.body {
                Body::ToolCall(call) if !call.call_id.is_empty() => {
                    let shown = self.args.wants_event(&event);
                    let open = self.open.entry(call.call_id.clone()).or_default();
                    open.push_back((at, shown));
                }
                Body::ToolResult(result) => self.pair(&result.call_id, at),
                _ => {}
            }
            self.held.push_back(event);
        }
        Ok(true)
    }

    /// The first open call with this id has its result.
    fn pair(&mut self, id: &ToolCallId, result: usize) {
        let Some(open) = self.open.get_mut(id) else {
            return;
        };
        let call = open.pop_front();
        if open.is_empty() {
            self.open.remove(id);
        }
        // A call that was passed was shown without it.
        if let Some((call, true)) = call
            && call >= self.passed
        {
            self.results.insert(call, result);
            self.answers.insert(result);
        }
    }

    /// Goes to the next event that is shown by itself. `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        loop {
            if self.began {
                self.held.pop_front();
                self.results.remove(&self.passed);
                self.passed += 1;
            }
            self.began = true;
            while self.held.is_empty() {
                if !self.fill()? {
                    return Ok(false);
                }
            }
            let event = &self.held[0];
            if !self.args.wants_event(event) || self.answers.remove(&self.passed) {
                continue;
            }
            let unanswered = matches!(&event.body, Body::ToolCall(call)
                if !call.call_id.is_empty() && !event.annotations.flags.dangling);
            while unanswered && !self.results.contains_key(&self.passed) && self.fill()? {}
            return Ok(true);
        }
    }

    /// How many events are behind it.
    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// The event it is at.
    pub(super) fn event(&self) -> &Event {
        &self.held[0]
    }

    /// The result of the call it is at.
    pub(super) fn result(&self) -> Option<&Event> {
        let at = self.results.get(&self.passed)?;
        self.held.get(at - self.passed)
    }

    /// The events at the beginning that are of a kind, and are shown. To be asked for before the first step.
    pub(super) fn beginning(&mut self, is: impl Fn(&Event) -> bool) -> Result<Vec<&Event>> {
        let mut at = 0;
        loop {
            if at == self.held.len() && !self.fill()? {
                break;
            }
            match self.held.get(at) {
                Some(event) if self.args.wants_event(event) && !is(event) => break,
                _ => at += 1,
            }
        }
        let found = self.held.iter().take(at);
        Ok(found.filter(|event| self.args.wants_event(event)).collect())
    }
}
