//! Sums of money, as agents write them.
//!
//! A cost is a decimal number in a log. Sums of binary fractions drift, so decimals are added as they are.

use quipu_model::json::{Kind, Node};
use serde::{Deserialize, Serialize};

/// How many digits behind the point count. The shortest text of a binary fraction below a dollar has
/// seventeen digits, rarely more than this many places.
const PLACES: i32 = 18;

/// A sum of dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cost(i128);

impl Cost {
    /// The cost that a number, or the text of one, stands for.
    pub(crate) fn of(node: Node<'_>) -> Option<Self> {
        match node.kind() {
            Kind::Number => Self::parse(node.raw().get()),
            Kind::String => Self::parse(&node.as_str()?),
            _ => None,
        }
    }

    /// The cost that a JSON number stands for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() {
            return None;
        }
        // What the first digit counts, as a power of ten of the smallest unit.
        let mut power = i32::try_from(whole.len())
            .ok()?
            .checked_add(exponent)?
            .checked_add(PLACES - 1)?;
        let mut sum: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if !digit.is_ascii_digit() {
                return None;
            }
            let digit = i128::from(digit - b'0');
            if digit > 0 && power >= 0 {
                let unit = 10_i128.checked_pow(u32::try_from(power).ok()?)?;
                sum = sum.checked_add(digit.checked_mul(unit)?)?;
            }
            power = power.checked_sub(1)?;
        }
        Some(Self(if negative { -sum } else { sum }))
    }

    /// Adds another.
    pub(crate) fn add(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    /// The sum as a decimal number, without zeros at its end.
    pub(crate) fn to_text(self) -> String {
        let unit = 10_u128.pow(PLACES.unsigned_abs());
        let size = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let places = PLACES.unsigned_abs() as usize;
        let fraction = format!("{:0places$}", size % unit);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{fraction}", size / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn decimals_read_back() {
        for (text, plain) in [
            ("0", "0"),
            ("0.003342", "0.003342"),
            ("1.5e-7", "0.00000015"),
            ("12E2", "1200"),
            ("-0.25", "-0.25"),
            ("0.48953100000000005", "0.48953100000000005"),
            ("0.1e-30", "0"),
        ] {
            assert_eq!(Cost::parse(text).unwrap().to_text(), plain, "{text}");
        }
        for text in ["", "-", ".5", "1e99999999999", "1e40", "NaN", "0x1"] {
            assert_eq!(Cost::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sums_do_not_drift() {
        let mut sum = Cost::default();
        for _ in 0..10 {
            sum.add(Cost::parse("0.1").unwrap());
        }
        assert_eq!(sum.to_text(), "1");
    }
}
