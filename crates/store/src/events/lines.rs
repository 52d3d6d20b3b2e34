//! The lines of a block, each with its references to the log.
//!
//! Of each line there are, as numbers of as few bytes as they need: how many references it has, how many bytes are
//! written out, and of each reference how far it is behind the last one in the line, how far behind or before the end
//! of the last one in the log, and how long it is. Behind the numbers are the bytes.

use quipu_agents::kept::Reference;

/// No line has more references than this.
const MOST: u64 = 1 << 20;

/// Writes the lines of a block.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// How many they are.
    count: u32,
    /// Where in the log the last reference ends.
    end: u64,
}

impl Lines {
    /// Adds a line.
    pub(super) fn push(&mut self, written: &[u8], references: &[Reference]) {
        self.count += 1;
        self.number(references.len() as u64);
        self.number(written.len() as u64);
        let mut place = 0;
        for reference in references {
            self.number(reference.place.saturating_sub(place) as u64);
            self.number(folded(reference.offset.wrapping_sub(self.end)));
            self.number(reference.len as u64);
            place = reference.place;
            self.end = reference.offset.wrapping_add(reference.len as u64);
        }
        self.bytes.extend_from_slice(written);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Begins another block, and keeps no more memory than this.
    pub(super) fn clear(&mut self, room: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(room);
        (self.count, self.end) = (0, 0);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.bytes.push(number.to_le_bytes()[0]);
    }
}

/// Reads the lines of a block.
pub(super) struct Reading<'b> {
    rest: &'b [u8],
    end: u64,
    references: Vec<Reference>,
}

impl<'b> Reading<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self {
            rest: bytes,
            end: 0,
            references: Vec::new(),
        }
    }

    /// What is written out of the next line, and its references; `None` unless a whole line is left.
    pub(super) fn next(&mut self) -> Option<(&'b [u8], &[Reference])> {
        let count = self.number().filter(|count| *count <= MOST)?;
        let len = usize::try_from(self.number()?).ok()?;
        self.references.clear();
        let mut place = 0_usize;
        for _ in 0..count {
            place = place.checked_add(usize::try_from(self.number()?).ok()?)?;
            let offset = self.end.wrapping_add(unfolded(self.number()?));
            let length = self.number()?;
            self.end = offset.checked_add(length)?;
            self.references.push(Reference {
                place: Some(place).filter(|place| *place <= len)?,
                offset,
                len: usize::try_from(length).ok()?,
            });
        }
        let (written, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some((written, &self.references))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

/// A difference as a number that is small when it is, whether forward or back.
fn folded(difference: u64) -> u64 {
    let is_back = difference >> 63;
    (difference << 1) ^ 0_u64.wrapping_sub(is_back)
}

fn unfolded(number: u64) -> u64 {
    (number >> 1) ^ 0_u64.wrapping_sub(number & 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_line() -> impl Strategy<Value = (Vec<u8>, Vec<Reference>)> {
        let written = prop::collection::vec(any::<u8>(), 0..200);
        let reference = (
            any::<prop::sample::Index>(),
            0..u64::MAX >> 1,
            0..1_usize << 40,
        );
        let references = prop::collection::vec(reference, 0..4);
        (written, references).prop_map(|(written, references)| {
            let mut references: Vec<_> = references
                .into_iter()
                .map(|(place, offset, len)| Reference {
                    place: place.index(written.len() + 1),
                    offset,
                    len,
                })
                .collect();
            references.sort_by_key(|reference| reference.place);
            (written, references)
        })
    }

    proptest! {
        #[test]
        fn lines_read_back(lines in prop::collection::vec(any_line(), 0..20)) {
            let mut block = Lines::default();
            for (written, references) in &lines {
                block.push(written, references);
            }
            prop_assert_eq!(block.len() as usize, lines.len());
            let mut reading = Reading::new(block.bytes());
            for (written, references) in &lines {
                let read = reading.next();
                prop_assert_eq!(read, Some((&written[..], &references[..])));
            }
            prop_assert_eq!(reading.next(), None);
        }

        #[test]
        fn any_bytes_read_as_lines_that_lie_within_them(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut reading = Reading::new(&bytes);
            while let Some((written, references)) = reading.next() {
                prop_assert!(written.len() <= bytes.len());
                prop_assert!(references.iter().all(|reference| reference.place <= written.len()));
            }
        }
    }
}
