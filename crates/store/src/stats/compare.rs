//! The sums that a log has of its own, beside those of its calls, and why they differ.
//!
//! Agents sum up tokens, and some of them dollars. Where their sum is another than ours, there is a reason, and it can
//! be told from the calls: other prices, a model without one, a figure that is rounded. What none of these accounts
//! for is said to be unexplained, which is a mistake of ours or of the log's.

use std::collections::BTreeMap;

use quipu_model::{Money, Usage};

use super::cost::PricedBy;
use super::explain::{Call, Explained};

/// A sum of the log's own beside ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared<T> {
    /// What the calls come to.
    pub ours: T,
    /// What the log says.
    pub theirs: T,
    /// Why they differ; empty where they do not.
    pub why: Vec<Reason>,
}

/// Why two sums differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is told by kind of tokens: so many more than the log says, or fewer.
    Buckets(Vec<(&'static str, i128)>),
    /// The log's figure is rounded to so many places.
    Rounded(usize),
    /// The log's figure is a sum of binary fractions.
    Binary,
    /// The log says zero.
    Zero,
    /// Tokens of a model that has no price.
    NoPrice(String, u64),
    /// The agent has other prices for a model: how many calls, what it says, and what the table says.
    OtherPrices(String, u64, Money, Money),
    /// Calls that are counted elsewhere, or not asked for, are in the log's sum.
    LeftOut(u64),
    /// Nothing that is known accounts for it.
    Unexplained,
}

impl Reason {
    /// Whether it says that there is none.
    pub fn is_unexplained(&self) -> bool {
        *self == Self::Unexplained
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Buckets(buckets) => {
                let told = buckets.iter().map(|(name, n)| format!("{name} {n:+}"));
                to.write_str(&told.collect::<Vec<_>>().join(", "))
            }
            Self::Rounded(places) => write!(to, "the log rounds to {places} places"),
            Self::Binary => to.write_str("the log adds up binary fractions"),
            Self::Zero => to.write_str(
                "the agent writes $0 for calls that a subscription pays, or whose price it does not know",
            ),
            Self::NoPrice(model, tokens) => match model.as_str() {
                "" => write!(to, "{tokens} tokens of a model that is not named have no price"),
                model => write!(to, "{tokens} tokens of {model} have no price"),
            },
            Self::OtherPrices(model, calls, theirs, ours) => write!(
                to,
                "the agent has prices of its own for {model}: ${theirs} for {calls} calls, by the table ${ours}"
            ),
            Self::LeftOut(calls) => write!(to, "the log's sum has {calls} calls that are not counted here"),
            Self::Unexplained => to.write_str("not explained"),
        }
    }
}

impl Explained {
    /// The tokens of the log's calls, beside the vendor's own sum.
    pub fn compared_tokens(&self) -> Option<Compared<Usage>> {
        let theirs = self.row.vendor_usage;
        if theirs.is_empty() {
            return None;
        }
        let ours = self.log;
        let mut why = Vec::new();
        if ours.total() != theirs.total() {
            let buckets = [
                ("input", ours.input, theirs.input),
                ("cache read", ours.cache_read, theirs.cache_read),
                ("cache write", ours.cache_write, theirs.cache_write),
                ("output", ours.output, theirs.output),
            ];
            let more = buckets.map(|(name, ours, theirs)| {
                let more = i128::from(ours.unwrap_or(0)) - i128::from(theirs.unwrap_or(0));
                (name, more)
            });
            let more = more.into_iter().filter(|(_, more)| *more != 0);
            why.push(Reason::Buckets(more.collect()));
            why.push(Reason::Unexplained);
        }
        Some(Compared { ours, theirs, why })
    }

    /// What the calls cost, beside the vendor's own sum.
    pub fn compared_cost(&self) -> Option<Compared<Money>> {
        let said = self.row.vendor_cost.as_deref()?;
        let theirs = Money::parse(said)?;
        let ours = self.spent.cost;
        let mut why = Vec::new();
        if ours != theirs {
            why = self.why_cost_differs(said, ours, theirs);
        }
        Some(Compared { ours, theirs, why })
    }

    fn why_cost_differs(&self, said: &str, ours: Money, theirs: Money) -> Vec<Reason> {
        if rounded(ours, 12) == rounded(theirs, 12) {
            return vec![Reason::Binary];
        }
        let places = said.split_once('.').map_or(0, |(_, places)| places.len());
        if !said.contains(['e', 'E']) && places < 12 && rounded(ours, places) == theirs {
            return vec![Reason::Rounded(places)];
        }
        if theirs == Money::ZERO {
            return vec![Reason::Zero];
        }
        let mut why = Vec::new();
        let mut unpriced: BTreeMap<&str, u64> = BTreeMap::new();
        let mut other: BTreeMap<&str, (u64, Money, Money)> = BTreeMap::new();
        for call in &self.calls {
            if call.spent.unpriced > 0 {
                let tokens = unpriced.entry(&call.model).or_default();
                *tokens = tokens.saturating_add(call.spent.unpriced);
            }
            if let Some((theirs, ours)) = both(call)
                && theirs != ours
            {
                let sums = other.entry(&call.model).or_default();
                sums.0 = sums.0.saturating_add(call.spent.calls);
                sums.1 += theirs;
                sums.2 += ours;
            }
        }
        let mut accounted = Money::ZERO;
        for (model, (calls, theirs, ours)) in other {
            accounted += ours - theirs;
            why.push(Reason::OtherPrices(model.to_owned(), calls, theirs, ours));
        }
        for (model, tokens) in &unpriced {
            why.push(Reason::NoPrice((*model).to_owned(), *tokens));
        }
        let left_out = self.left_out.iter().filter(|left| left.tokens.total() > 0);
        let left_out = left_out.filter(|left| left.why.as_str() != "repeated");
        let left_out = left_out.fold(0, |sum: u64, left| sum.saturating_add(left.times));
        if left_out > 0 {
            why.push(Reason::LeftOut(left_out));
        }
        let rest = ours - theirs - accounted;
        if rounded(rest, 12) != Money::ZERO && unpriced.is_empty() && left_out == 0 {
            why.push(Reason::Unexplained);
        }
        why
    }
}

/// What the log says that a call cost, and what the table says.
fn both(call: &Call) -> Option<(Money, Money)> {
    let told = call.told?;
    (call.by == Some(PricedBy::Table)).then_some((told, call.spent.cost))
}

/// To so many places, halves away from zero.
fn rounded(sum: Money, places: usize) -> Money {
    let places = u32::try_from(places).unwrap_or(u32::MAX).min(18);
    let unit = 10_i128.pow(18 - places);
    let half = unit / 2 * sum.atto().signum();
    Money::from_atto(sum.atto().saturating_add(half) / unit * unit)
}

#[cfg(test)]
mod tests {
    use quipu_model::Money;

    use super::rounded;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        let money = |text: &str| Money::parse(text).unwrap();
        for (sum, places, to) in [
            ("0.0015", 3, "0.002"),
            ("-0.0015", 3, "-0.002"),
            ("0.044284250000000002", 12, "0.04428425"),
            ("1.5", 0, "2"),
            ("0.1", 18, "0.1"),
        ] {
            assert_eq!(rounded(money(sum), places), money(to), "{sum}");
        }
    }
}
