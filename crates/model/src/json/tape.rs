//! A JSON text as a tree that borrows: parsed once, looked into anywhere.
//!
//! A [`Tape`] is a flat list of places in a text. Parsing checks the whole text and writes down where
//! each value begins and ends; nothing is copied, no string is unescaped, no number is read. What a
//! reader then asks for is sliced or converted at that moment. A tape is reused from text to text, so
//! reading a file of records allocates next to nothing.

use std::borrow::Cow;

use super::cursor::{SyntaxError, SyntaxProblem};
use super::marks::{Escapes, Marks, Odd};
use super::{RawJson, RawStr};

/// Where the values of one JSON text are.
#[derive(Debug, Default)]
pub struct Tape {
    slots: Vec<Slot>,
    /// The lists and objects that are open while parsing.
    open: Vec<u32>,
    marks: Marks,
}

/// One value, or one key of an object, which comes right before its value.
#[derive(Debug, Clone, Copy)]
struct Slot {
    start: u32,
    end: u32,
    /// The slot behind this value and all that is inside it.
    next: u32,
    kind: Kind,
    escaped: bool,
}

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number
    Number,
    /// A string
    String,
    /// A list
    List,
    /// An object
    Object,
}

/// A value of a text that is on a tape.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    text: &'a str,
    tape: &'a Tape,
    at: u32,
}

impl Tape {
    /// The longest text. Places are kept in 32 bits.
    pub const MAX_LEN: usize = u32::MAX as usize;

    /// The most values, keys counted as well. A text of commas and digits would take many times its own
    /// length of memory otherwise.
    pub const MAX_VALUES: usize = 4 << 20;

