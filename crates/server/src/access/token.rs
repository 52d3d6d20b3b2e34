//! The token of one start of the server.

use std::fmt;

use quipu_model::hex;
use subtle::ConstantTimeEq as _;

/// A secret that is drawn when the server starts. Whoever can read `server.json` knows it.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A new one.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex::encode(&bytes)))
    }

    /// The text, for `server.json` and for the page of the same origin.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether somebody knows it, in a time that does not tell how nearly.
    pub fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_all_of_its_characters() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.is(one.expose()));
        assert!(!one.is(other.expose()) && !one.is("") && !one.is(&one.expose()[1..]));
        assert!(!format!("{one:?}").contains(one.expose()));
    }
}
