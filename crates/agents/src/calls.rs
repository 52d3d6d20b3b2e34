//! Calls to models and tools: each is counted once, in one place, and compared with those before it.
//!
//! Logs repeat the tokens of a call on every line of it, and correct them as more becomes known. What is
//! counted is the largest of each bucket, once. All of it goes where the first of it went: the same slot of
//! time, the same model and the same class of prompt, so that a correction is never charged elsewhere.

use std::collections::{HashMap, HashSet, VecDeque};

use quipu_model::{Money, Service, Timestamp, Usage};
use quipu_prices::Context;
use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::session::Tokens;
use crate::{Entry, Text, Value, What, hash};

/// How many calls back a usage may still be corrected.
const RECENT_CALLS: usize = 64;

/// How many sub-agents of one log are followed from call to call, and how many tool calls are remembered.
const CHAINS: usize = 256;
const ASKED: usize = 64 * 1024;

/// A slot of time: a quarter of an hour.
pub const SLOT_MS: i64 = 15 * 60 * 1000;

/// Caches keep a prompt for this long after it was last used, unless asked for an hour.
const CACHE_LIFE_MS: i64 = 5 * 60 * 1000;
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Fewer tokens than this are not kept by any cache.
const LEAST_CACHED: u64 = 1024;

/// The slot that a time is in: quarters of an hour since 1970.
pub fn slot(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(SLOT_MS)
}

/// Where the tokens of a call are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The slot of time; `None` where the log has no times.
    pub slot: Option<i64>,
    /// The model, where it is another than the entry's: that of the first entry of the call.
    pub model: Option<String>,
    /// How it was served.
    pub service: Service,
    /// The class of its prompt's length.
    pub context: u8,
    /// Whether the log says what the call cost.
    pub told: bool,
}

/// Tokens that were sent before and were not read from a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// Whether the cache had forgotten them, because nothing was asked for too long.
    pub pause: bool,
    /// What they were paid as: input, or written to the cache again.
    pub tokens: Tokens,
}

/// A tool call that was made before, with the same input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// Whether it had failed before.
    pub retry: bool,
    /// The call to the model that asked for it, where the log tells and it is not blamed for another.
    pub blamed: Option<(Charge, Tokens)>,
}

/// The calls of one log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    recent: VecDeque<Recent>,
    older: HashSet<u64>,
    /// The last call of each sub-agent.
    chains: HashMap<u64, Last>,
    /// Tool calls by what was asked, and whether they failed.
    asked: HashMap<u64, bool>,
    /// What calls cost, in logs that say so.
    costs: Costs,
}

/// What calls to models cost, by the log's own word.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Costs {
    recent: VecDeque<(u64, Cost)>,
    older: HashSet<u64>,
}

/// A call to a model whose usage may still be corrected.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Recent {
    key: u64,
    tokens: Tokens,
    slot: Option<i64>,
    model: String,
    #[serde(with = "service")]
    service: Service,
    /// Known once the prompt is.
    context: Option<u8>,
    /// Searches of the web that were counted.
    searches: u64,
    told: bool,
    blamed: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Last {
    model: u64,
    prompt: u64,
    at: Option<i64>,
    /// Whether any of its prompt is in a cache, and whether for an hour.
    cached: bool,
    hour: bool,
}

impl Calls {
    /// Whether a usage or a cost of this call was counted.
    pub(crate) fn knows(&self, call: &str) -> bool {
        let key = hash(call.as_bytes());
        self.older.contains(&key)
            || self.recent.iter().any(|call| call.key == key)
            || self.costs.knows(key)
    }

    /// Whether a usage of this call would add to what was counted of it. What can no longer be corrected does not.
    pub(crate) fn would_count(&self, call: &str, usage: &Usage) -> bool {
        let key = hash(call.as_bytes());
        let known = self.recent.iter().rev().find(|call| call.key == key);
        match known {
            Some(known) => {
                let before = Usage::from(known.tokens);
                let mut now = before;
                now.raise(&believable(*usage));
                now != before
            }
            None => !self.older.contains(&key),
        }
    }

    /// Leaves of an entry's usage and cost what was not counted yet, and says where it is to be counted.
    pub(crate) fn settle(&mut self, entry: &mut Entry<'_>, when: Option<Timestamp>) {
        self.settle_usage(entry, when);
        self.settle_searches(entry, when);
        self.costs.settle(entry);
        // A cost that grows without its tokens goes where they went.
        if entry.charge.is_none()
            && entry.cost.is_some_and(|more| more != Money::ZERO)
            && let Some(key) = entry
                .model_call
                .as_deref()
                .map(|call| hash(call.as_bytes()))
            && let Some(call) = self.recent.iter().rev().find(|call| call.key == key)
        {
            let model = entry.model.as_deref().unwrap_or_default();
            entry.charge = Some(call.charge(model));
        }
    }

