//! What tokens cost.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use quipu_agents::SLOT_MS;
use quipu_model::{Money, Service, Usage};
use quipu_prices::{Context, Prices, Quote, Unpriced as NoPrice};

use super::table::Of;

/// What was spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Calls to models.
    pub calls: u64,
    /// Their tokens.
    pub tokens: Usage,
    /// Searches of the web that are paid for beside the tokens.
    pub searches: u64,
    /// What those of both cost that have a price.
    pub cost: Money,
    /// Tokens that have no price. They are in `tokens`, and not in `cost`.
    pub unpriced: u64,
    /// Searches that have no price.
    pub unpriced_searches: u64,
}

impl Spent {
    /// Adds what else was spent.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.tokens.add(&other.tokens);
        self.searches = self.searches.saturating_add(other.searches);
        self.cost += other.cost;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.unpriced_searches = self
            .unpriced_searches
            .saturating_add(other.unpriced_searches);
    }

    /// Whether all of it has a price.
    pub fn is_priced(&self) -> bool {
        self.unpriced == 0 && self.unpriced_searches == 0
    }

    /// What it cost; `None` where nothing of it has a price.
    pub fn dollars(&self) -> Option<Money> {
        (self.is_priced() || self.cost != Money::ZERO).then_some(self.cost)
    }

    /// Puts the price to it: that of the table, or else what the log says that it cost. Gives which it was.
    pub(super) fn price(
        &mut self,
        model: &str,
        quote: Option<&Quote>,
        told: Option<Money>,
    ) -> Option<PricedBy> {
        if let Some(quote) = quote {
            self.cost = quote.cost_of_part(&self.tokens);
            match quote.searches(self.searches) {
                Some(fee) => self.cost += fee,
                None => self.unpriced_searches = self.searches,
            }
            return Some(PricedBy::Table);
        }
        // Agents write zero for models whose price they do not know. Only of one whose name says that it is free is
        // zero believed.
        let told = told.filter(|told| *told > Money::ZERO || says_free(model));
        if let Some(told) = told.filter(|told| *told >= Money::ZERO) {
            self.cost = told;
            return Some(PricedBy::Log);
        }
        self.unpriced = self.tokens.total();
        self.unpriced_searches = self.searches;
        None
    }
}

/// Where a price is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PricedBy {
    /// The table of prices, or the configuration.
    Table,
    /// The log says what it cost.
    Log,
}

/// Whether the name of a model says that it costs nothing.
fn says_free(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    [":free", "-free"].iter().any(|free| model.ends_with(free))
}

/// Tokens and searches without a price.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpriced {
    /// The model; empty where logs do not name it.
    pub model: String,
    /// Calls to it.
    pub calls: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Their searches of the web.
    pub searches: u64,
}

/// Finds prices, and remembers them: there are few, and many rows.
pub(crate) struct Pricer<'p> {
    prices: &'p Prices,
    known: HashMap<(u32, Service, u8), Known>,
    kinds: HashMap<u32, Kind>,
    unpriced: BTreeMap<String, Unpriced>,
}

/// The prices that were found for one model, service and class of prompts.
#[derive(Debug, Default)]
struct Known {
    /// From which day to which, by UTC.
    days: Vec<(i64, i64, Option<Quote>)>,
    /// Of single slots, where the hour matters, and of what has no time.
    slots: HashMap<Option<i64>, Option<Quote>>,
}

/// Slots in a day. But for the few that depend on the hour, prices change at midnight UTC.
const SLOTS_A_DAY: i64 = 24 * 4;

/// A price that holds today is likely to hold as many days before and after.
const AHEAD: [i64; 5] = [1, 4, 16, 64, 256];

impl<'p> Pricer<'p> {
    pub(crate) fn new(prices: &'p Prices) -> Self {
        Self {
            prices,
            known: HashMap::new(),
            kinds: HashMap::new(),
            unpriced: BTreeMap::new(),
        }
    }

