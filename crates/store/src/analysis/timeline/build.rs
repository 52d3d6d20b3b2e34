//! Spans, put together from events.

use std::collections::HashMap;

use quipu_api::timeline::{SpanKind, SpanStatus, Timing};
use quipu_model::{Body, Event, Place, Status};

use crate::analysis::calls::{Paired, ToolCalls, duration};
use crate::analysis::names::Names;
use crate::analysis::parts::{self, Part};
use crate::analysis::steps::Steps;
use crate::analysis::turns::Turns;
use crate::analysis::{Micros, between, time_of};

/// A span, in small.
#[derive(Debug, Clone)]
pub(super) struct SpanFact {
    pub(super) kind: SpanKind,
    pub(super) name: Option<u32>,
    pub(super) step_kind: Option<u32>,
    pub(super) place: u32,
    pub(super) call_id: Option<Box<str>>,
    pub(super) seq_from: u64,
    pub(super) seq_to: u64,
    pub(super) start: Option<Micros>,
    pub(super) end: Option<Micros>,
    pub(super) duration_ms: Option<u64>,
    pub(super) timing: Timing,
    pub(super) status: SpanStatus,
    pub(super) parent: Option<usize>,
    pub(super) child: Option<Box<str>>,
}

/// A stretch in which a person was waited for, and the event that ended it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) from: Micros,
    pub(super) to: Micros,
    pub(super) seq: u64,
}

/// All spans, in the order of their first events.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) spans: Vec<SpanFact>,
    pub(super) names: Names,
    pub(super) places: Names<Place>,
    pub(super) waits: Vec<Wait>,
    pub(super) events: u64,
    pub(super) undated: u64,
    pub(super) clock_went_back: u64,
    pub(super) orphans: u64,
    pub(super) first: Option<Micros>,
    pub(super) last: Option<Micros>,
}

/// A sub-agent that shares the log.
#[derive(Debug)]
struct Sub {
    name: Box<str>,
    place: u32,
    seq_from: u64,
    seq_to: u64,
    start: Option<Micros>,
    end: Option<Micros>,
    step: Option<usize>,
}

/// What a span is part of, before spans have their numbers.
#[derive(Debug, Clone, Copy)]
enum Above {
    Nothing,
    Step(usize),
    Sub(usize),
}

pub(super) struct Builder<'b> {
    recorded: bool,
    /// The tool calls that began sub-agents, by their ids.
    begin_subagents: &'b HashMap<String, usize>,
    steps: Steps,
    turns: Turns,
    tools: ToolCalls,
    subs: Vec<Sub>,
    sub_at: HashMap<String, usize>,
    /// What each turn and each tool call is part of, and the place of tool calls.
    turn_above: Vec<Above>,
    tool_above: Vec<(Above, u32)>,
    waits: Vec<Wait>,
    /// When the agent last said something or got something from a tool.
    agent_at: Option<Micros>,
    before: Option<Micros>,
    events: u64,
    undated: u64,
    clock_went_back: u64,
    first: Option<Micros>,
    last: Option<Micros>,
}

impl<'b> Builder<'b> {
    pub(super) fn new(recorded: bool, begin_subagents: &'b HashMap<String, usize>) -> Self {
        Self {
            recorded,
            begin_subagents,
            steps: Steps::default(),
            turns: Turns::default(),
            tools: ToolCalls::new(recorded),
            subs: Vec::new(),
            sub_at: HashMap::new(),
            turn_above: Vec::new(),
            tool_above: Vec::new(),
            waits: Vec::new(),
            agent_at: None,
            before: None,
            events: 0,
            undated: 0,
            clock_went_back: 0,
            first: None,
            last: None,
        }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        self.events += 1;
        self.clock(event);
        self.steps.observe(event);
        let above = self.above(event);
        let (_, began) = self.turns.observe(event);
        if began.is_some() {
            self.turn_above.push(above);
        }
        self.parts(event, above);
    }

    fn clock(&mut self, event: &Event) {
        let Some(now) = time_of(event) else {
            self.undated += 1;
            return;
        };
        if self.before.is_some_and(|before| now < before) {
            self.clock_went_back += 1;
        }
        self.before = Some(now);
        self.first = Some(self.first.map_or(now, |first| first.min(now)));
        self.last = Some(self.last.map_or(now, |last| last.max(now)));
    }

