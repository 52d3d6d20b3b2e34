//! Finds words in a text, however many there are, in one pass.
//!
//! Four bytes at a time, their case folded, are looked up in a table of bits that stays in a cache. The look-ups do
//! not wait for each other, which is what makes this several times as fast as an automaton. Only where the bit is set is
//! it seen whether one of the words stands there.

use std::ops::Range;

use super::often::seldom;
use super::shape::Set;

/// So many bits, by eight, that few of them are set, and so few that they stay in the second cache.
const BYTES: usize = 1 << 17;
/// How many lists of entries there are.
const LISTS: usize = 4096;
/// How many places are looked at at once, and how many bytes that takes.
const PLACES: usize = 8;
const BLOCK: usize = PLACES + 3;
const FOLD: u64 = 0x2020_2020_2020_2020;

/// A word that is looked for.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) spelled: String,
    /// What can stand behind it. It may be found before other bytes as well.
    pub(super) next: Set,
}

/// Words, ready to be found.
#[derive(Debug, Default)]
pub(super) struct Words {
    bits: Vec<u8>,
    /// Where the entries of a hash begin; one more than there are hashes.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    /// Those of one or two bytes: by the byte of them that is seldom.
    short: Vec<(u8, Entry)>,
    spelled: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    window: u32,
    word: u32,
    offset: u32,
    /// The first eight bytes of the word, their case folded, and which of them count.
    head: u64,
    mask: u64,
}

/// Four bytes, their case folded.
fn window(bytes: [u8; 4]) -> u32 {
    first(u64::from(u32::from_le_bytes(bytes)) | FOLD)
}

/// The first window of some.
#[inline]
fn first(windows: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the others are cut off")]
    let window = windows as u32;
    window
}

/// The windows of a block, four in each half, their case folded.
#[inline]
fn halves(bytes: &[u8; BLOCK]) -> (u64, u64) {
    let low = bytes.first_chunk().copied().unwrap_or_default();
    let high = bytes.last_chunk().copied().unwrap_or_default();
    (
        u64::from_le_bytes(low) | FOLD,
        (u64::from_le_bytes(high) | FOLD) >> 8,
    )
}

fn mixed(window: u32) -> u32 {
    window.wrapping_mul(0x9E37_79B1)
}

/// The byte of a window and the bit of it that is set in there.
#[inline]
fn slot(window: u32) -> (usize, u8) {
    /// A table is quicker than a shift by a number that is not known.
    static BITS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    let mixed = mixed(window);
    ((mixed >> 15) as usize, BITS[(mixed >> 12 & 7) as usize])
}

/// Whether a word may stand where there is this window, in the low half of it.
#[inline]
fn is_set(bits: &[u8; BYTES], window: u64) -> bool {
    let (byte, bit) = slot(first(window));
    bits[byte] & bit != 0
}

fn list(window: u32) -> usize {
    (mixed(window) >> 20) as usize
}

impl Words {
    /// Gets words ready. They are found whatever their case; an empty one never.
    pub(super) fn new(words: &[Word]) -> Self {
        let mut this = Self {
            bits: vec![0; BYTES],
            spelled: words
                .iter()
                .map(|word| word.spelled.as_bytes().to_vec())
                .collect(),
            ..Self::default()
        };
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
        entries.sort_by_key(|entry| list(entry.window));
        this.heads = vec![0; LISTS + 1];
        for entry in &entries {
            let (byte, bit) = slot(entry.window);
            this.bits[byte] |= bit;
            this.heads[list(entry.window) + 1] += 1;
        }
        for at in 1..this.heads.len() {
            this.heads[at] += this.heads[at - 1];
        }
        this.entries = entries;
        this
    }

    /// Calls `hit` with each word and where it begins: in no order but that of the places of one word.
    pub(super) fn find(&self, text: &[u8], hit: impl FnMut(usize, usize)) {
        self.find_in(text, 0..text.len(), hit);
    }

    /// The same in a part of a text, which ends at a multiple of a block or with the text. Words may begin before it.
    pub(super) fn find_in(
        &self,
        text: &[u8],
        part: Range<usize>,
        mut hit: impl FnMut(usize, usize),
    ) {
        let Ok(bits) = <&[u8; BYTES]>::try_from(self.bits.as_slice()) else {
            return;
        };
        let mut at = part.start;
        while at < part.end
            && let Some(bytes) = text[at..].first_chunk()
        {
            self.block(bits, text, bytes, at..at, &mut hit);
            at += PLACES;
        }
        if part.end == text.len() {
            self.rest(bits, text, at, &mut hit);
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

    /// How many bytes a word has at most.
    pub(super) fn longest(&self) -> usize {
        self.spelled.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Looks at what is left behind the last block.
    #[inline(never)]
    fn rest(&self, bits: &[u8; BYTES], text: &[u8], at: usize, hit: &mut impl FnMut(usize, usize)) {
        let Some(bytes) = text.last_chunk() else {
            // All there is. Behind its end nothing stands, as if it were a blank.
            let mut padded = [b' '; BLOCK];
            padded[..text.len()].copy_from_slice(text);
            self.block(bits, text, &padded, 0..0, hit);
            return;
        };
        // It ends a block that begins before it.
        self.block(bits, text, bytes, text.len() - BLOCK..at, hit);
        if let Some([one, two, three]) = text.last_chunk() {
            let window = window([*one, *two, *three, b' ']);
            if is_set(bits, window.into()) {
                self.look(text, text.len() - 3, window, hit);
            }
        }
    }

    /// Looks at the places of a block. Those of `done` were looked at; it begins where the block does.
    #[expect(
        clippy::inline_always,
        reason = "a call for every eight bytes is a third of the time"
    )]
    #[inline(always)]
    fn block(
        &self,
        bits: &[u8; BYTES],
        text: &[u8],
        bytes: &[u8; BLOCK],
        done: Range<usize>,
        hit: &mut impl FnMut(usize, usize),
    ) {
        let (low, high) = halves(bytes);
        let hits = [
            is_set(bits, low),
            is_set(bits, low >> 8),
            is_set(bits, low >> 16),
            is_set(bits, low >> 24),
            is_set(bits, high),
            is_set(bits, high >> 8),
            is_set(bits, high >> 16),
            is_set(bits, high >> 24),
        ];
        // One question whether there is anything at any of the places.
        if hits.iter().fold(false, |any, hit| any | hit) {
            let hits = hits.into_iter().enumerate().skip(done.len());
            for (index, _) in hits.filter(|(_, hit)| *hit) {
                let window = if index < PLACES / 2 { low } else { high };
                let window = window >> (index % (PLACES / 2) * 8);
                self.look(text, done.start + index, first(window), hit);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&self, text: &[u8], at: usize, window: u32, hit: &mut impl FnMut(usize, usize)) {
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
        let expected = &self.spelled[word];
        let there = text.get(begin..begin + expected.len());
        if there.is_some_and(|there| there.eq_ignore_ascii_case(expected)) {
            hit(word, begin);
        }
    }
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
        ) {
            let mut found = Vec::new();
            let all: Vec<Word> = words
                .iter()
                .map(|word| Word { spelled: word.clone(), next: Set::ALL })
                .collect();
            Words::new(&all).find(text.as_bytes(), |word, at| found.push((word, at)));
            found.sort_unstable();
            prop_assert_eq!(found, slow(&words, &text));
        }
    }
}
