//! A line in the making: what is written out, and what only refers to the log.

use quipu_model::Json;
use quipu_model::json::{RawJson, Target};

use crate::Record;

/// Shorter pieces are copied: a reference would take as much room as they do once they are compressed.
const SHORTEST: usize = 32;

/// Bytes of a log that belong into a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Where they belong: behind so many bytes that are written out.
    pub place: usize,
    /// Where they are in the log.
    pub offset: u64,
    /// How many they are.
    pub len: usize,
}

/// A line. What the log has with the same bytes is not copied, but referred to.
#[derive(Debug, Default)]
pub struct Line {
    bytes: Vec<u8>,
    references: Vec<Reference>,
    record: Option<At>,
    deep: bool,
}

/// Where the record at hand is in memory. Its address is only compared with those of what entries borrow.
#[derive(Debug, Clone, Copy)]
struct At {
    address: usize,
    len: usize,
    offset: u64,
}

/// Where a line can be cut off again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    bytes: usize,
    references: usize,
}

impl Line {
    /// From now on entries borrow from this record, or from none that is in the log as it is. Has to be called before
    /// a record is gone: another text may come to lie where it was.
    pub fn record(&mut self, record: Option<Record<'_>>) {
        self.record = record.map(|record| At {
            address: record.text.as_ptr().addr(),
            len: record.text.len(),
            offset: record.offset,
        });
    }

    /// What is written out.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What is not, in the order of the line.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Begins another line.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.references.clear();
    }

    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Where in the log a piece of the record at hand is; `None` for what is short or stands elsewhere.
    fn find(&self, text: &str) -> Option<u64> {
        let record = self.record.filter(|_| text.len() >= SHORTEST)?;
        let into = text.as_ptr().addr().checked_sub(record.address)?;
        let is_inside = into.checked_add(text.len())? <= record.len;
        is_inside.then(|| record.offset + into as u64)
    }

    /// Writes text that is JSON already.
    pub(super) fn raw(&mut self, text: &str) {
        match self.find(text) {
            Some(offset) => self.references.push(Reference {
                place: self.bytes.len(),
                offset,
                len: text.len(),
            }),
            None => self.bytes.extend_from_slice(text.as_bytes()),
        }
    }

    /// Writes a text as a string.
    pub(super) fn string(&mut self, text: &str) {
        let escapes = |byte: u8| matches!(byte, b'"' | b'\\' | ..0x20);
        if self.find(text).is_some() && !text.bytes().any(escapes) {
            self.bytes.push(b'"');
            self.raw(text);
            self.bytes.push(b'"');
        } else {
            // A vector takes whatever is written to it.
            drop(serde_json::to_writer(&mut self.bytes, text));
        }
    }

    pub(crate) fn mark(&mut self) -> Mark {
        self.deep = false;
        Mark {
            bytes: self.bytes.len(),
            references: self.references.len(),
        }
    }

    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.references.truncate(mark.references);
    }

    /// Whether one of the values since the last mark may nest too deep to be inside of two objects.
    pub(crate) fn may_be_too_deep(&self) -> bool {
        self.deep
    }
}

impl Target for &mut Line {
    fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn value(&mut self, value: RawJson<'_>) {
        const DEEPEST: usize = Json::MAX_DEPTH - 2;
        let text = value.get();
        if text.len() > 2 * DEEPEST {
            let opened = memchr::memchr2_iter(b'{', b'[', text.as_bytes());
            self.deep |= opened.take(DEEPEST + 1).count() > DEEPEST;
        }
        self.raw(text);
    }

    fn written(&self) -> usize {
        self.bytes.len()
    }

    fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    fn is_open(&self) -> bool {
        self.bytes.last() == Some(&b'{')
    }
}
