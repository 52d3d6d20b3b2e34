//! The calls behind a figure, read from the archive.
//!
//! A figure of [`Store::stats`](crate::Store::stats) is a sum over calls to models. Here the
//! log of a transcript is read again, and every call it counts is listed with its tokens, the price that was
//! found for it and what it cost; then what the log says and is not counted, and why. The sum of the calls is the
//! figure, to the last digit.

use std::collections::{BTreeMap, HashMap};

use quipu_agents::{Entry, Position, Sink, hash, service_number, service_of, slot};
use quipu_model::{Money, Service, Timestamp, Usage};
use quipu_prices::{Prices, Quote, Unpriced};

use super::cost::{self, PricedBy, Spent};
use super::facts::slots;
use super::table::Of;
use crate::Store;
use crate::catalogue::{Filter, Slots, TranscriptRow};
use crate::import::ImportError;
use crate::import::link::{self, Shared};

/// A transcript, call by call.
#[derive(Debug)]
pub struct Explained {
    /// The transcript.
    pub row: TranscriptRow,
    /// What is counted, in the order of the log.
    pub calls: Vec<Call>,
    /// What is not.
    pub left_out: Vec<LeftOut>,
    /// The sum of what is counted.
    pub spent: Spent,
    /// What the log as a whole says, what is not counted here included: to be compared with the vendor's sum.
    pub log: Usage,
}

/// A call to a model.
#[derive(Debug, Clone)]
pub struct Call {
    /// The first event of it.
    pub seq: u64,
    /// The line of the log it is on.
    pub line: u64,
    /// When; `None` where the log does not say.
    pub at: Option<Timestamp>,
    /// The model; empty where the log does not name it.
    pub model: String,
    /// The sub-agent that made it, where it shares the log with others.
    pub subagent: String,
    /// How it was served.
    pub service: Service,
    /// Its tokens.
    pub tokens: Usage,
    /// Searches of the web that it paid for beside them.
    pub searches: u64,
    /// Its price, or why there is none.
    pub quote: Result<Quote, Unpriced>,
    /// What the log says that it cost.
    pub told: Option<Money>,
    /// Where what it cost is from; `None` where it has no price.
    pub by: Option<PricedBy>,
    /// What it comes to.
    pub spent: Spent,
}

impl Call {
    /// What it cost; `None` where it has no price.
    pub fn cost(&self) -> Option<Money> {
        self.by.map(|_| self.spent.cost)
    }
}

/// What is not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub why: Why,
    /// How often.
    pub times: u64,
    /// The tokens that it says.
    pub tokens: Usage,
}

/// Why something is not counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The same call said it before, in the same log.
    Repeated,
    /// It is a copy; the original is in this transcript.
    Copied(String),
    /// All of the log tells again what this transcript tells.
    Retold(String),
    /// It is not what was asked for: another time, another model.
    NotAsked,
    /// Running totals that say nothing new.
    Total,
    /// Messages of a model without any tokens.
    NoUsage,
}

impl Why {
    /// The word for it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Repeated => "repeated",
            Self::Copied(_) => "copied",
            Self::Retold(_) => "retold",
            Self::NotAsked => "not_asked",
            Self::Total => "total",
            Self::NoUsage => "no_usage",
        }
    }
}

impl Store {
    /// Lists the calls of a transcript that a filter means. Of the filter, only times and the model matter here.
    pub fn explain(
        &self,
        row: TranscriptRow,
        filter: &Filter,
        prices: &Prices,
    ) -> Result<Explained, ImportError> {
        let shared = link::shared(self, row.id)?;
        let mut reading = Reading {
            shared: &shared,
            begin: row
                .started_at
                .and_then(|at| Timestamp::from_millisecond(at).ok()),
            slots: slots(filter),
            model: filter.model.as_deref().map(str::to_lowercase),
            counted: Vec::new(),
            places: HashMap::new(),
            left_out: BTreeMap::new(),
            log: Usage::default(),
            replies: 0,
        };
        let about = crate::transcript::feed(self, &row, &mut reading)?;
        let totals = about.dropped.get(&quipu_agents::Dropped::RepeatedUsage);
        let Reading {
            counted,
            mut left_out,
            log,
            replies,
            ..
        } = reading;
        if let Some(times) = totals {
            left_out.insert((Why::Total, None), (*times, Usage::default()));
        }
        if log == Usage::default() && replies > 0 {
            left_out.insert((Why::NoUsage, None), (replies, Usage::default()));
        }
        let mut spent = Spent::default();
        let mut calls = Vec::new();
        for counted in counted {
            let call = counted.priced(prices);
            spent.add(&call.spent);
            calls.push(call);
        }
        let mut named = Vec::new();
        for ((why, owner), (times, tokens)) in left_out {
            let of = match owner {
                Some(owner) => self.catalogue().row(owner)?.run_id,
                None => String::new(),
            };
            let why = match why {
                Why::Copied(_) => Why::Copied(of),
                Why::Retold(_) => Why::Retold(of),
                why => why,
            };
            named.push(LeftOut { why, times, tokens });
        }
        Ok(Explained {
            row,
            calls,
            left_out: named,
            spent,
            log,
        })
    }
}

struct Reading<'r> {
    shared: &'r Shared,
    begin: Option<Timestamp>,
    slots: Slots,
    model: Option<String>,
    counted: Vec<Counted>,
    /// Where the calls are that may be told of again.
    places: HashMap<(u64, Fate), usize>,
    /// By reason, and by whose they are.
    left_out: BTreeMap<(Why, Option<i64>), (u64, Usage)>,
    log: Usage,
    replies: u64,
}

