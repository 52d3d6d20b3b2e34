//! A key that only its owner has, and what is derived from it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// 32 random bytes. What is derived from them tells nothing of them, nor of what went in.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

/// A key could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct KeyError(String);

impl Key {
    /// A new key.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| KeyError(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// A key that was kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key itself, to be kept.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A hash of some parts that nobody without the key can make. What it is for is part of it, and so are the
    /// lengths of the parts: no two lists of parts are taken for each other.
    pub fn hash(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        // As HMAC itself does with keys that are shorter than a block.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// Another key, for one purpose and one thing.
    #[must_use]
    pub fn derive(&self, purpose: &str, of: &str) -> Self {
        Self(self.hash(purpose, &[of.as_bytes()]))
    }

    /// A name for something that says nothing of it, and is the same whenever the thing and the key are:
    /// `anon_7c41…` for `pseudonym("anon", …)`.
    pub fn pseudonym(&self, prefix: &str, of: &str) -> String {
        let hash = self.hash(prefix, &[of.as_bytes()]);
        format!("{prefix}_{}", quipu_model::hex::encode(&hash[..8]))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_taken_for_each_other_and_nothing_shows_the_key() {
        let key = Key::from_bytes([7; 32]);
        assert_ne!(key.hash("x", &[b"ab", b"c"]), key.hash("x", &[b"a", b"bc"]));
        assert_ne!(key.hash("x", &[b"ab"]), key.hash("y", &[b"ab"]));
        assert_eq!(key.pseudonym("anon", "ada"), key.pseudonym("anon", "ada"));
        assert_ne!(
            key.pseudonym("anon", "ada"),
            Key::from_bytes([8; 32]).pseudonym("anon", "ada")
        );
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}
