//! Steps of a workflow that are under way, and where events belong among them.

use std::io;

use quipu_model::{Event, Place, RunId, Step, StepEnd};

use super::Convention;
use super::facts::Kind;
use super::ids::{Of, SpanId};
use super::json::Attrs;
use super::marks::{self, SpanFacts};
use super::provider::OTHER;
use super::span::{Nanos, Span};
use super::talk;
use super::tracer::{Holder, Tracer, before};

/// How many steps may be under way.
const MAX_OPEN: usize = 256;

/// A step under way.
#[derive(Debug)]
pub(super) struct OpenStep {
    pub(super) span: Span,
    pub(super) place: Place,
    name: String,
}

/// Steps under way, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<OpenStep>);

impl Steps {
    /// The step that an event belongs to: that of its path, or the nearest around it.
    pub(super) fn around(&self, place: &Place) -> Option<usize> {
        if place.path.is_empty() {
            return None;
        }
        let here = |it: &OpenStep| it.place == *place;
        self.0.iter().rposition(here).or_else(|| {
            let around = |it: &(usize, &OpenStep)| is_within(&place.path, &it.1.place.path);
            let steps = self.0.iter().enumerate().filter(around);
            steps
                .max_by_key(|(n, it)| (it.place.path.len(), *n))
                .map(|(n, _)| n)
        })
    }

    /// The step around one that begins now: another of the same place is not around it.
    pub(super) fn outside(&self, place: &Place) -> Option<usize> {
        let (outer, _) = place.path.rsplit_once('.')?;
        self.around(&Place {
            path: outer.to_owned(),
            ..place.clone()
        })
    }

    pub(super) fn span(&self, step: usize) -> &Span {
        &self.0[step].span
    }

    pub(super) fn span_mut(&mut self, step: usize) -> &mut Span {
        &mut self.0[step].span
    }

    /// The span of this id.
    pub(super) fn by_id(&mut self, id: SpanId) -> Option<&mut Span> {
        let mut spans = self.0.iter_mut().map(|it| &mut it.span);
        spans.find(|it| it.id == id)
    }

    /// The event that began the last one.
    pub(super) fn newest(&self) -> Option<u64> {
        self.0.last().map(|it| it.span.seq)
    }

    /// A step begins. Gives one that has to give way, if there are too many.
    pub(super) fn begin(&mut self, span: Span, place: &Place, step: &Step) -> Option<OpenStep> {
        self.0.push(OpenStep {
            span,
            place: place.clone(),
            name: step.name.clone(),
        });
        (self.0.len() > MAX_OPEN).then(|| self.0.remove(0))
    }

    /// The step that ends.
    pub(super) fn end(&mut self, place: &Place, step: &Step) -> Option<OpenStep> {
        let is = |it: &OpenStep| it.place == *place && it.name == step.name;
        let found = self.0.iter().rposition(is)?;
        Some(self.0.remove(found))
    }

    /// The step that began last.
    pub(super) fn pop(&mut self) -> Option<OpenStep> {
        self.0.pop()
    }
}

/// Whether a path is below another.
fn is_within(path: &str, outer: &str) -> bool {
    outer.is_empty()
        || path
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Tracer<'_> {
    pub(super) fn step_started(
        &mut self,
        event: &Event,
        step: &Step,
        child: Option<&RunId>,
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        let span = self.step_span(event, step, child, holder, at);
        self.spent_aside(event)?;
        match self.steps.begin(span, &event.place, step) {
            Some(excess) => self.abandon_step(excess, at),
            None => Ok(()),
        }
    }

    /// A span for a step, of which an event tells.
    fn step_span(
        &mut self,
        event: &Event,
        step: &Step,
        child: Option<&RunId>,
        holder: Holder,
        at: Nanos,
    ) -> Span {
        self.has_steps = true;
        let outside = self.steps.outside(&event.place);
        let holder = match (holder, outside) {
            (Holder::Agent(_), _) => holder,
            (_, Some(step)) => Holder::Step(step),
            (_, None) => Holder::Root,
        };
        let parent = self.span_of(holder).id;
        let id = SpanId::of(&self.facts.run, Of::Step, event.seq, 0);
        let mut span = Span::new(id, Some(parent), event.seq, at);
        span.name = Kind::Workflow.name(Some(&step.name));
        self.facts.begin(Kind::Workflow, &mut span.attrs);
        workflow(self.facts.convention, step, &mut span.attrs);
        marks::write(event, &self.facts, SpanFacts::default(), &mut span.attrs);
        if let Some(child) = child {
            if event.annotations.child.is_none() {
                span.attrs.text("quipu.child_run_id", child.as_str());
            }
            span.link(child, "child");
        }
        span
    }

    pub(super) fn step_completed(
        &mut self,
        event: &Event,
        end: &StepEnd,
        child: Option<&RunId>,
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        // What was said in the step ends with it.
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].place == event.place {
                self.close(lane)?;
            }
        }
        self.spent_aside(event)?;
        let mut span = if let Some(open) = self.steps.end(&event.place, &end.step) {
            let mut span = open.span;
            self.mark(event, SpanFacts::default());
            span.event(event.body.type_word(), at, &self.scratch);
            span
        } else {
            self.loss.inferred(
                "beginning of a step of which only the end is there",
                event.seq,
            );
            let begun = before(at, event.annotations.duration_ms);
            self.step_span(event, &end.step, child, holder, begun)
        };
        span.touch(at);
        self.unasked(end.result.is_some() || end.error.is_some(), event.seq);
        if let Some(result) = &end.result
            && self.facts.content
        {
            let key = match self.facts.convention {
                Convention::GenAi => "quipu.result",
                Convention::OpenInference => "output.value",
            };
            let cut = talk::json_document(&mut span.attrs, key, result.get(), self.facts.room);
            self.too_long(cut, event.seq);
        }
        if let Some(error) = &end.error {
            span.attrs.text("error.type", OTHER);
            let fault = self.fault(OTHER, error);
            span.fault = Some(fault);
        }
        self.write_outer(span)
    }

    /// Writes a step whose end is not there.
    pub(super) fn abandon_step(&mut self, step: OpenStep, at: Nanos) -> io::Result<()> {
        let mut span = step.span;
        self.loss.inferred("end of a step that has none", span.seq);
        span.touch(at.max(span.start));
        span.attrs.text("quipu.end", "unknown");
        self.write_outer(span)
    }
}

/// Writes what is known of a step, or of a workflow.
pub(super) fn workflow(convention: Convention, step: &Step, attrs: &mut Attrs) {
    match convention {
        Convention::GenAi => attrs.text("gen_ai.workflow.name", &step.name),
        Convention::OpenInference => attrs.text("graph.node.id", &step.name),
    }
    attrs.text("quipu.step.kind", &step.kind);
}
