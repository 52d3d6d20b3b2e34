//! Tells by the first bytes of a place which of some expressions can begin there: all of them at once, a bit for each.

use super::shape::Sequence;

/// How many bytes are looked at.
const BYTES: usize = 12;

/// As much of what expressions begin with as is looked at.
pub(super) fn heads(mut sequences: Vec<Sequence>) -> Vec<Sequence> {
    for sequence in &mut sequences {
        sequence.sets.truncate(BYTES);
    }
    sequences
}

/// What some expressions begin with.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// For each place and byte, which of them go on.
    tables: Vec<[u64; 256]>,
    /// Which of them go on behind so many bytes even where the text ends.
    ended: Vec<u64>,
    all: u64,
}

impl Prefixes {
    /// Gets expressions ready, each as all that a match of it can begin with. Where they are many, some share a bit.
    pub(super) fn new(expressions: &[&[Sequence]]) -> Self {
        let count = expressions.len().min(64);
        let all = if count == 64 { !0 } else { (1 << count) - 1 };
        let mut this = Self {
            tables: Vec::new(),
            ended: Vec::new(),
            all,
        };
        for place in 0..BYTES {
            let (mut table, mut ended) = ([0_u64; 256], 0_u64);
            for (index, sequences) in expressions.iter().enumerate() {
                let bit = 1 << (index % 64);
                for sequence in *sequences {
                    let Some(set) = sequence.sets.get(place) else {
                        ended |= bit;
                        continue;
                    };
                    for byte in set.bytes() {
                        table[usize::from(byte)] |= bit;
                    }
                }
            }
            for byte in &mut table {
                *byte |= ended;
            }
            this.tables.push(table);
            this.ended.push(ended);
        }
        this
    }

    /// Which of them can begin a text, a bit for each.
    #[inline]
    pub(super) fn possible(&self, text: &[u8]) -> u64 {
        let mut possible = self.all;
        for (place, table) in self.tables.iter().enumerate() {
            let Some(byte) = text.get(place) else {
                return possible & self.ended[place];
            };
            possible &= table[usize::from(*byte)];
            if possible == 0 {
                return 0;
            }
        }
        possible
    }

    /// Whether one of them is possible.
    pub(super) fn is_among(possible: u64, index: usize) -> bool {
        possible >> (index % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::shape::sequences;
    use crate::rule::Expression;

    #[test]
    fn what_can_begin_is_known_by_its_first_bytes() {
        let expressions = [
            r"[0-9]{3}-[0-9]{2}",
            r"[A-Z]{2}[0-9]{2}",
            r"[0-9]{2}(?:x|yy)?",
        ];
        let hirs = expressions.map(|one| Expression::parse(one).unwrap().hir);
        let begins: Vec<_> = hirs
            .iter()
            .map(|hir| sequences(std::slice::from_ref(hir)).unwrap())
            .collect();
        let begins: Vec<_> = begins.iter().map(Vec::as_slice).collect();
        let prefixes = Prefixes::new(&begins);
        for (text, possible) in [
            ("123-45", 0b101),
            ("123-4", 0b100),
            ("12", 0b100),
            ("1", 0),
            ("DE89", 0b010),
            ("DE8", 0),
            ("De89", 0),
            ("", 0),
        ] {
            assert_eq!(prefixes.possible(text.as_bytes()), possible, "{text}");
        }
        assert!(Prefixes::is_among(1, 64) && !Prefixes::is_among(1, 63));
    }
}
