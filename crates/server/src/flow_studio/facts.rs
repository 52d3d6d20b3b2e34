//! What the files of a run say together: its flows, steps and agents, the tokens and the cost.

use std::collections::{BTreeMap, BTreeSet};

use quipu_formats::flow::receipt::Receipt;
use quipu_model::{Money, Service};
use quipu_prices::{Context, Prices};
use serde_json::{Value, json};

use super::folder::Folder;

/// The agents of each step of each flow.
pub(super) type Shape = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// What the files of a run say together.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) shape: Shape,
    pub(super) totals: Totals,
}

impl Facts {
    pub(super) fn of(folder: &Folder, prices: &Prices) -> Self {
        let mut facts = Self::default();
        for key in folder.flow_keys() {
            let Some(flow) = folder.flow(&key) else {
                continue;
            };
            let steps = facts.shape.entry(key).or_default();
            for named in flow.transcripts.iter().chain(&flow.receipts) {
                let agents = steps.entry(named.name.step.clone()).or_default();
                if !named.name.agent.is_empty() {
                    agents.insert(named.name.agent.clone());
                }
            }
            for receipt in flow
                .receipts
                .iter()
                .filter_map(|named| named.receipt.as_deref())
            {
                facts.totals.add(receipt, prices);
            }
        }
        facts
    }
}

/// What a step cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cost {
    /// This much: the receipt says so, or the price of its model does. What only pretends costs nothing.
    Known(Money),
    /// The receipt names no price, and its model or its tokens are not known.
    Unknown,
}

impl Cost {
    pub(super) fn of(receipt: &Receipt, prices: &Prices) -> Self {
        if let Some(said) = receipt.cost_usd {
            return Self::Known(said);
        }
        if receipt.is_stub() {
            return Self::Known(Money::default());
        }
        let at = receipt.completed_at.or(receipt.started_at);
        let (Some(model), Some(usage), Some(at)) = (&receipt.model, receipt.tokens.usage(), at)
        else {
            return Self::Unknown;
        };
        let context = Context::of_usage(&usage);
        match prices.quote(model, at.at, Service::Standard, context) {
            Ok(quote) => Self::Known(quote.cost(&usage).total()),
            Err(_) => Self::Unknown,
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Known(money) => dollars(*money),
            Self::Unknown => Value::Null,
        }
    }
}

/// An amount as a number.
pub(super) fn dollars(money: Money) -> Value {
    money
        .to_string()
        .parse::<f64>()
        .map_or(Value::Null, Value::from)
}

/// Sums over receipts.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) receipts: u64,
    /// Steps that only pretended.
    pub(super) simulated: u64,
    pub(super) prompt: Option<u64>,
    pub(super) completion: Option<u64>,
    pub(super) total: Option<u64>,
    pub(super) duration_ms: Option<u64>,
    /// Receipts that know nothing of their tokens.
    pub(super) without_tokens: u64,
    /// The cost of those whose cost is known.
    known: Money,
    /// Models without a price, or steps without a model.
    unpriced: BTreeSet<String>,
    unpriced_count: u64,
}

impl Totals {
    pub(super) fn add(&mut self, receipt: &Receipt, prices: &Prices) {
        let add = |to: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *to = Some(to.unwrap_or(0).saturating_add(more));
            }
        };
        self.receipts += 1;
        self.simulated += u64::from(receipt.is_stub());
        let tokens = &receipt.tokens;
        // Zeros throughout are written by those who know nothing, unless there was nothing to count.
        if tokens.usage().is_some() || receipt.is_stub() {
            add(&mut self.prompt, tokens.prompt);
            add(&mut self.completion, tokens.completion);
            let both = tokens.prompt.zip(tokens.completion);
            add(
                &mut self.total,
                tokens.total.or(both.map(|(a, b)| a.saturating_add(b))),
            );
        } else {
            self.without_tokens += 1;
        }
        add(&mut self.duration_ms, receipt.duration_ms);
        match Cost::of(receipt, prices) {
            Cost::Known(money) => self.known = self.known.saturating_add(money),
            Cost::Unknown => {
                self.unpriced_count += 1;
                if self.unpriced.len() < 64 {
                    let model = receipt.model.clone();
                    self.unpriced
                        .insert(model.unwrap_or_else(|| "unknown".to_owned()));
                }
            }
        }
    }

    /// What all of it cost, if that is known of each step.
    pub(super) fn cost(&self) -> Value {
        match self.unpriced_count {
            0 if self.receipts > 0 => dollars(self.known),
            _ => Value::Null,
        }
    }

    pub(super) fn tokens(&self) -> Value {
        match (self.prompt, self.completion, self.total) {
            (None, None, None) => Value::Null,
            (prompt, completion, total) => {
                json!({ "prompt": prompt, "completion": completion, "total": total })
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "prompt": self.prompt,
            "completion": self.completion,
            "total": self.total,
            "duration_ms": self.duration_ms,
            "cost_usd": self.cost(),
            "known_cost_usd": dollars(self.known),
            "unpriced": self.unpriced,
            "receipts_without_cost": self.unpriced_count,
            "receipts_without_tokens": self.without_tokens,
            "simulated": self.simulated,
        })
    }
}
