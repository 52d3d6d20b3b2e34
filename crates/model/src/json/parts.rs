//! A long JSON document in parts: its fields, and the items of its long lists, one at a time.
//!
//! Some formats keep a whole session in one object, in which a single list grows without end. Such a
//! document may be longer than memory is large. [`Parts`] takes it in pieces of any size and hands over one
//! part after the other; it holds no more than the part at hand.
//!
//! ```text
//! {"id": "s1", "events": [{…}, {…}], "end": true}
//!        ────            ───  ───            ────     with "events" as a list: four parts
//! ```
//!
//! It finds where parts begin and end, and nothing else. Whether a part is JSON is for its reader to find
//! out, for instance with a [`Tape`](super::Tape).

use std::fmt;

use super::cursor::quote_or_backslash;
use super::unescape;

/// Divides a document that is an object into parts.
///
/// ```
/// use quipu_model::json::Parts;
///
/// let mut parts = Parts::new(&["events"], 1 << 20);
/// let mut found = Vec::new();
/// for piece in ["{\"id\":\"s1\",\"eve", "nts\":[1, {\"a\":", "[2]}]}"] {
///     parts.push(piece.as_bytes(), &mut |part| {
///         let value = String::from_utf8_lossy(part.value).into_owned();
///         found.push((part.key.to_owned(), part.index, value));
///     })?;
/// }
/// parts.finish()?;
/// assert_eq!(found[0], ("id".into(), None, "\"s1\"".into()));
/// assert_eq!(found[2], ("events".into(), Some(1), "{\"a\":[2]}".into()));
/// # Ok::<(), quipu_model::json::PartsError>(())
/// ```
#[derive(Debug)]
pub struct Parts {
    /// The fields whose lists are divided.
    lists: &'static [&'static str],
    /// The longest part that is held.
    limit: usize,
    state: State,
    /// Where the next byte stands in the document.
    offset: u64,
    /// The line of the byte at `counted` of the piece at hand.
    line: u64,
    counted: usize,
    /// The key of the field at hand: as it is written while it is read, then what it says.
    raw_key: Vec<u8>,
    key: String,
    /// The item at hand, when the field is a list that is divided.
    index: Option<u64>,
    /// What came of the part at hand with earlier pieces.
    held: Vec<u8>,
    /// Whether the part at hand is too long, and passed over.
    passing: bool,
    passed: u64,
    /// Where the part at hand began.
    began: u64,
    began_line: u64,
    inside: Inside,
    too_long: Option<PartsError>,
}

/// A field of the document, or an item of one of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// The name of the field. Half surrogate pairs and bytes that are no UTF-8 became U+FFFD.
    pub key: &'a str,
    /// Which item of the field's list it is, from 0.
    pub index: Option<u64>,
    /// The value as it stands in the document, without the white space around it.
    pub value: &'a [u8],
    /// Where the value begins in the document.
    pub offset: u64,
    /// The line it begins on, from 1.
    pub line: u64,
}

/// Why a document cannot be divided, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// A part is longer than is held. It was passed over: what follows can still be pushed.
    #[error("{} at byte {offset} has more than {limit} bytes", Named(key, *index))]
    TooLong {
        /// The field.
        key: String,
        /// The item of its list.
        index: Option<u64>,
        /// Where it begins.
        offset: u64,
        /// How much is held.
        limit: usize,
    },
    /// There is something else than there should be. What follows cannot be divided.
    #[error("expected {expected} at byte {offset}")]
    Syntax {
        /// What there should be.
        expected: &'static str,
        /// Where.
        offset: u64,
    },
    /// The document ends too early.
    #[error("the document ends at byte {offset}, in {}", Named(key, *index))]
    Cut {
        /// The field it ends in; empty when it ends before the first.
        key: String,
        /// The item of its list.
        index: Option<u64>,
        /// Where it ends.
        offset: u64,
    },
}

/// A part by its name, for people.
struct Named<'a>(&'a str, Option<u64>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            ("", None) => f.write_str("its beginning"),
            (key, None) => write!(f, "`{key}`"),
            (key, Some(index)) => write!(f, "`{key}[{index}]`"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Start,
    FirstKey,
    NextKey,
    InKey,
    Colon,
    BeforeValue,
    FirstItem,
    NextItem,
    InValue,
    AfterValue,
    AfterItem,
    End,
    Failed(PartsError),
}

/// How far a value is understood: enough to know where it ends.
#[derive(Debug, Clone, Copy, Default)]
struct Inside {
    depth: usize,
    string: bool,
    escape: bool,
    /// A number or a word, which ends where something else begins.
    bare: bool,
}

