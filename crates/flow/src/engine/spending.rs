//! What a run costs, and what it may cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_model::{Event, Money, Notes, Service, Timestamp};
use quipu_prices::{Context, Prices};

use crate::definition::Budget;

/// What a run and the runs that it calls have cost.
pub(super) struct Spending {
    prices: Arc<Prices>,
    budget: Option<Budget>,
    sum: Mutex<Sum>,
}

/// What a call came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Worth {
    /// What it cost; `None` when it has no known price.
    pub(super) dollars: Option<Money>,
    pub(super) tokens: u64,
}

/// A sum of calls to models.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) dollars: Money,
    pub(super) tokens: u64,
    pub(super) unpriced: u64,
    /// Whether it was said that the budget is spent.
    warned: bool,
}

impl Sum {
    pub(super) fn add(&mut self, worth: Worth) {
        self.tokens += worth.tokens;
        match worth.dollars {
            Some(dollars) => self.dollars += dollars,
            // A call that used nothing costs nothing.
            None if worth.tokens == 0 => {}
            None => self.unpriced += 1,
        }
    }
}

/// What came of adding a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    pub(super) worth: Worth,
    /// The sum for which the budget of the run is spent for the first time.
    pub(super) beyond: Option<(Money, Budget)>,
}

impl Spending {
    pub(super) fn new(prices: Arc<Prices>, budget: Option<Budget>) -> Self {
        Self {
            prices,
            budget,
            sum: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sum(&self) -> Sum {
        *self.lock()
    }

    /// What a call cost, by what its event says.
    fn price(&self, notes: &Notes, at: Timestamp) -> Option<Money> {
        let usage = notes.usage?;
        let model = notes.model.as_deref()?;
        let quote = self
            .prices
            .quote(model, at, Service::Standard, Context::of_usage(&usage));
        quote.ok().map(|quote| quote.cost(&usage).total())
    }

    /// What a call came to, by what its event says.
    pub(super) fn worth(&self, notes: &Notes, at: Timestamp) -> Worth {
        Worth {
            dollars: self.price(notes, at).or(notes.cost),
            tokens: notes.usage.map_or(0, |usage| usage.total()),
        }
    }

    /// The budget of the run.
    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget
    }

    /// Adds a call. `None` when the event says nothing of one.
    pub(super) fn add(&self, notes: &Notes, at: Timestamp) -> Option<Added> {
        if notes.usage.is_none() && notes.cost.is_none() {
            return None;
        }
        let worth = self.worth(notes, at);
        let mut sum = self.lock();
        sum.add(worth);
        let total = sum.dollars;
        let beyond = self.budget.filter(|budget| is_beyond(total, *budget));
        // One that only counts is said once; one that ends the run ends every ask.
        let beyond =
            beyond.filter(|budget| budget.enforce || !std::mem::replace(&mut sum.warned, true));
        Some(Added {
            worth,
            beyond: beyond.map(|budget| (total, budget)),
        })
    }

    /// Adds what earlier executions cost.
    pub(super) fn add_past(&self, events: &[Event]) {
        for event in events {
            self.add(&event.annotations, event.timestamp);
        }
    }

    /// The budget of the run, where it ends a run and is spent.
    pub(super) fn is_spent(&self) -> Option<(Money, Budget)> {
        let total = self.sum().dollars;
        let budget = self
            .budget
            .filter(|budget| budget.enforce && is_beyond(total, *budget));
        budget.map(|budget| (total, budget))
    }
}

/// Whether a sum is beyond a budget.
pub(super) fn is_beyond(sum: Money, budget: Budget) -> bool {
    Money::parse(&budget.usd.to_string()).is_some_and(|most| sum > most)
}

/// What is said when a budget is spent.
pub(super) fn complaint(sum: Money, budget: Budget, whose: &str) -> String {
    format!(
        "the budget of the {whose} is spent: ${sum:.4} of ${:.4}",
        budget.usd
    )
}
