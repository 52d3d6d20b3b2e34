//! Numbers: whole ones of 64 bits exactly, others as the shortest decimal of their double.

use quipu_model::json::Node;

use super::{CanonError, CanonProblem, Sink};

/// A decimal with at most so many digits reads as a double that no other such decimal reads as, so the
/// shortest way to write that double is the decimal itself.
const EXACT_DIGITS: usize = 15;

/// Writes the canonical form of a number.
#[inline]
pub(super) fn write(value: Node<'_>, out: &mut impl Sink) -> Result<(), CanonError> {
    let token = value.raw().get();
    if let Some(canonical) = as_it_stands(token) {
        out.put(canonical.as_bytes());
        return Ok(());
    }
    let double = double(token).ok_or_else(|| CanonError {
        what: CanonProblem::NumberRange(shortened(token)),
        offset: value.offset(),
    })?;
    out.put(plain(double).as_bytes());
    Ok(())
}

/// The double nearest to a number; `None` when it is beyond all of them.
pub(in crate::agentlog) fn double(token: &str) -> Option<f64> {
    token.parse().ok().filter(|double: &f64| double.is_finite())
}

/// A double without an exponent, in as few digits as read back as the same.
pub(in crate::agentlog) fn plain(double: f64) -> String {
    if double == 0.0 {
        return "0".to_owned();
    }
    double.to_string()
}

/// The canonical form, where the token is it, or holds it.
#[inline]
fn as_it_stands(token: &str) -> Option<&str> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    if digits.len() > 20 {
        return None;
    }
    let Some(point) = digits.bytes().position(|byte| !byte.is_ascii_digit()) else {
        return match digits {
            "0" => Some("0"),
            _ if digits.len() < 19 => Some(token),
            // Up to the ends of the signed and the unsigned 64 bits.
            _ => (token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok()).then_some(token),
        };
    };
    let fraction = &digits.as_bytes()[point..];
    // A digit may stand before the point, so one byte more than there are digits.
    if digits.len() > EXACT_DIGITS + 1 || fraction.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return None;
    }
    let zeros = fraction
        .iter()
        .rev()
        .take_while(|byte| **byte == b'0')
        .count();
    let without = &token[..token.len() - zeros];
    let without = without.strip_suffix('.').unwrap_or(without);
    Some(if matches!(without, "0" | "-0") {
        "0"
    } else {
        without
    })
}

/// As much of a number as an error shows.
fn shortened(token: &str) -> String {
    match token.get(..40) {
        Some(begin) if token.len() > 43 => format!("{begin}..."),
        _ => token.to_owned(),
    }
}