    /// What an event is part of: its sub-agent, its step, or the run.
    fn above(&mut self, event: &Event) -> Above {
        let step = self.steps.around(&event.place);
        let Some(name) = event.annotations.subagent_id.as_deref() else {
            return step.map_or(Above::Nothing, Above::Step);
        };
        let now = time_of(event);
        if let Some(at) = self.sub_at.get(name) {
            let sub = &mut self.subs[*at];
            sub.seq_to = event.seq;
            sub.end = now.or(sub.end);
            return Above::Sub(*at);
        }
        let at = self.subs.len();
        self.subs.push(Sub {
            name: name.into(),
            place: self.steps.places.number(&event.place),
            seq_from: event.seq,
            seq_to: event.seq,
            start: now,
            end: now,
            step,
        });
        self.sub_at.insert(name.to_owned(), at);
        Above::Sub(at)
    }

    fn parts(&mut self, event: &Event, above: Above) {
        let is_main = event.annotations.subagent_id.is_none();
        // What a workflow asks in a step is not asked by a person.
        let may_be_a_person = is_main && event.place.path.is_empty();
        let mut person = false;
        let mut agent = is_main && matches!(event.body, Body::AssistantMessage(_));
        let place = self.steps.places.number(&event.place);
        let Self {
            tools,
            tool_above,
            steps,
            recorded,
            ..
        } = self;
        parts::each(event, *recorded, |part| match part {
            Part::Call(call) => {
                let name = steps.names.number(call.name);
                if let Paired::Began(_) = tools.call(event, &call, name) {
                    tool_above.push((above, place));
                }
            }
            Part::Result(outcome) => {
                tools.result(event, &outcome);
                agent |= is_main;
            }
            Part::User { person: by, .. } => person |= by,
            _ => {}
        });
        let now = time_of(event);
        if person && may_be_a_person {
            if let (Some(from), Some(to)) = (self.agent_at.take(), now)
                && from < to
            {
                let seq = event.seq;
                self.waits.push(Wait { from, to, seq });
            }
        } else if agent {
            self.agent_at = now.or(self.agent_at);
        }
    }

