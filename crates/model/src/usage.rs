//! Token usage in disjoint buckets.

/// Tokens of one model call.
///
/// The buckets do not overlap: what was read from a cache is not in `input` again, so the prompt is
/// `input + cache_read + cache_write`. Vendors disagree on this (some count cached tokens inside
/// the input, some count reasoning outside the output), which is why the conversion happens once,
/// where a log is read. `None` means the source did not say, which is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Prompt tokens that no cache was involved in.
    pub input: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// How many of `cache_write` are kept for an hour, not for five minutes: they cost more.
    pub cache_write_1h: Option<u64>,
    /// All tokens the model produced.
    pub output: Option<u64>,
    /// How many of `output` were reasoning.
    pub reasoning: Option<u64>,
}

/// How a call to a model was served, where that has a price of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Service {
    /// As usual, or the log does not say.
    #[default]
    Standard,
    /// Later, in a batch.
    Batch,
    /// When there is room for it.
    Flex,
    /// Before others.
    Priority,
    /// By faster machines.
    Fast,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Standard,
        Self::Batch,
        Self::Flex,
        Self::Priority,
        Self::Fast,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Fast => "fast",
        }
    }
}

impl Usage {
    /// The sum of the disjoint buckets that are known.
    pub fn total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another call's tokens. What neither knows stays unknown.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, u64::saturating_add);
    }

    /// Takes the larger of each bucket.
    pub fn raise(&mut self, other: &Self) {
        self.combine(other, u64::max);
    }

    /// What this has beyond another, bucket by bucket; what it does not know stays unknown.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        let less = |mine: Option<u64>, theirs: Option<u64>| {
            mine.map(|mine| mine.saturating_sub(theirs.unwrap_or(0)))
        };
        Self {
            input: less(self.input, other.input),
            cache_read: less(self.cache_read, other.cache_read),
            cache_write: less(self.cache_write, other.cache_write),
            cache_write_1h: less(self.cache_write_1h, other.cache_write_1h),
            output: less(self.output, other.output),
            reasoning: less(self.reasoning, other.reasoning),
        }
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in [
            (&mut self.input, other.input),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_write_1h, other.cache_write_1h),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
        ] {
            *mine = match (*mine, theirs) {
                (Some(a), Some(b)) => Some(with(a, b)),
                (a, b) => a.or(b),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_part_of_the_output() {
        let usage = Usage {
            input: Some(10),
            cache_read: Some(100),
            cache_write: None,
            cache_write_1h: None,
            output: Some(5),
            reasoning: Some(4),
        };
        assert_eq!(usage.total(), 115);
    }
}