    /// An empty tape.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a text that is one value.
    ///
    /// # Errors
    ///
    /// When it is not, nests deeper than `max_depth`, or is longer than [`Self::MAX_LEN`].
    pub fn read<'a>(
        &'a mut self,
        text: &'a str,
        max_depth: usize,
    ) -> Result<Node<'a>, SyntaxError> {
        let end = self.parse(text, max_depth)?;
        let rest = &text.as_bytes()[end..];
        if let Some(more) = rest.iter().position(|b| !is_space(*b)) {
            return Err(SyntaxError {
                what: SyntaxProblem::Trailing,
                offset: end + more,
            });
        }
        Ok(self.root(text))
    }

    /// Reads the value a text begins with. Also gives where it ends.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], but that more may follow.
    pub fn read_first<'a>(
        &'a mut self,
        text: &'a str,
        max_depth: usize,
    ) -> Result<(Node<'a>, usize), SyntaxError> {
        let end = self.parse(text, max_depth)?;
        Ok((self.root(text), end))
    }

    /// Takes back memory that one very large text needed.
    pub fn shrink(&mut self) {
        const KEEP: usize = 64 * 1024;
        if self.slots.capacity() > KEEP {
            self.slots = Vec::new();
        }
        self.marks.shrink();
    }

    /// The value that was read last. `text` is the text it was read from.
    ///
    /// # Panics
    ///
    /// When nothing was read; and what is asked of the node may panic when the text is another.
    pub fn root<'a>(&'a self, text: &'a str) -> Node<'a> {
        assert!(!self.slots.is_empty(), "nothing was read");
        Node {
            text,
            tape: self,
            at: 0,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the text is known to be shorter than 4 GiB"
    )]
    fn parse(&mut self, text: &str, max_depth: usize) -> Result<usize, SyntaxError> {
        self.slots.clear();
        self.open.clear();
        self.marks.clear();
        let bytes = text.as_bytes();
        if bytes.len() >= Self::MAX_LEN {
            return fail(bytes, 0, SyntaxProblem::Depth);
        }
        let mut at = 0;
        'value: loop {
            at = skip_space(bytes, at);
            if self.slots.len() >= Self::MAX_VALUES {
                return fail(bytes, at, SyntaxProblem::Values);
            }
            let start = at;
            let mut escaped = false;
            let kind = match bytes.get(at) {
                Some(b'"') => {
                    (at, escaped) = string(bytes, at, &mut self.marks)?;
                    Kind::String
                }
                Some(open @ (b'{' | b'[')) => {
                    if self.open.len() >= max_depth {
                        return fail(bytes, at, SyntaxProblem::Depth);
                    }
                    let kind = if *open == b'{' {
                        Kind::Object
                    } else {
                        Kind::List
                    };
                    self.open.push(self.slots.len() as u32);
                    self.push(start, start, kind, false);
                    at = skip_space(bytes, at + 1);
                    if kind == Kind::Object {
                        if bytes.get(at) != Some(&b'}') {
                            at = self.key(bytes, at)?;
                            continue 'value;
                        }
                    } else if bytes.get(at) != Some(&b']') {
                        continue 'value;
                    }
                    // An empty one: closed below, like any other.
                    kind
                }
                Some(b't') => {
                    at = literal(bytes, at, b"true")?;
                    Kind::Bool
                }
                Some(b'f') => {
                    at = literal(bytes, at, b"false")?;
                    Kind::Bool
                }
                Some(b'n') => {
                    at = literal(bytes, at, b"null")?;
                    Kind::Null
                }
                Some(b'-' | b'0'..=b'9') => {
                    at = number(bytes, at)?;
                    Kind::Number
                }
                _ => return fail(bytes, at, SyntaxProblem::Value),
            };
            if !matches!(kind, Kind::Object | Kind::List) {
                self.push(start, at, kind, escaped);
            }
            // What may follow a value: the end, or a comma, or the end of what it is in.
            loop {
                let Some(&container) = self.open.last() else {
                    return Ok(at);
                };
                at = skip_space(bytes, at);
                let is_object = self.slots[container as usize].kind == Kind::Object;
                match bytes.get(at) {
                    Some(b'}') if is_object => {}
                    Some(b']') if !is_object => {}
                    Some(b',') => {
                        at = skip_space(bytes, at + 1);
                        if is_object {
                            at = self.key(bytes, at)?;
                        }
                        continue 'value;
                    }
                    _ => return fail(bytes, at, SyntaxProblem::Comma),
                }
                at += 1;
                let next = self.slots.len() as u32;
                let slot = &mut self.slots[container as usize];
                slot.end = at as u32;
                slot.next = next;
                self.open.pop();
            }
        }
    }

    /// Puts a value on the tape. Where a list or an object ends is put down when it does.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the text is known to be shorter than 4 GiB"
    )]
    fn push(&mut self, start: usize, end: usize, kind: Kind, escaped: bool) {
        let next = self.slots.len() as u32 + 1;
        self.slots.push(Slot {
            start: start as u32,
            end: end as u32,
            next,
            kind,
            escaped,
        });
    }

    /// Puts the key that begins at `at` on the tape, and passes its colon.
    #[inline]
    fn key(&mut self, bytes: &[u8], at: usize) -> Result<usize, SyntaxError> {
        if bytes.get(at) != Some(&b'"') {
            return fail(bytes, at, SyntaxProblem::Key);
        }
        let (end, escaped) = string(bytes, at, &mut self.marks)?;
        self.push(at, end, Kind::String, escaped);
        let colon = skip_space(bytes, end);
        if bytes.get(colon) != Some(&b':') {
            return fail(bytes, colon, SyntaxProblem::Colon);
        }
        Ok(colon + 1)
    }
}

#[cold]
fn fail<T>(bytes: &[u8], at: usize, what: SyntaxProblem) -> Result<T, SyntaxError> {
    let ends = at >= bytes.len();
    Err(SyntaxError {
        what: if ends { SyntaxProblem::End } else { what },
        offset: at.min(bytes.len()),
    })
}

#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| is_space(*b)) {
        at += 1;
    }
    at
}

/// The end of the string that begins at `start`, and whether it has escapes.
#[inline]
fn string(bytes: &[u8], start: usize, marks: &mut Marks) -> Result<(usize, bool), SyntaxError> {
    let Some((end, escaped)) = marks.end(bytes, start + 1) else {
        return open_string(bytes, start);
    };
    let odd = marks.odd();
    if odd != Odd::default() {
        check_string(bytes, start, end, odd)?;
    }
    Ok((end + 1, escaped))
}

/// What is wrong with a string that does not end.
#[cold]
fn open_string<T>(bytes: &[u8], start: usize) -> Result<T, SyntaxError> {
    check_escapes(bytes, start, bytes.len())?;
    fail(bytes, bytes.len(), SyntaxProblem::End)
}

