//! The escapes of JSON strings: what a string says, and which of its bytes say it.

use memchr::memchr;

/// What a string says.
#[derive(Clone, Copy)]
pub(super) struct Unescaped<'t> {
    pub(super) text: &'t str,
    /// Whether it has lines that begin like the heads of a patch.
    pub(super) patch: bool,
}

/// How much is copied at once. Most lines are no longer, and a few bytes too many cost less than to count them.
const RUN: usize = 64;

/// What a string says, of which `raw` is what stands between the quotes. Its syntax is known to be right, and so is
/// where its escapes begin; half of a surrogate pair is said as U+FFFD. The buffer is there to be used again.
pub(super) fn decode<'t>(
    raw: &str,
    escapes: impl Iterator<Item = usize>,
    buffer: &'t mut Vec<u8>,
) -> Unescaped<'t> {
    let bytes = raw.as_bytes();
    if buffer.len() < bytes.len() + RUN {
        buffer.resize(bytes.len() + RUN, 0);
    }
    let mut patch = heads_patch(bytes);
    let (mut from, mut to) = (0, 0);
    for at in escapes {
        // The second of a pair is said with the first.
        if at < from {
            continue;
        }
        copy(&bytes[from..], at - from, &mut buffer[to..]);
        to += at - from;
        match bytes.get(at + 1) {
            Some(b'n') => {
                buffer[to] = b'\n';
                (from, to) = (at + 2, to + 1);
                patch |= heads_patch(&bytes[from..]);
            }
            Some(quoted @ (b'"' | b'\\')) => {
                buffer[to] = *quoted;
                (from, to) = (at + 2, to + 1);
            }
            _ => {
                let (char, len) = escape(&bytes[at..]);
                from = (at + len).min(bytes.len());
                to += char.encode_utf8(&mut buffer[to..]).len();
                patch |= char == '\n' && heads_patch(&bytes[from..]);
            }
        }
    }
    copy(&bytes[from..], bytes.len() - from, &mut buffer[to..]);
    to += bytes.len() - from;
    let text = simdutf8::basic::from_utf8(&buffer[..to]).unwrap_or_default();
    Unescaped { text, patch }
}

/// Copies the first bytes of some.
#[inline]
fn copy(from: &[u8], len: usize, to: &mut [u8]) {
    match (from.first_chunk::<RUN>(), to.first_chunk_mut::<RUN>()) {
        (Some(from), Some(to)) if len <= RUN => *to = *from,
        _ => to[..len].copy_from_slice(&from[..len]),
    }
}

/// Whether a line is the head of a patch, by how it begins.
#[inline]
fn heads_patch(line: &[u8]) -> bool {
    matches!(line.first_chunk::<4>(), Some(b"*** " | b"+++ " | b"--- "))
}

/// Where escapes begin.
pub(super) fn escapes(raw: &str) -> impl Iterator<Item = usize> {
    let bytes = raw.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + memchr(b'\\', bytes.get(from..)?)?;
        from = at + 2;
        Some(at)
    })
}

/// What the escape says that some bytes begin with, and how long it is.
#[inline]
fn escape(bytes: &[u8]) -> (char, usize) {
    let char = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode(bytes),
        Some(other) => char::from(*other),
        None => return ('\\', 1),
    };
    (char, 2)
}

fn unicode(bytes: &[u8]) -> (char, usize) {
    let Some(first) = unit(bytes) else {
        return ('\u{fffd}', bytes.len().min(6));
    };
    if let Some(char) = char::from_u32(u32::from(first)) {
        return (char, 6);
    }
    if let Some(second) = unit(&bytes[6..])
        && let Some(Ok(char)) = char::decode_utf16([first, second]).next()
    {
        return (char, 12);
    }
    ('\u{fffd}', 6)
}

fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Follows a string and what it says side by side. Places that are asked for in order cost one pass together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    raw: usize,
    text: usize,
    /// Where the next escape begins, once it was looked for.
    next: Option<usize>,
}