impl Inside {
    fn begin(first: u8) -> Self {
        Self {
            depth: usize::from(matches!(first, b'{' | b'[')),
            string: first == b'"',
            escape: false,
            bare: !matches!(first, b'{' | b'[' | b'"'),
        }
    }

    /// Goes on from `at`. Where the value ends, if it does in these bytes.
    fn pass(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        if self.bare {
            let ends = |b: &u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
            return Some(at + bytes[at..].iter().position(ends)?);
        }
        loop {
            if self.escape {
                bytes.get(at)?;
                self.escape = false;
                at += 1;
            }
            if self.string {
                let found = quote_or_backslash(bytes, at)?;
                at = found + 1;
                if bytes[found] == b'\\' {
                    self.escape = true;
                    continue;
                }
                self.string = false;
                if self.depth == 0 {
                    return Some(at);
                }
            }
            loop {
                match bytes.get(at)? {
                    b'"' => break,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            at += 1;
            self.string = true;
        }
    }
}

impl Parts {
    /// Divides a document. Of the fields that `lists` names, lists are given item by item. A part of more
    /// than `limit` bytes is passed over.
    pub fn new(lists: &'static [&'static str], limit: usize) -> Self {
        Self {
            lists,
            limit,
            state: State::Start,
            offset: 0,
            line: 1,
            counted: 0,
            raw_key: Vec::new(),
            key: String::new(),
            index: None,
            held: Vec::new(),
            passing: false,
            passed: 0,
            began: 0,
            began_line: 1,
            inside: Inside::default(),
            too_long: None,
        }
    }

    /// Takes more of the document, and gives the parts that end in it.
    ///
    /// # Errors
    ///
    /// After [`PartsError::TooLong`] all of `bytes` was taken and reading can go on. Any other error is the
    /// end, and is given again by each later call.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<(), PartsError> {
        if let State::Failed(error) = &self.state {
            return Err(error.clone());
        }
        self.counted = 0;
        let mut at = 0;
        while at < bytes.len() {
            match self.step(bytes, at, sink) {
                Ok(next) => at = next,
                Err(error) => {
                    self.count_lines(bytes, at);
                    self.offset += at as u64;
                    self.state = State::Failed(error.clone());
                    self.held = Vec::new();
                    return Err(error);
                }
            }
        }
        self.count_lines(bytes, bytes.len());
        self.offset += bytes.len() as u64;
        self.too_long.take().map_or(Ok(()), Err)
    }

    /// Says that the document ends here.
    ///
    /// # Errors
    ///
    /// When it is not whole, or could not be divided.
    pub fn finish(&mut self) -> Result<(), PartsError> {
        match &self.state {
            State::End => Ok(()),
            State::Failed(error) => Err(error.clone()),
            _ => Err(PartsError::Cut {
                key: self.key.clone(),
                index: self.index,
                offset: self.offset,
            }),
        }
    }

