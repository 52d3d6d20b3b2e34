//! Which event belongs to which span.

use std::io::{self, Write};

use quipu_model::{Body, Event, Header, Step, SubagentId};

use super::facts::{self, Facts, Kind};
use super::ids::{Of, SpanId};
use super::json::Attrs;
use super::lane::{Chat, Lane};
use super::marks::{self, SpanFacts};
use super::nest::Ended;
use super::provider::OTHER;
use super::span::{Batches, Nanos, Span, nanos};
use super::steps::Steps;
use super::tools::Tools;
use super::{CARRIES, Convention, OtlpOptions};
use crate::loss::Loss;
use crate::plain;
use crate::projection::Projection;

/// How many conversations and sub-agents are held at once. The one that was silent the longest is ended
/// for another.
const MAX_LANES: usize = 64;

/// The events of a session, on their way to spans.
pub(super) struct Tracer<'w> {
    pub(super) facts: Facts,
    pub(super) out: Batches<'w>,
    pub(super) loss: Loss,
    pub(super) root: Span,
    /// What the run is a run of, when it is one of a workflow.
    pub(super) workflow: Option<Step>,
    /// Whether there are steps of a workflow in it.
    pub(super) has_steps: bool,
    /// What was asked first and said last, for a convention that has both on the root.
    pub(super) first_asked: Option<String>,
    pub(super) last_said: Option<String>,
    agents: Vec<Agent>,
    pub(super) lanes: Vec<Lane>,
    pub(super) tools: Tools,
    pub(super) steps: Steps,
    /// The time of the last event that has one.
    pub(super) last: Option<Nanos>,
    /// The latest time of an event.
    latest: Option<Nanos>,
    /// When the session began, by what is known of it as a whole.
    began: Option<Nanos>,
    pub(super) ended: Ended,
    pub(super) scratch: Attrs,
}

/// A sub-agent under way.
struct Agent {
    id: SubagentId,
    span: Span,
    used: u64,
}

/// The span that something is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Root,
    Agent(usize),
    Step(usize),
}

impl<'w> Tracer<'w> {
    pub(super) fn new(header: &Header, options: &OtlpOptions, out: Box<dyn Write + 'w>) -> Self {
        let mut loss = Loss::default();
        loss.header(header, CARRIES);
        let facts = Facts::new(header, options, &mut loss);
        let resource = facts::resource(header, options);
        let max = options.max_batch_bytes;
        let out = Batches::new(out, &resource, &facts, max);
        let mut root = Span::new(SpanId::root(&header.run_id), None, 0, Nanos::MAX);
        root.end = 0;
        if let Some(parent) = &header.parent_run_id {
            root.link(parent, "parent");
        }
        for child in &header.children {
            root.link(child, "child");
        }
        let mut began = None;
        for at in [header.started_at, header.ended_at].into_iter().flatten() {
            let at = nanos(at, 0, &mut loss);
            root.touch(at);
            began = began.or(Some(at));
        }
        Self {
            facts,
            out,
            loss,
            root,
            workflow: None,
            has_steps: false,
            first_asked: None,
            last_said: None,
            agents: Vec::new(),
            lanes: Vec::new(),
            tools: Tools::default(),
            steps: Steps::default(),
            last: None,
            latest: None,
            began,
            ended: Ended::default(),
            scratch: Attrs::default(),
        }
    }

    /// The span that an event is a part of.
    pub(super) fn holder(&mut self, event: &Event, at: Nanos) -> io::Result<Holder> {
        let step = self.steps.around(&event.place);
        let outer = step.map_or(Holder::Root, Holder::Step);
        if let Some(step) = step {
            self.steps.span_mut(step).touch(at);
        }
        let Some(id) = &event.annotations.subagent_id else {
            return Ok(outer);
        };
        let found = self.agents.iter().position(|agent| agent.id == *id);
        let agent = if let Some(agent) = found {
            agent
        } else {
            self.begin_agent(id, event, outer, at)?
        };
        self.agents[agent].used = event.seq;
        self.agents[agent].span.touch(at);
        Ok(Holder::Agent(agent))
    }

