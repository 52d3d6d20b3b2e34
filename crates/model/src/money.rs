//! Sums of dollars, exact.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};

/// How many digits behind the point count. The shortest text of a binary fraction below a dollar has
/// seventeen digits, rarely more than this many places; and a price per million tokens with twelve
/// places is still a whole number of units per token.
const PLACES: u32 = 18;

/// A sum of dollars.
///
/// It is a whole number of 1e-18 dollars. Sums of binary fractions drift, and differ by the order in
/// which they are added; these do neither. The operators stop at the ends of the range, some
/// 170,000,000,000,000,000,000 dollars away; [`Money::checked_add`] tells.
///
/// ```
/// use quipu_model::Money;
///
/// let calls = ["0.1", "0.2", "1.5e-7"].map(|text| Money::parse(text).unwrap());
/// let sum: Money = calls.into_iter().sum();
/// assert_eq!(sum.to_string(), "0.30000015");
/// assert_eq!(format!("${sum:.2}"), "$0.30");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i128);

impl Money {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// So many units of 1e-18 dollars.
    pub const fn from_atto(atto: i128) -> Self {
        Self(atto)
    }

    /// How many units of 1e-18 dollars it is.
    pub const fn atto(self) -> i128 {
        self.0
    }

    /// The sum that a JSON number stands for. Digits behind the eighteenth place are cut off; what is no
    /// decimal number, or out of range, is nothing.
    pub fn parse(text: &str) -> Option<Self> {
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
            .checked_add(PLACES.cast_signed() - 1)?;
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

    /// The sum of both, if it is in range.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The sum of both, or the end of the range.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The nearest sum with so many digits behind the point, for people. A half goes away from zero.
    ///
    /// To write it with just so many digits, format it: `{sum:.2}`.
    #[must_use]
    pub fn rounded(self, places: u32) -> Self {
        let Some(below) = PLACES.checked_sub(places) else {
            return self;
        };
        let unit = 10_i128.pow(below);
        // Both halves are far from the ends of the range; only the sum may leave it.
        let (whole, rest) = (self.0 - self.0 % unit, self.0 % unit);
        let up = if rest.abs() >= unit - rest.abs() {
            unit * rest.signum()
        } else {
            0
        };
        Self(whole.saturating_add(up))
    }
}

/// The exact decimal number, without zeros at its end. With a precision (`{:.2}`) it is rounded and has
/// just so many places.
impl fmt::Display for Money {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = to.precision();
        let sum = match asked {
            Some(places) => self.rounded(u32::try_from(places).unwrap_or(PLACES)),
            None => *self,
        };
        let unit = 10_u128.pow(PLACES);
        let size = sum.0.unsigned_abs();
        let mut text = (size / unit).to_string();
        let fraction = format!("{:0places$}", size % unit, places = PLACES as usize);
        let fraction = match asked {
            Some(places) => fraction.get(..places).unwrap_or(&fraction),
            None => fraction.trim_end_matches('0'),
        };
        if !fraction.is_empty() {
            text.push('.');
            text.push_str(fraction);
        }
        // The precision was for the number; what is left to do is sign, width and fill.
        to.pad_integral(sum.0 >= 0, "", &text)
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Money {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Money {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(sums: I) -> Self {
        sums.fold(Self::ZERO, Self::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Money;

    fn money(text: &str) -> Money {
        Money::parse(text).unwrap()
    }

    #[test]
    fn decimals_read_back() {
        for (text, plain) in [
            ("0", "0"),
            ("0.003342", "0.003342"),
            ("1.5e-7", "0.00000015"),
            ("12E2", "1200"),
            ("-0.25", "-0.25"),
            ("-0", "0"),
            ("0.48953100000000005", "0.48953100000000005"),
            ("0.1e-30", "0"),
        ] {
            assert_eq!(money(text).to_string(), plain, "{text}");
        }
        for text in ["", "-", ".5", "1e99999999999", "1e40", "NaN", "0x1", "+1"] {
            assert_eq!(Money::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sums_do_not_drift() {
        let sum: Money = std::iter::repeat_n(money("0.1"), 10).sum();
        assert_eq!(sum, money("1"));
        assert_eq!(money("1") - money("1.25"), -money("0.25"));
    }

    #[test]
    fn the_range_ends_without_a_wrap() {
        let most = Money::from_atto(i128::MAX);
        let least = Money::from_atto(i128::MIN);
        assert_eq!(most.checked_add(money("1e-18")), None);
        assert_eq!(most + money("1"), most);
        assert_eq!(least - money("1"), least);
        assert_eq!(-least, most);
        assert_eq!(most.rounded(0), most);
        assert_eq!(
            least.to_string(),
            "-170141183460469231731.687303715884105728"
        );
    }

    #[test]
    fn a_half_goes_away_from_zero() {
        for (text, places, rounded) in [
            ("0.005", 2, "0.01"),
            ("-0.005", 2, "-0.01"),
            ("0.004999999999999999", 2, "0"),
            ("-0.0049", 2, "0"),
            ("1.5", 0, "2"),
            ("2.5", 0, "3"),
            ("0.123456789012345678", 18, "0.123456789012345678"),
            ("0.123456789012345678", 40, "0.123456789012345678"),
        ] {
            assert_eq!(money(text).rounded(places), money(rounded), "{text}");
        }
    }

    #[test]
    fn a_precision_gives_just_so_many_places() {
        for (text, shown) in [
            ("1.2", "1.20"),
            ("0", "0.00"),
            ("-0.001", "0.00"),
            ("-3.456", "-3.46"),
        ] {
            assert_eq!(format!("{:.2}", money(text)), shown);
        }
        assert_eq!(format!("{:.0}", money("1.5")), "2");
        assert_eq!(
            format!("{:>8.2}|{:<6}|", money("1.2"), money("-1")),
            "    1.20|-1    |"
        );
    }

    proptest! {
        #[test]
        fn text_is_exact(atto in any::<i128>()) {
            let sum = Money::from_atto(atto);
            // The magnitude of the least number is one more than that of the greatest.
            prop_assume!(atto != i128::MIN);
            prop_assert_eq!(Money::parse(&sum.to_string()), Some(sum));
        }

        #[test]
        fn rounding_goes_to_the_nearest(atto in -10_i128.pow(30)..10_i128.pow(30), places in 0_u32..18) {
            let unit = 10_i128.pow(18 - places);
            let rounded = Money::from_atto(atto).rounded(places).atto();
            prop_assert_eq!(rounded % unit, 0);
            prop_assert!((rounded - atto).abs() * 2 <= unit);
            if (rounded - atto).abs() * 2 == unit {
                prop_assert!(rounded.abs() > atto.abs());
            }
        }
    }
}
