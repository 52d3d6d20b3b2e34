//! Runs and steps: what begins and ends with events of its own, and which of them something happened in.

use std::collections::HashMap;

use quipu_api::timeline::SpanKind;
use quipu_model::{Body, Event, Place, Step, StepEnd};

use super::names::Names;
use super::{Micros, time_of};

/// A run or a step, in small.
#[derive(Debug, Clone)]
pub(super) struct StepFact {
    pub(super) kind: SpanKind,
    /// The number of its name, and of its kind.
    pub(super) name: Option<u32>,
    pub(super) step_kind: Option<u32>,
    pub(super) place: u32,
    pub(super) seq_from: u64,
    pub(super) seq_to: Option<u64>,
    pub(super) start: Option<Micros>,
    pub(super) end: Option<Micros>,
    pub(super) stated: Option<u64>,
    pub(super) failed: bool,
    /// The step or run that it is part of.
    pub(super) parent: Option<usize>,
    pub(super) child: Option<Box<str>>,
    /// Whether the log has its beginning.
    pub(super) began: bool,
}

/// All runs and steps of a transcript.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) all: Vec<StepFact>,
    pub(super) names: Names,
    pub(super) places: Names<Place>,
    /// Ends without a beginning.
    pub(super) orphans: u64,
    /// The steps with each path that go on, the last one last.
    open: HashMap<String, Vec<usize>>,
    run: Option<usize>,
}

impl Steps {
    /// Takes in an event that begins or ends a run or a step.
    pub(super) fn observe(&mut self, event: &Event) {
        match &event.body {
            Body::RunStarted(step) => {
                let at = self.begin(event, SpanKind::Run, step.as_ref(), None);
                self.run = Some(at);
            }
            Body::RunCompleted(end) => {
                let at = self.run.take().unwrap_or_else(|| {
                    let step = end.as_ref().map(|end| &end.step);
                    self.orphan(event, SpanKind::Run, step, None)
                });
                self.end(at, event, end.as_ref());
            }
            Body::StepStarted(step) => {
                let at = self.begin(event, SpanKind::Step, Some(step), None);
                self.opens(event, at);
            }
            Body::CallStarted { child_run_id, step } => {
                // The step may have said before that it began.
                match self.exactly(&event.place) {
                    Some(at) if self.all[at].child.is_none() => {
                        self.calls(at, child_run_id.as_str());
                    }
                    _ => {
                        let child = Some(child_run_id.as_str());
                        let at = self.begin(event, SpanKind::ChildRun, Some(step), child);
                        self.opens(event, at);
                    }
                }
            }
            Body::StepCompleted(end) => self.ends(event, SpanKind::Step, end, None),
            Body::CallCompleted { child_run_id, end } => {
                self.ends(event, SpanKind::ChildRun, end, Some(child_run_id.as_str()));
            }
            _ => {}
        }
    }

    fn calls(&mut self, at: usize, child: &str) {
        let step = &mut self.all[at];
        step.kind = SpanKind::ChildRun;
        step.child = Some(child.into());
    }

    fn ends(&mut self, event: &Event, kind: SpanKind, end: &StepEnd, child: Option<&str>) {
        let at = match self.exactly(&event.place) {
            Some(at) => at,
            None => self.orphan(event, kind, Some(&end.step), child),
        };
        if let Some(open) = self.open.get_mut(&event.place.path) {
            open.retain(|it| *it != at);
            if open.is_empty() {
                self.open.remove(&event.place.path);
            }
        }
        self.end(at, event, Some(end));
    }

    fn begin(
        &mut self,
        event: &Event,
        kind: SpanKind,
        step: Option<&Step>,
        child: Option<&str>,
    ) -> usize {
        let parent = match kind {
            SpanKind::Run => None,
            _ => self.above(&event.place).or(self.run),
        };
        let at = self.all.len();
        let fact = StepFact {
            kind,
            name: step.map(|step| self.names.number(step.name.as_str())),
            step_kind: step.map(|step| self.names.number(step.kind.as_str())),
            place: self.places.number(&event.place),
            seq_from: event.seq,
            seq_to: None,
            start: time_of(event),
            end: None,
            stated: None,
            failed: false,
            parent,
            child: child.map(Into::into),
            began: true,
        };
        self.all.push(fact);
        at
    }

    fn orphan(
        &mut self,
        event: &Event,
        kind: SpanKind,
        step: Option<&Step>,
        child: Option<&str>,
    ) -> usize {
        self.orphans += 1;
        let at = self.begin(event, kind, step, child);
        let fact = &mut self.all[at];
        (fact.start, fact.began) = (None, false);
        at
    }

    fn end(&mut self, at: usize, event: &Event, end: Option<&StepEnd>) {
        let fact = &mut self.all[at];
        fact.seq_to = Some(event.seq);
        fact.end = time_of(event);
        fact.stated = event.annotations.duration_ms;
        fact.failed = end.is_some_and(|end| end.error.is_some());
    }

    fn opens(&mut self, event: &Event, at: usize) {
        let open = self.open.entry(event.place.path.clone()).or_default();
        open.push(at);
    }

    /// The step at just this place that goes on.
    fn exactly(&self, place: &Place) -> Option<usize> {
        let open = self.open.get(&place.path)?;
        let is_it = |at: &&usize| self.places.get(self.all[**at].place) == Some(place);
        open.iter().rev().find(is_it).copied()
    }

    /// The step above a place that goes on: that with the longest path, in the same turns of its loops.
    fn above(&self, place: &Place) -> Option<usize> {
        let mut path = place.path.as_str();
        while let Some((shorter, _)) = path.rsplit_once('.') {
            path = shorter;
            let open = self.open.get(path).into_iter().flatten().rev();
            for at in open {
                let around = self.places.get(self.all[*at].place);
                if around.is_some_and(|it| place.iterations.starts_with(&it.iterations)) {
                    return Some(*at);
                }
            }
        }
        None
    }

    /// What something at this place is part of: the step, one above it, or the run.
    pub(super) fn around(&self, place: &Place) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        self.exactly(place)
            .or_else(|| self.above(place))
            .or(self.run)
    }
}
