//! Names that say nothing to any rule: `type`, `role` and `id` stand in every record of a log.

/// A longer name is not remembered.
const LONGEST: usize = 31;
const PLACES: usize = 256;

/// Names that were looked at before, and that no rule goes by. All of their bytes are compared: a hash only says where.
#[derive(Debug)]
pub(super) struct Nameless {
    places: Box<[Slot; PLACES]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// One more than there are bytes.
    length: u8,
    bytes: [u8; LONGEST],
}

impl Default for Nameless {
    fn default() -> Self {
        Self {
            places: Box::new([Slot::default(); PLACES]),
        }
    }
}

impl Nameless {
    pub(super) fn clear(&mut self) {
        self.places.fill(Slot::default());
    }

    /// Whether it is known that no rule goes by a name.
    #[inline]
    pub(super) fn has(&self, name: &[u8]) -> bool {
        let place = &self.places[slot(name)];
        usize::from(place.length) == name.len() + 1 && place.bytes[..name.len()] == *name
    }

    /// Remembers that no rule does.
    pub(super) fn add(&mut self, name: &[u8]) {
        let place = &mut self.places[slot(name)];
        if let (Ok(length), Some(bytes)) = (
            u8::try_from(name.len() + 1),
            place.bytes.get_mut(..name.len()),
        ) {
            bytes.copy_from_slice(name);
            place.length = length;
        }
    }
}

#[inline]
fn slot(name: &[u8]) -> usize {
    let first = name.first().copied().map_or(0, usize::from);
    let last = name.last().copied().map_or(0, usize::from);
    (first.wrapping_mul(31) ^ last.wrapping_mul(7) ^ name.len()) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_known() {
        let mut names = Nameless::default();
        assert!(!names.has(b"") && !names.has(b"role"));
        names.add(b"role");
        assert!(names.has(b"role") && !names.has(b"rxle") && !names.has(b"rol") && !names.has(b""));
        names.add(b"");
        assert!(names.has(b""));
        let long = [b'x'; 300];
        names.add(&long);
        assert!(!names.has(&long) && !names.has(&long[..44]));
        names.clear();
        assert!(!names.has(b"role"));
    }
}
