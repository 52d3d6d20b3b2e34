//! A JSON value kept as its text.
//!
//! Tool inputs and outputs are whatever a tool took and gave. Parsing them into a tree would cost
//! time and change them: integers beyond 2^53, the order of keys, `1.0` against `1`. So the text
//! stays as it is, known to be one valid value on one line.
//!
//! [`Json`] owns such a text, [`RawJson`] borrows it, and a [`Cursor`] is what finds them. None can
//! be made but by checking, or by [`Building`] an object of what was checked.

mod build;
mod cursor;
mod marks;
mod parts;
mod tape;
#[cfg(debug_assertions)]
pub mod watch;

pub use build::{Building, Target};
pub use cursor::{Cursor, SyntaxError, SyntaxProblem};
pub use marks::Escapes;
pub use parts::{Part, Parts, PartsError};
pub use tape::{Fields, Items, Kind, Node, Tape};

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// One JSON value, as text on one line.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

/// One JSON value inside a larger text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawJson<'a>(&'a str);

/// One JSON string inside a larger text: a key, or a value that is a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStr<'a> {
    /// With its quotes.
    text: &'a str,
    escaped: bool,
}

/// Why something has no [`Json`].
#[derive(Debug, thiserror::Error)]
pub enum InvalidJson {
    /// It is not one JSON value.
    #[error("not a JSON value: {0}")]
    Syntax(#[from] SyntaxError),
    /// It does not serialise.
    #[error("does not serialise as JSON")]
    Serialize(#[from] serde_json::Error),
}

impl Json {
    /// How deep a value may nest where nothing else is said. What parses a text into a tree
    /// commonly stops at 128 levels, so a deeper line would be written but not read. A value is a
    /// few levels inside its line, and this leaves room for them.
    pub const MAX_DEPTH: usize = 120;

    /// Checks and takes a JSON text, which may be spread over lines.
    pub fn parse(text: &str) -> Result<Self, InvalidJson> {
        let mut cursor = Cursor::new(text, Self::MAX_DEPTH);
        let value = cursor.value()?;
        cursor.end()?;
        Ok(value.into())
    }

    /// The value of anything that serialises. Maps with keys that are not strings do not.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, InvalidJson> {
        Self::parse(&serde_json::to_string(value)?)
    }

    /// The value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A JSON string.
    #[expect(clippy::missing_panics_doc, reason = "a str always serialises")]
    pub fn string(text: &str) -> Self {
        Self(
            serde_json::to_string(text)
                .expect("a str always serialises")
                .into(),
        )
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The same value, borrowed.
    pub fn as_raw(&self) -> RawJson<'_> {
        RawJson(&self.0)
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// The text of a JSON string; `None` when the value is not a string.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        RawJson(&self.0).as_str()
    }
}

impl<'a> RawJson<'a> {
    /// The JSON text.
    #[inline]
    pub fn get(&self) -> &'a str {
        self.0
    }

    /// Whether this is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.0 == "null"
    }

    /// The text of a JSON string, borrowed unless it holds an escape. `None` when the value is not
    /// a string, or holds half of a surrogate pair, which is valid JSON but no text.
    #[inline]
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?;
        RawStr {
            text: self.0,
            escaped: memchr::memchr(b'\\', inner.as_bytes()).is_some(),
        }
        .to_text()
    }

    /// A number that is a whole number of 64 bits.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

impl<'a> RawStr<'a> {
    /// The string as JSON, with its quotes.
    #[inline]
    pub fn raw(self) -> RawJson<'a> {
        RawJson(self.text)
    }

    /// What the string says, when it has no escapes.
    #[inline]
    pub fn plain(self) -> Option<&'a str> {
        (!self.escaped).then(|| &self.text[1..self.text.len() - 1])
    }

    /// Whether it begins with this, without reading the rest.
    pub fn starts_with(self, prefix: &str) -> bool {
        let inner = &self.text[1..self.text.len() - 1];
        if !self.escaped {
            return inner.starts_with(prefix);
        }
        // As many characters as the prefix has bytes are enough, each of them whole.
        let mut end = 0;
        for _ in 0..prefix.len() {
            let rest = &inner.as_bytes()[end..];
            end += match rest {
                [] => break,
                [b'\\', b'u', a, b, ..] => {
                    let high = matches!(
                        (a, b),
                        (b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
                    );
                    if high && rest.get(6..8) == Some(b"\\u") {
                        12
                    } else {
                        6
                    }
                }
                [b'\\', ..] => 2,
                _ => inner[end..].chars().next().map_or(1, char::len_utf8),
            };
        }
        let head = inner.get(..end).unwrap_or(inner);
        unescape(head, Some('\u{fffd}')).is_some_and(|text| text.starts_with(prefix))
    }

    /// Whether it says this.
    #[inline]
    pub fn is(self, text: &str) -> bool {
        let inner = &self.text.as_bytes()[1..self.text.len() - 1];
        inner == text.as_bytes() || (self.escaped && self.to_text().as_deref() == Some(text))
    }

    /// What the string says; `None` when it holds half of a surrogate pair.
    #[inline]
    pub fn to_text(self) -> Option<Cow<'a, str>> {
        let inner = &self.text[1..self.text.len() - 1];
        if !self.escaped {
            return Some(Cow::Borrowed(inner));
        }
        unescape(inner, None).map(Cow::Owned)
    }

    /// What the string says, with U+FFFD in place of half surrogate pairs.
    #[inline]
    pub fn to_text_lossy(self) -> Cow<'a, str> {
        self.to_text().unwrap_or_else(|| {
            let inner = &self.text[1..self.text.len() - 1];
            Cow::Owned(unescape(inner, Some('\u{fffd}')).unwrap_or_default())
        })
    }
}

/// Resolves the escapes of a string whose syntax is known to be right. Half of a surrogate pair
/// becomes `half`; without one there is no text.
fn unescape(inner: &str, half: Option<char>) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    // A quote inside a string is escaped, so what is found is always a backslash.
    while let Some(at) = cursor::quote_or_backslash(rest.as_bytes(), 0) {
        text.push_str(&rest[..at]);
        let escape = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        text.push(match escape {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let (unit, behind) = utf16_unit(rest)?;
                rest = behind;
                let low = behind.strip_prefix("\\u").and_then(utf16_unit);
                match (char::from_u32(u32::from(unit)), low) {
                    (Some(char), _) => char,
                    (None, Some((low, behind))) if is_pair(unit, low) => {
                        rest = behind;
                        char::decode_utf16([unit, low]).next()?.ok()?
                    }
                    (None, _) => half?,
                }
            }
            other => char::from(other),
        });
    }
    text.push_str(rest);
    Some(text)
}

fn is_pair(high: u16, low: u16) -> bool {
    (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low)
}

fn utf16_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, behind) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, behind))
}

impl From<RawJson<'_>> for Json {
    fn from(raw: RawJson<'_>) -> Self {
        // A line break inside a JSON string is always escaped, so a raw one is white space.
        match memchr::memchr2(b'\n', b'\r', raw.0.as_bytes()) {
            None => Self(raw.0.into()),
            Some(_) => Self(raw.0.replace(['\n', '\r'], " ").into()),
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::string(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(if value { "true" } else { "false" }.into())
    }
}

#[cfg(test)]
mod tests;
