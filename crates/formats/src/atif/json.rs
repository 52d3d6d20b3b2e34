//! JSON, appended to bytes.

use std::io::Write as _;

/// Appends a JSON string.
pub(crate) fn string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a str is written to a Vec without fail");
}

/// An object that is being appended to bytes. Fields come in the order in which they are written.
pub(crate) struct Object<'b> {
    out: &'b mut Vec<u8>,
    first: bool,
}

impl<'b> Object<'b> {
    /// Begins an object.
    pub(crate) fn begin(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Goes on with the fields of an object that someone else begins and ends.
    pub(crate) fn within(out: &'b mut Vec<u8>) -> Self {
        let first = out.is_empty();
        Self { out, first }
    }

    /// Begins a field; its value goes to what is given back.
    pub(crate) fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A field that is a string.
    pub(crate) fn text(&mut self, key: &'static str, text: &str) {
        string(text, self.key(key));
    }

    /// A field that is a string, where there is one.
    pub(crate) fn maybe(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    /// A field whose value is JSON already.
    pub(crate) fn raw(&mut self, key: &'static str, json: &[u8]) {
        self.key(key).extend_from_slice(json);
    }

    /// A field that is a list or an object, of which the inside is given.
    pub(crate) fn around(&mut self, key: &'static str, brackets: [u8; 2], inside: &[u8]) {
        let out = self.key(key);
        out.push(brackets[0]);
        out.extend_from_slice(inside);
        out.push(brackets[1]);
    }

    /// A field that is a whole number.
    pub(crate) fn number(&mut self, key: &'static str, number: impl itoa::Integer) {
        let mut digits = itoa::Buffer::new();
        let text = digits.format(number);
        self.key(key).extend_from_slice(text.as_bytes());
    }

    /// A field that is written as it is shown.
    pub(crate) fn shown(&mut self, key: &'static str, value: impl std::fmt::Display) {
        let out = self.key(key);
        write!(out, "{value}").expect("writing to a Vec cannot fail");
    }

    /// A mark: written when it is set.
    pub(crate) fn mark(&mut self, key: &'static str, set: bool) {
        if set {
            self.raw(key, b"true");
        }
    }

    /// Ends the object.
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// Appends what stands between two items of a list, where there is one already.
pub(crate) fn comma(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

/// How deep a value may be where it is copied. It stands some levels inside the document, and common
/// readers stop at 128.
const DEEPEST: usize = 100;

/// Whether a value nests so deep that it has to be carried as text.
pub(crate) fn is_deep(json: &str) -> bool {
    // Every level takes two brackets.
    if json.len() < 2 * DEEPEST {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    false
}
