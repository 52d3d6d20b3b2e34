//! Finds words in a text, however many there are, in one pass.
//!
//! Four bytes at a time, their case folded, are looked up in a table of bits that stays in the first cache. The look-ups do
//! not wait for each other, which is what makes this several times as fast as an automaton; processors that can do so make
//! eight of them at once. Only where the bits are set is the text compared with the words.

use std::ops::Range;

use super::often::seldom;
use super::shape::Set;

/// So many bits, by 32, that few of them are set, and so few that they stay in the first cache.
const ROWS: usize = 1 << 13;
type Bits = [u32; ROWS];
/// How many lists of entries there are.
const LISTS: usize = 4096;
/// How many places are looked at before the text is compared with words.
const STRIDE: usize = 512;
/// How many places are looked at at once, and how many bytes that takes.
const PLACES: usize = 8;
const BLOCK: usize = 16;
const FOLD: u64 = 0x2020_2020_2020_2020;
const MIX: u32 = 0x9E37_79B1;

/// A word that is looked for.
#[derive(Debug, Clone)]
pub(super) struct Word<'a> {
    pub(super) spelled: &'a str,
    /// What can stand behind it. It may be found before other bytes as well.
    pub(super) next: Set,
}

/// Words, ready to be found.
#[derive(Debug, Default)]
pub(super) struct Words {
    bits: Vec<u32>,
    /// Where the entries of a hash begin; one more than there are hashes.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    /// Those of one or two bytes: by the byte of them that is seldom.
    short: Vec<(u8, Entry)>,
    /// All of them one behind the other, and where each begins; one more than there are.
    spelled: Vec<u8>,
    begins: Vec<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    window: u32,
    word: u32,
    offset: u32,
    /// The first eight bytes of the word, their case folded, and which of them count.
    head: u64,
    mask: u64,
}

/// Four bytes, their case folded.
#[inline]
fn window(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes) | 0x2020_2020
}

#[inline]
fn mixed(window: u32) -> u32 {
    window.wrapping_mul(MIX)
}

/// The row of a window, and the two bits of it that are set in there.
#[inline]
fn slot(window: u32) -> (usize, u32) {
    let mixed = mixed(window);
    (
        (mixed >> 19) as usize,
        1 << (mixed >> 14 & 31) | 1 << (mixed >> 9 & 31),
    )
}

/// Whether a word may stand where there is this window.
#[inline]
fn is_set(bits: &Bits, window: u32) -> bool {
    let (row, both) = slot(window);
    bits[row] & both == both
}

fn list(window: u32) -> usize {
    (mixed(window) >> 20) as usize
}

/// Which of the places of a block a word may stand at, a bit for each.
#[inline]
fn one_by_one(bits: &Bits, block: &[u8; BLOCK]) -> u32 {
    let mut all = 0;
    for at in 0..PLACES {
        let four = [block[at], block[at + 1], block[at + 2], block[at + 3]];
        all |= u32::from(is_set(bits, window(four))) << at;
    }
    all
}

/// The same, all of them at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn at_once(bits: &Bits, block: &[u8; BLOCK]) -> u32 {
    use std::arch::x86_64::{
        _mm256_and_si256, _mm256_castsi256_ps, _mm256_i32gather_epi32, _mm256_movemask_ps,
        _mm256_mullo_epi32, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi32,
        _mm256_setr_epi8, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srli_epi32,
        _mm256_srlv_epi32,
    };
    let both = u128::from_le_bytes(*block);
    #[expect(clippy::cast_possible_truncation, reason = "each half by itself")]
    let (low, high) = (both as i64, (both >> 64) as i64);
    let twice = _mm256_set_epi64x(high, low, high, low);
    let four_each = _mm256_setr_epi8(
        0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, //
        4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10,
    );
    let windows = _mm256_or_si256(
        _mm256_shuffle_epi8(twice, four_each),
        _mm256_set1_epi32(0x2020_2020),
    );
    let mixed = _mm256_mullo_epi32(windows, _mm256_set1_epi32(MIX.cast_signed()));
    let places = _mm256_srli_epi32::<19>(mixed);
    #[expect(
        unsafe_code,
        reason = "13 bits are left of each place, and there are 2^13 rows"
    )]
    let rows = unsafe {
        const { assert!(ROWS == 1 << 13) };
        _mm256_i32gather_epi32::<4>(bits.as_ptr().cast(), places)
    };
    let of_32 = _mm256_set1_epi32(31);
    let first = _mm256_and_si256(_mm256_srli_epi32::<14>(mixed), of_32);
    let second = _mm256_and_si256(_mm256_srli_epi32::<9>(mixed), of_32);
    let set = _mm256_and_si256(
        _mm256_srlv_epi32(rows, first),
        _mm256_srlv_epi32(rows, second),
    );
    _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32::<31>(set))).cast_unsigned()
}

