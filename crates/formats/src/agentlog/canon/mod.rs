//! The canonical form of a JSON value: what is hashed.
//!
//! Keys in NFC and sorted by their UTF-8 bytes, strings in NFC with the shortest escapes, whole numbers of
//! 64 bits as they are, other numbers as the shortest decimal that reads back as the same double and never
//! with an exponent, no white space. Duplicate keys (also those that are the same only in NFC), half
//! surrogate pairs and numbers beyond a double have no canonical form.
//!
//! Most of what is written is canonical already but for the order of keys. So a string that is in its
//! canonical form, which a look at its bytes tells, is copied as it stands; a number likewise; and an
//! object whose keys are in order is written as it comes.

mod nfc;
mod number;
mod string;

use std::collections::BTreeMap;

use quipu_model::json::{Fields, Items, Kind, Node, RawStr};
use sha2::{Digest as _, Sha256};

use super::ContentId;

pub(super) use number::{double, plain};

/// Why a value has no canonical form, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} (column {})", self.offset + 1)]
pub struct CanonError {
    /// What is wrong.
    pub what: CanonProblem,
    /// The byte where the value begins that is wrong, in the text the node was read from.
    pub offset: usize,
}

/// What has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonProblem {
    /// An object has a key twice, perhaps in two spellings.
    #[error("key {0:?} is there twice")]
    DuplicateKey(String),
    /// A string that is no text.
    #[error("half of a surrogate pair")]
    LoneSurrogate,
    /// A number that no double holds.
    #[error("the number {0} is beyond a double")]
    NumberRange(String),
}

/// Writes canonical forms, and hashes them. Kept from value to value, because it keeps its buffers.
#[derive(Debug, Default)]
pub struct Canon {
    buffer: Vec<u8>,
    room: Room<'static>,
    lenient: bool,
}

/// What a value is taken apart in.
#[derive(Debug, Default)]
struct Room<'a> {
    frames: Vec<Frame<'a>>,
    sorted: Vec<(Key<'a>, Node<'a>)>,
}

impl Room<'_> {
    /// The same room, empty, for another value. The standard library keeps the memory of a vector that is
    /// mapped to one of the same layout.
    fn empty<'b>(mut self) -> Room<'b> {
        self.frames.clear();
        self.sorted.clear();
        Room {
            frames: self.frames.into_iter().map_while(|_| None).collect(),
            sorted: self.sorted.into_iter().map_while(|_| None).collect(),
        }
    }
}

/// Where canonical bytes go.
pub(super) trait Sink {
    fn put(&mut self, bytes: &[u8]);
    fn byte(&mut self, byte: u8);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// How much is gathered before it is hashed.
const BLOCK: usize = 16 * 1024;

/// Hashes what is put to it, a block at a time.
struct Hashing<'b> {
    buffer: &'b mut Vec<u8>,
    hash: Sha256,
}

impl Sink for Hashing<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BLOCK {
            self.spill(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// A block may be a few bytes longer for it.
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.buffer.push(byte);
    }
}

impl Hashing<'_> {
    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        self.hash.update(&self.buffer);
        self.buffer.clear();
        if bytes.len() >= BLOCK {
            self.hash.update(bytes);
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }
}

impl Canon {
    /// With empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// As the reference implementation does it where the specification forbids: of several values with the
    /// same key the last counts, and keys that are the same only in NFC are both written, in their order.
    pub fn lenient() -> Self {
        Self {
            lenient: true,
            ..Self::default()
        }
    }

    /// The id of a payload.
    ///
    /// # Errors
    ///
    /// When it has no canonical form.
    pub fn id(&mut self, payload: Node<'_>) -> Result<ContentId, CanonError> {
        self.buffer.clear();
        let mut sink = Hashing {
            buffer: &mut self.buffer,
            hash: Sha256::new(),
        };
        let mut room = std::mem::take(&mut self.room).empty();
        let written = write(payload, self.lenient, &mut room, &mut sink);
        self.room = room.empty();
        written?;
        let Hashing { buffer, mut hash } = sink;
        hash.update(buffer);
        Ok(ContentId(hash.finalize().into()))
    }

    /// Writes the canonical form of a value.
    ///
    /// # Errors
    ///
    /// When it has none; then what was written of it is to be thrown away.
    pub fn write(&mut self, value: Node<'_>, out: &mut Vec<u8>) -> Result<(), CanonError> {
        let mut room = std::mem::take(&mut self.room).empty();
        let written = write(value, self.lenient, &mut room, out);
        self.room = room.empty();
        written
    }
}

