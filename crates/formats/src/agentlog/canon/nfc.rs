//! Whether a text is in Unicode's normal form C, told from its bytes.
//!
//! Nearly all text is. Asking for the properties of each character costs more than everything else that is
//! done to a record, so the characters that can never be otherwise are known by their bytes: alone and
//! beside each other they stay as they are. What is not among them is looked at properly.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::{IsNormalized, is_nfc_quick};

/// Whether the text is surely in normal form C. `bytes` is UTF-8.
#[inline]
pub(super) fn is_surely(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        // The standard library looks at many bytes at once where there is nothing to see.
        let Some(at) = non_ascii(rest) else {
            return true;
        };
        let Some(len) = inert(&rest[at..]) else {
            return false;
        };
        rest = &rest[at + len..];
    }
}

/// Where the first byte is that is not ASCII.
#[inline]
fn non_ascii(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let high = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        if high != 0 {
            return Some(n * 8 + high.trailing_zeros() as usize / 8);
        }
    }
    let done = words.len() * 8;
    let tail = bytes[done..].iter().position(|byte| !byte.is_ascii());
    tail.map(|at| done + at)
}

/// How long the character is that the text begins with, if it is one that stays as it is whatever stands
/// beside it: it is composed, does not combine with what is before it, and is no mark. A test asks Unicode
/// about every one of them.
#[inline]
#[expect(
    clippy::unnested_or_patterns,
    reason = "a line for each range of characters"
)]
fn inert(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        // U+0080 to U+02FF: Latin, phonetic letters, spacing modifiers. U+0400 to U+047F: Cyrillic.
        [0xc2..=0xcb | 0xd0 | 0xd1, ..] => Some(2),
        // U+2010 to U+203F: dashes, quotation marks, the ellipsis.
        [0xe2, 0x80, 0x90..=0xbf, ..]
        // U+2190 to U+21FF: arrows.
        | [0xe2, 0x86, 0x90..=0xbf, ..] | [0xe2, 0x87, ..]
        // U+2400 to U+2A7F: boxes, blocks, shapes, dingbats.
        | [0xe2, 0x90..=0xa9, ..]
        // U+3000 to U+3029 and U+3040 to U+307F; U+30A0 to U+30FF: punctuation, kana.
        | [0xe3, 0x80, 0x80..=0xa9, ..] | [0xe3, 0x81, ..] | [0xe3, 0x83, ..]
        // U+3080 to U+3098 and U+309B to U+30BF: the rest of the kana, without the marks between.
        | [0xe3, 0x82, 0x80..=0x98 | 0x9b..=0xbf, ..]
        // U+3400 to U+9FFF: ideographs.
        | [0xe3, 0x90..=0xbf, ..] | [0xe4..=0xe9, ..]
        // U+B000 to U+D77F: Hangul syllables.
        | [0xeb | 0xec, ..] | [0xed, 0x80..=0x9d, ..]
        // U+FF00 to U+FF9F: full and half width forms.
        | [0xef, 0xbc | 0xbd, ..] => Some(3),
        // U+1F000 to U+1FFFF: emoji.
        [0xf0, 0x9f, ..] => Some(4),
        _ => None,
    }
}

/// The text in normal form C.
pub(super) fn normalized(text: String) -> String {
    if is_surely(text.as_bytes()) || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return text;
    }
    text.nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::char::canonical_combining_class;

    #[test]
    fn every_inert_character_is_so_by_unicode() {
        let mut inert = 0;
        for char in ('\u{80}'..=char::MAX).filter(|c| is_surely(c.to_string().as_bytes())) {
            inert += 1;
            let said = (
                is_nfc_quick(std::iter::once(char)),
                canonical_combining_class(char),
            );
            assert_eq!(said, (IsNormalized::Yes, 0), "U+{:04X}", u32::from(char));
        }
        assert!(inert > 40_000, "{inert}");
    }

    #[test]
    fn what_is_not_ascii_is_found_at_every_place() {
        for len in 0..40 {
            let mut bytes = vec![b'a'; len];
            assert_eq!(non_ascii(&bytes), None);
            for at in 0..len {
                bytes[at] = 0xc3;
                assert_eq!(non_ascii(&bytes), Some(at));
                bytes[at] = b'a';
            }
        }
    }

    #[test]
    fn others_are_looked_at() {
        for (text, in_nfc) in [
            ("e\u{301}", "\u{e9}"),
            ("\u{212b}", "\u{c5}"),
            ("\u{1100}\u{1161}", "\u{ac00}"),
            ("\u{ac00}\u{11a8}", "\u{ac01}"),
            ("か\u{3099}", "が"),
            ("q\u{307}\u{323}", "q\u{323}\u{307}"),
            ("नमस्ते", "नमस्ते"),
        ] {
            assert!(!is_surely(text.as_bytes()), "{text}");
            assert_eq!(normalized(text.to_owned()), in_nfc);
        }
    }
}
