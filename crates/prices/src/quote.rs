//! A price, and what some usage costs by it.

use std::borrow::Cow;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use jiff::civil::Date;
use quipu_model::{Money, Service, Usage};

use crate::rate::Rate;
use crate::table::{Hours, Row, Source};

/// Which rule found the price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The name stands in the table.
    Listed,
    /// The name stands in the table, without marks like a date, which do not change a price.
    Marked,
    /// The name begins with one that the table lists for all that begin so, and the rest is marks.
    Begins,
    /// The configuration has the price.
    Config,
}

impl Rule {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Marked => "marked",
            Self::Begins => "begins",
            Self::Config => "config",
        }
    }
}

/// The price of a model at an instant, for a service and a class of prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    pub(crate) provider: Cow<'static, str>,
    pub(crate) model: Cow<'static, str>,
    pub(crate) rule: Rule,
    pub(crate) alias: Option<String>,
    pub(crate) asked: Service,
    pub(crate) row: Row,
}

impl Quote {
    /// Whose price it is: the maker of the model, or who sold it; `config` for a price of one's own.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model, as the table names it.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Which rule found it.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The name that an alias of the configuration put in the place of the one that was asked for.
    pub fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    /// The first day of the price, by UTC. Without one, the source knows of none before it.
    pub fn from(&self) -> Option<Date> {
        self.row.from
    }

    /// When in the day it holds, if that matters. Calls of such a model must not be summed over hours.
    pub fn hours(&self) -> Option<Hours> {
        self.row.hours
    }

    /// The length that prompts have to exceed for it.
    pub fn above(&self) -> u64 {
        self.row.above
    }

    /// The service that is priced.
    pub fn service(&self) -> Service {
        self.row.service
    }

    /// The service that was asked for, if it has no price here and the usual one was taken.
    pub fn falls_back(&self) -> Option<Service> {
        (self.asked != self.row.service).then_some(self.asked)
    }

    /// Where the price is from.
    pub fn source(&self) -> Source {
        self.row.source
    }

    /// What a thousand searches of the web cost beside the tokens, if that is known.
    pub fn thousand_searches(&self) -> Option<Money> {
        self.row.rates.searches
    }

    /// What so many searches of the web cost beside the tokens; `None` where their price is not known.
    pub fn searches(&self, times: u64) -> Option<Money> {
        if times == 0 {
            return Some(Money::ZERO);
        }
        let thousand = self.thousand_searches()?.atto();
        let fee = thousand.checked_mul(i128::from(times))?;
        Some(Money::from_atto(fee / 1_000))
    }

    /// What a token of some kind costs, and whether that is said or assumed.
    ///
    /// What is not said is priced as what it is a kind of: the cache of an hour as the one of five minutes, and
    /// what goes into or comes out of a cache as other input. Reasoning without a price of its own is output;
    /// that is what vendors do, and no assumption.
    pub fn rate(&self, bucket: Bucket) -> (Rate, bool) {
        let rates = &self.row.rates;
        let (said, otherwise) = match bucket {
            Bucket::Input => return (rates.input, false),
            Bucket::Output => return (rates.output, false),
            Bucket::Reasoning => return (rates.reasoning.unwrap_or(rates.output), false),
            Bucket::CacheRead => (rates.cache_read, rates.input),
            Bucket::CacheWrite => (rates.write_5m, rates.input),
            Bucket::CacheWrite1h => (rates.write_1h, rates.write_5m.unwrap_or(rates.input)),
        };
        (said.unwrap_or(otherwise), said.is_none())
    }