/// A list or an object of which some is written.
#[derive(Debug)]
enum Frame<'a> {
    List(Items<'a>),
    /// Its keys are in order as they come.
    Ordered(Fields<'a>),
    /// Its keys are from here on in `sorted`, the first at the end.
    Sorted(usize),
}

/// A key, as it reads in NFC, which is what keys are sorted by.
#[derive(Debug)]
enum Key<'a> {
    /// Canonical as it stands.
    Verbatim(&'a str),
    Text(String),
}

impl<'a> Key<'a> {
    #[inline]
    fn of(raw: RawStr<'a>, nfc: bool, offset: usize) -> Result<Self, CanonError> {
        match raw.plain() {
            Some(text) if nfc || nfc::is_surely(text.as_bytes()) => Ok(Self::Verbatim(text)),
            _ => string::text(raw, offset).map(Self::Text),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Verbatim(text) => text.as_bytes(),
            Self::Text(text) => text.as_bytes(),
        }
    }

    #[inline]
    fn put(&self, out: &mut impl Sink) {
        match self {
            Self::Verbatim(text) => {
                out.byte(b'"');
                out.put(text.as_bytes());
                out.put(b"\":");
            }
            Self::Text(text) => {
                string::put(text, out);
                out.byte(b':');
            }
        }
    }
}

/// Without recursion: how deep a value may nest is for the reader to say.
fn write<'a>(
    value: Node<'a>,
    lenient: bool,
    room: &mut Room<'a>,
    out: &mut impl Sink,
) -> Result<(), CanonError> {
    let Room { frames, sorted } = room;
    let mut value = value;
    // Mostly all of it is, and one look at the whole is quicker than one at each string.
    let nfc = nfc::is_surely(value.raw().get().as_bytes());
    loop {
        // Whether what comes next is the first in its list or object.
        let mut first = false;
        match value.kind() {
            Kind::String => {
                if let Some(raw) = value.as_raw_str() {
                    string::write(raw, nfc, value.offset(), out)?;
                }
            }
            Kind::Number => number::write(value, out)?,
            Kind::Null | Kind::Bool => out.put(value.raw().get().as_bytes()),
            Kind::List => {
                out.byte(b'[');
                frames.push(Frame::List(value.items()));
                first = true;
            }
            Kind::Object => {
                out.byte(b'{');
                frames.push(object(value, nfc, lenient, sorted)?);
                first = true;
            }
        }
        value = loop {
            let Some(frame) = frames.last_mut() else {
                return Ok(());
            };
            if let Some((key, value)) = frame.next(nfc, sorted)? {
                if !first {
                    out.byte(b',');
                }
                if let Some(key) = key {
                    key.put(out);
                }
                break value;
            }
            out.byte(frame.close());
            frames.pop();
            first = false;
        };
    }
}

impl<'a> Frame<'a> {
    #[inline]
    fn next(
        &mut self,
        nfc: bool,
        sorted: &mut Vec<(Key<'a>, Node<'a>)>,
    ) -> Result<Option<(Option<Key<'a>>, Node<'a>)>, CanonError> {
        Ok(match self {
            Self::List(items) => items.next().map(|value| (None, value)),
            Self::Ordered(fields) => match fields.next() {
                Some((raw, value)) => Some((Some(Key::of(raw, nfc, value.offset())?), value)),
                None => None,
            },
            Self::Sorted(begin) if sorted.len() > *begin => {
                sorted.pop().map(|(key, value)| (Some(key), value))
            }
            Self::Sorted(_) => None,
        })
    }

    fn close(&self) -> u8 {
        match self {
            Self::List(_) => b']',
            Self::Ordered(_) | Self::Sorted(_) => b'}',
        }
    }
}

/// Finds the order of an object's keys.
fn object<'a>(
    object: Node<'a>,
    nfc: bool,
    lenient: bool,
    sorted: &mut Vec<(Key<'a>, Node<'a>)>,
) -> Result<Frame<'a>, CanonError> {
    if in_order(object, nfc) {
        return Ok(Frame::Ordered(object.fields()));
    }
    let begin = sorted.len();
    for (raw, value) in object.fields() {
        sorted.push((Key::of(raw, nfc, value.offset())?, value));
    }
    let Err(twice) = sort(&mut sorted[begin..]) else {
        return Ok(Frame::Sorted(begin));
    };
    if !lenient {
        return Err(twice);
    }
    sorted.truncate(begin);
    sorted.extend(last_of_each(object)?);
    Ok(Frame::Sorted(begin))
}

/// The fields of an object with the last value of each key, in the order in which they are popped.
#[cold]
fn last_of_each(object: Node<'_>) -> Result<Vec<(Key<'_>, Node<'_>)>, CanonError> {
    let mut last: BTreeMap<_, (usize, Key<'_>, Node<'_>)> = BTreeMap::new();
    for (n, (raw, value)) in object.fields().enumerate() {
        let key = Key::of(raw, false, value.offset())?;
        let first = last.entry(raw.to_text()).or_insert((n, key, value));
        first.2 = value;
    }
    let mut fields: Vec<_> = last.into_values().collect();
    fields.sort_unstable_by(|(m, a, _), (n, b, _)| b.bytes().cmp(a.bytes()).then(n.cmp(m)));
    let fields = fields.into_iter().map(|(_, key, value)| (key, value));
    Ok(fields.collect())
}

/// Puts fields in the order of their keys, the first at the end, so that it is popped first.
fn sort(fields: &mut [(Key<'_>, Node<'_>)]) -> Result<(), CanonError> {
    fields.sort_unstable_by(|(a, _), (b, _)| b.bytes().cmp(a.bytes()));
    let same = |pair: &&[(Key<'_>, Node<'_>)]| pair[0].0.bytes() == pair[1].0.bytes();
    let Some(pair) = fields.windows(2).find(same) else {
        return Ok(());
    };
    let key = String::from_utf8_lossy(pair[0].0.bytes()).into_owned();
    Err(CanonError {
        what: CanonProblem::DuplicateKey(key),
        offset: pair[0].1.offset().max(pair[1].1.offset()),
    })
}

/// Whether the keys of an object are all canonical as they stand, in order, and none is there twice.
#[inline]
fn in_order(object: Node<'_>, nfc: bool) -> bool {
    let mut before: Option<&str> = None;
    for (raw, _) in object.fields() {
        let Some(key) = raw.plain() else {
            return false;
        };
        if before.is_some_and(|before| before.as_bytes() >= key.as_bytes())
            || !(nfc || nfc::is_surely(key.as_bytes()))
        {
            return false;
        }
        before = Some(key);
    }
    true
}

#[cfg(test)]
mod tests;
