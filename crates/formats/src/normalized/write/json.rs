//! Objects, written field by field.

use std::io::Write as _;

use quipu_model::{Json, Timestamp};
use serde::Serialize as _;

/// Strings up to this length are looked through for anything that needs an escape.
const SHORT: usize = 48;

/// An object that is being written.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    pub(super) fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }

    /// A field whose value `write` writes. Names hold nothing that needs an escape.
    pub(super) fn field(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self.out);
    }

    pub(super) fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) {
        self.field(name, |out| {
            let mut inner = Object::begin(out);
            write(&mut inner);
            inner.end();
        });
    }

    pub(super) fn list<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        self.field(name, |out| {
            out.push(b'[');
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        });
    }

    pub(super) fn string(&mut self, name: &str, text: &str) {
        self.field(name, |out| string(out, text));
    }

    /// A text, or `null`.
    pub(super) fn nullable(&mut self, name: &str, text: Option<&str>) {
        self.field(name, |out| match text {
            Some(text) => string(out, text),
            None => out.extend_from_slice(b"null"),
        });
    }

    /// A text, where there is one.
    pub(super) fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.string(name, text);
        }
    }

    pub(super) fn number(&mut self, name: &str, n: u64) {
        self.field(name, |out| {
            out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
        });
    }

    pub(super) fn count(&mut self, name: &str, n: Option<u64>) {
        if let Some(n) = n {
            self.number(name, n);
        }
    }

    pub(super) fn bool(&mut self, name: &str, is: bool) {
        self.field(name, |out| {
            out.extend_from_slice(if is { b"true" } else { b"false" });
        });
    }

    pub(super) fn optional_bool(&mut self, name: &str, is: Option<bool>) {
        if let Some(is) = is {
            self.bool(name, is);
        }
    }

    /// A mark, which is only there when it is set.
    pub(super) fn mark(&mut self, name: &str, is: bool) {
        if is {
            self.bool(name, true);
        }
    }

    pub(super) fn json(&mut self, name: &str, value: &Json) {
        self.field(name, |out| out.extend_from_slice(value.get().as_bytes()));
    }

    pub(super) fn optional_json(&mut self, name: &str, value: Option<&Json>) {
        if let Some(value) = value {
            self.json(name, value);
        }
    }

    pub(super) fn time(&mut self, name: &str, at: Timestamp) {
        self.field(name, |out| {
            write!(out, "\"{at}\"").expect("a Vec takes everything");
        });
    }

    /// A field whose name may hold anything.
    pub(super) fn any(&mut self, name: &str, value: &Json) {
        self.named(name, value.get());
    }

    /// A number whose name may hold anything.
    pub(super) fn counted(&mut self, name: &str, n: u64) {
        self.named(name, itoa::Buffer::new().format(n));
    }

    fn named(&mut self, name: &str, json: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        string(self.out, name);
        self.out.push(b':');
        self.out.extend_from_slice(json.as_bytes());
    }
}

/// A JSON string.
pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    // Ids, names and words need no escape, and there are several in each event.
    if text.len() <= SHORT
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-/:# ".contains(&b))
    {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    text.serialize(&mut serde_json::Serializer::new(out))
        .expect("a str serialises and a Vec takes it");
}
