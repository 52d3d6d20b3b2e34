//! JSON inside of HTML.

use std::io::{self, Write};

use memchr::{memchr2, memmem};

/// Writes JSON so that it can stand in a script block, whatever its texts say.
///
/// In JSON, the characters that could end the block or begin another only occur inside strings, where they can be
/// written as escapes. Every `<` is, so no tag and no comment begins; so are the ends of comments and of CDATA. The
/// value is the same. The block is data, not a script, so nothing else has to be.
#[derive(Debug)]
pub(super) struct Escape<W> {
    out: W,
    buffer: Vec<u8>,
    /// The last byte of what was written before.
    last: u8,
}

/// Takes the escapes of `<` and `>` out again. They are written with capital letters, which other writers of JSON
/// seldom do, so that what is read is what was written byte for byte; and in any case the value is the same.
pub(super) fn restore(json: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(json.len());
    let mut from = 0;
    for at in memmem::find_iter(json, b"\\u003") {
        let slashes = json[..at].iter().rev().take_while(|byte| **byte == b'\\');
        let is_text = slashes.count() % 2 == 1;
        let character = match json.get(at + 5) {
            Some(b'C') if !is_text => b'<',
            Some(b'E') if !is_text => b'>',
            _ => continue,
        };
        made.extend_from_slice(&json[from..at]);
        made.push(character);
        from = at + 6;
    }
    made.extend_from_slice(&json[from..]);
    made
}

impl<W: Write> Escape<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            last: 0,
        }
    }

    /// What is below.
    pub(super) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Begins another block.
    pub(super) fn end(&mut self) {
        self.last = 0;
    }

    fn escape(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = memchr2(b'<', b'>', rest) {
            let before = at.checked_sub(1).map_or(self.last, |n| rest[n]);
            self.buffer.extend_from_slice(&rest[..at]);
            match rest[at] {
                b'<' => self.buffer.extend_from_slice(b"\\u003C"),
                _ if matches!(before, b'-' | b']' | b'!') => {
                    self.buffer.extend_from_slice(b"\\u003E");
                }
                other => self.buffer.push(other),
            }
            self.last = rest[at];
            rest = &rest[at + 1..];
        }
        self.buffer.extend_from_slice(rest);
        self.last = rest.last().copied().unwrap_or(self.last);
    }
}

impl<W: Write> Write for Escape<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.escape(bytes);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(pieces: &[&[u8]]) -> String {
        let mut escape = Escape::new(Vec::new());
        for piece in pieces {
            escape.write_all(piece).unwrap();
        }
        escape.end();
        String::from_utf8(escape.out).unwrap()
    }

    #[test]
    fn nothing_in_a_string_ends_the_block() {
        let text = r#"{"a":"</script><!-- --> ]]> --!> -> a>b …"}"#;
        let shown = escaped(&[text.as_bytes()]);
        assert_eq!(
            shown,
            r#"{"a":"\u003C/script>\u003C!-- --\u003E ]]\u003E --!\u003E -\u003E a>b …"}"#
        );
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&shown), value(text));
    }

    proptest::proptest! {
        #[test]
        fn pieces_do_not_matter(text in crate::arbitrary::text(), cuts in proptest::collection::vec(0_usize..40, 0..6)) {
            let json = serde_json::to_string(&(text.clone() + "\u{2028}-->\u{2029}…]]>" + &text)).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(json.len())).collect();
            cuts.push(json.len());
            cuts.sort_unstable();
            let mut from = 0;
            let mut pieces = Vec::new();
            for cut in cuts {
                pieces.push(&json.as_bytes()[from..cut]);
                from = cut;
            }
            let shown = escaped(&pieces);
            proptest::prop_assert_eq!(&shown, &escaped(&[json.as_bytes()]));
            for held in ["<", "-->", "]]>"] {
                proptest::prop_assert!(!shown.contains(held));
            }
            let restored = restore(shown.as_bytes());
            proptest::prop_assert_eq!(String::from_utf8(restored).unwrap(), json.clone());
            let read: String = serde_json::from_str(&shown).unwrap();
            proptest::prop_assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
    }
}
