//! What bytes a text is made of, told in one look over it: whether there is anything in it that something else should be
//! done about, and where numbers and rows of letters stand.
//!
//! Blocks of bytes are classed without a branch, all at once, which compilers turn into the instructions for that. Nearly
//! all of a text is of no interest here, and most of the rest of the engine is not run at all then.

#![expect(
    clippy::needless_bitwise_bool,
    clippy::inline_always,
    reason = "no branches, and all of it in one function for each kind of processor: that is what makes it quick"
)]

use std::ops::Range;

use super::encoded::{self, LEAST};

const BLOCK: usize = 32;
const LANE: usize = 8;
type Block = [u8; BLOCK];

/// Bytes that something else is done about where they are in a text, each as a bit.
pub(super) mod has {
    pub(in super::super) const AT: u8 = 1;
    pub(in super::super) const PLUS: u8 = 2;
    pub(in super::super) const PERCENT: u8 = 4;
    /// A backslash or an escape of a terminal.
    pub(in super::super) const ESCAPE: u8 = 8;
    /// What is no ASCII.
    pub(in super::super) const OTHER: u8 = 128;
}

/// What was seen in a text.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Of all parts so far, and of the last one.
    flags: u8,
    here: u8,
    /// Whether the last lane is all letters, and where those begin that are, when they are two or more.
    full: bool,
    open: Option<usize>,
    /// Where digits begin behind what is part of no word and do not end at once, and where behind a capital letter.
    pub(super) numbers: Vec<usize>,
    pub(super) lettered: Vec<usize>,
    /// Where a colon stands behind a hex digit.
    pub(super) colons: Vec<usize>,
    /// Rows of letters of base64 that are long enough to hold something.
    pub(super) rows: Vec<Range<usize>>,
    /// How many there were before the part at hand.
    older: usize,
}

/// What the bytes of a block are.
struct Classes {
    /// What begins there: a bit for each of the lists of places.
    starts: Block,
    /// All bits where a letter of base64 stands.
    letters: Block,
}

impl Survey {
    /// Whether there is any of some bytes in the text.
    #[inline]
    pub(super) fn has(&self, bytes: u8) -> bool {
        self.flags & bytes != 0
    }

    /// Whether there is any in the part at hand.
    #[inline]
    pub(super) fn has_here(&self, bytes: u8) -> bool {
        self.here & bytes != 0
    }

    /// Begins with another text.
    pub(super) fn begin(&mut self) {
        self.flags = 0;
        self.full = false;
        self.open = None;
        self.rows.clear();
    }

    /// Rows of the part at hand.
    pub(super) fn new_rows(&self) -> &[Range<usize>] {
        &self.rows[self.older..]
    }

    /// Looks at a part of a text, which begins and ends at a multiple of a block or with the text. Places and bytes are of
    /// that part only, and rows of all parts so far.
    pub(super) fn take(&mut self, text: &[u8], part: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        if std::is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "that the processor has it was asked above")]
            unsafe {
                self.take_wide(text, part);
            }
            return;
        }
        self.take_any(text, part);
    }

    /// The same, for processors that class a block at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn take_wide(&mut self, text: &[u8], part: Range<usize>) {
        self.take_any(text, part);
    }

    #[inline(always)]
    fn take_any(&mut self, text: &[u8], part: Range<usize>) {
        self.numbers.clear();
        self.lettered.clear();
        self.colons.clear();
        self.older = self.rows.len();
        let mut flags = [0; BLOCK];
        let mut padded = [b' '; BLOCK + 3];
        let mut at = part.start;
        while at < part.end {
            let whole = at
                .checked_sub(1)
                .and_then(|before| text[before..].first_chunk::<{ BLOCK + 3 }>());
            let bytes = whole.unwrap_or_else(|| {
                let rest = &text[at..text.len().min(at + BLOCK + 2)];
                padded = [b' '; BLOCK + 3];
                padded[0] = at.checked_sub(1).map_or(b' ', |before| text[before]);
                padded[1..=rest.len()].copy_from_slice(rest);
                &padded
            });
            let classes = classes(bytes, &mut flags);
            self.note(text, at, &classes);
            at += BLOCK;
        }
        if part.end == text.len()
            && let Some(begin) = self.open
        {
            self.close(text, begin..text.len());
        }
        self.here = flags.iter().fold(0, |all, one| all | one);
        self.flags |= self.here;
    }

    /// Notes what stands in a block.
    #[inline(always)]
    fn note(&mut self, text: &[u8], at: usize, classes: &Classes) {
        let (starts, _) = classes.starts.as_chunks::<LANE>();
        for (index, lane) in starts.iter().enumerate() {
            let mut lane = u64::from_le_bytes(*lane);
            while lane != 0 {
                let bit = lane.trailing_zeros() as usize;
                let place = at + index * LANE + bit / 8;
                match bit % 8 {
                    0 => self.numbers.push(place),
                    1 => self.lettered.push(place),
                    _ => self.colons.push(place),
                }
                lane &= lane - 1;
            }
        }
        let (letters, _) = classes.letters.as_chunks::<LANE>();
        // Which lanes are all letters, a bit for each, the last one of the block before as the first.
        let mut full = u32::from(self.full);
        for (index, lane) in letters.iter().enumerate() {
            full |= u32::from(u64::from_le_bytes(*lane) == !0) << (index + 1);
        }
        self.full = full >> letters.len() == 1;
        // A row that is long enough has two of them, one behind the other.
        const { assert!(LEAST >= 3 * LANE - 1) };
        let pairs = full & full >> 1;
        if pairs == 0 && self.open.is_none() {
            return;
        }
        for index in 0..letters.len() {
            let place = at + index * LANE;
            match self.open {
                None if pairs >> index & 1 == 1 => self.open = Some(place - LANE),
                Some(begin) if full >> (index + 1) & 1 == 0 => self.close(text, begin..place),
                _ => {}
            }
        }
    }

    /// Notes a row of which the whole lanes are known, if it is long enough.
    #[cold]
    fn close(&mut self, text: &[u8], lanes: Range<usize>) {
        self.open = None;
        let letter = |byte: &&u8| encoded::is_letter(**byte);
        let begin = lanes.start - text[..lanes.start].iter().rev().take_while(letter).count();
        let end = lanes.end + text[lanes.end..].iter().take_while(letter).count();
        if end - begin >= LEAST {
            self.rows.push(begin..end);
        }
    }
}

