//! What the tokens of an event cost.

use jiff::Timestamp;
use quipu_agents::{Charge, Entry, SLOT_MS};
use quipu_model::{Money, Service};
use quipu_prices::{Context, Prices, Quote};

/// Finds the price of each event. Most have that of the one before.
#[derive(Debug)]
pub struct Pricing<'p> {
    prices: &'p Prices,
    last: Option<Asked>,
}

#[derive(Debug)]
struct Asked {
    model: String,
    slot: Option<i64>,
    service: Service,
    context: u8,
    quote: Option<Quote>,
}

impl<'p> Pricing<'p> {
    /// With these prices.
    pub fn new(prices: &'p Prices) -> Self {
        Self { prices, last: None }
    }

    /// What the tokens that are counted with an entry cost: what the log says, or else what their price makes of
    /// it. `None` where there are none, or no price is known.
    pub fn cost(&mut self, entry: &Entry<'_>) -> Option<Money> {
        if entry.cost.is_some() {
            return entry.cost;
        }
        let searches = entry.searches.unwrap_or(0);
        if entry.usage.is_none() && searches == 0 {
            return None;
        }
        let usage = &entry.usage.unwrap_or_default();
        let charge = entry.charge.as_ref()?;
        let model = charge.model.as_deref().or(entry.model.as_deref())?;
        let quote = self.quote(model, charge)?;
        Some(quote.cost_of_part(usage) + quote.searches(searches).unwrap_or(Money::ZERO))
    }

    fn quote(&mut self, model: &str, charge: &Charge) -> Option<&Quote> {
        let Charge {
            slot,
            service,
            context,
            ..
        } = *charge;
        let is_last = self.last.as_ref().is_some_and(|last| {
            last.model == model
                && last.slot == slot
                && last.service == service
                && last.context == context
        });
        if !is_last {
            let at = slot
                .and_then(|slot| Timestamp::from_millisecond(slot.checked_mul(SLOT_MS)?).ok())
                .unwrap_or(Timestamp::MAX);
            let class = Context::from_u8(context).unwrap_or_default();
            self.last = Some(Asked {
                model: model.to_owned(),
                slot,
                service,
                context,
                quote: self.prices.quote(model, at, service, class).ok(),
            });
        }
        self.last.as_ref()?.quote.as_ref()
    }
}
