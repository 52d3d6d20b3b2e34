//! Other readings of "canonical JSON" that ids in the wild were made by.
//!
//! The specification's text and its programs disagree (`docs/agentlog.md`). An id that does not match may
//! still be the right one of another reading, and then nobody has tampered with the record. This writes
//! every such reading; it is slow and used only to say what a wrong id is.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use quipu_model::json::{Kind, Node};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::ContentId;
use super::canon::{double, plain};

/// How a canonical form may differ from the one that is right. None of them set is that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they combine freely")]
pub struct Form {
    /// Every control character as `\u00xx`, as the specification's text has it.
    pub literal_escapes: bool,
    /// Numbers as in RFC 8785: doubles, with exponents where ECMAScript has them.
    pub jcs_numbers: bool,
    /// Keys sorted by UTF-16 units, before they are normalised.
    pub utf16_keys: bool,
    /// Strings as they are, not in NFC.
    pub no_nfc: bool,
    /// Of a key that is there several times, the last counts.
    pub last_key_wins: bool,
}

/// Deeper values are not looked at: this recurses.
const DEEPEST: usize = 512;

impl Form {
    /// Every form but the right one, those with the fewest differences first.
    pub fn others() -> impl Iterator<Item = Self> {
        let mut forms: Vec<u8> = (1..32).collect();
        forms.sort_by_key(|bits| bits.count_ones());
        forms.into_iter().map(|bits| Self {
            literal_escapes: bits & 1 != 0,
            jcs_numbers: bits & 2 != 0,
            utf16_keys: bits & 4 != 0,
            no_nfc: bits & 8 != 0,
            last_key_wins: bits & 16 != 0,
        })
    }

    /// The form in which this payload has this id.
    pub fn of(payload: Node<'_>, id: ContentId) -> Option<Self> {
        Self::others().find(|form| form.id(payload) == Some(id))
    }

    /// The id of a payload in this form; `None` where it has none.
    pub fn id(self, payload: Node<'_>) -> Option<ContentId> {
        let mut text = String::new();
        self.write(payload, 0, &mut text)?;
        Some(ContentId(Sha256::digest(text.as_bytes()).into()))
    }

    fn write(self, value: Node<'_>, depth: usize, out: &mut String) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match value.kind() {
            Kind::Null | Kind::Bool => out.push_str(value.raw().get()),
            Kind::Number => out.push_str(&self.number(value.raw().get())?),
            Kind::String => self.string(&value.as_raw_str()?.to_text()?, out),
            Kind::List => {
                out.push('[');
                for (n, item) in value.items().enumerate() {
                    if n > 0 {
                        out.push(',');
                    }
                    self.write(item, depth + 1, out)?;
                }
                out.push(']');
            }
            Kind::Object => self.object(value, depth, out)?,
        }
        Some(())
    }

    fn object(self, value: Node<'_>, depth: usize, out: &mut String) -> Option<()> {
        // By what keys are sorted by, then by what they are. Two that are the same only in NFC are two to
        // who looks for duplicates before.
        let mut fields: BTreeMap<(Vec<u16>, String, String), Node<'_>> = BTreeMap::new();
        for (raw, value) in value.fields() {
            let key = raw.to_text()?.into_owned();
            let order = if self.utf16_keys {
                key.encode_utf16().collect()
            } else {
                Vec::new()
            };
            let written = if self.no_nfc {
                key.clone()
            } else {
                key.nfc().collect()
            };
            let told_apart = if self.last_key_wins {
                key
            } else {
                String::new()
            };
            let before = fields.insert((order, written, told_apart), value);
            if before.is_some() && !self.last_key_wins {
                return None;
            }
        }
        out.push('{');
        for (n, ((_, key, _), value)) in fields.into_iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            self.string(&key, out);
            out.push(':');
            self.write(value, depth + 1, out)?;
        }
        out.push('}');
        Some(())
    }

    fn string(self, text: &str, out: &mut String) {
        let text: String = if self.no_nfc {
            text.to_owned()
        } else {
            text.nfc().collect()
        };
        out.push('"');
        for char in text.chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{8}' if !self.literal_escapes => out.push_str("\\b"),
                '\u{c}' if !self.literal_escapes => out.push_str("\\f"),
                '\n' if !self.literal_escapes => out.push_str("\\n"),
                '\r' if !self.literal_escapes => out.push_str("\\r"),
                '\t' if !self.literal_escapes => out.push_str("\\t"),
                control if control < ' ' => {
                    // A string takes everything.
                    write!(out, "\\u{:04x}", u32::from(control)).ok();
                }
                other => out.push(other),
            }
        }
        out.push('"');
    }

    fn number(self, token: &str) -> Option<String> {
        if self.jcs_numbers {
            return Some(ecmascript(double(token)?));
        }
        let whole = token.parse::<i64>().map(|n| n.to_string()).ok();
        let whole = whole.or_else(|| token.parse::<u64>().map(|n| n.to_string()).ok());
        whole.or_else(|| double(token).map(plain))
    }
}

