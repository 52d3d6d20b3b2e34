//! Sums of money, as agents write them.
//!
//! A cost is a decimal number in a log. It is added up as [`Money`]; what is here is how it is read from a log
//! and how it is kept in a checkpoint.

use quipu_model::Money;
use quipu_model::json::{Kind, Node};
use serde::{Deserialize, Serialize};

/// A sum of dollars, in a form that checkpoints keep: the number of its units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "i128", into = "i128")]
pub(crate) struct Cost(Money);

impl Cost {
    /// The cost that a number, or the text of one, stands for.
    pub(crate) fn of(node: Node<'_>) -> Option<Self> {
        match node.kind() {
            Kind::Number => Self::parse(node.raw().get()),
            Kind::String => Self::parse(&node.as_str()?),
            _ => None,
        }
    }

    /// The cost of a call to a model, as an agent tells it. Agents write zero for models whose price they do not know
    /// and for calls that a subscription pays: zero is believed only of a model whose name says that it is free.
    pub(crate) fn of_call(node: Option<Node<'_>>, model: Option<&str>) -> Option<Self> {
        let cost = Self::of(node?)?;
        let is_free =
            model.is_some_and(|model| model.ends_with("-free") || model.ends_with(":free"));
        (cost.0 > Money::ZERO || (cost.0 == Money::ZERO && is_free)).then_some(cost)
    }

    /// The cost that a JSON number stands for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Money::parse(text).map(Self)
    }

    /// The sum itself.
    pub(crate) const fn money(self) -> Money {
        self.0
    }

    /// Adds another.
    pub(crate) fn add(&mut self, other: Self) {
        self.0 += other.0;
    }

    /// The sum as a decimal number, without zeros at its end.
    pub(crate) fn to_text(self) -> String {
        self.0.to_string()
    }
}

impl From<Money> for Cost {
    fn from(money: Money) -> Self {
        Self(money)
    }
}

impl From<i128> for Cost {
    fn from(atto: i128) -> Self {
        Self(Money::from_atto(atto))
    }
}

impl From<Cost> for i128 {
    fn from(cost: Cost) -> Self {
        cost.0.atto()
    }
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use super::Cost;

    #[test]
    fn a_number_and_its_text_are_the_same() {
        for (json, dollars) in [
            ("0.003342", Some("0.003342")),
            ("\"1.5e-7\"", Some("0.00000015")),
            ("\"free\"", None),
            ("null", None),
        ] {
            let mut tape = Tape::new();
            let cost = Cost::of(tape.read(json, 8).unwrap()).map(Cost::to_text);
            assert_eq!(cost.as_deref(), dollars, "{json}");
        }
    }

    #[test]
    fn zero_is_believed_of_what_is_called_free() {
        for (json, model, told) in [
            ("0", Some("mimo-v2.5-free"), Some("0")),
            ("0.0", Some("vendor/model:free"), Some("0")),
            ("0", Some("claude-opus-4.6"), None),
            ("0", None, None),
            ("0.25", None, Some("0.25")),
            ("-1", Some("x-free"), None),
        ] {
            let mut tape = Tape::new();
            let node = tape.read(json, 8).unwrap();
            let cost = Cost::of_call(Some(node), model).map(Cost::to_text);
            assert_eq!(cost.as_deref(), told, "{json} {model:?}");
        }
    }

    #[test]
    fn a_checkpoint_keeps_every_digit() {
        let mut sum = Cost::parse("-0.48953100000000005").unwrap();
        sum.add(Cost::parse("0.1").unwrap());
        let kept = postcard::to_stdvec(&sum).unwrap();
        assert_eq!(postcard::from_bytes::<Cost>(&kept).unwrap(), sum);
    }
}
