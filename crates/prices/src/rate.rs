//! Prices of tokens.

use std::fmt;

use quipu_model::Money;

const MILLION: i128 = 1_000_000;

/// What one token costs.
///
/// Prices are written per million tokens. Up to twelve digits behind the point, one token still costs a whole
/// number of the smallest unit of [`Money`], so that no price of a table has to be rounded. A token costs at most
/// a dollar; therefore no number of tokens costs more than `Money` can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// Why a text is no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRate {
    /// It is no decimal number.
    #[error("a price is a decimal number of dollars per million tokens")]
    NotANumber,
    /// It is less than nothing.
    #[error("a price is not negative")]
    Negative,
    /// It has more digits than can be kept.
    #[error("a price has at most 12 digits behind the point")]
    TooFine,
    /// It is more than a million dollars.
    #[error("a price is at most a million dollars per million tokens")]
    TooLarge,
}

impl Rate {
    /// Nothing.
    pub const FREE: Self = Self(0);

    /// Reads a price in dollars per million tokens.
    pub fn per_million(text: &str) -> Result<Self, InvalidRate> {
        let dollars = Money::parse(text).ok_or(InvalidRate::NotANumber)?.atto();
        if dollars < 0 {
            return Err(InvalidRate::Negative);
        }
        if dollars % MILLION != 0 {
            return Err(InvalidRate::TooFine);
        }
        match u64::try_from(dollars / MILLION) {
            Ok(token) if token <= DOLLAR => Ok(Self(token)),
            _ => Err(InvalidRate::TooLarge),
        }
    }

    /// What so many tokens cost.
    pub fn times(self, tokens: u64) -> Money {
        Money::from_atto(i128::from(self.0) * i128::from(tokens))
    }
}

/// A dollar, in the unit of money.
const DOLLAR: u64 = 1_000_000_000_000_000_000;

/// The price of a million tokens, in dollars.
impl fmt::Display for Rate {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        Money::from_atto(i128::from(self.0) * MILLION).fmt(to)
    }
}

/// What the kinds of tokens cost, where it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) input: Rate,
    pub(crate) cache_read: Option<Rate>,
    pub(crate) write_5m: Option<Rate>,
    pub(crate) write_1h: Option<Rate>,
    pub(crate) output: Rate,
    /// Where reasoning costs other than the rest of the output.
    pub(crate) reasoning: Option<Rate>,
    /// A thousand searches of the web.
    pub(crate) searches: Option<Money>,
}

impl Rates {
    /// Of what costs nothing.
    pub(crate) const FREE: Self = Self {
        input: Rate::FREE,
        cache_read: Some(Rate::FREE),
        write_5m: Some(Rate::FREE),
        write_1h: Some(Rate::FREE),
        output: Rate::FREE,
        reasoning: None,
        searches: Some(Money::ZERO),
    };
}

#[cfg(test)]
mod tests {
    use quipu_model::Money;

    use super::{InvalidRate, Rate};

    #[test]
    fn a_price_is_exact() {
        let rate = Rate::per_million("0.003625").unwrap();
        assert_eq!(rate.to_string(), "0.003625");
        assert_eq!(rate.times(1), Money::parse("0.000000003625").unwrap());
        assert_eq!(rate.times(3_000_000).to_string(), "0.010875");
        assert_eq!(format!("{rate:.2}"), "0.00");
    }

    #[test]
    fn no_number_of_tokens_is_too_much() {
        let rate = Rate::per_million("1000000").unwrap();
        assert_eq!(rate.times(u64::MAX).to_string(), u64::MAX.to_string());
    }

    #[test]
    fn what_is_no_price_says_why() {
        for (text, why) in [
            ("", InvalidRate::NotANumber),
            ("five", InvalidRate::NotANumber),
            ("-1", InvalidRate::Negative),
            ("0.0000000000001", InvalidRate::TooFine),
            ("1000000.5", InvalidRate::TooLarge),
            ("1e19", InvalidRate::TooLarge),
        ] {
            assert_eq!(Rate::per_million(text), Err(why), "{text}");
        }
    }
}
