//! Identifiers.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// The identity of a run, and the stem of the file it is recorded in.
///
/// Usually a UUID v4, but any plain name is accepted: 1 to 128 ASCII letters, digits, `.`, `_` and
/// `-`, not beginning with `.` or `-`. The check is made once, here, so that no later join of a run id
/// to a directory can leave it. Names that some systems reserve, such as `NUL`, are not refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

/// Why a string cannot be a run id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRunId {
    /// It has no characters.
    #[error("a run id cannot be empty")]
    Empty,
    /// It is longer than [`RunId::MAX_LEN`].
    #[error("a run id has at most {max} characters, this one has {0}", max = RunId::MAX_LEN)]
    TooLong(usize),
    /// It begins with a character that would hide the file or look like a flag.
    #[error("a run id cannot begin with {0:?}")]
    Start(char),
    /// It holds something other than a letter, a digit, `.`, `_` or `-`.
    #[error("a run id holds letters, digits, '.', '_' and '-' only, not {0:?}")]
    Character(char),
}

impl RunId {
    /// The longest run id.
    pub const MAX_LEN: usize = 128;

    /// Checks and takes a run id.
    pub fn new(id: &str) -> Result<Self, InvalidRunId> {
        Self::check(id)?;
        Ok(Self(id.into()))
    }

    /// Checks a run id without taking it.
    pub fn check(id: &str) -> Result<(), InvalidRunId> {
        match id.chars().next() {
            None => return Err(InvalidRunId::Empty),
            Some(c @ ('.' | '-')) => return Err(InvalidRunId::Start(c)),
            Some(_) => {}
        }
        if let Some(c) = id
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
        {
            return Err(InvalidRunId::Character(c));
        }
        if id.len() > Self::MAX_LEN {
            return Err(InvalidRunId::TooLong(id.len()));
        }
        Ok(())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(s: &str) -> Result<Self, InvalidRunId> {
        Self::new(s)
    }
}

impl AsRef<str> for RunId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Ids that somebody else gave: any text. A type each, so that one cannot be taken for another.
macro_rules! given_ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, to change it: redaction writes ids anew.
            pub fn text_mut(&mut self) -> &mut String {
                &mut self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<Cow<'_, str>> for $name {
            fn from(id: Cow<'_, str>) -> Self {
                Self(id.into_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<$name> for Cow<'_, str> {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        /// As the text: messages quote ids.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

given_ids! {
    /// A tool call, as the agent or the provider names it: the token that its result carries. Empty where the
    /// source gives none.
    ToolCallId,
    /// A call to a model, as the provider names it.
    ModelCallId,
    /// An event, as the log it was read from names it.
    NativeId,
    /// A sub-agent, as the log names it.
    SubagentId,
    /// A session, as its agent names it.
    SessionId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_the_formats_use() {
        for id in [
            "550e8400-e29b-41d4-a716-446655440000",
            "run-20251209-143022-abc123",
            "a.b_C",
        ] {
            assert_eq!(RunId::new(id).unwrap().as_str(), id);
        }
    }

    #[test]
    fn refuses_what_could_leave_the_directory() {
        use InvalidRunId::{Character, Empty, Start, TooLong};
        let long = "x".repeat(129);
        for (id, why) in [
            ("", Empty),
            ("..", Start('.')),
            (".hidden", Start('.')),
            ("-rf", Start('-')),
            ("a/b", Character('/')),
            ("a\\b", Character('\\')),
            ("a\0b", Character('\0')),
            ("a b", Character(' ')),
            ("C:x", Character(':')),
            ("é", Character('é')),
            (long.as_str(), TooLong(129)),
        ] {
            assert_eq!(RunId::new(id), Err(why), "{id:?}");
        }
    }
}