    pub(super) fn finish(mut self) -> Built {
        let mut spans: Vec<(SpanFact, Above)> = Vec::new();
        for at in 0..self.steps.all.len() {
            spans.push(self.step(at));
        }
        let sub_first = spans.len();
        for at in 0..self.subs.len() {
            spans.push(self.sub(at));
        }
        let tool_first = spans.len();
        for at in 0..self.tools.all.len() {
            spans.push(self.tool(at));
        }
        for at in 0..self.turns.all.len() {
            if self.turns.all[at].answered {
                let span = self.turn(at);
                spans.push(span);
            }
        }
        // A sub-agent in the same log is part of the call that began it.
        let mut begun: HashMap<&str, usize> = HashMap::new();
        for (at, tool) in self.tools.all.iter().enumerate() {
            if let Some(child) = tool.child.as_deref() {
                begun.entry(child).or_insert(tool_first + at);
            }
            if !tool.id.is_empty() {
                begun.entry(&tool.id).or_insert(tool_first + at);
            }
        }
        let sub_parent: Vec<Option<usize>> = self
            .subs
            .iter()
            .map(|sub| {
                let by = begun.get(&*sub.name).copied();
                by.filter(|by| spans[*by].0.seq_from < sub.seq_from)
            })
            .collect();
        // Of what begins with the same event, what is around it comes first.
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|at| (spans[*at].0.seq_from, rank(spans[*at].0.kind), *at));
        let mut number = vec![0; spans.len()];
        for (new, old) in order.iter().enumerate() {
            number[*old] = new;
        }
        let parents: Vec<Option<usize>> = spans
            .iter()
            .enumerate()
            .map(|(at, (_, above))| {
                let of_sub = at.checked_sub(sub_first).and_then(|at| sub_parent.get(at));
                let old = match above {
                    _ if of_sub.is_some_and(Option::is_some) => of_sub.copied().flatten(),
                    Above::Nothing => None,
                    Above::Step(step) => Some(*step),
                    Above::Sub(sub) => Some(sub_first + sub),
                };
                old.map(|old| number[old])
            })
            .collect();
        let mut facts: Vec<Option<SpanFact>> =
            spans.into_iter().map(|(span, _)| Some(span)).collect();
        let spans = order.iter().filter_map(|old| {
            let mut span = facts[*old].take()?;
            span.parent = parents[*old];
            Some(span)
        });
        Built {
            spans: spans.collect(),
            names: self.steps.names,
            places: self.steps.places,
            waits: self.waits,
            events: self.events,
            undated: self.undated,
            clock_went_back: self.clock_went_back,
            orphans: self.tools.orphans + self.steps.orphans,
            first: self.first,
            last: self.last,
        }
    }

    fn step(&self, at: usize) -> (SpanFact, Above) {
        let step = &self.steps.all[at];
        let measured = step.start.zip(step.end).and_then(|(a, b)| between(a, b));
        let (duration_ms, timing) = duration(step.stated, measured, true);
        let span = SpanFact {
            kind: step.kind,
            name: step.name,
            step_kind: step.step_kind,
            place: step.place,
            call_id: None,
            seq_from: step.seq_from,
            seq_to: step.seq_to.unwrap_or(step.seq_from),
            start: step.start,
            end: step.end,
            duration_ms,
            timing,
            status: match (step.seq_to, step.failed) {
                (None, _) => SpanStatus::Open,
                (Some(_), true) => SpanStatus::Failed,
                (Some(_), false) => SpanStatus::Ok,
            },
            parent: None,
            child: step.child.clone(),
        };
        (span, step.parent.map_or(Above::Nothing, Above::Step))
    }

    fn sub(&mut self, at: usize) -> (SpanFact, Above) {
        let sub = &self.subs[at];
        let measured = sub.start.zip(sub.end).and_then(|(a, b)| between(a, b));
        let (duration_ms, timing) = duration(None, measured, true);
        let span = SpanFact {
            kind: SpanKind::Subagent,
            name: Some(self.steps.names.number(&*sub.name)),
            step_kind: None,
            place: sub.place,
            call_id: None,
            seq_from: sub.seq_from,
            seq_to: sub.seq_to,
            start: sub.start,
            end: sub.end,
            duration_ms,
            timing,
            status: SpanStatus::Unknown,
            parent: None,
            child: Some(sub.name.clone()),
        };
        (span, sub.step.map_or(Above::Nothing, Above::Step))
    }

    fn tool(&self, at: usize) -> (SpanFact, Above) {
        let tool = &self.tools.all[at];
        let (above, place) = self.tool_above[at];
        let (duration_ms, timing) = tool.duration(self.recorded);
        let begins = tool.child.is_some() || self.begin_subagents.contains_key(&*tool.id);
        let span = SpanFact {
            kind: if begins {
                SpanKind::Subagent
            } else {
                SpanKind::Tool
            },
            name: Some(tool.name),
            step_kind: None,
            place,
            call_id: Some(tool.id.clone()).filter(|id| !id.is_empty()),
            seq_from: tool.seq_from,
            seq_to: tool.seq_to.unwrap_or(tool.seq_from),
            start: tool.start,
            end: tool.end,
            duration_ms,
            timing,
            status: match (tool.is_dangling(), tool.status) {
                (true, _) => SpanStatus::Open,
                (false, Some(Status::Ok)) => SpanStatus::Ok,
                (false, Some(Status::Error)) => SpanStatus::Failed,
                (false, Some(Status::Denied)) => SpanStatus::Denied,
                (false, Some(Status::Timeout)) => SpanStatus::Timeout,
                (false, None) => SpanStatus::Unknown,
            },
            parent: None,
            child: tool.child.clone(),
        };
        (span, above)
    }

    fn turn(&mut self, at: usize) -> (SpanFact, Above) {
        let turn = &self.turns.all[at];
        let (duration_ms, timing) = turn.duration();
        let chain = self.turns.chains.get(turn.chain);
        let place = chain.map(|chain| chain.place.clone()).unwrap_or_default();
        let model = turn.model.and_then(|model| self.turns.models.get(model));
        let span = SpanFact {
            kind: SpanKind::Model,
            name: model.map(|model| self.steps.names.number(model.as_str())),
            step_kind: None,
            place: self.steps.places.number(&place),
            call_id: turn.id.clone(),
            seq_from: turn.seq_from,
            seq_to: turn.seq_to,
            start: turn.start(),
            end: turn.end,
            duration_ms,
            timing,
            status: if turn.failed {
                SpanStatus::Failed
            } else {
                SpanStatus::Ok
            },
            parent: None,
            child: None,
        };
        (span, self.turn_above[at])
    }
}

/// What is around others comes before them.
fn rank(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Run => 0,
        SpanKind::Step => 1,
        SpanKind::ChildRun => 2,
        SpanKind::Subagent => 3,
        SpanKind::Model => 4,
        SpanKind::Tool => 5,
    }
}