impl Words {
    /// Gets words ready. They are found whatever their case; an empty one never.
    pub(super) fn new(words: &[Word<'_>]) -> Self {
        let mut this = Self {
            bits: vec![0; ROWS],
            begins: vec![0],
            ..Self::default()
        };
        for word in words {
            this.spelled.extend_from_slice(word.spelled.as_bytes());
            let end = u32::try_from(this.spelled.len()).unwrap_or(u32::MAX);
            this.begins.push(end);
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (index, Word { spelled, next }) in words.iter().enumerate() {
            let word = spelled.as_bytes();
            let entry = |window, offset: usize| {
                let mut head = [0; 8];
                let mut mask = [0; 8];
                for (at, byte) in word.iter().take(8).enumerate() {
                    head[at] = *byte | 0x20;
                    mask[at] = 0xff;
                }
                Entry {
                    window,
                    word: u32::try_from(index).unwrap_or(u32::MAX),
                    offset: u32::try_from(offset).unwrap_or(u32::MAX),
                    head: u64::from_le_bytes(head),
                    mask: u64::from_le_bytes(mask),
                }
            };
            match *word {
                [] => {}
                [_] | [_, _] => {
                    let offset =
                        usize::from(word.len() == 2 && seldom(&word[1..]) > seldom(&word[..1]));
                    this.short.push((word[offset], entry(0, offset)));
                }
                [one, two, three] => {
                    // One for each that may follow, but for its case.
                    let folded = (0..=255_u8).filter(|byte| byte & 0x20 != 0);
                    for fourth in folded.filter(|byte| next.has(*byte) || next.has(byte & !0x20)) {
                        entries.push(entry(window([one, two, three, fourth]), 0));
                    }
                }
                _ => {
                    let offset = (0..=word.len() - 4).max_by_key(|at| seldom(&word[*at..at + 4]));
                    let offset = offset.unwrap_or(0);
                    let [one, two, three, four] = [0, 1, 2, 3].map(|at| word[offset + at]);
                    entries.push(entry(window([one, two, three, four]), offset));
                }
            }
        }
        let mut heads = vec![0; LISTS + 1];
        for entry in &entries {
            let (row, both) = slot(entry.window);
            this.bits[row] |= both;
            heads[list(entry.window) + 1] += 1;
        }
        for at in 1..heads.len() {
            heads[at] += heads[at - 1];
        }
        // Each to its list, in the order they came in.
        let mut next = heads.clone();
        this.entries.resize(entries.len(), Entry::default());
        for entry in entries {
            let place = &mut next[list(entry.window)];
            this.entries[*place as usize] = entry;
            *place += 1;
        }
        this.heads = heads;
        this
    }

    /// Calls `hit` with each word and where it begins: in no order but that of the places of one word.
    pub(super) fn find(&self, text: &[u8], hit: impl FnMut(usize, usize)) {
        self.find_in(text, 0..text.len(), hit);
    }

    /// The same in a part of a text. Words may begin before it.
    pub(super) fn find_in(
        &self,
        text: &[u8],
        part: Range<usize>,
        mut hit: impl FnMut(usize, usize),
    ) {
        let Ok(bits) = <&Bits>::try_from(self.bits.as_slice()) else {
            return;
        };
        // What was found is looked at afterwards: so finding it does not wait for that.
        let mut found = [0_u16; STRIDE];
        let mut at = part.start;
        while at < part.end {
            let end = part.end.min(at + STRIDE);
            let count = places(bits, text, at..end, &mut found);
            for place in &found[..count] {
                self.look(text, at + usize::from(*place), &mut hit);
            }
            at = end;
        }
        for (byte, entry) in &self.short {
            let other = if byte.is_ascii_lowercase() {
                byte.to_ascii_uppercase()
            } else {
                *byte
            };
            for at in memchr::memchr2_iter(*byte, other, &text[part.clone()]) {
                self.verify(text, part.start + at, entry, &mut hit);
            }
        }
    }

    /// The words.
    #[cfg(feature = "testkit")]
    pub(super) fn all(&self) -> impl Iterator<Item = &[u8]> {
        let ends = self.begins.windows(2);
        ends.map(|pair| &self.spelled[pair[0] as usize..pair[1] as usize])
    }

    /// How many bytes a word has at most.
    pub(super) fn longest(&self) -> usize {
        self.begins
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as usize)
            .max()
            .unwrap_or(0)
    }

    #[inline]
    fn look(&self, text: &[u8], at: usize, hit: &mut impl FnMut(usize, usize)) {
        let window = window(four(text, at));
        let list = list(window);
        let entries = self.heads[list] as usize..self.heads[list + 1] as usize;
        for entry in &self.entries[entries] {
            if entry.window == window {
                self.verify(text, at, entry, hit);
            }
        }
    }

    #[inline]
    fn verify(&self, text: &[u8], at: usize, entry: &Entry, hit: &mut impl FnMut(usize, usize)) {
        let Some(begin) = at.checked_sub(entry.offset as usize) else {
            return;
        };
        if let Some(head) = text[begin..].first_chunk::<8>()
            && (u64::from_le_bytes(*head) | FOLD) & entry.mask != entry.head
        {
            return;
        }
        let word = entry.word as usize;
        let expected = self.begins[word] as usize..self.begins[word + 1] as usize;
        let expected = &self.spelled[expected];
        let there = text.get(begin..begin + expected.len());
        if there.is_some_and(|there| there.eq_ignore_ascii_case(expected)) {
            hit(word, begin);
        }
    }
}

/// Four bytes of a text. Behind its end nothing stands, as if it were blanks.
#[inline]
fn four(text: &[u8], at: usize) -> [u8; 4] {
    text[at..].first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [b' '; 4];
        padded[..text.len() - at].copy_from_slice(&text[at..]);
        padded
    })
}

