//! Where a walk is: what is open, and what is known of it.

use std::cell::Cell;
use std::ops::Range;

use quipu_model::json::Node;

use super::given::Given;
use crate::raw::escape::Cursor;
use crate::raw::keys::{Class, Known, Name};
use crate::sensitive::Exposes;

/// What is used again for each JSON text.
#[derive(Debug, Default)]
pub(in crate::raw) struct Level {
    pub(super) frames: Vec<Frame>,
    pub(super) blocks: Vec<Block>,
    pub(super) decoded: Vec<u8>,
    /// What is known of keys, by their places.
    pub(super) known: Vec<Known>,
    /// The keys of the object that was opened last that tell something of others.
    pub(super) telling: Vec<u32>,
    /// What is known of strings that come next, the first at the end.
    pub(super) given: Vec<Given>,
}

impl Level {
    /// Takes back memory that one very large text needed.
    pub(super) fn shrink(&mut self) {
        const KEEP: usize = 64 * 1024;
        if self.known.capacity() > KEEP {
            self.known = Vec::new();
            self.telling = Vec::new();
        }
        if self.decoded.capacity() > 16 << 20 {
            self.decoded = Vec::new();
        }
    }
}

/// A list or an object that is open.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is known by itself, and all of them together"
)]
pub(super) struct Frame {
    /// Where it is on the tape, and where it ends.
    pub(super) at: u32,
    pub(super) end: u32,
    pub(super) object: bool,
    /// The key it stands under, by its place; that of the list for what is in one.
    pub(super) key: Option<u32>,
    /// What that key tells.
    pub(super) class: Class,
    /// What its own keys tell.
    pub(super) has: Class,
    /// How many items were begun.
    pub(super) items: u32,
    /// Whether a list has more than one item.
    pub(super) many: bool,
    pub(super) taint: Taint,
    /// A secret file is named in it: what else is in it is of the file.
    pub(super) content: bool,
    /// It is of a call that shows something.
    pub(super) results: Option<Exposes>,
    /// What its `value` is the value of, by its place.
    pub(super) pair: Option<u32>,
    /// The file that its content is of, by its place.
    pub(super) file: Option<u32>,
    /// Its data is a picture or the like.
    pub(super) media: bool,
    /// It is of a stream, and which.
    pub(super) lane: Option<u64>,
}

/// How much of a value is secret because of where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taint {
    None,
    /// What came of a call is somewhere in it.
    Seek(Exposes),
    /// All of it.
    Whole(Exposes),
}

/// A text that may go on in the next item of its list.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) list: u32,
    pub(super) item: u32,
    pub(super) raw: Range<usize>,
    pub(super) field: String,
}

/// The string that a JSON text is in.
pub(in crate::raw) struct Outer<'a> {
    pub(super) root: Node<'a>,
    pub(super) frames: &'a [Frame],
    pub(super) key: Option<u32>,
    pub(super) class: Class,
    pub(super) taint: Taint,
    /// Where what is between the quotes begins, in the text around it.
    pub(super) start: usize,
    pub(super) raw: &'a str,
    pub(super) cursor: Cell<Cursor>,
    pub(super) up: Option<&'a Outer<'a>>,
}

impl Outer<'_> {
    /// The place in the outermost text that says what stands at a place.
    pub(super) fn lift(&self, at: usize) -> usize {
        let mut cursor = self.cursor.get();
        let here = self.start + cursor.find(self.raw, at);
        self.cursor.set(cursor);
        self.up.map_or(here, |up| up.lift(here))
    }
}

/// What is known of a value.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) name: Option<&'a str>,
    /// A number for that name; none where the file is not the usual one.
    pub(super) number: Name,
    pub(super) file: Option<&'a str>,
    pub(super) key: Option<u32>,
    pub(super) class: Class,
    pub(super) taint: Taint,
    pub(super) media: bool,
    pub(super) lane: Option<u64>,
}

/// Where a walk is.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) depth: u8,
    pub(super) text: &'a str,
    pub(super) root: Node<'a>,
    pub(super) outer: Option<&'a Outer<'a>>,
}
