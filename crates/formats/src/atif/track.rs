//! One trajectory: the steps that are held, and those that are done.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use quipu_model::Event;

use super::json::comma;
use super::metrics::Metrics;
use super::step::{Marks, Source, Stage, Step};

/// How many steps wait for their results at most, and how many bytes. What comes later than that has no step
/// to go to. Few in tests, so that they get there.
const MAX_STEPS: usize = if cfg!(test) { 16 } else { 256 };
const MAX_BYTES: usize = if cfg!(test) { 64 << 10 } else { 8 << 20 };

/// One trajectory.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// In order; the last may still grow.
    queue: VecDeque<Step>,
    /// Notes that came before any step.
    pub(super) waiting: Vec<u8>,
    /// The steps that are done, and how many there are.
    pub(super) done: Vec<u8>,
    pub(super) steps: u64,
    pub(super) metrics: Metrics,
    /// The first model.
    pub(super) model: Option<String>,
    /// Notes of what is attached to a message that is still to come.
    pub(super) early: Vec<Event>,
    /// The calls to models that were told.
    calls: HashSet<u64>,
    /// The trajectory that refers to this one, and how many there are below it.
    pub(super) parent: Option<usize>,
    pub(super) height: usize,
}

impl Track {
    /// A new step, behind all others.
    pub(super) fn push(&mut self, mut step: Step) -> &mut Step {
        step.notes = std::mem::take(&mut self.waiting);
        step.size += step.notes.len();
        if self.model.is_none() {
            self.model.clone_from(&step.model);
        }
        self.queue.push_back(step);
        self.queue.back_mut().expect("it was just put there")
    }

    /// The step of a message: one of which something is there already, such as another text or an image, or else
    /// a new one.
    pub(super) fn message_step(&mut self, event: &Event, source: Source) -> &mut Step {
        let native = event.annotations.native_id.as_ref();
        let is_its = |last: &Step| {
            native.is_some()
                && last.native.as_ref() == native
                && last.source == source
                && last.marks == Marks::of(event)
        };
        if self.queue.back().is_some_and(is_its) {
            return self.queue.back_mut().expect("it was just looked at");
        }
        self.push(Step::new(source, event))
    }

    /// The step whose message a note belongs to.
    pub(super) fn noted_message(&mut self, native: &str) -> Option<&mut Step> {
        let last = self.queue.back_mut()?;
        (last.native.as_deref() == Some(native)).then_some(last)
    }

    /// Notes that the last step was copied. `false` when there is none that could have been.
    pub(super) fn copied(&mut self) -> bool {
        let mut steps = self.queue.iter_mut().rev().peekable();
        let time = steps.peek().and_then(|last| last.time.clone());
        let mut any = false;
        // What one step was read from may have become two.
        for step in steps.take_while(|it| it.marks.synthetic && it.time == time && !it.copied) {
            step.copied = true;
            any = true;
        }
        any
    }

    /// The step that something of the agent's belongs to: that of its call to a model, or else the last one
    /// unless something came between. `spends` says that the event tells what a call took.
    pub(super) fn agent_step(&mut self, event: &Event, stage: Stage, spends: bool) -> &mut Step {
        match self.joined(event, stage, spends) {
            Some(at) => {
                let step = &mut self.queue[at];
                if step.model.is_none() {
                    step.model.clone_from(&event.annotations.model);
                    if self.model.is_none() {
                        self.model.clone_from(&step.model);
                    }
                }
                step
            }
            None => self.push(Step::new(Source::Agent, event)),
        }
    }

    fn joined(&self, event: &Event, stage: Stage, spends: bool) -> Option<usize> {
        let notes = &event.annotations;
        let marks = Marks::of(event);
        let last = self.queue.len().checked_sub(1)?;
        self.queue.iter().enumerate().rev().find_map(|(at, step)| {
            if step.source != Source::Agent || step.orphan || step.marks != marks {
                return None;
            }
            let joins = match (&step.call, &notes.model_call) {
                (Some(mine), Some(its)) => mine == its,
                (None, Some(_)) => false,
                (_, None) => {
                    let same_model = match (&step.model, &notes.model) {
                        (Some(mine), Some(its)) => mine == its,
                        _ => true,
                    };
                    let same_call = step.call.is_some() || !spends || step.spends == 0;
                    at == last && step.takes(stage) && same_model && same_call
                }
            };
            joins.then_some(at)
        })
    }

