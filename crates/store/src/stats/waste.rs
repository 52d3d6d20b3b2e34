//! What need not have been paid for.
//!
//! Four kinds, each found while a log is read (`docs/stats.md` says how): prompts that a cache had forgotten after a
//! pause, prompts that were sent again without a cache, tool calls that were made before, and those of them that had
//! failed. Of the first two it is known what they cost beyond what reading from a cache would have; of tool calls only
//! what the calls to the model cost that asked for them, which is the most that can have been wasted.

use std::collections::{BTreeMap, HashMap};

use quipu_agents::Waste as Kind;
use quipu_model::{Money, Usage};

use super::Question;
use super::cost;
use super::facts;
use super::table::Of;
use crate::catalogue::{Catalogue, Filter, Result};

/// Waste of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waste {
    /// What it is.
    pub kind: Kind,
    /// All of it.
    pub all: Wasted,
    /// The sessions with most of it, the worst first.
    pub sessions: Vec<(WastefulSession, Wasted)>,
}

/// A session, as far as it is named here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WastefulSession {
    /// Its id.
    pub run_id: String,
    /// Its title.
    pub title: Option<String>,
}

/// How much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wasted {
    /// How often.
    pub times: u64,
    /// Tokens that were paid for.
    pub tokens: Usage,
    /// What they cost, beyond what they had to.
    pub cost: Money,
    /// Those of them that have no price.
    pub unpriced: u64,
}

impl Wasted {
    fn add(&mut self, other: &Self) {
        self.times = self.times.saturating_add(other.times);
        self.tokens.add(&other.tokens);
        self.cost += other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

impl dyn Catalogue + '_ {
    /// What need not have been paid for, by kind; at most so many sessions of each.
    pub fn waste(&self, question: &Question<'_>, worst: usize) -> Result<Vec<Waste>> {
        let filter = Filter {
            model: None,
            since: None,
            until: None,
            subagents: true,
            duplicates: true,
            received: question.filter.received.in_figures(),
            ..question.filter.clone()
        };
        let subjects = facts::subjects(self, &filter, question.directories)?;
        let model = question.filter.model.as_deref().map(str::to_lowercase);
        let mut sums: BTreeMap<Kind, (Wasted, HashMap<&str, Wasted>)> = BTreeMap::new();
        self.each_waste(&facts::slots(question.filter), &mut |row| {
            let Some(subject) = subjects.get(&row.transcript) else {
                return;
            };
            let of = Of {
                slot: row.slot,
                model: row.model,
                service: row.service,
                context: row.context,
                ..Of::default()
            };
            if model
                .as_deref()
                .is_some_and(|part| !of.model.to_lowercase().contains(part))
            {
                return;
            }
            let wasted = wasted(row.kind, question, &of, row.times, row.tokens);
            let (all, sessions) = sums.entry(row.kind).or_default();
            all.add(&wasted);
            sessions.entry(&subject.session).or_default().add(&wasted);
        })?;
        let titles: HashMap<&str, Option<&String>> = subjects
            .values()
            .map(|subject| (subject.run_id.as_str(), subject.title.as_ref()))
            .collect();
        let named = |kind: Kind| {
            let (all, sessions) = sums.get(&kind).cloned().unwrap_or_default();
            let mut sessions: Vec<(WastefulSession, Wasted)> = sessions
                .into_iter()
                .map(|(run_id, wasted)| {
                    let session = WastefulSession {
                        run_id: run_id.to_owned(),
                        title: titles.get(run_id).copied().flatten().cloned(),
                    };
                    (session, wasted)
                })
                .collect();
            sessions.sort_by(|(a, x), (b, y)| {
                let rank = |wasted: &Wasted| (wasted.cost, wasted.times, wasted.tokens.total());
                rank(y).cmp(&rank(x)).then_with(|| a.cmp(b))
            });
            sessions.truncate(worst);
            Waste {
                kind,
                all,
                sessions,
            }
        };
        Ok(Kind::ALL.into_iter().map(named).collect())
    }
}

fn wasted(kind: Kind, question: &Question<'_>, of: &Of<'_>, times: u64, tokens: Usage) -> Wasted {
    let mut wasted = Wasted {
        times,
        tokens,
        ..Wasted::default()
    };
    if tokens.total() == 0 {
        return wasted;
    }
    let Ok(quote) = cost::quote(question.prices, of) else {
        wasted.unpriced = tokens.total();
        return wasted;
    };
    let paid = quote.cost_of_part(&tokens);
    let needed = match kind {
        Kind::Pause | Kind::Resent => {
            let cached = Usage {
                cache_read: Some(tokens.total()),
                ..Usage::default()
            };
            quote.cost(&cached).total()
        }
        Kind::Repeat | Kind::Retry => Money::ZERO,
    };
    // Where reading from the cache is not cheaper, nothing was lost.
    wasted.cost = (paid - needed).max(Money::ZERO);
    wasted
}
