//! Objects made of values that are JSON already.

use super::{Json, RawJson, RawStr};

/// How long such an object is, as a rule: one piece of memory holds it.
const ROOM: usize = 256;

/// An object in the making. Its parts were checked when they were read, so the whole is not read again.
#[derive(Debug)]
pub struct Building(String);

impl Default for Building {
    fn default() -> Self {
        let mut text = String::with_capacity(ROOM);
        text.push('{');
        Self(text)
    }
}

impl Building {
    /// Adds a field of another object.
    pub fn field(&mut self, key: RawStr<'_>, value: RawJson<'_>) {
        self.comma();
        self.0.push_str(key.raw().get());
        self.0.push(':');
        self.0.push_str(value.get());
    }

    /// Adds a value under a name of ours, which needs no escapes.
    pub fn named(&mut self, name: &'static str, value: RawJson<'_>) {
        self.name(name);
        self.0.push_str(value.get());
    }

    /// Adds an object under a name of ours, unless nothing is put into it.
    pub fn inside(&mut self, name: &'static str, put: impl FnOnce(&mut Self)) {
        let from = self.0.len();
        self.name(name);
        self.0.push('{');
        let begin = self.0.len();
        put(self);
        if self.0.len() == begin {
            self.0.truncate(from);
        } else {
            self.0.push('}');
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    /// The object; its text where that nests too deep to be a value.
    pub fn finish(mut self) -> Result<Json, String> {
        self.0.push('}');
        let opened = memchr::memchr2_iter(b'{', b'[', self.0.as_bytes());
        if opened.take(Json::MAX_DEPTH + 1).count() > Json::MAX_DEPTH {
            return Json::parse(&self.0).map_err(|_| self.0);
        }
        Ok(RawJson(&self.0).into())
    }

    fn name(&mut self, name: &'static str) {
        debug_assert!(!name.contains(['"', '\\']), "{name} needs escapes");
        self.comma();
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
    }

    /// No value ends with a brace that opens, so one at the end is that of the object.
    fn comma(&mut self) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
    }
}
