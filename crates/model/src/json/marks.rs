//! Where strings end: the quotes and escapes of a text, a bit for each byte.
//!
//! A record has a string every few bytes and an escape every few words. Looking for each of them by itself costs more
//! in setting up than in looking, so a stretch of the text is looked at as a whole and what is asked for is read off.

use std::ops::Range;

/// How far ahead is looked at a time: not over the whole text, which may go on for long behind the value that is read.
const STRETCH: usize = 4096;

/// How many bytes share a word.
const BLOCK: usize = 64;

/// The quotes and escapes of the part of a text that was looked at.
#[derive(Debug, Default)]
pub(super) struct Marks {
    words: Vec<Word>,
    /// Whether the first byte of the next block is part of an escape.
    escaped: bool,
    odd: Odd,
}

/// What there may be in strings that must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Odd {
    /// Control characters. Between values, where white space is, they may be.
    pub(super) control: bool,
    /// Escapes that are none.
    pub(super) escape: bool,
}

/// What is in a block, a bit for each byte.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    /// Quotes that begin or end a string.
    quotes: u64,
    /// Backslashes that begin an escape.
    escapes: u64,
}

impl Marks {
    /// Forgets all, for another text.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.escaped = false;
        self.odd = Odd::default();
    }

    /// Takes back memory that one very large text needed.
    pub(super) fn shrink(&mut self) {
        const KEEP: usize = 64 * 1024;
        if self.words.capacity() > KEEP {
            self.words = Vec::new();
        }
    }

    /// The end of a string that goes on at a place: its quote, and whether an escape comes before.
    #[inline]
    pub(super) fn end(&mut self, bytes: &[u8], at: usize) -> Option<(usize, bool)> {
        if let Some(word) = self.words.get(at / BLOCK) {
            let quotes = word.quotes >> (at % BLOCK);
            if quotes != 0 {
                let escapes = word.escapes >> (at % BLOCK);
                let first = quotes & quotes.wrapping_neg();
                let end = at + quotes.trailing_zeros() as usize;
                return Some((end, escapes & (first - 1) != 0));
            }
        }
        self.further(bytes, at)
    }

    /// As [`Self::end`], where it is not in the block at hand.
    fn further(&mut self, bytes: &[u8], at: usize) -> Option<(usize, bool)> {
        let mut block = at / BLOCK;
        let mut wanted = u64::MAX << (at % BLOCK);
        let mut escapes = 0;
        loop {
            while let Some(word) = self.words.get(block) {
                let quotes = word.quotes & wanted;
                if quotes != 0 {
                    let first = quotes & quotes.wrapping_neg();
                    escapes |= word.escapes & wanted & (first - 1);
                    let end = block * BLOCK + quotes.trailing_zeros() as usize;
                    return Some((end, escapes != 0));
                }
                escapes |= word.escapes & wanted;
                block += 1;
                wanted = u64::MAX;
            }
            if !self.look(bytes) {
                return None;
            }
        }
    }

    /// Where escapes begin in a part of the text that was looked at.
    #[inline]
    pub(super) fn escapes(&self, part: Range<usize>) -> Escapes<'_> {
        let block = part.start / BLOCK;
        let rest = self.words.get(block..).unwrap_or_default();
        let (word, rest) = match rest.split_first() {
            Some((word, rest)) => (word.escapes & u64::MAX << (part.start % BLOCK), rest),
            None => (0, rest),
        };
        Escapes {
            word,
            at: block * BLOCK,
            rest: rest.iter(),
            part,
        }
    }

    /// What there may be in strings up to an end that was found.
    #[inline]
    pub(super) fn odd(&self) -> Odd {
        self.odd
    }

    /// Looks at the next stretch, and says whether there was one.
    #[inline(never)]
    fn look(&mut self, bytes: &[u8]) -> bool {
        let looked = (self.words.len() * BLOCK).min(bytes.len());
        let ahead = &bytes[looked..bytes.len().min(looked + STRETCH)];
        // What is at the very end is in no string; a line comes with its end.
        let inner = if looked + ahead.len() == bytes.len() {
            ahead.trim_ascii_end()
        } else {
            ahead
        };
        // Without a way out in the middle, so that it is done with vector instructions.
        self.odd.control |= inner.iter().fold(u8::MAX, |least, &b| least.min(b)) < 0x20;
        let (blocks, rest) = ahead.as_chunks::<BLOCK>();
        let mut escaped = self.escaped;
        let mut odd = false;
        self.words
            .extend(blocks.iter().enumerate().map(|(place, block)| {
                let word = Word::of(block, &mut escaped);
                odd |= !word.are_escapes(&bytes[looked + place * BLOCK..]);
                word
            }));
        if !rest.is_empty() {
            let mut last = [b' '; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            let word = Word::of(&last, &mut escaped);
            odd |= !word.are_escapes(rest);
            self.words.push(word);
        }
        self.escaped = escaped;
        self.odd.escape |= odd;
        !ahead.is_empty()
    }
}