/// Looks for what must not be in a string.
#[inline(never)]
fn check_string(bytes: &[u8], start: usize, end: usize, odd: Odd) -> Result<(), SyntaxError> {
    if odd.escape {
        check_escapes(bytes, start, end)?;
    }
    let string = &bytes[start..end];
    // Without a way out in the middle, so that it is done with vector instructions.
    if odd.control && string.iter().fold(u8::MAX, |least, &b| least.min(b)) < 0x20 {
        let control = string.iter().position(|&b| b < 0x20).unwrap_or_default();
        return fail(bytes, start + control, SyntaxProblem::Control);
    }
    Ok(())
}

fn check_escapes(bytes: &[u8], start: usize, end: usize) -> Result<(), SyntaxError> {
    let mut at = start;
    while let Some(plain) = memchr::memchr(b'\\', &bytes[at..end]) {
        at += plain;
        at = match bytes.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at + 2,
            Some(b'u') => hex(bytes, at + 2)?,
            _ => return fail(bytes, at + 1, SyntaxProblem::Escape),
        };
    }
    Ok(())
}

/// Passes four digits.
fn hex(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    for at in start..start + 4 {
        if !bytes.get(at).is_some_and(u8::is_ascii_hexdigit) {
            return fail(bytes, at, SyntaxProblem::Escape);
        }
    }
    Ok(start + 4)
}

#[inline]
fn literal(bytes: &[u8], at: usize, word: &[u8]) -> Result<usize, SyntaxError> {
    for (i, expected) in word.iter().enumerate() {
        if bytes.get(at + i) != Some(expected) {
            return fail(bytes, at + i, SyntaxProblem::Value);
        }
    }
    Ok(at + word.len())
}

