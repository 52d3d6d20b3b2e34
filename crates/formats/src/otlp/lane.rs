//! Conversations: what waits for an answer, and the call to a model that is under way.

use std::collections::HashSet;

use quipu_model::{Event, ModelCallId, Money, Notes, Place, SubagentId, ToolCallId, Usage};

use super::facts::{Facts, Kind, provider_told};
use super::json::Attrs;
use super::provider::{self, OTHER};
use super::span::{Fault, Nanos, Span, SpanKind};
use super::talk::{Side, Talk};
use super::{Convention, FINISH_SAID, FINISH_UNKNOWN, TOO_LONG};
use crate::ended::Ended;
use crate::loss::Loss;

/// How many ids of calls an answer remembers, to know one that is told twice.
const REMEMBERED: usize = 1_024;

/// One conversation: that of the agent or of a sub-agent, in one step of a workflow.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) subagent: Option<SubagentId>,
    pub(super) place: Place,
    pub(super) chat: Option<Chat>,
    /// What the model was told before all else.
    pub(super) system: Talk,
    /// What was said since the last call.
    pub(super) input: Talk,
    pub(super) output: Talk,
    /// Stands for the next call: it holds the events of what waits for it.
    pub(super) waiting: Option<Span>,
    pub(super) asked_at: Option<Nanos>,
    /// Whether a message waits: what a tool gave back is in the span of the tool as well.
    pub(super) was_told: bool,
    /// Tokens and dollars of which it is not told which call they are of.
    pub(super) spent: Spent,
    pub(super) was_called: bool,
    /// The last event of it.
    pub(super) used: u64,
}

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) usage: Usage,
    pub(super) cost: Option<Money>,
}

impl Spent {
    pub(super) fn of(notes: &Notes) -> Self {
        Self {
            usage: notes.usage.unwrap_or_default(),
            cost: notes.cost,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.usage.add(&other.usage);
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.map_or(cost, |sum| sum + cost));
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.usage.is_empty() && self.cost.is_none()
    }

    /// Writes tokens and costs. Both conventions count cached tokens as part of the prompt.
    pub(super) fn write(&self, convention: Convention, attrs: &mut Attrs) {
        let of = &self.usage;
        let prompt = [of.input, of.cache_read, of.cache_write];
        let prompt = prompt.iter().any(Option::is_some).then(|| {
            let known = prompt.into_iter().flatten();
            known.fold(0, u64::saturating_add)
        });
        let total = (!of.is_empty()).then(|| of.total());
        let (names, counts) = match convention {
            Convention::GenAi => (
                [
                    "gen_ai.usage.input_tokens",
                    "gen_ai.usage.output_tokens",
                    "gen_ai.usage.cache_read.input_tokens",
                    "gen_ai.usage.cache_creation.input_tokens",
                    "gen_ai.usage.reasoning.output_tokens",
                    "quipu.usage.cache_write_1h",
                ],
                None,
            ),
            Convention::OpenInference => (
                [
                    "llm.token_count.prompt",
                    "llm.token_count.completion",
                    "llm.token_count.prompt_details.cache_read",
                    "llm.token_count.prompt_details.cache_write",
                    "llm.token_count.completion_details.reasoning",
                    "quipu.usage.cache_write_1h",
                ],
                total,
            ),
        };
        let values = [
            prompt,
            of.output,
            of.cache_read,
            of.cache_write,
            of.reasoning,
            of.cache_write_1h,
        ];
        for (name, value) in names.into_iter().zip(values) {
            attrs.count_if(name, value);
        }
        if convention == Convention::GenAi {
            // The name of the same in versions after the one that is written.
            attrs.count_if("gen_ai.usage.cache_write.input_tokens", of.cache_write);
        }
        attrs.count_if("llm.token_count.total", counts);
        if let Some(cost) = self.cost {
            let key = match convention {
                Convention::GenAi => "quipu.cost_usd",
                Convention::OpenInference => "llm.cost.total",
            };
            attrs.money(key, cost);
        }
    }
}

/// A call to a model, as it comes in.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) span: Span,
    pub(super) model: Option<String>,
    pub(super) model_call: Option<ModelCallId>,
    pub(super) stop_reason: Option<String>,
    superseded: bool,
    pub(super) spent: Spent,
    /// Whether anything was said, and whether a tool was called.
    pub(super) said: bool,
    pub(super) called: bool,
    /// Ids of calls that are in what it said.
    ids: HashSet<ToolCallId>,
    /// The last event of it.
    pub(super) last_seq: u64,
}

impl Chat {
    pub(super) fn new(span: Span, event: &Event) -> Self {
        let notes = &event.annotations;
        Self {
            span,
            model: notes.model.clone(),
            model_call: notes.model_call.clone(),
            stop_reason: notes.stop_reason.clone(),
            superseded: notes.flags.superseded,
            spent: Spent::default(),
            said: false,
            called: false,
            ids: HashSet::new(),
            last_seq: event.seq,
        }
    }

    /// Whether an event goes on with it.
    pub(super) fn goes_on(&self, notes: &Notes) -> bool {
        if self.superseded != notes.flags.superseded {
            return false;
        }
        match (&self.model_call, &notes.model_call) {
            (Some(mine), Some(other)) => mine == other,
            (None, None) => match (&self.model, &notes.model) {
                (Some(mine), Some(other)) => mine == other,
                _ => true,
            },
            // Of a call that has said nothing yet, the name may come later.
            (None, Some(_)) => !self.said && !self.called,
            (Some(_), None) => false,
        }
    }