    /// Leaves of an entry's searches those that were not counted yet.
    fn settle_searches(&mut self, entry: &mut Entry<'_>, when: Option<Timestamp>) {
        let Some(searches) = entry.searches.take().filter(|searches| *searches > 0) else {
            return;
        };
        let model = entry.model.as_deref().unwrap_or_default();
        let has_tokens = entry.usage.is_some() || entry.repeats.is_some();
        let key = entry.model_call.as_deref().filter(|_| has_tokens);
        let Some(key) = key.map(|call| hash(call.as_bytes())) else {
            entry.searches = Some(searches);
            entry.charge.get_or_insert_with(|| Charge {
                slot: when.map(slot),
                model: None,
                service: entry.service,
                context: 0,
                told: false,
            });
            return;
        };
        // A call that is not among the recent ones was counted in full.
        if let Some(call) = self.recent.iter_mut().rev().find(|call| call.key == key) {
            let more = searches.saturating_sub(call.searches);
            call.searches = call.searches.max(searches);
            entry.searches = Some(more).filter(|more| *more > 0);
            entry.charge = entry
                .searches
                .map(|_| call.charge(model))
                .or(entry.charge.take());
        }
    }

    fn settle_usage(&mut self, entry: &mut Entry<'_>, when: Option<Timestamp>) {
        let Some(usage) = entry.usage.take().map(believable) else {
            return;
        };
        let model = entry.model.as_deref().unwrap_or_default();
        let key = entry
            .model_call
            .as_deref()
            .map(|call| hash(call.as_bytes()));
        let first = key.is_none_or(|key| !self.older.contains(&key));
        let known = key.and_then(|key| self.recent.iter().rposition(|call| call.key == key));
        entry.begins_call = first && known.is_none();
        let (charge, more, prompt_known) = if let Some(at) = known {
            let call = &mut self.recent[at];
            let before = Usage::from(call.tokens);
            let mut now = before;
            now.raise(&usage);
            let now = believable(now);
            call.tokens = now.into();
            let more = now.beyond(&before);
            let parts = [more.cache_write_1h, more.reasoning];
            if more.total() == 0 && parts.iter().all(|part| part.unwrap_or(0) == 0) {
                entry.repeats = Some(usage);
                return;
            }
            let had = call.context.is_some();
            call.context = call.context.or(class(&now));
            (call.charge(model), more, !had && call.context.is_some())
        } else if !first {
            entry.repeats = Some(usage);
            return;
        } else {
            let call = Recent {
                key: key.unwrap_or_default(),
                tokens: usage.into(),
                slot: when.map(slot),
                model: model.to_owned(),
                service: entry.service,
                context: class(&usage),
                searches: 0,
                told: entry.cost.is_some(),
                blamed: false,
            };
            let (charge, has) = (call.charge(model), call.context.is_some());
            if key.is_some() {
                self.remember(call);
            }
            (charge, usage, has)
        };
        if prompt_known {
            let chain = hash(entry.subagent.as_deref().unwrap_or_default().as_bytes());
            let now = when.map(Timestamp::as_millisecond);
            entry.missed = self.missed(chain, hash(model.as_bytes()), &more, now);
        }
        entry.usage = Some(more);
        entry.charge = Some(charge);
    }

    fn remember(&mut self, call: Recent) {
        if self.recent.len() == RECENT_CALLS
            && let Some(old) = self.recent.pop_front()
        {
            self.older.insert(old.key);
        }
        self.recent.push_back(call);
    }

    /// What of a prompt the call before it had sent too, and was paid for again at more than the price of a
    /// cached token. Nothing is said where the log does not tell of caches, of prompts that were cut to less
    /// than half, and of less than caches keep.
    fn missed(&mut self, chain: u64, model: u64, usage: &Usage, at: Option<i64>) -> Option<Missed> {
        let prompt = prompt(usage);
        let (read, written) = (usage.cache_read?, usage.cache_write.unwrap_or(0));
        let hour = usage.cache_write_1h.unwrap_or(0);
        let before = self.chains.get(&chain).copied();
        if before.is_some() || self.chains.len() < CHAINS {
            let kept_on = before.is_some_and(|last| last.hour && last.model == model && read > 0);
            let last = Last {
                model,
                prompt,
                at,
                cached: read > 0 || written > 0,
                hour: hour > 0 || kept_on,
            };
            self.chains.insert(chain, last);
        }
        let last = before.filter(|last| last.model == model && prompt >= last.prompt / 2)?;
        let missed = last.prompt.min(prompt).saturating_sub(read);
        if missed < LEAST_CACHED {
            return None;
        }
        let life = if last.hour { HOUR_MS } else { CACHE_LIFE_MS };
        let pause = match (last.at, at) {
            (Some(before), Some(now)) => now.saturating_sub(before) > life,
            _ => false,
        };
        let rewritten = missed.min(written);
        Some(Missed {
            pause: last.cached && pause,
            tokens: Tokens {
                input: Some(missed - rewritten),
                cache_write: Some(rewritten),
                cache_write_1h: Some(rewritten.min(hour)),
                ..Tokens::default()
            },
        })
    }

