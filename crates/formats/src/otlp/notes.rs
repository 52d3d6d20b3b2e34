//! Notes, and the run itself: what is an event of a span, or the root.

use std::io;

use quipu_model::{Event, Note, NoteKind, Step, StepEnd};

use super::TOO_LONG;
use super::facts::Kind;
use super::lane::{Lane, Spent};
use super::marks::SpanFacts;
use super::provider::OTHER;
use super::span::{Fault, Nanos};
use super::steps::workflow;
use super::talk::{self, Fit};
use super::tracer::Tracer;

impl Tracer<'_> {
    pub(super) fn note(&mut self, event: &Event, note: &Note, at: Nanos) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        let notes = &event.annotations;
        let spent = Spent::of(notes);
        let is_call = note.kind == NoteKind::ModelCall && notes.model_call.is_some();
        let has_content = note.text.is_some() || note.raw.is_some();
        self.unasked(has_content, event.seq);
        let lane = if is_call || !spent.is_nothing() {
            let lane = self.lane(event)?;
            self.opened(lane, event, holder, at)?;
            Some(lane)
        } else {
            let subagent = notes.subagent_id.as_deref();
            // Once something came in that wants the next answer, this one is over.
            let is = |it: &Lane| {
                it.is(subagent, &event.place) && it.chat.is_some() && it.asked_at.is_none()
            };
            self.lanes.iter().position(is)
        };
        self.mark(event, SpanFacts::default());
        self.scratch.text("quipu.note.kind", note.kind.as_str());
        let is_error = note.kind == NoteKind::Error;
        if self.facts.content {
            let room = self.facts.room;
            if let Some(text) = &note.text {
                let key = if is_error {
                    "exception.message"
                } else {
                    "quipu.text"
                };
                let fit = Fit::new(text, room);
                self.scratch.text_with(key, |out| fit.escape(out));
                self.too_long(fit.cut, event.seq);
            }
            if let Some(raw) = &note.raw {
                let cut = talk::json_document(&mut self.scratch, "quipu.raw", raw.get(), room);
                self.too_long(cut, event.seq);
            }
        }
        let name = if is_error {
            self.scratch.text("exception.type", OTHER);
            "exception".to_owned()
        } else {
            format!("note.{}", note.kind)
        };
        match lane.and_then(|lane| self.lanes.get_mut(lane)) {
            Some(lane) => {
                if is_error {
                    let text = note.text.as_deref().filter(|_| self.facts.content);
                    lane.failed(text.map(|text| Fit::new(text, self.facts.room).to_text()));
                }
                let Some(chat) = &mut lane.chat else {
                    return Ok(());
                };
                self.out.event(&mut chat.span, &name, at, &self.scratch)
            }
            None => self.happened(holder, &name, at),
        }
    }

    pub(super) fn too_long(&mut self, cut: bool, seq: u64) {
        if cut {
            self.loss.dropped(TOO_LONG, seq);
        }
    }

    pub(super) fn run_started(
        &mut self,
        event: &Event,
        step: Option<&Step>,
        at: Nanos,
    ) -> io::Result<()> {
        if let Some(step) = step
            && self.workflow.is_none()
        {
            self.workflow = Some(step.clone());
        }
        self.run_event(event, step, None, at)
    }

    pub(super) fn run_completed(
        &mut self,
        event: &Event,
        end: Option<&StepEnd>,
        at: Nanos,
    ) -> io::Result<()> {
        for lane in 0..self.lanes.len() {
            self.close(lane)?;
        }
        if let Some(error) = end.and_then(|end| end.error.as_deref()) {
            self.root.fault = Some(self.fault(OTHER, error));
        }
        self.run_event(event, end.map(|end| &end.step), end, at)
    }

    fn run_event(
        &mut self,
        event: &Event,
        step: Option<&Step>,
        end: Option<&StepEnd>,
        at: Nanos,
    ) -> io::Result<()> {
        let holder = self.holder(event, at)?;
        self.mark(event, SpanFacts::default());
        if let Some(step) = step {
            self.scratch.text("quipu.step.name", &step.name);
            self.scratch.text("quipu.step.kind", &step.kind);
        }
        let result = end.and_then(|end| end.result.as_ref());
        let error = end.and_then(|end| end.error.as_deref());
        self.unasked(result.is_some() || error.is_some(), event.seq);
        if self.facts.content {
            let room = self.facts.room;
            if let Some(error) = error {
                let fit = Fit::new(error, room);
                self.scratch.text_with("quipu.error", |out| fit.escape(out));
                self.too_long(fit.cut, event.seq);
            }
            if let Some(result) = result {
                let cut =
                    talk::json_document(&mut self.scratch, "quipu.result", result.get(), room);
                self.too_long(cut, event.seq);
            }
        }
        self.spent_aside(event)?;
        self.happened(holder, event.body.type_word(), at)
    }

    /// Tokens that are told where no call to a model is. They go to the next one.
    pub(super) fn spent_aside(&mut self, event: &Event) -> io::Result<()> {
        let spent = Spent::of(&event.annotations);
        if !spent.is_nothing() {
            let lane = self.lane(event)?;
            self.lanes[lane].spent.add(spent);
        }
        Ok(())
    }

    /// Why something failed; in words where they are wanted.
    pub(super) fn fault(&self, kind: &'static str, message: &str) -> Fault {
        let wanted = self.facts.content;
        let message = wanted.then(|| Fit::new(message, self.facts.room).to_text());
        Fault { kind, message }
    }

    /// Writes the span that stands for the session.
    pub(super) fn write_root(&mut self) -> io::Result<()> {
        if let Some((from, to)) = self.out.bounds {
            self.root.touch(from);
            self.root.touch(to);
        }
        if let Some(last) = self.last {
            self.root.touch(last);
        }
        if self.root.start > self.root.end {
            // Nothing has a time.
            (self.root.start, self.root.end) = (0, 0);
            self.loss.inferred("time of a session that has none", 0);
        }
        let attrs = &mut self.root.attrs;
        let agent = self.facts.agent.as_deref();
        if let Some(step) = &self.workflow {
            self.root.name = Kind::Workflow.name(Some(&step.name));
            self.facts.begin(Kind::Workflow, attrs);
            workflow(self.facts.convention, step, attrs);
        } else if agent.is_none() && self.has_steps {
            // Not every engine records what its run is a run of.
            self.root.name = Kind::Workflow.name(None);
            self.facts.begin(Kind::Workflow, attrs);
        } else {
            self.root.name = Kind::Agent.name(agent);
            self.facts.begin(Kind::Agent, attrs);
        }
        self.facts.root(attrs);
        for (key, text) in [
            ("input.value", &self.first_asked),
            ("output.value", &self.last_said),
        ] {
            attrs.text_if(key, text.as_deref());
        }
        if let Some(fault) = &self.root.fault {
            attrs.text("error.type", fault.kind);
        }
        self.out.span(&self.root)
    }
}
