//! Objects made of values that are JSON already.

use super::{Json, RawJson, RawStr};

/// How long such an object is, as a rule: one piece of memory holds it.
const ROOM: usize = 256;

/// What an object is written to.
pub trait Target {
    /// Takes a piece of the object: a brace, a key, a comma.
    fn put(&mut self, text: &str);

    /// Takes a whole value.
    fn value(&mut self, value: RawJson<'_>);

    /// How many bytes were put so far. Values may count less than they are long.
    fn written(&self) -> usize;

    /// Goes back to where so many bytes were put, and no value after them.
    fn truncate(&mut self, len: usize);

    /// Whether the last byte is a brace that opens.
    fn is_open(&self) -> bool;
}

impl Target for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }

    fn value(&mut self, value: RawJson<'_>) {
        self.push_str(value.get());
    }

    fn written(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self, len: usize) {
        Self::truncate(self, len);
    }

    fn is_open(&self) -> bool {
        self.ends_with('{')
    }
}

/// An object in the making. Its parts were checked when they were read, so the whole is not read again.
#[derive(Debug)]
pub struct Building<T = String> {
    to: T,
    /// How long it is while nothing is in it.
    empty: usize,
}

impl Default for Building {
    fn default() -> Self {
        Self::on(String::with_capacity(ROOM))
    }
}

impl<T: Target> Building<T> {
    /// Begins an object behind what is there.
    pub fn on(mut to: T) -> Self {
        to.put("{");
        let empty = to.written();
        Self { to, empty }
    }

    /// Adds a field of another object.
    pub fn field(&mut self, key: RawStr<'_>, value: RawJson<'_>) {
        self.comma();
        self.to.put(key.raw().get());
        self.to.put(":");
        self.to.value(value);
    }

    /// Adds a value under a name of ours, which needs no escapes.
    pub fn named(&mut self, name: &'static str, value: RawJson<'_>) {
        self.name(name);
        self.to.value(value);
    }

    /// Adds an object under a name of ours, unless nothing is put into it.
    pub fn inside(&mut self, name: &'static str, put: impl FnOnce(&mut Self)) {
        let from = self.to.written();
        self.name(name);
        self.to.put("{");
        let begin = self.to.written();
        put(self);
        if self.to.written() == begin {
            self.to.truncate(from);
        } else {
            self.to.put("}");
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.to.written() == self.empty
    }

    /// Ends the object.
    pub fn close(mut self) -> T {
        self.to.put("}");
        self.to
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(!name.contains(['"', '\\']), "{name} needs escapes");
        self.comma();
        self.to.put("\"");
        self.to.put(name);
        self.to.put("\":");
    }

    /// No value ends with a brace that opens, so one at the end is that of the object.
    fn comma(&mut self) {
        if !self.to.is_open() {
            self.to.put(",");
        }
    }
}

impl Building {
    /// The object; its text where that nests too deep to be a value.
    pub fn finish(self) -> Result<Json, String> {
        let text = self.close();
        let opened = memchr::memchr2_iter(b'{', b'[', text.as_bytes());
        if opened.take(Json::MAX_DEPTH + 1).count() > Json::MAX_DEPTH {
            return Json::parse(&text).map_err(|_| text);
        }
        Ok(RawJson(&text).into())
    }
}