    /// Compares a tool call with those before it. Gives what it is known by, for its result.
    pub(crate) fn ask(&mut self, entry: &mut Entry<'_>) -> Option<u64> {
        let What::Call {
            name,
            input: Some(input),
            ..
        } = &entry.what
        else {
            return None;
        };
        let key = hash(name.as_bytes()).rotate_left(1) ^ input_hash(input);
        let before = self.asked.get(&key).copied();
        if before.is_none() && self.asked.len() >= ASKED {
            return None;
        }
        self.asked.insert(key, false);
        if let Some(retry) = before {
            let blamed = self.blame(entry);
            entry.repeat = Some(Repeat { retry, blamed });
        }
        Some(key)
    }

    /// Notes that a tool call failed.
    pub(crate) fn failed(&mut self, asked: u64) {
        if let Some(failed) = self.asked.get_mut(&asked) {
            *failed = true;
        }
    }

    fn blame(&mut self, entry: &Entry<'_>) -> Option<(Charge, Tokens)> {
        let key = hash(entry.model_call.as_deref()?.as_bytes());
        let call = self.recent.iter_mut().rev().find(|call| call.key == key)?;
        if std::mem::replace(&mut call.blamed, true) {
            return None;
        }
        let model = entry.model.as_deref().unwrap_or_default();
        Some((call.charge(model), call.tokens))
    }
}

impl Costs {
    fn knows(&self, key: u64) -> bool {
        self.older.contains(&key) || self.recent.iter().any(|(of, _)| *of == key)
    }

    /// Leaves of a cost what was not told yet. Tokens that are added to a call whose cost was told cost nothing
    /// more: the log means all of the call by it.
    fn settle(&mut self, entry: &mut Entry<'_>) {
        let Some(call) = entry.model_call.as_deref() else {
            return;
        };
        let key = hash(call.as_bytes());
        let told = self.recent.iter_mut().rev().find(|(of, _)| *of == key);
        let more = match (entry.cost, told) {
            (cost, Some((_, told))) => {
                let before = told.money();
                let now = cost.map_or(before, |cost| cost.max(before));
                *told = now.into();
                Some(Money::from_atto(now.atto().saturating_sub(before.atto())))
            }
            (_, None) if self.older.contains(&key) => Some(Money::ZERO),
            (Some(cost), None) => {
                self.remember(key, cost.into());
                entry.cost = Some(cost);
                return;
            }
            (None, None) => None,
        };
        let says_something = |more: &Money| *more != Money::ZERO || entry.usage.is_some();
        entry.cost = more.filter(says_something);
    }

    fn remember(&mut self, key: u64, cost: Cost) {
        if self.recent.len() == RECENT_CALLS
            && let Some((old, _)) = self.recent.pop_front()
        {
            self.older.insert(old);
        }
        self.recent.push_back((key, cost));
    }
}

impl Recent {
    fn charge(&self, model: &str) -> Charge {
        Charge {
            slot: self.slot,
            model: (self.model != model).then(|| self.model.clone()),
            service: self.service,
            context: self.context.unwrap_or_default(),
            told: self.told,
        }
    }
}

/// A part is no larger than what it is part of. Costs could not be added up otherwise. Reasoning alone is
/// believed: some agents tell at the end how much of what was counted before it was.
fn believable(mut usage: Usage) -> Usage {
    if let Some(hour) = &mut usage.cache_write_1h {
        *hour = *usage.cache_write.get_or_insert(*hour).min(hour);
    }
    if let (Some(reasoning), Some(output)) = (&mut usage.reasoning, usage.output)
        && output > 0
    {
        *reasoning = output.min(*reasoning);
    }
    usage
}

fn prompt(usage: &Usage) -> u64 {
    [usage.input, usage.cache_read, usage.cache_write]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
}

/// The class of a prompt's length, once there is a prompt. It is not changed by what is added later.
fn class(usage: &Usage) -> Option<u8> {
    let prompt = prompt(usage);
    (prompt > 0).then(|| Context::of(prompt).as_u8())
}

/// The place of a service among all of them. Kept in files.
pub fn service_number(service: Service) -> u8 {
    let at = Service::ALL.iter().position(|it| *it == service);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or_default()
}

/// The service with this place.
pub fn service_of(number: u8) -> Option<Service> {
    Service::ALL.get(usize::from(number)).copied()
}

fn input_hash(input: &Value<'_>) -> u64 {
    match input {
        Value::Raw(raw) => hash(raw.get().as_bytes()),
        Value::Text(Text::Raw(raw)) => hash(raw.raw().get().as_bytes()),
        Value::Text(Text::Plain(text)) => hash(text.as_bytes()),
        Value::Owned(json) => hash(json.get().as_bytes()),
    }
}

/// [`Service`] in a checkpoint: its place among all.
pub(crate) mod service {
    use quipu_model::Service;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde asks for"
    )]
    pub(crate) fn serialize<S: Serializer>(service: &Service, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(super::service_number(*service))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Service, D::Error> {
        let number = u8::deserialize(from)?;
        super::service_of(number).ok_or_else(|| serde::de::Error::custom("no such service"))
    }
}

#[cfg(test)]
mod tests;