/// Writes down where in a stretch of a text a word may stand, from its begin on, and says how many places that are.
fn places(bits: &Bits, text: &[u8], stretch: Range<usize>, found: &mut [u16; STRIDE]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "that the processor has it was asked above")]
        return unsafe { places_at_once(bits, text, stretch, found) };
    }
    places_by(bits, text, stretch, found, one_by_one)
}

/// The same, for processors that look up eight at once.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn places_at_once(
    bits: &Bits,
    text: &[u8],
    stretch: Range<usize>,
    found: &mut [u16; STRIDE],
) -> usize {
    places_by(bits, text, stretch, found, |bits, block| {
        at_once(bits, block)
    })
}

#[expect(
    clippy::inline_always,
    reason = "all of it in one function for each kind of processor"
)]
#[inline(always)]
fn places_by(
    bits: &Bits,
    text: &[u8],
    stretch: Range<usize>,
    found: &mut [u16; STRIDE],
    which: impl Fn(&Bits, &[u8; BLOCK]) -> u32,
) -> usize {
    let mut count = 0;
    let mut note = |begin: usize, mut set: u32| {
        while set != 0 {
            let place = begin + set.trailing_zeros() as usize;
            // There are no more places than the stretch has bytes.
            if let (Some(slot), Ok(place)) = (found.get_mut(count), u16::try_from(place)) {
                *slot = place;
                count += 1;
            }
            set &= set - 1;
        }
    };
    let mut at = stretch.start;
    while at < stretch.end {
        let left = stretch.end - at;
        let mut padded = [b' '; BLOCK];
        let block = text[at..].first_chunk().unwrap_or_else(|| {
            let rest = &text[at..];
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let mut set = which(bits, block);
        if left < PLACES {
            set &= (1 << left) - 1;
        }
        note(at - stretch.start, set);
        at += PLACES;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow(words: &[String], text: &str) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (index, word) in words.iter().enumerate() {
            for at in 0..text.len() {
                let there = text.as_bytes().get(at..at + word.len());
                if !word.is_empty()
                    && there.is_some_and(|there| there.eq_ignore_ascii_case(word.as_bytes()))
                {
                    all.push((index, at));
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn every_word_is_found_wherever_it_stands(
            words in proptest::collection::vec("[ab_~]{1,6}", 1..8),
            text in "[abAB_~ ]{0,40}",
            before in 0_usize..1100,
        ) {
            let text = "-".repeat(before) + &text;
            let mut found = Vec::new();
            let all: Vec<Word> = words
                .iter()
                .map(|word| Word { spelled: word, next: Set::ALL })
                .collect();
            Words::new(&all).find(text.as_bytes(), |word, at| found.push((word, at)));
            found.sort_unstable();
            prop_assert_eq!(found, slow(&words, &text));
        }

        #[test]
        fn eight_at_once_are_the_same_as_one_by_one(
            words in proptest::collection::vec("[a-f]{4,6}", 1..300),
            text in "[a-fA-F]{0,600}",
        ) {
            let all: Vec<Word> = words
                .iter()
                .map(|word| Word { spelled: word, next: Set::ALL })
                .collect();
            let words = Words::new(&all);
            let bits = <&Bits>::try_from(words.bits.as_slice()).unwrap();
            let (mut fast, mut slow) = ([0; STRIDE], [0; STRIDE]);
            let stretch = 0..text.len().min(STRIDE);
            let quick = places(bits, text.as_bytes(), stretch.clone(), &mut fast);
            let slowly = places_by(bits, text.as_bytes(), stretch, &mut slow, one_by_one);
            prop_assert_eq!(&fast[..quick], &slow[..slowly]);
        }
    }
}
