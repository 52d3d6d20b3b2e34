//! JSON as OTLP wants it, written by hand: strings, and lists of attributes.
//!
//! OTLP/JSON is the protobuf mapping with two twists: ids are hexadecimal, and 64-bit integers are
//! strings. An attribute names the type of its value: `{"key":"k","value":{"intValue":"1"}}`.

use quipu_model::Money;
use quipu_model::hex;

/// Which bytes of a string have to be escaped.
const ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

/// Writes what stands between the quotes of a JSON string.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    let mut at = 0;
    while at < text.len() {
        if let Some(word) = text[at..].first_chunk::<8>() {
            let marks = marks(u64::from_le_bytes(*word));
            if marks == 0 {
                at += 8;
                continue;
            }
            // The lowest mark is right; those above it need not be.
            at += marks.trailing_zeros() as usize / 8;
        }
        let byte = text[at];
        if ESCAPED[usize::from(byte)] {
            out.extend_from_slice(&text[from..at]);
            from = at + 1;
            match byte {
                b'"' => out.extend_from_slice(b"\\\""),
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                byte => {
                    out.extend_from_slice(b"\\u00");
                    hex::write(&[byte], out);
                }
            }
        }
        at += 1;
    }
    out.extend_from_slice(&text[from..]);
}

/// A bit in the place of the first of eight bytes that has to be escaped, and perhaps bits above it.
fn marks(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let less = |limit: u64, word: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    less(0x20, word) | less(1, quote) | less(1, backslash)
}

/// Writes a JSON string, with its quotes.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape(text.as_bytes(), out);
    out.push(b'"');
}

/// Writes a number.
pub(super) fn number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Attributes of a span, an event or a resource, as the inside of a JSON list.
#[derive(Debug, Clone, Default)]
pub(super) struct Attrs(Vec<u8>);

impl Attrs {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds all of another's behind these.
    pub(super) fn append(&mut self, other: &[u8]) {
        if !self.0.is_empty() && !other.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(other);
    }

    fn key(&mut self, key: &str, value: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(b"{\"key\":\"");
        // Keys are ours: nothing in them needs to be escaped.
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\",\"value\":{");
        self.0.extend_from_slice(value);
    }

    /// A text that is written by the caller, escaped.
    pub(super) fn text_with(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key, b"\"stringValue\":\"");
        write(&mut self.0);
        self.0.extend_from_slice(b"\"}}");
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.text_with(key, |out| escape(text.as_bytes(), out));
    }

    pub(super) fn text_if(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    /// A count. One that a signed number cannot hold is written as text.
    pub(super) fn count(&mut self, key: &str, count: u64) {
        let kind: &[u8] = if i64::try_from(count).is_ok() {
            b"\"intValue\":\""
        } else {
            b"\"stringValue\":\""
        };
        self.key(key, kind);
        number(count, &mut self.0);
        self.0.extend_from_slice(b"\"}}");
    }

    pub(super) fn count_if(&mut self, key: &str, count: Option<u64>) {
        if let Some(count) = count {
            self.count(key, count);
        }
    }

    /// A sum of money as a number. Its digits are exact; whoever makes a double of them rounds.
    pub(super) fn money(&mut self, key: &str, money: Money) {
        self.key(key, b"\"doubleValue\":");
        self.0.extend_from_slice(money.to_string().as_bytes());
        self.0.extend_from_slice(b"}}");
    }

    /// A list of texts.
    pub(super) fn texts<'a>(&mut self, key: &str, texts: impl IntoIterator<Item = &'a str>) {
        self.key(key, b"\"arrayValue\":{\"values\":[");
        for (n, text) in texts.into_iter().enumerate() {
            let lead: &[u8] = if n == 0 { b"{" } else { b",{" };
            self.0.extend_from_slice(lead);
            self.0.extend_from_slice(b"\"stringValue\":");
            string(text, &mut self.0);
            self.0.push(b'}');
        }
        self.0.extend_from_slice(b"]}}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn strings_read_back(text in crate::arbitrary::text()) {
            let mut out = Vec::new();
            string(&text, &mut out);
            let read: String = serde_json::from_slice(&out).unwrap();
            proptest::prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn every_byte_that_needs_it_is_escaped_at_every_place_of_a_word() {
        for byte in 0..128u8 {
            for at in 0..17 {
                let mut text = "aaaaaaaaaaaaaaaaa".to_owned().into_bytes();
                text[at] = byte;
                let text = String::from_utf8(text).unwrap();
                let mut out = Vec::new();
                string(&text, &mut out);
                assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            }
        }
    }

    #[test]
    fn a_count_beyond_a_signed_number_is_text() {
        let mut attrs = Attrs::default();
        attrs.count("a", 7);
        attrs.count("b", u64::MAX);
        attrs.texts("c", ["x", "\""]);
        attrs.money("d", Money::parse("0.30000015").unwrap());
        assert_eq!(
            String::from_utf8_lossy(attrs.as_bytes()),
            concat!(
                r#"{"key":"a","value":{"intValue":"7"}},"#,
                r#"{"key":"b","value":{"stringValue":"18446744073709551615"}},"#,
                r#"{"key":"c","value":{"arrayValue":{"values":[{"stringValue":"x"},{"stringValue":"\""}]}}},"#,
                r#"{"key":"d","value":{"doubleValue":0.30000015}}"#,
            )
        );
    }
}