impl Word {
    /// What is in a block. `escaped` says whether its first byte is part of an escape that begins before it, and then
    /// the same of the next block.
    #[inline]
    fn of(block: &[u8; BLOCK], escaped: &mut bool) -> Self {
        let quotes = places(block, b'"');
        let mut escapes = places(block, b'\\') & !u64::from(*escaped);
        if escapes & escapes << 1 != 0 {
            escapes = every_other(escapes);
        }
        let behind = escapes << 1 | u64::from(*escaped);
        *escaped = escapes >> (BLOCK - 1) != 0;
        Self {
            quotes: quotes & !behind,
            escapes,
        }
    }

    /// Whether its escapes are such. `text` begins with the block.
    #[inline]
    fn are_escapes(self, text: &[u8]) -> bool {
        let mut all = true;
        let mut left = self.escapes;
        while left != 0 {
            let at = left.trailing_zeros() as usize + 1;
            all &= match text.get(at) {
                Some(b'n' | b'"' | b'\\' | b't' | b'r' | b'/' | b'b' | b'f') => true,
                Some(b'u') => text
                    .get(at + 1..at + 5)
                    .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
                _ => false,
            };
            left &= left - 1;
        }
        all
    }
}

/// Where escapes begin, in order, counted from where the part begins that they are in.
#[derive(Debug, Clone)]
pub struct Escapes<'a> {
    /// Those of the block at hand that were not told yet.
    word: u64,
    /// Where that block begins.
    at: usize,
    rest: std::slice::Iter<'a, Word>,
    part: Range<usize>,
}

impl Iterator for Escapes<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            self.at += BLOCK;
            if self.at >= self.part.end {
                return None;
            }
            self.word = self.rest.next()?.escapes;
        }
        let found = self.at + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        (found < self.part.end).then(|| found - self.part.start)
    }
}

/// Of backslashes that follow each other, those that are not said by the one before.
#[inline]
fn every_other(mut backslashes: u64) -> u64 {
    let mut all = 0;
    while backslashes != 0 {
        let first = backslashes & backslashes.wrapping_neg();
        all |= first;
        backslashes &= !(first | first << 1);
    }
    all
}

/// Which bytes of a block are this one, a bit for each.
#[cfg(target_arch = "x86_64")]
#[inline]
fn places(block: &[u8; BLOCK], of: u8) -> u64 {
    #[expect(
        unsafe_code,
        reason = "every processor of this kind has these instructions"
    )]
    unsafe {
        compared(block, of)
    }
}

/// The same, sixteen bytes with one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn compared(block: &[u8; BLOCK], of: u8) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let of = _mm_set1_epi8(of.cast_signed());
    let (quarters, _) = block.as_chunks::<16>();
    let mut all = 0;
    for (at, quarter) in quarters.iter().enumerate() {
        let both = u128::from_le_bytes(*quarter);
        #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
        let (low, high) = (both as i64, (both >> 64) as i64);
        let same = _mm_cmpeq_epi8(_mm_set_epi64x(high, low), of);
        let bits = _mm_movemask_epi8(same).cast_unsigned();
        all |= u64::from(bits) << (at * 16);
    }
    all
}

