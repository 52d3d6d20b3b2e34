//! Finds words in a text, however many there are, in one pass.
//!
//! Four bytes at a time, their case folded, are looked up in a table of bits that stays in the nearest cache. The look-ups do
//! not wait for each other, which is what makes this several times as fast as an automaton. Only where the bit is set is
//! it seen whether one of the words stands there.

/// As many bits as the nearest cache holds with room for the text.
const BITS: u32 = 16;
const FOLD: u32 = 0x2020_2020;

/// Words, ready to be found.
#[derive(Debug, Default)]
pub(super) struct Words {
    bits: Vec<u64>,
    /// Where the entries of a hash begin; one more than there are hashes.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    /// Those of one or two bytes: by the byte of them that is seldom.
    short: Vec<(u8, Entry)>,
    words: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    window: u32,
    /// Which bytes of the window count: three of a word of three.
    mask: u32,
    word: u32,
    offset: u32,
}

fn slot(window: u32) -> usize {
    (window.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

/// How often a byte is seen in text and code, roughly: the higher the more often.
fn often(byte: u8) -> u32 {
    const COMMON: &[u8] = b"etaoinsrlcdupm_fh.gbyv\"-/:w0k1=x,2'()3q45j6978z";
    let place = COMMON
        .iter()
        .position(|known| *known == byte.to_ascii_lowercase());
    place.map_or(1, |place| 64 - u32::try_from(place).unwrap_or(0))
}

impl Words {
    /// Gets words ready. They are found whatever their case; an empty one never.
    pub(super) fn new(words: &[String]) -> Self {
        let mut this = Self {
            bits: vec![0; 1 << (BITS - 6)],
            words: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
            ..Self::default()
        };
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for (index, word) in words.iter().enumerate() {
            let word = word.as_bytes();
            let entry = |window, mask, offset: usize| Entry {
                window,
                mask,
                word: u32::try_from(index).unwrap_or(u32::MAX),
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
            };
            match word {
                [] => {}
                [_] | [_, _] => {
                    let offset = usize::from(word.len() == 2 && often(word[1]) < often(word[0]));
                    this.short.push((word[offset], entry(0, 0, offset)));
                }
                [one, two, three] => {
                    // A word of three may be followed by anything.
                    for fourth in (0..=255_u8).filter(|byte| byte & 0x20 != 0) {
                        let window = u32::from_le_bytes([*one, *two, *three, fourth]) | FOLD;
                        entries.push((slot(window), entry(window, !0, 0)));
                    }
                }
                _ => {
                    let score = |at: usize| {
                        word[at..at + 4]
                            .iter()
                            .map(|byte| often(*byte))
                            .sum::<u32>()
                    };
                    let offset = (0..=word.len() - 4)
                        .min_by_key(|at| score(*at))
                        .unwrap_or(0);
                    let window = [
                        word[offset],
                        word[offset + 1],
                        word[offset + 2],
                        word[offset + 3],
                    ];
                    let window = u32::from_le_bytes(window) | FOLD;
                    entries.push((slot(window), entry(window, !0, offset)));
                }
            }
        }
        entries.sort_by_key(|(slot, _)| *slot);
        this.heads = vec![0; (1 << BITS) + 1];
        for (slot, _) in &entries {
            this.bits[slot >> 6] |= 1 << (slot & 63);
            this.heads[slot + 1] += 1;
        }
        for at in 1..this.heads.len() {
            this.heads[at] += this.heads[at - 1];
        }
        this.entries = entries.into_iter().map(|(_, entry)| entry).collect();
        this
    }

    /// Calls `hit` with each word and where it begins: in no order but that of the places of one word.
    pub(super) fn find(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        let Ok(bits) = <&[u64; 1 << (BITS - 6)]>::try_from(self.bits.as_slice()) else {
            return;
        };
        let mut at = 0;
        for window in text.windows(4) {
            let window = u32::from_le_bytes([window[0], window[1], window[2], window[3]]) | FOLD;
            let slot = slot(window);
            if bits[slot >> 6] >> (slot & 63) & 1 == 1 {
                self.look(text, at, window, slot, &mut hit);
            }
            at += 1;
        }
        // A word of three at the very end.
        if let Some([one, two, three]) = text.last_chunk::<3>() {
            let window = u32::from_le_bytes([*one, *two, *three, 0x20]) | FOLD;
            self.look(text, text.len() - 3, window, slot(window), &mut hit);
        }
        for (byte, entry) in &self.short {
            let other = if byte.is_ascii_lowercase() {
                byte.to_ascii_uppercase()
            } else {
                *byte
            };
            for at in memchr::memchr2_iter(*byte, other, text) {
                self.verify(text, at, entry, &mut hit);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn look(
        &self,
        text: &[u8],
        at: usize,
        window: u32,
        slot: usize,
        hit: &mut impl FnMut(usize, usize),
    ) {
        let entries = self.heads[slot] as usize..self.heads[slot + 1] as usize;
        for entry in &self.entries[entries] {
            if (entry.window ^ window) & entry.mask == 0 {
                self.verify(text, at, entry, hit);
            }
        }
    }

    fn verify(&self, text: &[u8], at: usize, entry: &Entry, hit: &mut impl FnMut(usize, usize)) {
        let word = entry.word as usize;
        let Some(begin) = at.checked_sub(entry.offset as usize) else {
            return;
        };
        let expected = &self.words[word];
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
            Words::new(&words).find(text.as_bytes(), |word, at| found.push((word, at)));
            found.sort_unstable();
            prop_assert_eq!(found, slow(&words, &text));
        }
    }
}