    fn begin_agent(
        &mut self,
        id: &str,
        event: &Event,
        outer: Holder,
        at: Nanos,
    ) -> io::Result<usize> {
        if self.agents.len() >= MAX_LANES {
            let silent = self.agents.iter().enumerate().min_by_key(|(_, it)| it.used);
            let silent = silent.map_or(0, |(n, _)| n);
            self.end_agent(silent)?;
        }
        // Some agents name a sub-agent after the call that began it.
        let parent = match self.tools.get(id) {
            Some(call) => call.span.id,
            None => self.span_of(outer).id,
        };
        let span_id = SpanId::of(&self.facts.run, Of::Agent, event.seq, 0);
        let mut span = Span::new(span_id, Some(parent), event.seq, at);
        span.name = Kind::Agent.name(Some(id));
        self.facts.begin(Kind::Agent, &mut span.attrs);
        facts::agent(self.facts.convention, id, &mut span.attrs);
        if self.facts.convention == Convention::GenAi {
            span.attrs.text("gen_ai.agent.id", id);
            span.attrs.text("gen_ai.provider.name", OTHER);
            self.loss.inferred(facts::provider_told(false), event.seq);
        }
        span.attrs.text("quipu.subagent_id", id);
        let (id, used) = (id.into(), event.seq);
        self.agents.push(Agent { id, span, used });
        Ok(self.agents.len() - 1)
    }

    /// Writes a sub-agent, after the conversations that are parts of it.
    fn end_agent(&mut self, agent: usize) -> io::Result<()> {
        let id = self.agents[agent].id.clone();
        while let Some(lane) = self
            .lanes
            .iter()
            .position(|lane| lane.subagent.as_deref() == Some(id.as_str()))
        {
            self.end_lane(lane)?;
        }
        let agent = self.agents.remove(agent);
        self.write_outer(agent.span)
    }

    /// The sub-agent or the step of this span, if it is under way.
    pub(super) fn under_way(&mut self, id: SpanId) -> Option<&mut Span> {
        let mut agents = self.agents.iter_mut().map(|it| &mut it.span);
        agents
            .find(|it| it.id == id)
            .or_else(|| self.steps.by_id(id))
    }

    /// Whether a sub-agent under way was begun by a call.
    pub(super) fn has_agent(&self, call: SpanId) -> bool {
        self.agents.iter().any(|it| it.span.parent == Some(call))
    }

    /// Writes the sub-agents and steps that are under way, what is inside before what is around it.
    fn end_all(&mut self, end: Nanos) -> io::Result<()> {
        loop {
            let agents = self.agents.iter().enumerate();
            let agent = agents.max_by_key(|(_, it)| it.span.seq);
            let agent = agent.map(|(n, it)| (n, it.span.seq));
            match (agent, self.steps.newest()) {
                // What begins with the same event is a step of the sub-agent.
                (Some((agent, began)), step) if step.is_none_or(|step| step < began) => {
                    self.end_agent(agent)?;
                }
                _ => match self.steps.pop() {
                    Some(step) => self.abandon_step(step, end)?,
                    None => return Ok(()),
                },
            }
        }
    }

    /// When an event happened. One that has no time is put beside the one before it; where there is none, to where the
    /// session begins.
    fn time(&mut self, event: &Event) -> Nanos {
        let is_dated = !event.annotations.flags.undated;
        let told = match (is_dated, self.last, self.began) {
            (false, Some(last), _) => {
                self.loss
                    .inferred("time, that of the event before", event.seq);
                return last;
            }
            (false, None, Some(began)) => {
                self.loss
                    .inferred("time, that of the session's beginning", event.seq);
                return began;
            }
            (false, None, None) => {
                self.loss
                    .inferred("time, of which nothing is told", event.seq);
                nanos(event.timestamp, event.seq, &mut self.loss)
            }
            (true, ..) => {
                let at = nanos(event.timestamp, event.seq, &mut self.loss);
                self.last = Some(at);
                at
            }
        };
        self.latest = self.latest.max(Some(told));
        self.root.touch(told);
        told
    }

    pub(super) fn span_of(&self, holder: Holder) -> &Span {
        match holder {
            Holder::Root => &self.root,
            Holder::Agent(agent) => &self.agents[agent].span,
            Holder::Step(step) => self.steps.span(step),
        }
    }

