//! Sets of passes over logs.

use std::sync::Arc;

/// A set of passes.
#[derive(Debug, Clone, Default)]
pub struct Passes(Arc<Vec<u64>>);

impl Passes {
    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a pass is one of them.
    pub fn has(&self, pass: u64) -> bool {
        let word = usize::try_from(pass / 64).ok();
        word.and_then(|word| self.0.get(word))
            .is_some_and(|word| word >> (pass % 64) & 1 == 1)
    }
}

impl FromIterator<u64> for Passes {
    fn from_iter<I: IntoIterator<Item = u64>>(passes: I) -> Self {
        let mut words = Vec::new();
        for pass in passes {
            // Passes are numbered one after the other, so that this is as long as there are passes.
            let word = usize::try_from(pass / 64).unwrap_or(usize::MAX);
            if words.len() <= word {
                words.resize(word + 1, 0_u64);
            }
            words[word] |= 1 << (pass % 64);
        }
        Self(Arc::new(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_what_was_put_in() {
        let passes: Passes = [1, 64, 200].into_iter().collect();
        let found: Vec<u64> = (0..300).filter(|pass| passes.has(*pass)).collect();
        assert_eq!(found, [1, 64, 200]);
        assert!(!passes.has(u64::MAX) && !passes.is_empty() && Passes::default().is_empty());
    }
}
