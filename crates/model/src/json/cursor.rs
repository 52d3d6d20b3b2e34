//! A validating cursor over JSON text that hands out slices.
//!
//! Transcripts are read far more often than they are looked into: most callers want a few fields of
//! each line and the rest kept as it is. This walks a text once, checks all of it, and borrows. It
//! accepts exactly what `serde_json` accepts (a property test and a fuzz target hold it to that) but
//! for the cap on nesting, and is about twice as fast, because it looks for the ends of strings with
//! vector instructions and builds nothing.

use super::{RawJson, RawStr};

/// Nesting is walked by recursion, so no cap may be larger than this.
const DEEPEST: usize = 1024;

/// How far ahead control characters are looked for at a time.
const LOOK_AHEAD: usize = 1024;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (column {})", self.offset + 1)]
pub struct SyntaxError {
    /// What is wrong.
    pub what: SyntaxProblem,
    /// The byte where it is wrong, from 0.
    pub offset: usize,
}

/// What can be wrong with a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxProblem {
    /// The text ends too early.
    #[error("the text ends too early")]
    End,
    /// There should be a value.
    #[error("expected a value")]
    Value,
    /// There should be a key.
    #[error("expected a key")]
    Key,
    /// There should be a colon.
    #[error("expected ':'")]
    Colon,
    /// There should be a comma or the end of the list or object.
    #[error("expected ',' or the end of the list or object")]
    Comma,
    /// A backslash before something that cannot be escaped.
    #[error("invalid escape")]
    Escape,
    /// A control character that is not escaped.
    #[error("control character in a string")]
    Control,
    /// More than one value.
    #[error("something follows the value")]
    Trailing,
    /// Nested deeper than allowed.
    #[error("nested too deeply")]
    Depth,
    /// More values than are held at once.
    #[error("too many values")]
    Values,
}