#[inline]
fn number(bytes: &[u8], mut at: usize) -> Result<usize, SyntaxError> {
    if bytes[at] == b'-' {
        at += 1;
    }
    if bytes.get(at) == Some(&b'0') {
        at += 1;
    } else {
        at = digits(bytes, at)?;
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

/// Passes at least one digit.
#[inline]
fn digits(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    if at == start {
        return fail(bytes, at, SyntaxProblem::Value);
    }
    Ok(at)
}

impl<'a> Node<'a> {
    #[inline]
    fn slot(&self) -> Slot {
        self.tape.slots[self.at as usize]
    }

    #[inline]
    fn at(self, at: u32) -> Self {
        Self { at, ..self }
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.slot().kind
    }

    /// Its text.
    #[inline]
    pub fn raw(&self) -> RawJson<'a> {
        let Slot { start, end, .. } = self.slot();
        let text = &self.text[start as usize..end as usize];
        #[cfg(debug_assertions)]
        super::watch::mark(text);
        RawJson(text)
    }

    /// The bytes of its text. Where the text itself is not needed, this is quicker to take.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        let Slot { start, end, .. } = self.slot();
        &self.text.as_bytes()[start as usize..end as usize]
    }

    /// The bytes of a string between its quotes, when it has no escapes.
    #[inline]
    pub fn plain_bytes(&self) -> Option<&'a [u8]> {
        let slot = self.slot();
        let plain = slot.kind == Kind::String && !slot.escaped;
        let inner = slot.start as usize + 1..slot.end as usize - 1;
        plain.then(|| &self.text.as_bytes()[inner])
    }

    /// Where escapes begin in a string, counted from behind its quote. They are known since it was read.
    #[inline]
    pub fn escapes(&self) -> Escapes<'a> {
        let slot = self.slot();
        let inner = match slot.kind {
            Kind::String => slot.start as usize + 1..slot.end as usize - 1,
            _ => slot.start as usize..slot.start as usize,
        };
        self.tape.marks.escapes(inner)
    }

    /// Where its text begins in the text that was read.
    #[inline]
    pub fn offset(&self) -> usize {
        self.slot().start as usize
    }

    /// Its place on the tape: that of a list's first element is one behind the list's, that of an object's
    /// first key one behind the object's, and that of a value one behind its key's.
    #[inline]
    pub fn place(&self) -> u32 {
        self.at
    }

    /// The place behind it and all that is inside it.
    #[inline]
    pub fn place_behind(&self) -> u32 {
        self.slot().next
    }

    /// The value, or the key, at another place of the same tape.
    ///
    /// # Panics
    ///
    /// What is asked of it panics when there is no such place.
    #[inline]
    #[must_use]
    pub fn go_to(self, place: u32) -> Self {
        self.at(place)
    }

    /// Whether it is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The string, as it is written.
    #[inline]
    pub fn as_raw_str(&self) -> Option<RawStr<'a>> {
        let Slot {
            start,
            end,
            kind,
            escaped,
            ..
        } = self.slot();
        (kind == Kind::String).then(|| {
            let text = &self.text[start as usize..end as usize];
            #[cfg(debug_assertions)]
            super::watch::mark(text);
            RawStr { text, escaped }
        })
    }

    /// The string, borrowed unless it holds an escape; half surrogate pairs become U+FFFD.
    #[inline]
    pub fn as_str(&self) -> Option<Cow<'a, str>> {
        self.as_raw_str().map(RawStr::to_text_lossy)
    }

    /// Whether it is this string.
    #[inline]
    pub fn is(&self, text: &str) -> bool {
        self.as_raw_str().is_some_and(|raw| raw.is(text))
    }

    /// A whole number of 64 bits.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        self.number()?.parse().ok()
    }

    /// A whole number of 64 bits, with its sign.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        self.number()?.parse().ok()
    }

    /// A number.
    #[inline]
    pub fn as_f64(&self) -> Option<f64> {
        self.number()?.parse().ok()
    }

    #[inline]
    fn number(&self) -> Option<&'a str> {
        (self.kind() == Kind::Number).then(|| self.raw().get())
    }

    /// True or false.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw().get() == "true")
    }

    /// The value of a field. `None` when this is no object or has no such field; the first when it
    /// has several.
    pub fn get(&self, key: &str) -> Option<Self> {
        let object = self.slot();
        if object.kind != Kind::Object {
            return None;
        }
        // Nearly every field is passed over by the length of its key alone.
        let quoted = key.len() + 2;
        let mut at = self.at + 1;
        while at < object.next {
            let [name, value] = self.tape.slots.get(at as usize..)?.first_chunk()?;
            let is_it = if name.escaped {
                self.at(at).is(key)
            } else {
                (name.end - name.start) as usize == quoted
                    && self.text.as_bytes()[name.start as usize + 1..][..key.len()]
                        == *key.as_bytes()
            };
            if is_it {
                return Some(self.at(at + 1));
            }
            at = value.next;
        }
        None
    }

    /// The field of a field of …
    pub fn path(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(*self, |node, key| node.get(key))
    }

    /// The text of a field that is a string.
    #[inline]
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.as_str()
    }

    /// The fields of an object, in order; none when it is no object.
    #[inline]
    pub fn fields(self) -> Fields<'a> {
        Fields(self.children(Kind::Object))
    }

    /// The elements of a list, in order; none when it is no list.
    #[inline]
    pub fn items(self) -> Items<'a> {
        Items(self.children(Kind::List))
    }

    #[inline]
    fn children(self, kind: Kind) -> Children<'a> {
        let slot = self.slot();
        Children {
            next: self.at(self.at + 1),
            end: if slot.kind == kind { slot.next } else { 0 },
        }
    }
}

/// What is left of a list or an object.
#[derive(Debug, Clone)]
struct Children<'a> {
    next: Node<'a>,
    end: u32,
}

impl<'a> Children<'a> {
    #[inline]
    fn next(&mut self) -> Option<Node<'a>> {
        if self.next.at >= self.end {
            return None;
        }
        let child = self.next;
        self.next.at = child.slot().next;
        Some(child)
    }
}

/// The fields of an object, in order.
#[derive(Debug, Clone)]
pub struct Fields<'a>(Children<'a>);

impl<'a> Iterator for Fields<'a> {
    type Item = (RawStr<'a>, Node<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.next()?.as_raw_str()?;
        Some((key, self.0.next()?))
    }
}

/// The elements of a list, in order.
#[derive(Debug, Clone)]
pub struct Items<'a>(Children<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Node<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl std::fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.raw().get())
    }
}