    /// Takes in what an event of it knows.
    pub(super) fn observe(&mut self, event: &Event) {
        let notes = &event.annotations;
        if self.model.is_none() {
            self.model.clone_from(&notes.model);
        }
        if self.model_call.is_none() {
            self.model_call.clone_from(&notes.model_call);
        }
        if self.stop_reason.is_none() {
            self.stop_reason.clone_from(&notes.stop_reason);
        }
        self.spent.add(Spent::of(notes));
        self.last_seq = event.seq;
    }

    /// Whether a call of a tool is new in what it said. One without an id always is.
    pub(super) fn is_new_call(&mut self, id: &str) -> bool {
        self.called = true;
        id.is_empty() || self.ids.len() >= REMEMBERED || self.ids.insert(id.into())
    }
}

impl Lane {
    pub(super) fn new(facts: &Facts, subagent: Option<&str>, place: &Place) -> Self {
        let talk = |side| Talk::new(facts.convention, side, facts.room);
        Self {
            subagent: subagent.map(ToOwned::to_owned).map(Into::into),
            place: place.clone(),
            chat: None,
            system: talk(Side::System),
            input: talk(Side::Input),
            output: talk(Side::Output),
            waiting: None,
            asked_at: None,
            was_told: false,
            spent: Spent::default(),
            was_called: false,
            used: 0,
        }
    }

    pub(super) fn is(&self, subagent: Option<&str>, place: &Place) -> bool {
        self.subagent.as_deref() == subagent && self.place == *place
    }

    /// Writes what was said before a call to its span, and forgets it.
    pub(super) fn hand_over(&mut self, span: &mut Span, loss: &mut Loss) {
        self.was_told = false;
        if let Some(mut waiting) = self.waiting.take() {
            span.take_events(&mut waiting);
        }
        for talk in [&mut self.system, &mut self.input] {
            talk.write(&mut span.attrs);
            cuts(talk, span.seq, loss);
            talk.clear();
        }
    }

    /// Puts the end to the call that is under way: what is known of it as a whole.
    pub(super) fn close(&mut self, facts: &Facts, loss: &mut Loss) -> Option<Span> {
        let chat = self.chat.take()?;
        let mut span = chat.span;
        span.kind = SpanKind::Client;
        span.name = Kind::Chat.name(chat.model.as_deref());
        let model = chat.model.as_deref();
        let provider = model.and_then(provider::of);
        let attrs = &mut span.attrs;
        match facts.convention {
            Convention::GenAi => {
                let name = provider.map_or(OTHER, |it| it.gen_ai);
                attrs.text("gen_ai.provider.name", name);
                loss.inferred(provider_told(provider.is_some()), span.seq);
                // A log says which model answered. That it was asked for by that name is likely.
                attrs.text_if("gen_ai.request.model", model);
                if model.is_some() {
                    loss.inferred(
                        "gen_ai.request.model, from the model that answered",
                        span.seq,
                    );
                }
                attrs.text_if("gen_ai.response.model", model);
                attrs.text_if("gen_ai.response.id", chat.model_call.as_deref());
                if let Some(reason) = &chat.stop_reason {
                    attrs.texts("gen_ai.response.finish_reasons", [reason.as_str()]);
                }
            }
            Convention::OpenInference => {
                let system = provider.map_or("unknown", |it| it.system);
                attrs.text("llm.system", system);
                loss.inferred("llm.system, from the name of the model", span.seq);
                attrs.text_if("llm.model_name", model);
                attrs.text_if("quipu.model_call", chat.model_call.as_deref());
                attrs.text_if("llm.finish_reason", chat.stop_reason.as_deref());
            }
        }
        chat.spent.write(facts.convention, attrs);
        attrs.count("quipu.last_seq", chat.last_seq);
        if facts.content {
            let told = chat.stop_reason.as_deref();
            let told =
                told.map(|word| Ended::of(word).map_or(word, |it| it.in_gen_ai(chat.called)));
            // The format asks for a word. That an answer ended because all was said is not one to guess.
            let (reason, inferred) = match (told, &span.fault, chat.called) {
                (Some(told), _, _) => (told, None),
                (None, Some(_), _) => ("error", Some(FINISH_SAID)),
                (None, None, true) => ("tool_call", Some(FINISH_SAID)),
                (None, None, false) => ("unknown", Some(FINISH_UNKNOWN)),
            };
            self.output.end(Some(reason));
            if facts.convention == Convention::GenAi
                && !self.output.is_empty()
                && let Some(inferred) = inferred
            {
                loss.inferred(inferred, span.seq);
            }
            self.output.write(attrs);
            cuts(&self.output, span.seq, loss);
            self.output.clear();
        }
        if let Some(fault) = &span.fault {
            attrs.text("error.type", fault.kind);
        }
        self.was_called = true;
        Some(span)
    }

    /// The call failed, if nothing came of it.
    pub(super) fn failed(&mut self, message: Option<String>) {
        if let Some(chat) = &mut self.chat
            && !chat.said
            && !chat.called
        {
            let kind = OTHER;
            chat.span.fault = Some(Fault { kind, message });
        }
    }
}

/// Counts what had no room.
fn cuts(talk: &Talk, seq: u64, loss: &mut Loss) {
    for _ in 0..talk.cuts {
        loss.dropped(TOO_LONG, seq);
    }
}
