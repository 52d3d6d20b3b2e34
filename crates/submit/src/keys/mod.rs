//! Keys that transcripts are submitted with.
//!
//! A key is a text that is shown once: `qk_<id>_<secret>`. Its id is public; of its secret, whoever gave it out keeps a
//! salted hash. What groups the submissions of one key, its pseudonym, is made of the secret: the one who has it and
//! the one who is shown it can tell, and nobody else.

mod auth;
mod scope;
mod store;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use quipu_model::hex;
use quipu_redact::{Key, KeyError};

pub use auth::{allow, authenticate, authorize};
pub use scope::{NotAScope, Scope, Scopes};
pub use store::{KeyEntry, KeyStore, KeyStoreError, NewKey};

/// How every key begins.
const BEGIN: &str = "qk_";

/// The public id of a key: `key_2a9f…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 6]);

impl KeyId {
    /// Reads `key_` and 12 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("key_")
            .and_then(hex::decode_array)
            .map(Self)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key_{}", hex::encode(&self.0))
    }
}

/// A key with its secret. It is written out where that is asked for by name, and nowhere else.
#[derive(Clone)]
pub struct SecretKey {
    id: KeyId,
    secret: Key,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, …)", self.id)
    }
}

/// A text is no key. What it is, is not said: it may be one that was mistyped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no submission key: one is `qk_`, 12 hex digits, `_` and 43 characters")]
pub struct NotAKey;

impl SecretKey {
    /// A new key.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        let mut id = [0; 6];
        // The id is drawn apart from the secret, so that it tells nothing of it.
        id.copy_from_slice(&Key::random()?.as_bytes()[..6]);
        Ok(Self {
            id: KeyId(id),
            secret: Key::random()?,
        })
    }

    /// Reads a key as it was shown.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let rest = text.trim().strip_prefix(BEGIN).ok_or(NotAKey)?;
        let (id, secret) = rest.split_once('_').ok_or(NotAKey)?;
        if id.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(NotAKey);
        }
        let id = hex::decode_array(id).ok_or(NotAKey)?;
        let secret = URL_SAFE_NO_PAD.decode(secret).map_err(|_| NotAKey)?;
        let secret: [u8; 32] = secret.try_into().map_err(|_| NotAKey)?;
        Ok(Self {
            id: KeyId(id),
            secret: Key::from_bytes(secret),
        })
    }

    /// The key as a text, to be shown to its owner, or to the server it is for.
    pub fn expose(&self) -> String {
        let secret = URL_SAFE_NO_PAD.encode(self.secret.as_bytes());
        format!("{BEGIN}{}_{secret}", hex::encode(&self.id.0))
    }

    /// Its public id.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// What groups the submissions of this key: `anon_7c41…`.
    pub fn pseudonym(&self) -> String {
        self.secret.pseudonym("anon", &self.id.to_string())
    }

    /// Who shares a transcript that is submitted with this key.
    pub fn submitter(&self, identity_linked: bool) -> quipu_formats::normalized::Submitter {
        quipu_formats::normalized::Submitter {
            key_id: Some(self.id.to_string()),
            pseudonym: Some(self.pseudonym()),
            identity_linked: Some(identity_linked),
        }
    }

    /// What is kept of it.
    fn hash(&self, salt: &Key) -> [u8; 32] {
        let id = self.id.to_string();
        salt.hash("submission key", &[id.as_bytes(), self.secret.as_bytes()])
    }
}

/// Why a key is not accepted. Which of the first two it is makes no difference to who presents it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no key, or none that was given out here.
    #[error("the key is not known here")]
    Unknown,
    /// It was, and was revoked.
    #[error("the key {0} was revoked")]
    Revoked(KeyId),
    /// It was, until a time that has passed.
    #[error("the key {0} has expired")]
    Expired(KeyId),
    /// It could not be looked up.
    #[error("keys cannot be looked up")]
    Unavailable,
}

/// Who knows which keys were given out. [`KeyStore`] does; a server may have another.
pub trait Keys: Send + Sync {
    /// Whose key this is.
    ///
    /// # Errors
    ///
    /// It is not accepted.
    fn check(&self, presented: &SecretKey) -> Result<KeyEntry, Refused>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_reads_back_and_does_not_show_itself() {
        let key = SecretKey::random().unwrap();
        let text = key.expose();
        assert_eq!(text.len(), 3 + 12 + 1 + 43);
        let again = SecretKey::parse(&format!("{text}\n")).unwrap();
        assert_eq!((again.id(), again.expose()), (key.id(), text.clone()));
        assert_eq!(again.pseudonym(), key.pseudonym());
        assert!(key.pseudonym().starts_with("anon_"));
        assert_ne!(key.pseudonym(), SecretKey::random().unwrap().pseudonym());
        let secret = &text[16..];
        assert!(!format!("{key:?}").contains(secret));
        assert_eq!(KeyId::parse(&key.id().to_string()), Some(key.id()));
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        let text = SecretKey::random().unwrap().expose();
        for wrong in [
            "",
            "qk_",
            &text[1..],
            &text[..text.len() - 1],
            &format!("{text}A"),
            &text.replacen('_', "-", 1),
            &text.to_uppercase(),
        ] {
            let error = SecretKey::parse(wrong).unwrap_err();
            assert!(!error.to_string().contains(&text[16..]));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_or_none(text in "(qk_)?[0-9a-f]{0,13}_?[A-Za-z0-9_-]{0,50}") {
            if let Ok(key) = SecretKey::parse(&text) {
                prop_assert_eq!(key.expose(), text);
            }
        }
    }
}
