//! What a key may do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Submit transcripts. What came with a key, the key may always read and delete.
    Submit,
    /// Read everything.
    Read,
    /// Everything, and delete what others submitted.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Submit, Self::Read, Self::Admin];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a scope is submit, read or admin")]
pub struct NotAScope;

impl FromStr for Scope {
    type Err = NotAScope;

    fn from_str(word: &str) -> Result<Self, NotAScope> {
        let mut all = Self::ALL.into_iter();
        all.find(|scope| scope.as_str() == word).ok_or(NotAScope)
    }
}

/// A set of scopes, in order, each once. An empty set never gets into a file: a line without scopes is from before
/// there were any, and means `submit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Scope>", into = "Vec<Scope>")]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// These scopes; without any, `submit`.
    pub fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut all: Vec<Scope> = scopes.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() {
            all.push(Scope::Submit);
        }
        Self(all)
    }

    /// Whether this is allowed. `admin` allows everything.
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope) || self.0.contains(&Scope::Admin)
    }

    /// The scopes, in order.
    pub fn as_slice(&self) -> &[Scope] {
        &self.0
    }
}

impl Default for Scopes {
    fn default() -> Self {
        Self::new([])
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        Self::new(scopes)
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        scopes.0
    }
}

/// `submit, read`
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|scope| scope.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_and_admin_is_everything() {
        let scopes = Scopes::new([Scope::Read, Scope::Submit, Scope::Read]);
        assert_eq!(scopes.to_string(), "submit, read");
        assert!(scopes.allow(Scope::Submit) && scopes.allow(Scope::Read));
        assert!(!scopes.allow(Scope::Admin));
        let admin = Scopes::new([Scope::Admin]);
        assert!(Scope::ALL.iter().all(|scope| admin.allow(*scope)));
        assert_eq!(Scopes::default().as_slice(), [Scope::Submit]);
        assert_eq!("read".parse(), Ok(Scope::Read));
        assert_eq!("Read".parse::<Scope>(), Err(NotAScope));
    }
}