/// A double as ECMAScript writes it.
fn ecmascript(double: f64) -> String {
    let size = double.abs();
    if size == 0.0 {
        return plain(double);
    }
    let (digits, exponent) = shortest(size);
    let sign = if double < 0.0 { "-" } else { "" };
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // Where the point stands, counted from before the first digit.
    let point = exponent + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let split = usize::try_from(point).unwrap_or_default();
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => format!("{sign}{}.{}", &digits[..split], &digits[split..]),
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            let plus = if exponent > 0 { "+" } else { "" };
            format!("{sign}{first}{dot}{rest}e{plus}{exponent}")
        }
    }
}

/// The digits of a positive double, and the power of ten that the first of them counts: the fewest that read back
/// as the same double, of those the nearest, and of two that are equally near the even one. The standard library
/// does not promise the last of these.
fn shortest(double: f64) -> (String, i32) {
    let (digits, exponent) = scientific(&format!("{double:e}"));
    let places = digits.len() - 1;
    // A double has at most 767 digits, all of which are written here.
    let (exact, exact_exponent) = scientific(&format!("{double:.800e}"));
    let (begin, rest) = exact.split_at(places + 1);
    let is_tie = rest.starts_with('5') && rest[1..].bytes().all(|digit| digit == b'0');
    if is_tie
        && exact_exponent == exponent
        && let Ok(below) = begin.parse::<u64>()
    {
        // Of the decimals below and above the tie, one is even.
        let even = (below + below % 2).to_string();
        let reads = format!("{even}e{}", exponent - i32::try_from(places).unwrap_or(0));
        if even.len() == digits.len() && reads.parse() == Ok(double) {
            return (even, exponent);
        }
    }
    (digits, exponent)
}