impl Cursor {
    /// The place in `raw` that says what stands at a place of the decoded text.
    pub(super) fn find(&mut self, raw: &str, text: usize) -> usize {
        if text < self.text {
            *self = Self::default();
        }
        let bytes = raw.as_bytes();
        loop {
            let next = match self.next {
                Some(next) => next,
                None => {
                    memchr(b'\\', &bytes[self.raw..]).map_or(bytes.len(), |plain| self.raw + plain)
                }
            };
            self.next = Some(next);
            let plain = (text - self.text).min(next - self.raw);
            self.raw += plain;
            self.text += plain;
            if self.text == text || self.raw >= bytes.len() {
                return self.raw;
            }
            let (char, len) = escape(&bytes[self.raw..]);
            if text < self.text + char.len_utf8() {
                return self.raw;
            }
            self.raw = (self.raw + len).min(bytes.len());
            self.text += char.len_utf8();
            self.next = None;
        }
    }
}

/// Writes a text the way it stands in a JSON string, `times` over: once for a string, twice for a string in a JSON text
/// that is itself a string.
pub(super) fn encode(text: &str, times: u8) -> String {
    let mut text = text.to_owned();
    for _ in 0..times {
        if text
            .bytes()
            .any(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))
        {
            // A text always serialises.
            let quoted = serde_json::to_string(&text).unwrap_or_default();
            quoted[1..quoted.len().saturating_sub(1).max(1)].clone_into(&mut text);
        }
    }
    text
}

/// The same number of bytes, in which escapes no longer hide where a word begins: `\n` is a space and a line break.
/// For what is nearly JSON and is looked at as text.
pub(super) fn open_up(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(plain) = memchr(b'\\', &bytes[at..]) {
        at += plain;
        // A run of backslashes is what JSON in strings, and in strings of those, has.
        let run = bytes[at..]
            .iter()
            .take_while(|byte| **byte == b'\\')
            .count();
        let behind = at + run;
        let Some(last) = bytes.get(behind).copied() else {
            return;
        };
        match last {
            b'n' | b'r' => {
                bytes[at..behind].fill(b' ');
                bytes[behind] = b'\n';
            }
            b't' => bytes[at..=behind].fill(b' '),
            b'"' => bytes[at..behind].fill(b' '),
            _ => {}
        }
        at = behind;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(raw: &str) -> String {
        // What is left from before does not show.
        let mut buffer = vec![b'#'; 7];
        decode(raw, escapes(raw), &mut buffer).text.to_owned()
    }

    #[test]
    fn heads_of_patches_are_seen_at_the_begin_of_lines() {
        let patch = |raw: &str| decode(raw, escapes(raw), &mut Vec::new()).patch;
        assert!(patch(r"--- a/x\n+++ b/x"));
        assert!(patch(r"x\n*** Update File: y\n"));
        assert!(patch(r"x\u000a+++ y\n"));
        assert!(!patch(r"x +++ y\n **** z\n---\n"));
    }

    #[test]
    fn half_a_pair_is_a_replacement_character() {
        assert_eq!(decoded(r"a\ud83d\ude00b"), "a😀b");
        assert_eq!(decoded(r"a\ud83dx"), "a\u{fffd}x");
        assert_eq!(decoded(r"\ud83d\u0041"), "\u{fffd}A");
        let mut cursor = Cursor::default();
        assert_eq!(cursor.find(r"\ud83d\u0041z", 4), 12);
    }

    #[test]
    fn what_is_nearly_json_is_opened_up() {
        let mut bytes = br#"a\nb\\\"c\\n\td\u0041"#.to_vec();
        open_up(&mut bytes);
        assert_eq!(bytes, b"a \nb   \"c  \n  d\\u0041");
    }

    proptest! {
        #[test]
        fn a_string_says_what_it_was_made_of(text in "(\\PC|[\\x00-\\x1f\"\\\\]){0,40}", times in 1_u8..3) {
            let raw = encode(&text, 1);
            prop_assert_eq!(&decoded(&raw), &text);
            let more = encode(&text, times);
            let mut back = more;
            for _ in 0..times {
                back = decoded(&back);
            }
            prop_assert_eq!(back, text.clone());
            let mut cursor = Cursor::default();
            for (at, _) in text.char_indices() {
                let place = cursor.find(&raw, at);
                prop_assert_eq!(decoded(&raw[..place]), &text[..at]);
                prop_assert_eq!(Cursor::default().find(&raw, at), place);
            }
            prop_assert_eq!(cursor.find(&raw, text.len()), raw.len());
        }
    }
}
