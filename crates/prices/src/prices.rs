//! The table with someone's corrections.

use std::borrow::Cow;

use quipu_model::{Service, Timestamp};

use crate::context::Context;
use crate::error::Unpriced;
use crate::names::{self, Found};
use crate::overrides::Overrides;
use crate::quote::{Quote, Rule};
use crate::table::{self, Moment, Row};

/// What Claude Code names as the model of messages that no model wrote.
const SYNTHETIC: &str = "<synthetic>";

/// What models cost: the table of this crate, and what someone puts before it.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    overrides: Overrides,
}

impl Prices {
    /// The table as it is.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// The same, with prices and aliases that come before those of the table.
    #[must_use]
    pub fn with_overrides(mut self, overrides: &Overrides) -> Self {
        self.overrides.extend(overrides);
        self
    }

    /// The price of a model at an instant, for a service and prompts of some length.
    ///
    /// The model is named as in a log; `provider/name` says who served it. In this order are asked: a price of the
    /// configuration for the name, one for what its aliases make of it, the table.
    pub fn quote(
        &self,
        model: &str,
        at: Timestamp,
        service: Service,
        context: Context,
    ) -> Result<Quote, Unpriced> {
        let name = names::normal(model);
        if name.is_empty() {
            return Err(Unpriced::NoModel);
        }
        let asked = Asked {
            at: at.into(),
            service,
            context,
        };
        if let Some(quote) = self.corrected(&name, asked) {
            return Ok(quote);
        }
        let alias = self.overrides.alias(&name);
        let name = match alias {
            Some(alias) => names::normal(alias),
            None => name,
        };
        let found = match self.corrected(&name, asked) {
            Some(quote) => Ok(quote),
            None if name == SYNTHETIC => Err(Unpriced::Synthetic),
            None => listed(&name, asked),
        };
        match found {
            Ok(mut quote) => {
                quote.alias = alias.map(str::to_owned);
                Ok(quote)
            }
            // People know the name that they have in their logs.
            Err(Unpriced::Unknown { .. }) => Err(Unpriced::Unknown {
                model: model.to_owned(),
            }),
            Err(Unpriced::Unsaid { providers, .. }) => Err(Unpriced::Unsaid {
                model: model.to_owned(),
                providers,
            }),
            Err(other) => Err(other),
        }
    }

    /// The price that the configuration has.
    fn corrected(&self, name: &str, asked: Asked) -> Option<Quote> {
        let (pattern, rows) = self.overrides.rows(name)?;
        Some(Quote {
            provider: Cow::Borrowed("config"),
            model: Cow::Owned(pattern.to_owned()),
            rule: Rule::Config,
            alias: None,
            asked: asked.service,
            row: asked.pick(rows)?,
        })
    }
}

/// What a price is wanted for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    at: Moment,
    service: Service,
    context: Context,
}

impl Asked {
    /// The price for the service, or else the usual one.
    fn pick(self, rows: &[Row]) -> Option<Row> {
        let of = |service| Row::pick(rows, service, self.at, self.context);
        of(self.service).or_else(|| of(Service::Standard))
    }
}

/// The price that the table has.
fn listed(name: &str, asked: Asked) -> Result<Quote, Unpriced> {
    let Found {
        provider,
        model,
        rule,
    } = names::find(name)?;
    let rows = table::rows(provider, model);
    let row = asked.pick(&rows).ok_or_else(|| Unpriced::Unknown {
        model: name.to_owned(),
    })?;
    Ok(Quote {
        provider: Cow::Borrowed(provider),
        model: Cow::Borrowed(model),
        rule,
        alias: None,
        asked: asked.service,
        row,
    })
}

#[cfg(test)]
mod tests;
