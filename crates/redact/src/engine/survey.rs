//! What bytes a text is made of, told in one look over it: whether there is anything in it that something else should be
//! done about, and where numbers and rows of letters stand.
//!
//! Blocks of bytes are classed all at once where the processor can do that. Nearly all of a text is of no interest here, and
//! most of the rest of the engine is not run at all then.

#![expect(
    clippy::inline_always,
    reason = "all of it in one function for each kind of processor: that is what makes it quick"
)]

use std::ops::Range;

use super::encoded::LEAST;

const BLOCK: usize = 32;
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
    /// Where the letters begin that the last block ends with.
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

/// What the bytes of a block are, a bit for each.
struct Classes {
    digits: u32,
    /// Of words: letters, digits and `_`.
    words: u32,
    capitals: u32,
    hex: u32,
    colons: u32,
    /// What can stand between the digits of one number, and digits.
    joins: u32,
    /// Letters of base64.
    letters: u32,
    /// What there is that something else is done about, as [`has`] says.
    flags: u8,
}

/// What the byte before a block is, a bit of each class.
#[derive(Default)]
struct Before {
    word: u32,
    capital: u32,
    hex: u32,
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
        self.take_any(text, part, one_by_one);
    }

    /// The same, for processors that class a block at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn take_wide(&mut self, text: &[u8], part: Range<usize>) {
        self.take_any(text, part, |block| at_once(block));
    }

    #[inline(always)]
    fn take_any(&mut self, text: &[u8], part: Range<usize>, classes: impl Fn(&Block) -> Classes) {
        self.numbers.clear();
        self.lettered.clear();
        self.colons.clear();
        self.older = self.rows.len();
        let mut flags = 0;
        let mut padded = [b' '; BLOCK + 2];
        let mut before = part
            .start
            .checked_sub(1)
            .map_or_else(Before::default, |before| Before::of(text[before]));
        let mut at = part.start;
        while at < part.end {
            let bytes = text[at..].first_chunk().unwrap_or_else(|| {
                let rest = &text[at..];
                padded = [b' '; BLOCK + 2];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
            let block = bytes.first_chunk().unwrap_or(&[0; BLOCK]);
            let classes = classes(block);
            flags |= classes.flags;
            self.note(at, &classes, bytes, &mut before);
            at += BLOCK;
        }
        if part.end == text.len()
            && let Some(begin) = self.open.take()
        {
            self.row(begin..text.len());
        }
        self.here = flags;
        self.flags |= self.here;
    }

    /// Notes what stands in a block.
    #[inline(always)]
    fn note(&mut self, at: usize, classes: &Classes, bytes: &[u8; BLOCK + 2], before: &mut Before) {
        let [.., next, second] = bytes;
        let (next, second) = (u32::from(joins(*next)), u32::from(joins(*second)));
        let joined =
            (classes.joins >> 1 | next << 31) & (classes.joins >> 2 | next << 30 | second << 31);
        let numbers = classes.digits & !(classes.words << 1 | before.word) & joined;
        let lettered = classes.digits & (classes.capitals << 1 | before.capital);
        let colons = classes.colons & (classes.hex << 1 | before.hex);
        if numbers | lettered | colons != 0 {
            each(numbers, |bit| self.numbers.push(at + bit));
            each(lettered, |bit| self.lettered.push(at + bit));
            each(colons, |bit| self.colons.push(at + bit));
        }
        *before = Before {
            word: classes.words >> 31,
            capital: classes.capitals >> 31,
            hex: classes.hex >> 31,
        };
        let letters = classes.letters;
        if letters == !0 {
            self.open.get_or_insert(at);
            return;
        }
        let first = letters.trailing_ones() as usize;
        if let Some(begin) = self.open.take() {
            self.row(begin..at + first);
        } else {
            self.row(at..at + first);
        }
        let last = letters.leading_ones() as usize;
        // A row within the block: there is room for one.
        const { assert!(LEAST > 16 && LEAST <= BLOCK && 2 * LEAST >= BLOCK) };
        let ends = if last > 0 {
            !(!0 << (BLOCK - last))
        } else {
            !0
        };
        let inner = letters & ends & (!0 << first);
        let mut long = inner & inner >> 1;
        long &= long >> 2;
        long &= long >> 4;
        long &= long >> 8;
        long &= long >> (LEAST - 16);
        if long != 0 {
            let begin = long.trailing_zeros();
            let length = (inner >> begin).trailing_ones() as usize;
            let begin = at + begin as usize;
            self.row(begin..begin + length);
        }
        if last > 0 {
            self.open = Some(at + BLOCK - last);
        }
    }

    /// Notes a row of letters, if it is long enough.
    #[inline(always)]
    fn row(&mut self, row: Range<usize>) {
        if row.len() >= LEAST {
            self.rows.push(row);
        }
    }
}

impl Before {
    fn of(byte: u8) -> Self {
        Self {
            word: u32::from(byte.is_ascii_alphanumeric() || byte == b'_'),
            capital: u32::from(byte.is_ascii_uppercase()),
            hex: u32::from(byte.is_ascii_hexdigit()),
        }
    }
}

/// Calls `found` with the place of each bit.
#[inline(always)]
fn each(mut bits: u32, mut found: impl FnMut(usize)) {
    while bits != 0 {
        found(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Digits and `()*+,-./`, which has all that joins them, and blanks.
#[inline(always)]
fn joins(byte: u8) -> bool {
    byte.wrapping_sub(b'(') < 18 || byte == b' '
}

/// Classes a block.
fn one_by_one(block: &Block) -> Classes {
    let bits = |is: &dyn Fn(u8) -> bool| {
        let bits = block
            .iter()
            .zip(0..)
            .map(|(byte, at)| u32::from(is(*byte)) << at);
        bits.fold(0, |all, bit| all | bit)
    };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let flag = |byte: &u8| match byte {
        b'@' => has::AT,
        b'+' => has::PLUS,
        b'%' => has::PERCENT,
        b'\\' | 0x1b => has::ESCAPE,
        other => other & has::OTHER,
    };
    Classes {
        digits: bits(&|byte| byte.is_ascii_digit()),
        words: bits(&word),
        capitals: bits(&|byte| byte.is_ascii_uppercase()),
        hex: bits(&|byte| byte.is_ascii_hexdigit()),
        colons: bits(&|byte| byte == b':'),
        joins: bits(&joins),
        letters: bits(&|byte| word(byte) || matches!(byte, b'+' | b'/' | b'-')),
        flags: block.iter().map(flag).fold(0, |all, flag| all | flag),
    }
}

/// The same, all bytes at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn at_once(block: &Block) -> Classes {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set_epi64x, _mm256_set1_epi8, _mm256_sub_epi8,
    };
    let (eights, _) = block.as_chunks::<8>();
    let [one, two, three, four] = [0, 1, 2, 3].map(|at| i64::from_le_bytes(eights[at]));
    let bytes = _mm256_set_epi64x(four, three, two, one);
    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let or = |one: __m256i, other: __m256i| _mm256_or_si256(one, other);
    let is = |byte: u8| _mm256_cmpeq_epi8(bytes, all(byte));
    // So many from one on.
    let among = |bytes: __m256i, first: u8, count: u8| {
        let from = _mm256_sub_epi8(bytes, all(first));
        _mm256_cmpeq_epi8(_mm256_min_epu8(from, all(count - 1)), from)
    };
    let bits = |which: __m256i| _mm256_movemask_epi8(which).cast_unsigned();
    let lower = or(bytes, all(0x20));
    let digits = among(bytes, b'0', 10);
    let words = or(or(digits, among(lower, b'a', 26)), is(b'_'));
    let plus = is(b'+');
    let letters = or(or(words, plus), or(is(b'/'), is(b'-')));
    let (at, percent) = (is(b'@'), is(b'%'));
    let escape = or(is(b'\\'), is(0x1b));
    let mut flags = 0;
    let other = bits(bytes) != 0;
    if bits(or(or(at, plus), or(percent, escape))) != 0 || other {
        let seen = [
            (bits(at) != 0, has::AT),
            (bits(plus) != 0, has::PLUS),
            (bits(percent) != 0, has::PERCENT),
            (bits(escape) != 0, has::ESCAPE),
            (other, has::OTHER),
        ];
        for (seen, flag) in seen {
            flags |= u8::from(seen) * flag;
        }
    }
    Classes {
        digits: bits(digits),
        words: bits(words),
        capitals: bits(among(bytes, b'A', 26)),
        hex: bits(or(digits, among(lower, b'a', 6))),
        colons: bits(is(b':')),
        joins: bits(or(among(bytes, b'(', 18), is(b' '))),
        letters: bits(letters),
        flags,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::encoded;

    proptest! {
        #[test]
        fn it_is_what_a_slow_look_tells(
            text in "(?:[a-zA-Z0-9_/+-]{0,70}[ .@%:é\\\\]{0,2}){0,7}",
            part in 1_usize..5,
            wide in any::<bool>(),
        ) {
            let mut survey = Survey::default();
            survey.begin();
            survey.take("@ 1 A1".repeat(9).as_bytes(), 0..54);
            survey.begin();
            let bytes = text.as_bytes();
            let mut numbers = Vec::new();
            let mut lettered = Vec::new();
            let mut colons = Vec::new();
            let mut at = 0;
            while at < bytes.len() {
                let end = bytes.len().min(at + part * BLOCK);
                if wide {
                    survey.take(bytes, at..end);
                } else {
                    survey.take_any(bytes, at..end, one_by_one);
                }
                numbers.append(&mut survey.numbers);
                lettered.append(&mut survey.lettered);
                colons.append(&mut survey.colons);
                at = end;
            }
            (survey.numbers, survey.lettered, survey.colons) = (numbers, lettered, colons);
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