    /// Puts the price to what was spent on a model, which is known by this number.
    pub(crate) fn price(&mut self, model: u32, of: &Of<'_>, spent: &mut Spent) {
        let prices = self.prices;
        let kind = *self
            .kinds
            .entry(model)
            .or_insert_with(|| Kind::of(prices, of));
        let known = self
            .known
            .entry((model, of.service, of.context))
            .or_default();
        let quote = match (kind, of.slot) {
            (Kind::Never, _) => None,
            (Kind::ByDay, Some(slot)) => known.on(prices, of, slot.div_euclid(SLOTS_A_DAY)),
            (_, slot) => known
                .slots
                .entry(slot)
                .or_insert_with(|| quote(prices, of).ok())
                .as_ref(),
        };
        spent.price(of.model, quote, of.told);
        if spent.is_priced() {
            return;
        }
        let sums = match self.unpriced.get_mut(of.model) {
            Some(sums) => sums,
            None => self.unpriced.entry(of.model.to_owned()).or_default(),
        };
        sums.calls = sums.calls.saturating_add(spent.calls);
        sums.tokens = sums.tokens.saturating_add(spent.unpriced);
        sums.searches = sums.searches.saturating_add(spent.unpriced_searches);
    }

    /// What had no price, the most tokens first.
    pub(super) fn unpriced(&self) -> Vec<Unpriced> {
        let mut all: Vec<Unpriced> = self
            .unpriced
            .iter()
            .map(|(model, sums)| Unpriced {
                model: model.clone(),
                ..sums.clone()
            })
            .collect();
        all.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.model.cmp(&b.model)));
        all
    }
}

impl Known {
    /// The price on a day.
    fn on(&mut self, prices: &Prices, of: &Of<'_>, day: i64) -> Option<&Quote> {
        let found = self
            .days
            .iter()
            .position(|(from, to, _)| (*from..=*to).contains(&day));
        let at = found.unwrap_or_else(|| {
            self.days.push(period(prices, of, day));
            self.days.len() - 1
        });
        self.days[at].2.as_ref()
    }
}

/// The price on a day, and around it as far as it is easily seen to be the same: a price that holds on two days
/// holds on all between, since each says from when it holds.
fn period(prices: &Prices, of: &Of<'_>, day: i64) -> (i64, i64, Option<Quote>) {
    let on = |day: i64| {
        let slot = day.checked_mul(SLOTS_A_DAY);
        quote(prices, &Of { slot, ..*of }).ok()
    };
    let price = on(day);
    let same = |days: i64| {
        let other = day.saturating_add(days);
        (on(other) == price).then_some(other)
    };
    let to = AHEAD.iter().map_while(|days| same(*days)).last();
    let from = AHEAD.iter().map_while(|days| same(-*days)).last();
    (from.unwrap_or(day), to.unwrap_or(day), price)
}

/// When the price of a model changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has none.
    Never,
    ByDay,
    ByHour,
}

impl Kind {
    fn of(prices: &Prices, of: &Of<'_>) -> Self {
        // A price holds until there is another. So what has none in the end never had one.
        if quote(prices, &Of { slot: None, ..*of }).is_err() {
            return Self::Never;
        }
        let midnight = of.slot.unwrap_or(0).div_euclid(SLOTS_A_DAY) * SLOTS_A_DAY;
        // No price is known that holds for less than an hour.
        let by_hour = (0..24).any(|hour| {
            let slot = Some(midnight + hour * 4);
            quote(prices, &Of { slot, ..*of }).is_ok_and(|quote| quote.hours().is_some())
        });
        if by_hour { Self::ByHour } else { Self::ByDay }
    }
}

/// The price of a row's tokens. What has no time has the price of today, whenever that is.
pub(super) fn quote(prices: &Prices, of: &Of<'_>) -> Result<Quote, NoPrice> {
    let at = of
        .slot
        .and_then(|slot| Timestamp::from_millisecond(slot.checked_mul(SLOT_MS)?).ok())
        .unwrap_or(Timestamp::MAX);
    let context = Context::from_u8(of.context).unwrap_or_default();
    prices.quote(of.model, at, of.service, context)
}
