//! The five-hour windows in which subscriptions count usage.
//!
//! A block begins with the hour (in UTC) in which something is first done, lasts five hours, and the next one begins
//! with the first thing that is done after it. What is known is known by the quarter of an hour, so that is how exact a
//! block is: hours and blocks begin with a quarter.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use quipu_agents::SLOT_MS;
use quipu_api::blocks::{BlockProjection, Blocks, UsageBlock};
use quipu_api::{Time, Usd};
use quipu_model::Money;
use quipu_prices::Prices;

use super::names::Names;
use crate::Store;
use crate::catalogue::{Filter, Result, Slots};
use crate::documents;
use crate::stats::{Of, Pricer, Spent, subjects};

/// Agents whose subscriptions count by blocks of five hours.
pub const SUBSCRIPTIONS: [&str; 2] = ["claude-code", "codex"];

/// How long a block is, in milliseconds.
pub const BLOCK: i64 = 5 * 60 * 60 * 1000;

const SLOTS_AN_HOUR: i64 = 60 * 60 * 1000 / SLOT_MS;
const SLOTS_A_BLOCK: i64 = BLOCK / SLOT_MS;

/// A burn rate needs more than one quarter of an hour.
const QUARTERS: u64 = 2;

/// What was spent in a quarter of an hour.
#[derive(Debug, Default)]
struct Quarter {
    spent: Spent,
    models: BTreeSet<u32>,
}

/// A block, before it is written.
#[derive(Debug)]
struct Block {
    /// Its first quarter.
    from: i64,
    first: i64,
    last: i64,
    active: u64,
    spent: Spent,
    models: BTreeSet<u32>,
}

impl Store {
    /// The five-hour blocks of usage by agent, the earliest first: [`Store::blocks_over`] all directories.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn blocks(&self, filter: &Filter, prices: &Prices, now: Timestamp) -> Result<Blocks> {
        self.blocks_over(filter, None, prices, now)
    }

    /// The five-hour blocks of usage by agent in some directories, the earliest first. Of the filter, agents (those with
    /// subscriptions unless it names others), branches, titles and what others submitted matter; `since` leaves out blocks that ended by then, and `until` those
    /// that began after it. Where blocks begin depends on all that was done before, and not on these two.
    ///
    /// # Errors
    ///
    /// When the catalogue cannot be used.
    pub fn blocks_over(
        &self,
        filter: &Filter,
        directories: Option<&[String]>,
        prices: &Prices,
        now: Timestamp,
    ) -> Result<Blocks> {
        let mut of = Filter {
            model: None,
            since: None,
            until: None,
            subagents: true,
            duplicates: true,
            received: filter.received.in_figures(),
            ..filter.clone()
        };
        if of.agents.is_empty() {
            of.agents = SUBSCRIPTIONS.map(str::to_owned).to_vec();
        }
        let subjects = subjects(self.catalogue(), &of, directories)?;
        let agent_of = |transcript| subjects.get(&transcript).map(|it| it.agent.as_str());
        let mut agents: BTreeMap<&str, BTreeMap<i64, Quarter>> = BTreeMap::new();
        let (mut models, mut pricer) = (Names::default(), Pricer::new(prices));
        let mut undated: u64 = 0;
        self.catalogue().each_spend(&Slots::All, None, &mut |row| {
            let Some(agent) = agent_of(row.transcript) else {
                return;
            };
            let Some(slot) = row.slot else {
                undated = undated.saturating_add(row.tokens.total());
                return;
            };
            let model = models.number(row.model);
            let mut spent = Spent {
                calls: row.calls,
                tokens: row.tokens,
                searches: row.searches,
                ..Spent::default()
            };
            let of = Of {
                slot: row.slot,
                model: row.model,
                subagent: row.subagent,
                service: row.service,
                context: row.context,
                told: row.told,
                tool: "",
            };
            pricer.price(model, &of, &mut spent);
            let quarter = agents.entry(agent).or_default().entry(slot).or_default();
            quarter.spent.add(&spent);
            quarter.models.insert(model);
        })?;
        // What was asked counts from when it was asked, also where the answer came in the next quarter.
        self.catalogue().each_activity(&Slots::All, &mut |row| {
            if let (Some(agent), Some(slot)) = (agent_of(row.transcript), row.slot) {
                agents.entry(agent).or_default().entry(slot).or_default();
            }
        })?;
        let mut blocks = Vec::new();
        for (agent, quarters) in &agents {
            let all = divided(quarters).into_iter();
            let all = all.filter(|block| block.is_within(filter));
            blocks.extend(all.filter_map(|block| block.document(agent, &models, now)));
        }
        Ok(Blocks {
            now: Time::of(now),
            agents: agents.keys().map(|agent| (*agent).to_owned()).collect(),
            blocks,
            undated_tokens: undated,
            outdated_logs: self.catalogue().outdated()?,
        })
    }
}