/// Walks a JSON text.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    /// Whether there is any byte below 0x20, which strings must not hold, before `looked`. Looked
    /// up for many strings at once, where it costs next to nothing, but not for the whole text,
    /// which may hold many values that each get a cursor.
    has_control: bool,
    looked: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`, for values nested at most `max_depth` deep.
    pub fn new(text: &'a str, max_depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            max_depth: max_depth.min(DEEPEST),
            has_control: false,
            looked: 0,
        }
    }

    /// How much of the text is behind the cursor.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The first byte of what follows, white space passed over.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.byte()
    }

    /// The next value, whatever it is.
    #[inline]
    pub fn value(&mut self) -> Result<RawJson<'a>, SyntaxError> {
        self.with_text(Self::pass_value).map(|((), text)| text)
    }

    /// Walks the fields of the object that follows. `field` must take the value, and nothing else,
    /// from the cursor it is given.
    #[inline]
    pub fn object<E: From<SyntaxError>>(
        &mut self,
        mut field: impl FnMut(RawStr<'a>, &mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'{')?;
        let mut first = true;
        while let Some(key) = self.next_key(first)? {
            field(key, self)?;
            first = false;
        }
        Ok(())
    }

    /// Walks the elements of the list that follows. `element` must take the value, and nothing
    /// else, from the cursor it is given.
    #[inline]
    pub fn list<E: From<SyntaxError>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.enter(b'[')?;
        let mut first = true;
        while self.next_element(first)? {
            element(self)?;
            first = false;
        }
        Ok(())
    }

    /// Walks the value that follows with `read`, and also gives its text. `read` must take the
    /// value, and nothing else, from the cursor it is given.
    #[inline]
    pub fn with_text<T, E>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<(T, RawJson<'a>), E> {
        self.skip_space();
        let start = self.at;
        let found = read(self)?;
        Ok((found, RawJson(&self.text[start..self.at])))
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(SyntaxProblem::Trailing)),
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.byte() {
            self.at += 1;
        }
    }

    #[cold]
    fn error(&self, what: SyntaxProblem) -> SyntaxError {
        self.error_at(self.at, what)
    }

    #[cold]
    fn error_at(&self, at: usize, what: SyntaxProblem) -> SyntaxError {
        let what = if at >= self.text.len() {
            SyntaxProblem::End
        } else {
            what
        };
        SyntaxError {
            what,
            offset: at.min(self.text.len()),
        }
    }

    #[inline]
    fn enter(&mut self, open: u8) -> Result<(), SyntaxError> {
        self.skip_space();
        if self.byte() != Some(open) {
            return Err(self.error(SyntaxProblem::Value));
        }
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(self.error(SyntaxProblem::Depth));
        }
        self.at += 1;
        Ok(())
    }

    /// The next key, its colon passed; `None` at the end of the object.
    #[inline]
    fn next_key(&mut self, first: bool) -> Result<Option<RawStr<'a>>, SyntaxError> {
        self.skip_space();
        if self.close(b'}') {
            return Ok(None);
        }
        if !first {
            self.expect(b',', SyntaxProblem::Comma)?;
            self.skip_space();
        }
        if self.byte() != Some(b'"') {
            return Err(self.error(SyntaxProblem::Key));
        }
        let key = self.string()?;
        self.skip_space();
        self.expect(b':', SyntaxProblem::Colon)?;
        Ok(Some(key))
    }

    /// Whether there is another element.
    #[inline]
    fn next_element(&mut self, first: bool) -> Result<bool, SyntaxError> {
        self.skip_space();
        if self.close(b']') {
            return Ok(false);
        }
        if !first {
            self.expect(b',', SyntaxProblem::Comma)?;
        }
        Ok(true)
    }

    #[inline]
    fn close(&mut self, close: u8) -> bool {
        let closes = self.byte() == Some(close);
        if closes {
            self.at += 1;
            self.depth -= 1;
        }
        closes
    }

    #[inline]
    fn expect(&mut self, byte: u8, problem: SyntaxProblem) -> Result<(), SyntaxError> {
        if self.byte() != Some(byte) {
            return Err(self.error(problem));
        }
        self.at += 1;
        Ok(())
    }

    fn pass_value(&mut self) -> Result<(), SyntaxError> {
        match self.byte() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => {
                self.enter(b'{')?;
                let mut first = true;
                while self.next_key(first)?.is_some() {
                    first = false;
                    self.skip_space();
                    self.pass_value()?;
                }
                Ok(())
            }
            Some(b'[') => {
                self.enter(b'[')?;
                let mut first = true;
                while self.next_element(first)? {
                    first = false;
                    self.skip_space();
                    self.pass_value()?;
                }
                Ok(())
            }
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error(SyntaxProblem::Value)),
        }
    }

    fn literal(&mut self, word: &str) -> Result<(), SyntaxError> {
        for &expected in word.as_bytes() {
            self.expect(expected, SyntaxProblem::Value)?;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.error(SyntaxProblem::Value))
        } else {
            Ok(())
        }
    }

    /// Looks for control characters, at least up to `end`.
    fn look_ahead(&mut self, end: usize) {
        let end = end.max(self.looked + LOOK_AHEAD).min(self.text.len());
        let ahead = &self.text.as_bytes()[self.looked..end];
        // Without a way out in the middle, so that it is done with vector instructions.
        self.has_control |= ahead.iter().fold(u8::MAX, |least, &b| least.min(b)) < 0x20;
        self.looked = end;
    }

    /// The string that begins here.
    #[inline]
    fn string(&mut self) -> Result<RawStr<'a>, SyntaxError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        let mut escaped = false;
        loop {
            let Some(found) = quote_or_backslash(bytes, at) else {
                return Err(self.error_at(bytes.len(), SyntaxProblem::End));
            };
            at = found;
            if bytes[at] == b'"' {
                break;
            }
            escaped = true;
            let digits = match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
                Some(b'u') => 4,
                _ => return Err(self.error_at(at + 1, SyntaxProblem::Escape)),
            };
            at += 2;
            for _ in 0..digits {
                if !bytes.get(at).is_some_and(u8::is_ascii_hexdigit) {
                    return Err(self.error_at(at, SyntaxProblem::Escape));
                }
                at += 1;
            }
        }
        if at > self.looked {
            self.look_ahead(at);
        }
        if self.has_control
            && let Some(control) = bytes[start..at].iter().position(|&b| b < 0x20)
        {
            return Err(self.error_at(start + control, SyntaxProblem::Control));
        }
        self.at = at + 1;
        Ok(RawStr {
            text: &self.text[start..self.at],
            escaped,
        })
    }
}

/// The first quote or backslash at or behind `at`.
///
/// Keys and names end within a few bytes, and in code there is an escape at the end of each line, so
/// the next few words are looked at one by one; setting up a vector search costs more. Longer runs are
/// what vector search is for.
#[inline]
pub(super) fn quote_or_backslash(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..10 {
        let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            break;
        };
        let found = word_matches(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr::memchr2(b'"', b'\\', bytes.get(at..)?).map(|found| at + found)
}

/// The high bit of each byte of a word that is a quote or a backslash. Bytes above the lowest match may
/// be marked wrongly; the lowest is right.
const fn word_matches(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (LOW * b'"' as u64);
    let backslash = word ^ (LOW * b'\\' as u64);
    ((quote.wrapping_sub(LOW) & !quote) | (backslash.wrapping_sub(LOW) & !backslash)) & HIGH
}
