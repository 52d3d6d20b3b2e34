//! Calls of models, put together from the events that belong to each.
//!
//! Events that name the same call belong together. Where a log names none, what the model says between two inputs is
//! one call. Each sub-agent and each step has a conversation of its own.

use std::collections::HashMap;

use quipu_api::timeline::Timing;
use quipu_model::{Body, Content, Event, Fidelity, Place, Usage};

use super::calls::duration;
use super::names::Names;
use super::{Micros, between, time_of};

/// A call of a model, in small.
#[derive(Debug, Clone)]
pub(super) struct TurnFact {
    pub(super) seq_from: u64,
    pub(super) seq_to: u64,
    /// When its first event happened.
    pub(super) first: Option<Micros>,
    /// When the input before it came.
    pub(super) input: Option<Micros>,
    /// When its last event happened.
    pub(super) end: Option<Micros>,
    pub(super) stated: Option<u64>,
    /// The number of its model's name.
    pub(super) model: Option<u32>,
    pub(super) id: Option<Box<str>>,
    /// Its conversation.
    pub(super) chain: u32,
    /// The call before it in the same conversation.
    pub(super) before: Option<usize>,
    pub(super) usage: Option<Usage>,
    /// Whether the model said something. Otherwise a log states tokens apart from what they are of.
    pub(super) answered: bool,
    pub(super) failed: bool,
    pub(super) stop_reason: Option<u32>,
    /// Whether an event tells of the call itself.
    told: bool,
}

impl TurnFact {
    /// When it began: with the input before it, or as long before its end as the log states.
    pub(super) fn start(&self) -> Option<Micros> {
        self.input.or_else(|| {
            let stated = i64::try_from(self.stated?).ok()?.checked_mul(1000)?;
            self.end?.checked_sub(stated)
        })
    }

    /// How long it took, and how that is known.
    pub(super) fn duration(&self) -> (Option<u64>, Timing) {
        let measured = self.input.zip(self.end).and_then(|(a, b)| between(a, b));
        duration(self.stated, measured, true)
    }

    /// The tokens of its prompt. What is stated apart from an answer may be those of several calls.
    pub(super) fn prompt(&self) -> Option<u64> {
        let usage = self.usage.as_ref().filter(|_| self.answered)?;
        let parts = [usage.input, usage.cache_read, usage.cache_write];
        let known = parts.iter().any(Option::is_some);
        known.then(|| parts.into_iter().flatten().fold(0, u64::saturating_add))
    }

    /// The tokens in the window after the answer.
    pub(super) fn window(&self) -> Option<u64> {
        let output = self.usage.as_ref().and_then(|usage| usage.output)?;
        self.prompt()?.checked_add(output)
    }
}

/// A conversation: whose, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Chain {
    pub(super) subagent: Option<String>,
    pub(super) place: Place,
}

#[derive(Debug, Default)]
struct Talk {
    /// When the input came that nobody has answered yet.
    input: Option<Micros>,
    /// The call that goes on, where calls are not named.
    current: Option<usize>,
    /// The last call.
    last: Option<usize>,
}

/// All calls of models of a transcript.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) all: Vec<TurnFact>,
    pub(super) models: Names,
    pub(super) stops: Names,
    pub(super) chains: Names<Chain>,
    talks: Vec<Talk>,
    by_id: HashMap<u64, usize>,
}

/// What an event is to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Output,
    Told,
    Beside,
}

impl Turns {
    /// Takes in an event. Gives its conversation, and the call that begins with it.
    pub(super) fn observe(&mut self, event: &Event) -> (u32, Option<usize>) {
        let chain = self.chain(event);
        let role = role(event);
        let known = self.all.len();
        match role {
            Role::Input => {
                let talk = &mut self.talks[chain as usize];
                talk.input = time_of(event);
                talk.current = None;
            }
            Role::Output | Role::Told => self.answer(chain, event, role),
            Role::Beside => {}
        }
        if !matches!(role, Role::Output | Role::Told) && event.annotations.usage.is_some() {
            self.stated_apart(chain, event);
        }
        (chain, (self.all.len() > known).then_some(known))
    }