/// Quarters of an hour, divided into blocks.
fn divided(quarters: &BTreeMap<i64, Quarter>) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (slot, quarter) in quarters {
        let goes_on = blocks
            .last()
            .is_some_and(|block| *slot < block.from.saturating_add(SLOTS_A_BLOCK));
        if !goes_on {
            blocks.push(Block {
                from: slot.div_euclid(SLOTS_AN_HOUR) * SLOTS_AN_HOUR,
                first: *slot,
                last: *slot,
                active: 0,
                spent: Spent::default(),
                models: BTreeSet::new(),
            });
        }
        if let Some(block) = blocks.last_mut() {
            block.last = *slot;
            block.active += 1;
            block.spent.add(&quarter.spent);
            block.models.extend(&quarter.models);
        }
    }
    blocks
}

impl Block {
    fn begin_ms(&self) -> i64 {
        self.from.saturating_mul(SLOT_MS)
    }

    fn end_ms(&self) -> i64 {
        self.begin_ms().saturating_add(BLOCK)
    }

    fn is_within(&self, filter: &Filter) -> bool {
        filter.since.is_none_or(|since| self.end_ms() > since)
            && filter.until.is_none_or(|until| self.begin_ms() < until)
    }

    /// `None` for times that no calendar has.
    fn document(&self, agent: &str, models: &Names, now: Timestamp) -> Option<UsageBlock> {
        let time = |ms: i64| Timestamp::from_millisecond(ms).ok().map(Time::of);
        let slot = |slot: i64| time(slot.checked_mul(SLOT_MS)?);
        let now = now.as_millisecond();
        let active = (self.begin_ms()..self.end_ms()).contains(&now);
        let left_ms = self.end_ms().saturating_sub(now);
        let left_ms = u64::try_from(left_ms).ok().filter(|_| active);
        let mut names: Vec<String> = self
            .models
            .iter()
            .filter_map(|model| models.get(*model).cloned())
            .filter(|model| !model.is_empty())
            .collect();
        names.sort_unstable();
        Some(UsageBlock {
            agent: agent.to_owned(),
            start: time(self.begin_ms())?,
            end: time(self.end_ms())?,
            first_activity: slot(self.first)?,
            last_activity: slot(self.last.checked_add(1)?)?,
            active_quarters: self.active,
            spent: documents::spent(&self.spent),
            models: names,
            active,
            left_ms,
            projection: left_ms.and_then(|left| self.projection(now, left)),
        })
    }

    /// What it comes to at the rate since its first activity.
    fn projection(&self, now: i64, left_ms: u64) -> Option<BlockProjection> {
        if self.active < QUARTERS {
            return None;
        }
        let first = self.first.saturating_mul(SLOT_MS);
        let passed = u64::try_from(now.checked_sub(first)?).ok()?;
        let passed = passed.max(1);
        let tokens = u128::from(self.spent.tokens.total());
        let more = |per: u128| tokens * per / u128::from(passed);
        let whole = u128::from(passed) + u128::from(left_ms);
        let narrow = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        let is_priced = self.spent.is_priced();
        let usd = is_priced.then(|| scaled(self.spent.cost, whole, passed));
        Some(BlockProjection {
            is_projection: true,
            tokens_per_minute: narrow(more(60_000)),
            tokens: narrow(more(whole)),
            usd: usd.flatten().map(Usd::of),
        })
    }
}

/// A sum as it would be after `whole` instead of `passed`, to the ten-thousandth of a dollar: more digits would promise
/// more than is known. `None` when it is out of range.
fn scaled(cost: Money, whole: u128, passed: u64) -> Option<Money> {
    const MICRO: i128 = 1_000_000_000_000;
    let micros = cost.rounded(6).atto() / MICRO;
    let micros = micros.checked_mul(i128::try_from(whole).ok()?)?;
    let atto = (micros / i128::from(passed)).checked_mul(MICRO)?;
    Some(Money::from_atto(atto).rounded(4))
}
