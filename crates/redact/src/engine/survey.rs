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
        self.take_any(text, part, portable);
    }

    /// The same, for processors that class a block at once.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn take_wide(&mut self, text: &[u8], part: Range<usize>) {
        self.take_any(text, part, |block| wide(block));
    }

    #[inline(always)]
    fn take_any(&mut self, text: &[u8], part: Range<usize>, bits: impl Fn(&Block) -> u32) {
        self.numbers.clear();
        self.lettered.clear();
        self.colons.clear();
        self.older = self.rows.len();
        let mut flags = [0; BLOCK];
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
            let classes = classes(bytes, &mut flags, &bits);
            self.note(at, &classes, bytes, &mut before);
            at += BLOCK;
        }
        if part.end == text.len()
            && let Some(begin) = self.open.take()
        {
            self.row(begin..text.len());
        }
        self.here = flags.iter().fold(0, |all, one| all | one);
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
    (byte.wrapping_sub(b'(') < 18) | (byte == b' ')
}

/// The upper bits of the bytes of a block.
fn portable(block: &Block) -> u32 {
    let (eights, _) = block.as_chunks::<8>();
    let mut all = 0;
    for (at, eight) in eights.iter().enumerate() {
        // One of each byte, and the sum of their products at the top: the bit of its place among eight.
        let upper = u64::from_le_bytes(*eight) >> 7 & 0x0101_0101_0101_0101;
        let sum = upper.wrapping_mul(0x0102_0408_1020_4080) >> 56;
        all |= u32::try_from(sum).unwrap_or_default() << (at * 8);
    }
    all
}

/// The same with one instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn wide(block: &Block) -> u32 {
    use std::arch::x86_64::{_mm256_movemask_epi8, _mm256_set_epi64x};
    let (eights, _) = block.as_chunks::<8>();
    let [one, two, three, four] = [0, 1, 2, 3].map(|at| i64::from_le_bytes(eights[at]));
    _mm256_movemask_epi8(_mm256_set_epi64x(four, three, two, one)).cast_unsigned()
}

/// Classes a block, which comes with two bytes behind it.
#[inline(always)]
fn classes(bytes: &[u8; BLOCK + 2], flags: &mut Block, bits: &impl Fn(&Block) -> u32) -> Classes {
    let block = bytes.first_chunk::<BLOCK>().unwrap_or(&[0; BLOCK]);
    let if_so = |is: bool, bits: u8| u8::from(is).wrapping_neg() & bits;
    for (flags, byte) in flags.iter_mut().zip(*block) {
        *flags |= if_so(byte == b'@', has::AT)
            | if_so(byte == b'+', has::PLUS)
            | if_so(byte == b'%', has::PERCENT)
            | if_so((byte == b'\\') | (byte == 0x1b), has::ESCAPE)
            | byte & has::OTHER;
    }
    let digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
    let word = |byte: u8| (byte | 0x20).wrapping_sub(b'a') < 26;
    let word = |byte: u8| digit(byte) | word(byte) | (byte == b'_');
    let sign = |byte: u8| (byte == b'+') | (byte == b'/') | (byte == b'-');
    Classes {
        digits: bits(&which(block, digit)),
        words: bits(&which(block, word)),
        capitals: bits(&which(block, |byte| byte.wrapping_sub(b'A') < 26)),
        hex: bits(&which(block, |byte| {
            digit(byte) | ((byte | 0x20).wrapping_sub(b'a') < 6)
        })),
        colons: bits(&which(block, |byte| byte == b':')),
        joins: bits(&which(block, joins)),
        letters: bits(&which(block, |byte| word(byte) | sign(byte))),
    }
}

/// All bits of each byte that is so.
#[inline(always)]
fn which(block: &Block, is: impl Fn(u8) -> bool) -> Block {
    let mut which = [0; BLOCK];
    for (which, byte) in which.iter_mut().zip(*block) {
        *which = u8::from(is(byte)).wrapping_neg();
    }
    which
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                    survey.take_any(bytes, at..end, portable);
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