    fn chain(&mut self, event: &Event) -> u32 {
        let chain = self.chains.number(&Chain {
            subagent: event.annotations.subagent_id.as_deref().map(str::to_owned),
            place: event.place.clone(),
        });
        self.talks.resize_with(self.chains.len(), Talk::default);
        chain
    }

    fn answer(&mut self, chain: u32, event: &Event, role: Role) {
        let notes = &event.annotations;
        let key = notes.model_call.as_ref();
        let key = key.map(|id| quipu_agents::hash(id.as_bytes()));
        let at = if let Some(key) = key {
            self.by_id.get(&key).copied()
        } else {
            let current = self.talks[chain as usize].current;
            // What tells of a call itself tells of one call.
            current.filter(|at| role == Role::Output || !self.all[*at].told)
        };
        let at = at.unwrap_or_else(|| self.begin(chain, event));
        if let Some(key) = key {
            self.by_id.insert(key, at);
        }
        self.talks[chain as usize].current = Some(at);
        let model = notes.model.as_deref().map(|name| self.models.number(name));
        let stop = notes.stop_reason.as_deref();
        let stop = stop.map(|word| self.stops.number(word));
        let turn = &mut self.all[at];
        turn.seq_to = turn.seq_to.max(event.seq);
        turn.end = time_of(event).or(turn.end);
        turn.model = model.or(turn.model);
        turn.stop_reason = stop.or(turn.stop_reason);
        turn.stated = turn.stated.max(notes.duration_ms);
        turn.answered = true;
        if let Body::ModelCall(call) = &event.body {
            turn.told = true;
            turn.failed = call.error.is_some();
        }
        if let Some(usage) = &notes.usage {
            turn.usage.get_or_insert_default().add(usage);
        }
    }

    /// Tokens that an event states which is not of an answer: those of the last call, if it has none.
    fn stated_apart(&mut self, chain: u32, event: &Event) {
        let notes = &event.annotations;
        let named = notes.model_call.as_ref();
        let named = named.map(|id| quipu_agents::hash(id.as_bytes()));
        let known = named.and_then(|key| self.by_id.get(&key).copied());
        let last = self.talks[chain as usize].last;
        let beside = matches!(event.body, Body::Note(_) | Body::Harness(_));
        let last = last.filter(|at| beside && self.all[*at].usage.is_none());
        let at = known.or(last).unwrap_or_else(|| self.begin(chain, event));
        if let Some(key) = named {
            self.by_id.insert(key, at);
        }
        let model = notes.model.as_deref().map(|name| self.models.number(name));
        let turn = &mut self.all[at];
        turn.model = turn.model.or(model);
        if let Some(usage) = &notes.usage {
            turn.usage.get_or_insert_default().add(usage);
        }
    }

    fn begin(&mut self, chain: u32, event: &Event) -> usize {
        let at = self.all.len();
        let talk = &mut self.talks[chain as usize];
        let before = talk.last.replace(at);
        let now = time_of(event);
        let id = event.annotations.model_call.as_ref();
        self.all.push(TurnFact {
            seq_from: event.seq,
            seq_to: event.seq,
            first: now,
            input: talk.input.take(),
            end: now,
            stated: None,
            model: None,
            id: id.map(|id| id.as_str().into()),
            chain,
            before,
            usage: None,
            answered: false,
            failed: false,
            stop_reason: None,
            told: false,
        });
        at
    }
}

fn role(event: &Event) -> Role {
    match &event.body {
        Body::UserMessage(_) | Body::ToolResult(_) => Role::Input,
        Body::AssistantMessage(blocks) => {
            // Some sources file what a tool gave back under the side that asked for it.
            let results = |content: &Content| matches!(content, Content::ToolResult { .. });
            let only_results =
                !blocks.is_empty() && blocks.iter().all(|block| results(&block.content));
            if only_results {
                Role::Input
            } else {
                Role::Output
            }
        }
        // What Quipu's own router saw is not said by a model.
        Body::ToolCall(call) => {
            let named = event.annotations.model_call.is_some();
            if named || call.fidelity == Fidelity::AgentEmitted {
                Role::Output
            } else {
                Role::Beside
            }
        }
        Body::ModelCall(_) => Role::Told,
        _ => Role::Beside,
    }
}