/// Classes a block, which comes with the byte before it and two behind.
#[inline(always)]
fn classes(bytes: &[u8; BLOCK + 3], flags: &mut Block) -> Classes {
    let mut classes = Classes {
        starts: [0; BLOCK],
        letters: [0; BLOCK],
    };
    let from = |at: usize| bytes[at..].first_chunk::<BLOCK>().unwrap_or(&[0; BLOCK]);
    let (before, block, next, second) = (from(0), from(1), from(2), from(3));
    let digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let letter = |byte: u8| (byte | 0x20).wrapping_sub(b'a') < 26;
    // Digits and `()*+,-./`, which has all that joins them.
    let joins = |byte: u8| (byte.wrapping_sub(b'(') < 18) | (byte == b' ');
    let if_so = |is: bool, bits: u8| u8::from(is).wrapping_neg() & bits;
    for at in 0..BLOCK {
        let (before, byte) = (before[at], block[at]);
        let word = digit(before) | letter(before) | (before == b'_');
        let capital = before.wrapping_sub(b'A') < 26;
        let hex = digit(before) | ((before | 0x20).wrapping_sub(b'a') < 6);
        classes.starts[at] = if_so(digit(byte) & !word & joins(next[at]) & joins(second[at]), 1)
            | if_so(digit(byte) & capital, 2)
            | if_so((byte == b':') & hex, 4);
        let sign = (byte == b'+') | (byte == b'/') | (byte == b'-') | (byte == b'_');
        classes.letters[at] = if_so(digit(byte) | letter(byte) | sign, !0);
        flags[at] |= if_so(byte == b'@', has::AT)
            | if_so(byte == b'+', has::PLUS)
            | if_so(byte == b'%', has::PERCENT)
            | if_so((byte == b'\\') | (byte == 0x1b), has::ESCAPE)
            | byte & has::OTHER;
    }
    classes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_a_slow_look_tells(text in "(?:[a-zA-Z0-9_/+-]{0,40}[ .@%:é\\\\]{0,2}){0,5}") {
            let mut survey = Survey::default();
            survey.begin();
            survey.take("@ 1 A1".repeat(9).as_bytes(), 0..54);
            survey.begin();
            let bytes = text.as_bytes();
            survey.take(bytes, 0..bytes.len());
            for (flag, byte) in [(has::AT, '@'), (has::PLUS, '+'), (has::PERCENT, '%'), (has::ESCAPE, '\\')] {
                prop_assert_eq!(survey.has(flag), text.contains(byte));
            }
            prop_assert_eq!(survey.has(has::OTHER), !text.is_ascii());
            let before = |at: usize| at.checked_sub(1).map_or(b' ', |before| bytes[before]);
            let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let joins = |at: usize| bytes.get(at).is_none_or(|byte| matches!(byte, b' ' | b'('..=b'9'));
            let numbers: Vec<usize> = digits.iter().copied().filter(|at| !word(before(*at)) && joins(at + 1) && joins(at + 2)).collect();
            prop_assert_eq!(&survey.numbers, &numbers);
            let lettered: Vec<usize> = digits.into_iter().filter(|at| before(*at).is_ascii_uppercase()).collect();
            prop_assert_eq!(&survey.lettered, &lettered);
            let colons: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b':' && before(*at).is_ascii_hexdigit()).collect();
            prop_assert_eq!(&survey.colons, &colons);
            let mut rows = Vec::new();
            encoded::runs(bytes, LEAST, |row| rows.push(row));
            prop_assert_eq!(&survey.rows, &rows);
        }
    }
}