/// Which bytes of a block are this one, a bit for each.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn places(block: &[u8; BLOCK], of: u8) -> u64 {
    portable(block, of)
}

/// The same without instructions of one kind of processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn portable(block: &[u8; BLOCK], of: u8) -> u64 {
    // Every such byte has the bit of its place among eight. Eight of them together are one byte: their sum, which a
    // product with ones has at its top.
    let mut bits = [0_u8; BLOCK];
    for (at, (bit, byte)) in bits.iter_mut().zip(block).enumerate() {
        *bit = u8::from(*byte == of).wrapping_neg() & (1 << (at % 8));
    }
    let (eights, _) = bits.as_chunks::<8>();
    let mut all = 0;
    for (at, eight) in eights.iter().enumerate() {
        let sum = u64::from_le_bytes(*eight).wrapping_mul(0x0101_0101_0101_0101) >> 56;
        all |= sum << (at * 8);
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same byte by byte.
    fn slowly(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
        let mut escaped = false;
        loop {
            match bytes.get(at)? {
                b'"' => return Some((at, escaped)),
                b'\\' => {
                    escaped = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn places_are_those_of_the_byte(block in prop::array::uniform32(prop::sample::select(vec![b'a', b'"', b'\\', 0, 0x80, 0xff]))) {
            let mut twice = [0; BLOCK];
            twice[..32].copy_from_slice(&block);
            twice[32..].copy_from_slice(&block);
            twice[40] = b'"';
            for of in [b'a', b'"', b'\\', 0, 0x80, 0xff] {
                let slowly = (0..BLOCK).fold(0, |all, at| all | u64::from(twice[at] == of) << at);
                prop_assert_eq!(places(&twice, of), slowly);
                prop_assert_eq!(portable(&twice, of), slowly);
            }
        }

        #[test]
        fn strings_end_where_they_end(
            strings in prop::collection::vec(("[ax\u{80}\u{ff}]{0,150}", "(\\\\[\\\\\"n]){0,70}", "[ax]{0,9}"), 1..60),
        ) {
            let mut text = String::new();
            for (plain, escapes, more) in &strings {
                text.extend(["\"", plain, escapes, more, "\""]);
            }
            let bytes = text.as_bytes();
            let mut marks = Marks::default();
            let mut at = 0;
            while at < bytes.len() {
                prop_assert_eq!(marks.end(bytes, at + 1), slowly(bytes, at + 1));
                let end = slowly(bytes, at + 1).unwrap().0;
                let mut escapes = Vec::new();
                let mut place = at + 1;
                while place < end {
                    let is = bytes[place] == b'\\';
                    if is {
                        escapes.push(place - at - 1);
                    }
                    place += 1 + usize::from(is);
                }
                prop_assert_eq!(marks.escapes(at + 1..end).collect::<Vec<_>>(), escapes);
                at = end + 1;
            }
            prop_assert_eq!(marks.end(bytes, at), None);
            prop_assert_eq!(marks.odd(), Odd::default());
        }

        #[test]
        fn what_must_not_be_in_strings_is_known(
            before in 0_usize..9000,
            at in 0_usize..9000,
            (what, odd) in prop::sample::select(vec![
                (&b"\x1f"[..], true),
                (b"\\x", true),
                (b"\\u12g4", true),
                (b"\\u12", true),
                (b"\\u1aF4", false),
                (b"\\b\\f\\n\\r\\t\\/\\\\\\\"", false),
            ]),
        ) {
            let mut bytes = vec![b'x'; before];
            let at = at.min(before);
            bytes.splice(at..at, what.iter().copied());
            let end = bytes.len();
            bytes.push(b'"');
            let mut marks = Marks::default();
            prop_assert_eq!(marks.end(&bytes, 0), Some((end, what.len() > 1)));
            prop_assert_eq!(marks.odd() != Odd::default(), odd);
        }
    }
}
