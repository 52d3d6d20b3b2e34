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
mod sink;
mod string;

use std::collections::BTreeMap;

use quipu_model::json::{Kind, Node, RawStr};

use super::ContentId;

pub(super) use number::{double, plain};
use sink::{Block, Hashing, Sink};

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
    block: Block,
    room: Room,
    lenient: bool,
}

/// What a value is taken apart in: places on its tape.
#[derive(Debug, Default)]
struct Room {
    frames: Vec<Frame>,
    fields: Vec<Field>,
    /// Keys that are not canonical as they stand, as they read in NFC.
    texts: Vec<String>,
}

/// A list or an object of which some is written.
#[derive(Debug)]
enum Frame {
    /// The next element, and the place behind the last.
    List(u32, u32),
    /// Its fields are those from here on, the first of them at the end.
    Object(usize),
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
struct Field {
    /// The first bytes of the key, which are mostly enough to tell keys apart.
    begin: u64,
    key: Key,
    value: u32,
}

#[derive(Debug, Clone, Copy)]
enum Key {
    /// Canonical as it stands, at this place.
    Verbatim(u32),
    /// Which of the texts it is.
    Text(u32),
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
        let mut sink = Hashing::new(&mut self.block);
        self.room.write(payload, self.lenient, &mut sink)?;
        Ok(ContentId(sink.finish()))
    }

    /// Writes the canonical form of a value.
    ///
    /// # Errors
    ///
    /// When it has none; then what was written of it is to be thrown away.
    pub fn write(&mut self, value: Node<'_>, out: &mut Vec<u8>) -> Result<(), CanonError> {
        self.room.write(value, self.lenient, out)
    }
}

impl Room {
    /// Without recursion: how deep a value may nest is for the reader to say.
    fn write(
        &mut self,
        value: Node<'_>,
        lenient: bool,
        out: &mut impl Sink,
    ) -> Result<(), CanonError> {
        self.frames.clear();
        self.fields.clear();
        self.texts.clear();
        // Mostly all of it is, and one look at the whole is quicker than one at each string.
        let nfc = nfc::is_surely(value.bytes());
        let mut value = value;
        loop {
            // Whether what comes next is the first in its list or object.
            let mut first = false;
            match value.kind() {
                Kind::String if nfc && value.plain_bytes().is_some() => out.put(value.bytes()),
                Kind::String => {
                    if let Some(raw) = value.as_raw_str() {
                        string::write(raw, nfc, value.offset(), out)?;
                    }
                }
                Kind::Number => number::write(value, out)?,
                Kind::Null | Kind::Bool => out.put(value.bytes()),
                Kind::List => {
                    out.byte(b'[');
                    let inside = Frame::List(value.place() + 1, value.place_behind());
                    self.frames.push(inside);
                    first = true;
                }
                Kind::Object => {
                    out.byte(b'{');
                    self.frames.push(Frame::Object(self.fields.len()));
                    self.take_apart(value, nfc, lenient)?;
                    first = true;
                }
            }
            match self.next(value, first, out) {
                Some(next) => value = next,
                None => return Ok(()),
            }
        }
    }

