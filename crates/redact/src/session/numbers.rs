//! Numbers with two digits. Exact counts of tokens, costs, durations and sizes tell which session it is to whoever has
//! them from elsewhere.

use quipu_model::{Attachment, Body, Event, Money, Usage};

/// A number, rounded to two digits.
pub(crate) fn round(n: u64) -> u64 {
    let unit = 10_u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let half = unit / 2;
    n.saturating_add(half) / unit * unit
}

/// A sum, rounded to two digits.
pub(crate) fn round_money(sum: Money) -> Money {
    let atto = sum.atto();
    let digits = atto.unsigned_abs().checked_ilog10().unwrap_or(0);
    let unit = 10_i128.pow(digits.saturating_sub(1));
    let half = atto.signum() * (unit / 2);
    Money::from_atto(atto.saturating_add(half) / unit * unit)
}

/// Counts of tokens, rounded.
pub(super) fn round_usage(usage: &mut Usage) {
    for count in [
        &mut usage.input,
        &mut usage.output,
        &mut usage.cache_read,
        &mut usage.cache_write,
        &mut usage.cache_write_1h,
        &mut usage.reasoning,
    ] {
        *count = count.map(round);
    }
}

/// Rounds what an event counts.
pub(super) fn round_event(event: &mut Event) {
    let size = |blob: &mut Attachment| blob.bytes = round(blob.bytes);
    match &mut event.body {
        Body::Blob(blob) => size(blob),
        Body::ModelCall(call) => {
            call.request.iter_mut().for_each(size);
            call.response.iter_mut().for_each(size);
            call.first_token_ms = call.first_token_ms.map(round);
        }
        _ => {}
    }
    // To change annotations is to make them.
    if event.annotations.is_empty() {
        return;
    }
    let notes = &mut *event.annotations;
    notes.usage.iter_mut().for_each(round_usage);
    notes.cost = notes.cost.map(round_money);
    notes.duration_ms = notes.duration_ms.map(round);
    for attachment in &mut notes.attachments {
        attachment.bytes = round(attachment.bytes);
    }
    if let Some(source) = &mut notes.source {
        source.offset = round(source.offset);
    }
}

/// A placeholder, with its numbers rounded: how long something was tells which it was.
pub(super) fn round_placeholder(placeholder: &str) -> String {
    let mut out = String::with_capacity(placeholder.len());
    for part in placeholder.split_inclusive('-') {
        let (word, dash) = part
            .strip_suffix('-')
            .map_or((part, ""), |word| (word, "-"));
        match word.parse::<u64>() {
            Ok(n) => out.push_str(&round(n).to_string()),
            Err(_) => out.push_str(word),
        }
        out.push_str(dash);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_stay() {
        for (n, rounded) in [
            (0, 0),
            (7, 7),
            (99, 99),
            (104, 100),
            (105, 110),
            (18_217, 18_000),
            (18_500, 19_000),
            (u64::MAX, 18_000_000_000_000_000_000),
        ] {
            assert_eq!(round(n), rounded);
            assert_eq!(round(rounded), rounded);
        }
        let cost = |text: &str| Money::parse(text).unwrap();
        assert_eq!(round_money(cost("0.1392348")), cost("0.14"));
        assert_eq!(round_money(cost("-0.1392348")), cost("-0.14"));
        assert_eq!(round_money(Money::ZERO), Money::ZERO);
        assert_eq!(
            round_placeholder("[REDACTED:tool-output-text-5123-characters-80-lines]"),
            "[REDACTED:tool-output-text-5100-characters-80-lines]"
        );
    }
}