    /// How many parts were too long.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.held.len() + self.raw_key.len()
    }

    /// How many bytes there is room for: the most that was held, and what the allocator added.
    pub fn capacity(&self) -> usize {
        self.held.capacity() + self.raw_key.capacity() + self.key.capacity()
    }

    /// The part that has begun and not ended, as far as it is there.
    pub fn unfinished(&self) -> Option<Part<'_>> {
        (self.state == State::InValue && !self.passing).then_some(Part {
            key: &self.key,
            index: self.index,
            value: &self.held,
            offset: self.began,
            line: self.began_line,
        })
    }

    /// Where reading stands: the next byte, or the one that should not be there, and its line.
    pub fn position(&self) -> (u64, u64) {
        (self.offset, self.line)
    }

    /// Takes what is at `at`. Gives the place behind it.
    fn step(
        &mut self,
        bytes: &[u8],
        at: usize,
        sink: &mut dyn FnMut(Part<'_>),
    ) -> Result<usize, PartsError> {
        match self.state {
            State::InKey => return self.in_key(bytes, at),
            State::InValue => return Ok(self.in_value(bytes, at, sink)),
            _ => {}
        }
        let byte = bytes[at];
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Ok(at + 1);
        }
        self.state = match (&self.state, byte) {
            (State::Start, b'{') => State::FirstKey,
            // The bytes of a mark that some programs begin files with.
            (State::Start, 0xef | 0xbb | 0xbf) if self.offset + (at as u64) < 3 => State::Start,
            (State::FirstKey | State::NextKey, b'"') => {
                self.raw_key.clear();
                self.key.clear();
                self.index = None;
                self.began = self.offset + at as u64;
                self.inside = Inside::begin(b'"');
                State::InKey
            }
            (State::FirstKey, b'}') | (State::AfterValue, b'}') => State::End,
            (State::Colon, b':') => State::BeforeValue,
            (State::BeforeValue, b'[') if self.lists.contains(&self.key.as_str()) => {
                State::FirstItem
            }
            (State::FirstItem, b']') | (State::AfterItem, b']') => {
                self.index = None;
                State::AfterValue
            }
            (State::BeforeValue | State::FirstItem | State::NextItem, first)
                if !matches!(first, b',' | b':' | b'}' | b']') =>
            {
                if self.state != State::BeforeValue {
                    self.index = Some(self.index.map_or(0, |index| index + 1));
                }
                self.count_lines(bytes, at);
                self.began = self.offset + at as u64;
                self.began_line = self.line;
                self.inside = Inside::begin(first);
                self.state = State::InValue;
                return Ok(self.value(bytes, at, at + 1, sink));
            }
            (State::AfterValue, b',') => State::NextKey,
            (State::AfterItem, b',') => State::NextItem,
            (state, _) => {
                return Err(PartsError::Syntax {
                    expected: match state {
                        State::Start => "an object",
                        State::FirstKey => "a key or '}'",
                        State::NextKey => "a key",
                        State::Colon => "':'",
                        State::AfterValue => "',' or '}'",
                        State::AfterItem => "',' or ']'",
                        State::End => "nothing more",
                        _ => "a value",
                    },
                    offset: self.offset + at as u64,
                });
            }
        };
        Ok(at + 1)
    }

    fn in_key(&mut self, bytes: &[u8], at: usize) -> Result<usize, PartsError> {
        let ends = self.inside.pass(bytes, at);
        let end = ends.unwrap_or(bytes.len());
        if self.raw_key.len() + (end - at) > self.limit {
            return Err(PartsError::Syntax {
                expected: "a shorter key",
                offset: self.began,
            });
        }
        self.raw_key.extend_from_slice(&bytes[at..end]);
        if ends.is_some() {
            let inner = &self.raw_key[..self.raw_key.len() - 1];
            let text = String::from_utf8_lossy(inner);
            // A key with an escape that is none is given as it is written.
            let said = valid_escapes(&text).then(|| unescape(&text, Some('\u{fffd}')));
            self.key = said.flatten().unwrap_or_else(|| text.into_owned());
            self.state = State::Colon;
        }
        Ok(end)
    }

    fn in_value(&mut self, bytes: &[u8], at: usize, sink: &mut dyn FnMut(Part<'_>)) -> usize {
        self.value(bytes, at, at, sink)
    }

    /// Goes on with the value whose bytes in this piece begin at `start`, and are passed up to `at`.
    fn value(
        &mut self,
        bytes: &[u8],
        start: usize,
        at: usize,
        sink: &mut dyn FnMut(Part<'_>),
    ) -> usize {
        let ends = self.inside.pass(bytes, at);
        let end = ends.unwrap_or(bytes.len());
        let here = &bytes[start..end];
        if self.passing || self.held.len() + here.len() > self.limit {
            self.passing = true;
            self.held = Vec::new();
        } else if ends.is_none() || !self.held.is_empty() {
            self.held.extend_from_slice(here);
        }
        if ends.is_none() {
            return end;
        }
        self.state = if self.index.is_some() {
            State::AfterItem
        } else {
            State::AfterValue
        };
        if self.passing {
            self.passing = false;
            self.passed += 1;
            self.too_long.get_or_insert(PartsError::TooLong {
                key: self.key.clone(),
                index: self.index,
                offset: self.began,
                limit: self.limit,
            });
            return end;
        }
        let value = if self.held.is_empty() {
            here
        } else {
            &self.held
        };
        sink(Part {
            key: &self.key,
            index: self.index,
            value,
            offset: self.began,
            line: self.began_line,
        });
        self.held.clear();
        end
    }

    fn count_lines(&mut self, bytes: &[u8], to: usize) {
        self.line += memchr::memchr_iter(b'\n', &bytes[self.counted..to]).count() as u64;
        self.counted = to;
    }
}

/// Whether every backslash stands before something that can be escaped.
fn valid_escapes(inner: &str) -> bool {
    let bytes = inner.as_bytes();
    let mut at = 0;
    while let Some(found) = quote_or_backslash(bytes, at) {
        at = found + 2;
        match bytes.get(found + 1) {
            Some(b'u') => {
                let digits = bytes.get(at..at + 4);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return false;
                }
                at += 4;
            }
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