    /// What some usage costs, kind by kind; kinds without tokens are left out.
    pub fn parts(&self, usage: &Usage) -> impl Iterator<Item = Part> {
        // A part that is larger than its whole is believed: it was counted.
        let written = usage.cache_write.max(usage.cache_write_1h).unwrap_or(0);
        let hour = usage.cache_write_1h.unwrap_or(0);
        let output = usage.output.max(usage.reasoning).unwrap_or(0);
        let reasoning = self.row.rates.reasoning.and(usage.reasoning).unwrap_or(0);
        let tokens = [
            usage.input.unwrap_or(0),
            usage.cache_read.unwrap_or(0),
            written - hour,
            hour,
            output - reasoning,
            reasoning,
        ];
        Bucket::ALL
            .into_iter()
            .zip(tokens)
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(bucket, tokens)| {
                let (rate, assumed) = self.rate(bucket);
                Part {
                    bucket,
                    tokens,
                    rate,
                    assumed,
                }
            })
    }

    /// What tokens cost that are a part of a call's. A part that is told without its whole is told of tokens that
    /// were counted before, and those are paid already.
    pub fn cost_of_part(&self, tokens: &Usage) -> Money {
        let within =
            |part: Option<u64>, whole: Option<u64>| part.map(|n| n.min(whole.unwrap_or(0)));
        let tokens = Usage {
            cache_write_1h: within(tokens.cache_write_1h, tokens.cache_write),
            reasoning: within(tokens.reasoning, tokens.output),
            ..*tokens
        };
        self.cost(&tokens).total()
    }

    /// What some usage costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let mut cost = Cost::default();
        for part in self.parts(usage) {
            cost.money[part.bucket as usize] = part.money();
            if part.assumed {
                cost.assumed.insert(part.bucket);
            }
        }
        cost
    }
}

/// A kind of tokens that has a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bucket {
    /// Prompt tokens that no cache was involved in.
    Input,
    /// Prompt tokens read from a cache.
    CacheRead,
    /// Prompt tokens written to a cache, for five minutes or as the vendor does it.
    CacheWrite,
    /// Prompt tokens written to a cache for an hour.
    CacheWrite1h,
    /// What the model wrote, with its reasoning unless that has a price of its own.
    Output,
    /// Reasoning, where it has a price of its own.
    Reasoning,
}

impl Bucket {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Input,
        Self::CacheRead,
        Self::CacheWrite,
        Self::CacheWrite1h,
        Self::Output,
        Self::Reasoning,
    ];

    /// The word for it, as in usage.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::CacheRead => "cache_read",
            Self::CacheWrite => "cache_write",
            Self::CacheWrite1h => "cache_write_1h",
            Self::Output => "output",
            Self::Reasoning => "reasoning",
        }
    }
}

/// A set of kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buckets(u8);

impl Buckets {
    fn insert(&mut self, bucket: Bucket) {
        self.0 |= 1 << bucket as u8;
    }

    /// Whether it is in the set.
    pub fn contains(self, bucket: Bucket) -> bool {
        self.0 & (1 << bucket as u8) != 0
    }

    /// Whether nothing is.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in the set.
    pub fn iter(self) -> impl Iterator<Item = Bucket> {
        Bucket::ALL
            .into_iter()
            .filter(move |bucket| self.contains(*bucket))
    }
}

/// The tokens of one kind, and their price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Which kind.
    pub bucket: Bucket,
    /// How many.
    pub tokens: u64,
    /// What one costs.
    pub rate: Rate,
    /// Whether that is not said, see [`Quote::rate`].
    pub assumed: bool,
}

impl Part {
    /// What they cost.
    pub fn money(&self) -> Money {
        self.rate.times(self.tokens)
    }
}

/// What some usage costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    money: [Money; Bucket::ALL.len()],
    assumed: Buckets,
}

impl Cost {
    /// What the tokens of one kind cost.
    pub fn of(&self, bucket: Bucket) -> Money {
        self.money[bucket as usize]
    }

    /// What all of it costs.
    pub fn total(&self) -> Money {
        self.money.into_iter().sum()
    }

    /// The kinds whose price is not said but assumed, see [`Quote::rate`].
    pub fn assumed(&self) -> Buckets {
        self.assumed
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        for (mine, theirs) in self.money.iter_mut().zip(other.money) {
            *mine += theirs;
        }
        self.assumed.0 |= other.assumed.0;
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::add)
    }
}

#[cfg(test)]
mod tests;
