//! Classes of prompts by their length.

use quipu_model::Usage;

/// The lengths behind which some price changes, by the number of their class. Numbers are kept in databases:
/// a length that is found later is put at the end, wherever it belongs by its size, and none is ever taken out.
/// Some are here before any price needs them, because vendors like them.
const ABOVE: [u64; 13] = [
    0, 32_000, 64_000, 100_000, 128_000, 199_999, 200_000, 256_000, 272_000, 500_000, 512_000,
    524_288, 1_000_000,
];

/// A class of prompts, by how long they are.
///
/// Many vendors charge more for all tokens of a call if its prompt is longer than some number of tokens. Two
/// calls of the same class never differ in this, so that calls can be summed by class and priced after. What
/// counts is the whole prompt of one call, with what was read from a cache or written to it.
///
/// ```
/// use quipu_prices::Context;
///
/// assert_eq!(Context::of(200_000).above(), 199_999);
/// assert_eq!(Context::of(200_001).above(), 200_000);
/// let class = Context::of(1_500);
/// assert_eq!(Context::from_u8(class.as_u8()), Some(class));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Context(u8);

impl Context {
    /// The class of a prompt with so many tokens.
    pub fn of(prompt_tokens: u64) -> Self {
        Self::all()
            .filter(|class| class.above() < prompt_tokens)
            .max_by_key(|class| class.above())
            .unwrap_or_default()
    }

    /// The class of the prompt of one call, as far as its tokens are known.
    pub fn of_usage(usage: &Usage) -> Self {
        let parts = [usage.input, usage.cache_read, usage.cache_write];
        let prompt = parts.into_iter().flatten().fold(0, u64::saturating_add);
        Self::of(prompt)
    }

    /// All of them, by their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map(Self).take(ABOVE.len())
    }

    /// The number of tokens that prompts of this class are longer than.
    pub fn above(self) -> u64 {
        ABOVE[usize::from(self.0)]
    }

    /// Its number, which stays the same in all versions. The order of the numbers means nothing.
    pub fn as_u8(self) -> u8 {
        self.0
    }

    /// The class with this number.
    pub fn from_u8(number: u8) -> Option<Self> {
        (usize::from(number) < ABOVE.len()).then_some(Self(number))
    }

    /// Whether some class begins behind this number of tokens.
    pub(crate) fn is_bound(above: u64) -> bool {
        ABOVE.contains(&above)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quipu_model::Usage;

    use super::{ABOVE, Context};

    /// Databases hold these numbers. This test may only grow at its end.
    #[test]
    fn numbers_stay() {
        for (number, above) in [
            (0, 0),
            (1, 32_000),
            (2, 64_000),
            (3, 100_000),
            (4, 128_000),
            (5, 199_999),
            (6, 200_000),
            (7, 256_000),
            (8, 272_000),
            (9, 500_000),
            (10, 512_000),
            (11, 524_288),
            (12, 1_000_000),
        ] {
            assert_eq!(Context::from_u8(number).unwrap().above(), above);
        }
        assert_eq!(Context::from_u8(13), None);
    }

    #[test]
    fn the_whole_prompt_counts() {
        let usage = Usage {
            input: Some(1),
            cache_read: Some(199_000),
            cache_write: Some(1_000),
            output: Some(500_000),
            ..Usage::default()
        };
        assert_eq!(Context::of_usage(&usage).above(), 200_000);
        assert_eq!(Context::of_usage(&Usage::default()), Context::default());
    }

    proptest! {
        #[test]
        fn no_bound_lies_between_a_prompt_and_its_class(prompt in 0_u64..2_000_000) {
            let class = Context::of(prompt);
            prop_assert!(class.above() < prompt || class.above() == 0);
            prop_assert!(!ABOVE.iter().any(|bound| class.above() < *bound && *bound < prompt));
            prop_assert_eq!(Context::from_u8(class.as_u8()), Some(class));
        }
    }
}