    /// Adds an event to a span that is under way, with what is in `scratch`.
    pub(super) fn happened(&mut self, holder: Holder, name: &str, at: Nanos) -> io::Result<()> {
        let span = match holder {
            Holder::Root => &mut self.root,
            Holder::Agent(agent) => &mut self.agents[agent].span,
            Holder::Step(step) => self.steps.span_mut(step),
        };
        self.out.event(span, name, at, &self.scratch)
    }

    /// Puts what is known of an event into `scratch`.
    pub(super) fn mark(&mut self, event: &Event, said: SpanFacts<'_>) {
        self.scratch.clear();
        marks::write(event, &self.facts, said, &mut self.scratch);
    }

    /// An event that is no more than a mark on the span it is a part of.
    pub(super) fn aside(&mut self, event: &Event, holder: Holder, at: Nanos) -> io::Result<()> {
        self.mark(event, SpanFacts::default());
        self.happened(holder, event.body.type_word(), at)
    }

    /// The conversation that an event belongs to.
    pub(super) fn lane(&mut self, event: &Event) -> io::Result<usize> {
        let subagent = event.annotations.subagent_id.as_deref();
        let place = &event.place;
        let found = self.lanes.iter().position(|it| it.is(subagent, place));
        let lane = if let Some(lane) = found {
            lane
        } else {
            if self.lanes.len() >= MAX_LANES {
                let silent = self.lanes.iter().enumerate().min_by_key(|(_, it)| it.used);
                let silent = silent.map_or(0, |(n, _)| n);
                self.end_lane(silent)?;
            }
            self.lanes.push(Lane::new(&self.facts, subagent, place));
            self.lanes.len() - 1
        };
        self.lanes[lane].used = event.seq;
        Ok(lane)
    }

    /// The holder of what a conversation says, when it is written without an event at hand.
    fn holder_of_lane(&self, lane: usize) -> Holder {
        let lane = &self.lanes[lane];
        let agent = lane.subagent.as_ref();
        let agent = agent.and_then(|id| self.agents.iter().position(|it| it.id == *id));
        match (agent, self.steps.around(&lane.place)) {
            (Some(agent), _) => Holder::Agent(agent),
            (None, Some(step)) => Holder::Step(step),
            (None, None) => Holder::Root,
        }
    }

    /// Writes the call that is under way in a conversation.
    pub(super) fn close(&mut self, lane: usize) -> io::Result<()> {
        match self.lanes[lane].close(&self.facts, &mut self.loss) {
            Some(span) => self.write(span),
            None => Ok(()),
        }
    }

    /// Writes all of a conversation that is held: the call under way, and what nobody answered.
    fn end_lane(&mut self, lane: usize) -> io::Result<()> {
        self.close(lane)?;
        let holder = self.holder_of_lane(lane);
        let parent = self.span_of(holder).id;
        let mut lane = self.lanes.remove(lane);
        if !lane.was_told && lane.spent.is_nothing() {
            if let Some(waiting) = &mut lane.waiting {
                let span = match holder {
                    Holder::Root => &mut self.root,
                    Holder::Agent(agent) => &mut self.agents[agent].span,
                    Holder::Step(step) => self.steps.span_mut(step),
                };
                span.take_events(waiting);
            }
            return Ok(());
        }
        let asked_at = lane.asked_at.or(self.last).or(self.began).unwrap_or(0);
        let waiting = lane.waiting.as_ref().map(Span::events_span);
        let (from, to) = waiting.unwrap_or((asked_at, asked_at));
        let id = SpanId::of(&self.facts.run, Of::Unanswered, lane.used, 0);
        let mut span = Span::new(id, Some(parent), lane.used, from);
        span.touch(to);
        "quipu.unanswered".clone_into(&mut span.name);
        span.attrs = self.facts.aside();
        lane.hand_over(&mut span, &mut self.loss);
        lane.spent.write(self.facts.convention, &mut span.attrs);
        self.write(span)
    }

