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
    /// All tokens the model produced.
    pub output: Option<u64>,
    /// How many of `output` were reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// The sum of the disjoint buckets that are known.
    pub fn total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
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
            output: Some(5),
            reasoning: Some(4),
        };
        assert_eq!(usage.total(), 115);
    }
}