    /// The step of a call to a model if it is still held, and else a new one.
    pub(super) fn call_step(&mut self, event: &Event) -> &mut Step {
        let call = event.annotations.model_call.as_deref();
        let is_its = |step: &Step| call.is_some() && step.call.as_deref() == call;
        match self.queue.iter().rposition(is_its) {
            Some(at) => &mut self.queue[at],
            None => self.push(Step::new(Source::Agent, event)),
        }
    }

    /// The step that made this tool call, if it is still held: one that waits for it rather than one that
    /// does not.
    pub(super) fn of_tool(&mut self, id: &str) -> Option<&mut Step> {
        let at = self.tool_at(id)?;
        self.queue.get_mut(at)
    }

    /// The step that a result goes to: that of its call, or one for results whose calls are not there. One
    /// that names no call belongs to what the agent did last.
    pub(super) fn result_step(&mut self, event: &Event, id: &str) -> &mut Step {
        let of_call = if id.is_empty() {
            None
        } else {
            self.tool_at(id)
        };
        let marks = Marks::of(event);
        let last = self.queue.len().checked_sub(1).filter(|at| {
            let last = &self.queue[*at];
            let fits = last.orphan || id.is_empty();
            fits && last.source == Source::Agent && last.marks == marks
        });
        if let Some(at) = of_call.or(last) {
            return &mut self.queue[at];
        }
        let mut step = Step::new(Source::Agent, event);
        step.orphan = true;
        step.call = None;
        self.push(step)
    }

    fn tool_at(&self, id: &str) -> Option<usize> {
        let find = |pending: bool| {
            self.queue.iter().position(|step| {
                let mut calls = step.calls.iter();
                calls.any(|call| call.id == id && (call.pending || !pending))
            })
        };
        find(true).or_else(|| find(false))
    }

    /// Takes the first step, if nothing more can come to it or too much is held.
    pub(super) fn pop(&mut self, all: bool) -> Option<Step> {
        let first = self.queue.front()?;
        let held: usize = self.queue.iter().map(|step| step.size).sum();
        let is_over = self.queue.len() > MAX_STEPS || held > MAX_BYTES;
        let is_done = self.queue.len() > 1 && !first.waits();
        if all || is_over || is_done {
            self.queue.pop_front()
        } else {
            None
        }
    }

    /// Puts a step behind those that are done.
    pub(super) fn settle(&mut self, step: &Step, refs: &[Option<String>]) {
        let first_of_call = step.call.as_ref().is_some_and(|call| {
            let mut hasher = DefaultHasher::new();
            call.hash(&mut hasher);
            self.calls.insert(hasher.finish())
        });
        if self.steps > 0 {
            self.done.push(b',');
        }
        self.steps += 1;
        self.metrics.add(&step.metrics);
        step.write(self.steps, first_of_call, refs, &mut self.done);
    }

    /// Where a note goes: beside the last step, or the first that will come.
    pub(super) fn notes(&mut self) -> Notes<'_> {
        match self.queue.back_mut() {
            Some(step) => Notes {
                list: &mut step.notes,
                size: Some(&mut step.size),
            },
            None => Notes {
                list: &mut self.waiting,
                size: None,
            },
        }
    }
}

/// The notes beside a step.
pub(super) struct Notes<'t> {
    list: &'t mut Vec<u8>,
    size: Option<&'t mut usize>,
}

impl Notes<'_> {
    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn add(self, note: &[u8]) {
        comma(self.list);
        self.list.extend_from_slice(note);
        if let Some(size) = self.size {
            *size += note.len();
        }
    }
}