    /// The call to a model that an event is a part of.
    pub(super) fn opened(
        &mut self,
        lane: usize,
        event: &Event,
        holder: Holder,
        at: Nanos,
    ) -> io::Result<&mut Chat> {
        let is_note = matches!(event.body, Body::Note(_));
        let was_asked = self.lanes[lane].asked_at.is_some();
        let chat = &self.lanes[lane].chat;
        if chat
            .as_ref()
            .is_some_and(|it| !it.goes_on(&event.annotations))
        {
            self.close(lane)?;
        }
        if self.lanes[lane].chat.is_none() {
            let parent = self.span_of(holder).id;
            let id = SpanId::of(&self.facts.run, Of::Chat, event.seq, 0);
            let notes = &event.annotations;
            let mut span = Span::new(id, Some(parent), event.seq, at);
            let begun = self.lanes[lane].asked_at.take();
            span.touch(begun.unwrap_or_else(|| before(at, notes.duration_ms)));
            self.facts.begin(Kind::Chat, &mut span.attrs);
            let said = SpanFacts {
                model: notes.model.as_deref(),
                model_call: notes.model_call.as_deref(),
                stop_reason: notes.stop_reason.as_deref(),
            };
            marks::write(event, &self.facts, said, &mut span.attrs);
            // A span begins when the model was asked. When the first event of the answer came is said beside it.
            span.attrs.count("quipu.time_unix_nano", at);
            let lane = &mut self.lanes[lane];
            lane.hand_over(&mut span, &mut self.loss);
            let mut chat = Chat::new(span, event);
            chat.spent = std::mem::take(&mut lane.spent);
            lane.chat = Some(chat);
        } else if let Some(chat) = &mut self.lanes[lane].chat {
            let said = SpanFacts {
                model: chat.model.as_deref().or(event.annotations.model.as_deref()),
                model_call: chat.model_call.as_deref(),
                stop_reason: chat
                    .stop_reason
                    .as_deref()
                    .or(event.annotations.stop_reason.as_deref()),
            };
            self.scratch.clear();
            marks::write(event, &self.facts, said, &mut self.scratch);
            let name = event.body.type_word();
            if !is_note {
                self.out.event(&mut chat.span, name, at, &self.scratch)?;
            }
        }
        let Some(chat) = &mut self.lanes[lane].chat else {
            return Err(io::Error::other("a call to a model was just begun"));
        };
        chat.observe(event);
        // A note may come long after what it is about.
        if !is_note || !was_asked {
            chat.span.touch(at);
        }
        Ok(chat)
    }
}

impl Projection for Tracer<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.loss.events += 1;
        self.loss.carried += 1;
        plain::count(event, &mut self.loss);
        let event = &*plain::plain(event);
        self.loss.fields(event, CARRIES);
        for _ in &event.annotations.attachments {
            self.loss.dropped("attachment bytes", event.seq);
        }
        let at = self.time(event);
        match &event.body {
            Body::SystemMessage(blocks) => self.told(event, "system", blocks, at),
            Body::Note(note) => self.note(event, note, at),
            Body::UserMessage(blocks) => self.told(event, "user", blocks, at),
            Body::AssistantMessage(blocks) => self.answered(event, blocks, at),
            Body::ToolCall(call) => self.tool_called(event, call, at),
            Body::ToolResult(result) => self.tool_answered(event, result, at),
            Body::RunStarted(step) => self.run_started(event, step.as_ref(), at),
            Body::RunCompleted(end) => self.run_completed(event, end.as_ref(), at),
            Body::StepStarted(step) => self.step_started(event, step, None, at),
            Body::StepCompleted(end) => self.step_completed(event, end, None, at),
            Body::CallStarted { child_run_id, step } => {
                self.step_started(event, step, Some(child_run_id), at)
            }
            Body::CallCompleted { child_run_id, end } => {
                self.step_completed(event, end, Some(child_run_id), at)
            }
            // They are notes here.
            Body::ModelCall(_)
            | Body::Chunk(_)
            | Body::Harness(_)
            | Body::Blob(_)
            | Body::Error(_)
            | Body::Unknown(_) => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Loss> {
        let end = self.latest.or(self.began).unwrap_or(0);
        while !self.lanes.is_empty() {
            self.end_lane(0)?;
        }
        while let Some(tool) = self.tools.oldest() {
            self.abandon(tool, end)?;
        }
        self.end_all(end)?;
        self.write_root()?;
        self.out.finish()?;
        Ok(self.loss)
    }
}

/// The time so many milliseconds earlier.
pub(super) fn before(at: Nanos, millis: Option<u64>) -> Nanos {
    at.saturating_sub(millis.unwrap_or(0).saturating_mul(1_000_000))
}
