//! Token counts, which are running totals.

use quipu_model::Usage;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use crate::Tokens;

/// Reads a running total: what each new one adds to the one before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Meter {
    last: Option<Tokens>,
}

impl Meter {
    /// What a total adds. `None` when it is the one that was told before.
    ///
    /// A total that is lower than the one before began anew, after a fork or when the context ran full.
    /// What it adds then is the call it tells of, or all of it where it does not tell.
    pub(super) fn take(&mut self, total: Usage, call: Option<Usage>) -> Option<Usage> {
        let Some(last) = self.last.map(Usage::from) else {
            self.last = Some(total.into());
            return Some(total);
        };
        if total == last {
            return None;
        }
        if is_below(&total, &last) {
            self.last = Some(total.into());
            return Some(match call {
                Some(call) if !is_below(&total, &call) => call,
                _ => total,
            });
        }
        let mut highest = last;
        highest.raise(&total);
        self.last = Some(highest.into());
        Some(highest.beyond(&last))
    }

    /// Whether any count of a total is lower than it was in the one before. Then it is not a running
    /// total, since none of its counts can fall.
    pub(super) fn falls(&self, total: &Usage) -> bool {
        let Some(last) = self.last.map(Usage::from) else {
            return false;
        };
        [
            (total.input, last.input),
            (total.cache_read, last.cache_read),
            (total.cache_write, last.cache_write),
            (total.output, last.output),
            (total.reasoning, last.reasoning),
        ]
        .into_iter()
        .any(|counts| matches!(counts, (Some(now), Some(before)) if now < before))
    }

    /// The next total is that of something else.
    pub(super) fn reset(&mut self) {
        self.last = None;
    }
}

/// Whether a running total cannot have come from another by counting on.
fn is_below(total: &Usage, other: &Usage) -> bool {
    let prompt = |usage: &Usage| {
        [usage.input, usage.cache_read, usage.cache_write]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    };
    let less = |a: Option<u64>, b: Option<u64>| a.unwrap_or(0) < b.unwrap_or(0);
    prompt(total) < prompt(other)
        || less(total.cache_read, other.cache_read)
        || less(total.cache_write, other.cache_write)
        || less(total.output, other.output)
}

/// Token counts of the Responses kind: what was cached is inside the input, reasoning inside the output.
pub(super) fn usage(node: Node<'_>) -> Option<Usage> {
    let (mut prompt, mut read, mut write) = (None, None, None);
    let mut usage = Usage::default();
    for (key, value) in node.fields() {
        match key.plain() {
            Some("input_tokens") => prompt = value.as_u64(),
            Some("cached_input_tokens") => read = value.as_u64(),
            Some("cache_write_input_tokens") => write = value.as_u64(),
            Some("output_tokens") => usage.output = value.as_u64(),
            Some("reasoning_output_tokens") => usage.reasoning = value.as_u64(),
            _ => {}
        }
    }
    usage.input = prompt.map(|prompt| {
        prompt
            .saturating_sub(read.unwrap_or(0))
            .saturating_sub(write.unwrap_or(0))
    });
    usage.cache_read = read;
    usage.cache_write = write;
    (!usage.is_empty()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(input: u64, output: u64) -> Usage {
        Usage {
            input: Some(input),
            output: Some(output),
            ..Usage::default()
        }
    }

    #[test]
    fn totals_that_grow_repeat_and_begin_anew() {
        let mut meter = Meter::default();
        assert_eq!(meter.take(total(10, 1), None), Some(total(10, 1)));
        assert_eq!(meter.take(total(10, 1), Some(total(10, 1))), None);
        assert_eq!(meter.take(total(25, 3), None), Some(total(15, 2)));
        // Began anew, with the first call.
        let call = total(4, 1);
        assert_eq!(meter.take(call, Some(call)), Some(call));
        // Went back to an earlier total, and a call was added to that.
        assert_eq!(meter.take(total(30, 9), None), Some(total(26, 8)));
        assert_eq!(
            meter.take(total(12, 2), Some(total(2, 1))),
            Some(total(2, 1))
        );
        // Lower, without a word on the call.
        assert_eq!(meter.take(total(3, 1), None), Some(total(3, 1)));
        // A call that is more than the total is not believed.
        assert_eq!(
            meter.take(total(2, 1), Some(total(9, 9))),
            Some(total(2, 1))
        );
    }

    #[test]
    fn nothing_overflows() {
        let mut meter = Meter::default();
        let most = Usage {
            input: Some(u64::MAX),
            cache_read: Some(u64::MAX),
            ..Usage::default()
        };
        assert_eq!(meter.take(most, None), Some(most));
        assert_eq!(meter.take(total(1, 1), None), Some(total(1, 1)));
    }
}