    /// Closes what is at its end, and gives what comes then, its key written; `None` at the end of all.
    #[inline]
    fn next<'a>(
        &mut self,
        tape: Node<'a>,
        mut first: bool,
        out: &mut impl Sink,
    ) -> Option<Node<'a>> {
        loop {
            let (key, place) = match self.frames.last_mut()? {
                Frame::List(at, behind) if *at < *behind => {
                    let place = *at;
                    *at = tape.go_to(place).place_behind();
                    (None, place)
                }
                Frame::Object(begin) if self.fields.len() > *begin => {
                    let field = self.fields.pop()?;
                    (Some(field.key), field.value)
                }
                ended => {
                    out.byte(if matches!(ended, Frame::List(..)) {
                        b']'
                    } else {
                        b'}'
                    });
                    self.frames.pop();
                    first = false;
                    continue;
                }
            };
            if !first {
                out.byte(b',');
            }
            match key {
                None => {}
                Some(Key::Verbatim(place)) => {
                    out.put(tape.go_to(place).bytes());
                    out.byte(b':');
                }
                Some(Key::Text(n)) => {
                    string::put(&self.texts[n as usize], out);
                    out.byte(b':');
                }
            }
            return Some(tape.go_to(place));
        }
    }

    /// Puts the fields of an object down in the order of their keys, the first at the end.
    fn take_apart(&mut self, object: Node<'_>, nfc: bool, lenient: bool) -> Result<(), CanonError> {
        let begin = self.fields.len();
        let (mut at, behind) = (object.place() + 1, object.place_behind());
        while at < behind {
            let (key, value) = (object.go_to(at), object.go_to(at + 1));
            let (bytes, key) = match key.plain_bytes() {
                Some(bytes) if nfc || nfc::is_surely(bytes) => (bytes, Key::Verbatim(at)),
                _ => {
                    let Some(raw) = key.as_raw_str() else {
                        break;
                    };
                    let n = to_u32(self.texts.len());
                    self.texts.push(string::text(raw, value.offset())?);
                    (self.texts[n as usize].as_bytes(), Key::Text(n))
                }
            };
            self.fields.push(Field {
                begin: begin_of(bytes),
                key,
                value: at + 1,
            });
            at = value.place_behind();
        }
        let (fields, texts) = (&mut self.fields[begin..], &self.texts);
        let order = |a: &Field, b: &Field| {
            let begins = b.begin.cmp(&a.begin);
            begins.then_with(|| b.bytes(object, texts).cmp(a.bytes(object, texts)))
        };
        fields.sort_unstable_by(order);
        let same = |pair: &&[Field]| order(&pair[0], &pair[1]).is_eq();
        let Some(pair) = fields.windows(2).find(same) else {
            return Ok(());
        };
        if lenient {
            self.last_of_each(object, begin);
            return Ok(());
        }
        let key = String::from_utf8_lossy(pair[0].bytes(object, texts)).into_owned();
        let later = pair[0].value.max(pair[1].value);
        Err(CanonError {
            what: CanonProblem::DuplicateKey(key),
            offset: object.go_to(later).offset(),
        })
    }

    /// Of the fields from `begin` on, leaves the last value of each key. Those that are the same only in NFC
    /// stay in their order.
    #[cold]
    fn last_of_each(&mut self, object: Node<'_>, begin: usize) {
        let mut fields = self.fields.split_off(begin);
        fields.sort_unstable_by_key(|field| field.value);
        // Where a key was first, and its last field.
        let mut last: BTreeMap<_, (u32, Field)> = BTreeMap::new();
        for field in fields {
            let raw = object.go_to(field.value - 1).as_raw_str();
            let key = raw.and_then(RawStr::to_text);
            last.entry(key).or_insert((field.value, field)).1 = field;
        }
        let mut fields: Vec<_> = last.into_values().collect();
        let texts = &self.texts;
        fields.sort_unstable_by(|(first, a), (second, b)| {
            let keys = b.bytes(object, texts).cmp(a.bytes(object, texts));
            keys.then(second.cmp(first))
        });
        self.fields
            .extend(fields.into_iter().map(|(_, field)| field));
    }
}

impl Field {
    /// The key as it reads in NFC, which is what keys are sorted by.
    fn bytes<'a>(&self, object: Node<'a>, texts: &'a [String]) -> &'a [u8] {
        match self.key {
            Key::Text(n) => texts[n as usize].as_bytes(),
            Key::Verbatim(place) => object.go_to(place).plain_bytes().unwrap_or_default(),
        }
    }
}

/// The first bytes of a key, as a number that is in the order of the keys.
#[inline]
fn begin_of(key: &[u8]) -> u64 {
    if let Some(begin) = key.first_chunk() {
        return u64::from_be_bytes(*begin);
    }
    let bytes = key.iter().enumerate();
    bytes.fold(0, |begin, (n, byte)| {
        begin | u64::from(*byte) << (56 - 8 * n)
    })
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).expect("there are fewer keys than places on a tape")
}

#[cfg(test)]
mod tests;