/// What becomes of a usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Counted,
    Copied(i64),
    Retold(i64),
    NotAsked,
}

struct Counted {
    seq: u64,
    line: u64,
    at: Option<Timestamp>,
    slot: Option<i64>,
    model: String,
    subagent: String,
    service: u8,
    context: u8,
    told: Option<Money>,
    calls: u64,
    tokens: Usage,
    searches: u64,
}

impl Counted {
    /// Whether both are counted in the same place.
    fn is_beside(&self, other: &Self) -> bool {
        (self.slot, &self.model, &self.subagent) == (other.slot, &other.model, &other.subagent)
            && (self.service, self.context) == (other.service, other.context)
            && self.told.is_some() == other.told.is_some()
    }

    /// Takes in what else is told of it.
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens.add(&other.tokens);
        self.searches = self.searches.saturating_add(other.searches);
        if let Some(more) = other.told {
            *self.told.get_or_insert(Money::ZERO) += more;
        }
    }

    fn priced(self, prices: &Prices) -> Call {
        let service = service_of(self.service).unwrap_or_default();
        let of = Of {
            slot: self.slot,
            model: &self.model,
            service,
            context: self.context,
            ..Of::default()
        };
        let quote = cost::quote(prices, &of);
        let mut spent = Spent {
            calls: self.calls,
            tokens: self.tokens,
            searches: self.searches,
            ..Spent::default()
        };
        let by = spent.price(&self.model, quote.as_ref().ok(), self.told);
        Call {
            seq: self.seq,
            line: self.line,
            at: self.at,
            model: self.model,
            subagent: self.subagent,
            service,
            tokens: self.tokens,
            searches: self.searches,
            quote,
            told: self.told,
            by,
            spent,
        }
    }
}

impl Reading<'_> {
    fn fate(&self, entry: &Entry<'_>, slot: Option<i64>, model: &str) -> Fate {
        if self.shared.retold
            && let Some(of) = self.shared.copy_of
        {
            return Fate::Retold(of);
        }
        if let Some(owner) = entry.unit.and_then(|unit| self.shared.owners.get(&unit)) {
            return Fate::Copied(*owner);
        }
        let wanted = self
            .model
            .as_deref()
            .is_none_or(|part| model.to_lowercase().contains(part));
        if wanted && self.slots.contain(slot) {
            Fate::Counted
        } else {
            Fate::NotAsked
        }
    }

    fn leave_out(&mut self, why: Why, owner: Option<i64>, new: bool, tokens: &Usage) {
        let (times, sum) = self.left_out.entry((why, owner)).or_default();
        *times += u64::from(new);
        sum.add(tokens);
    }
}

impl Sink for Reading<'_> {
    fn entry(&mut self, seq: u64, _at: Timestamp, position: Position, entry: &Entry<'_>) {
        self.replies += u64::from(matches!(entry.what, quipu_agents::What::Assistant(_)));
        if let Some(again) = &entry.repeats {
            self.leave_out(Why::Repeated, None, true, again);
        }
        let Some(charge) = &entry.charge else {
            return;
        };
        if entry.usage.is_none() && entry.searches.is_none() && entry.cost.is_none() {
            return;
        }
        let usage = &entry.usage.unwrap_or_default();
        self.log.add(usage);
        let own = entry.model.as_deref().unwrap_or_default();
        let model = charge.model.as_deref().unwrap_or(own);
        let begin = self.begin.map(slot);
        let at = charge.slot.or(begin);
        let fate = self.fate(entry, at, model);
        let call = entry.model_call.as_deref();
        let place = call.map(|call| (hash(call.as_bytes()), fate));
        let known = place.and_then(|place| self.places.get(&place).copied());
        let owner = match fate {
            Fate::Copied(owner) | Fate::Retold(owner) => Some(owner),
            Fate::Counted | Fate::NotAsked => None,
        };
        let why = match fate {
            Fate::Counted => None,
            Fate::Copied(_) => Some(Why::Copied(String::new())),
            Fate::Retold(_) => Some(Why::Retold(String::new())),
            Fate::NotAsked => Some(Why::NotAsked),
        };
        if let Some(why) = why {
            self.leave_out(why, owner, known.is_none(), usage);
            self.places.extend(place.map(|place| (place, 0)));
            return;
        }
        let counted = Counted {
            seq,
            line: position.line,
            at: entry.when,
            slot: at,
            model: model.to_owned(),
            subagent: entry.subagent.as_deref().unwrap_or_default().to_owned(),
            service: service_number(charge.service),
            context: charge.context,
            told: charge.told.then(|| entry.cost.unwrap_or(Money::ZERO)),
            calls: entry.calls_begun(),
            tokens: *usage,
            searches: entry.searches.unwrap_or(0),
        };
        // What only says how much of something counted before was reasoning is told with that.
        let told_of = (usage.total() == 0 && counted.searches == 0)
            .then(|| self.counted.iter().rposition(|it| it.is_beside(&counted)))
            .flatten();
        if let Some(known) = known.or(told_of) {
            self.counted[known].add(&counted);
            return;
        }
        self.places
            .extend(place.map(|place| (place, self.counted.len())));
        self.counted.push(counted);
    }
}