/// The digits and the exponent of a number such as `1.25e-7`.
fn scientific(text: &str) -> (String, i32) {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits.replace('.', ""), exponent.parse().unwrap_or(0))
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (
                self.literal_escapes,
                "literal escapes (every control character as \\u00xx)",
            ),
            (
                self.jcs_numbers,
                "RFC 8785 numbers (doubles, with exponents)",
            ),
            (self.utf16_keys, "keys sorted by UTF-16 units"),
            (self.no_nfc, "strings not normalised"),
            (self.last_key_wins, "the last of duplicate keys counts"),
        ];
        let mut names = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name);
        f.write_str(names.next().unwrap_or("the canonical form"))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whole decimal numbers of any length, the lowest digit first. Slow, and by the definition.
    mod oracle {
        /// `a` times a small number.
        fn times(a: &mut Vec<u8>, by: u8) {
            let mut carry = 0_u16;
            for digit in a.iter_mut() {
                let sum = u16::from(*digit) * u16::from(by) + carry;
                *digit = u8::try_from(sum % 10).unwrap();
                carry = sum / 10;
            }
            while carry > 0 {
                a.push(u8::try_from(carry % 10).unwrap());
                carry /= 10;
            }
        }

        /// A positive double exactly: its digits, the highest first, and the power of ten of the last one.
        pub(super) fn exact(double: f64) -> (Vec<u8>, i32) {
            let bits = double.to_bits();
            let power = i32::try_from((bits >> 52) & 0x7ff).unwrap();
            let fraction = bits & ((1 << 52) - 1);
            let (mantissa, power) = if power == 0 {
                (fraction, -1074)
            } else {
                (fraction | 1 << 52, power - 1075)
            };
            let mut digits: Vec<u8> = mantissa
                .to_string()
                .bytes()
                .rev()
                .map(|b| b - b'0')
                .collect();
            // A half is five tenths.
            for _ in 0..power.abs() {
                times(&mut digits, if power < 0 { 5 } else { 2 });
            }
            while digits.last() == Some(&0) {
                digits.pop();
            }
            digits.reverse();
            (digits, power.min(0))
        }

        /// By how much `a` and `b`, of equal length, differ, the highest digit first.
        fn distance(a: &[u8], b: &[u8]) -> Vec<u8> {
            let (high, low) = if a >= b { (a, b) } else { (b, a) };
            let mut borrow = 0;
            let mut all: Vec<u8> = high
                .iter()
                .zip(low)
                .rev()
                .map(|(high, low)| {
                    let mut digit = high + 10 - low - borrow;
                    borrow = u8::from(digit < 10);
                    digit %= 10;
                    digit
                })
                .collect();
            all.reverse();
            all
        }

        fn add_one(digits: &mut Vec<u8>) {
            for digit in digits.iter_mut().rev() {
                if *digit < 9 {
                    *digit += 1;
                    return;
                }
                *digit = 0;
            }
            digits.insert(0, 1);
        }

        /// The digits of `Number::toString` in ECMAScript, and how many of them are before the point: as few as read
        /// back the same, of those the nearest, of two equally near the even one.
        pub(super) fn shortest(double: f64) -> (String, i32) {
            let (exact, last) = exact(double);
            let point = i32::try_from(exact.len()).unwrap() + last;
            for count in 1..=17 {
                let mut below: Vec<u8> = exact.iter().copied().take(count).collect();
                below.resize(count, 0);
                let mut above = below.clone();
                add_one(&mut above);
                let mut found: Vec<(Vec<u8>, bool, Vec<u8>)> = Vec::new();
                for candidate in [below, above] {
                    let power = point - i32::try_from(count).unwrap();
                    let text: String = candidate.iter().map(|d| char::from(b'0' + d)).collect();
                    if format!("{text}e{power}").parse() != Ok(double) {
                        continue;
                    }
                    let (mut mine, mut other) = (candidate.clone(), exact.clone());
                    let places = (count + exact.len()).max(candidate.len()) + 1;
                    // One more digit in front: the candidate above may have it.
                    if candidate.len() == count {
                        mine.insert(0, 0);
                    }
                    other.insert(0, 0);
                    mine.resize(places, 0);
                    other.resize(places, 0);
                    let odd = candidate.last().unwrap() % 2 == 1;
                    found.push((distance(&mine, &other), odd, candidate));
                }
                if let Some((_, _, best)) = found.into_iter().min() {
                    let more = i32::try_from(best.len() - count).unwrap();
                    let text: String = best.iter().map(|d| char::from(b'0' + d)).collect();
                    let digits = text.trim_end_matches('0');
                    return (digits.to_owned(), point + more);
                }
            }
            unreachable!("17 digits are enough for every double")
        }
    }

    /// As RFC 8785 has it, by the definition in ECMAScript.
    fn by_definition(double: f64) -> String {
        let sign = if double < 0.0 { "-" } else { "" };
        let (digits, point) = oracle::shortest(double.abs());
        let count = i32::try_from(digits.len()).unwrap();
        let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap());
        let text = if count <= point && point <= 21 {
            digits + &zeros(point - count)
        } else if 0 < point && point <= 21 {
            let at = usize::try_from(point).unwrap();
            format!("{}.{}", &digits[..at], &digits[at..])
        } else if -6 < point && point <= 0 {
            format!("0.{}{digits}", zeros(-point))
        } else {
            let power = point - 1;
            let sign = if power < 0 { "-" } else { "+" };
            let rest = if count > 1 {
                format!(".{}", &digits[1..])
            } else {
                String::new()
            };
            format!("{}{rest}e{sign}{}", &digits[..1], power.abs())
        };
        format!("{sign}{text}")
    }

    #[test]
    #[expect(
        clippy::excessive_precision,
        reason = "digits that no double has are what is tested"
    )]
    fn two_decimals_that_are_equally_near_are_told_apart_by_the_even_one() {
        for (double, text) in [
            (1_688_849_860_263_936.25, "1688849860263936.2"),
            (1_688_849_860_263_936.75, "1688849860263936.8"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1e21, "1e+21"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
            (-0.000_033, "-0.000033"),
            (295_147_905_179_352_830_000.0, "295147905179352830000"),
        ] {
            assert_eq!(ecmascript(double), text);
            assert_eq!(by_definition(double), text);
        }
        assert_eq!(ecmascript(-0.0), "0");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_double_is_written_as_ecmascript_defines(bits in any::<u64>()) {
            let double = f64::from_bits(bits);
            prop_assume!(double.is_finite() && double != 0.0);
            prop_assert_eq!(ecmascript(double), by_definition(double));
        }

        /// Between 2^50 and 2^53 quarters and halves are where ties are.
        #[test]
        fn ties_are_written_as_ecmascript_defines(whole in 1_u64 << 50..1 << 53, quarters in 0_u8..4, power in 0..40_i32) {
            #[expect(clippy::cast_precision_loss, reason = "any double will do")]
            let double = (whole as f64 + f64::from(quarters) / 4.0) * 2_f64.powi(-power);
            prop_assert_eq!(ecmascript(double), by_definition(double));
        }
    }
}
