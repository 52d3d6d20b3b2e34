//! Short texts in which nothing was found: types, roles, folders, versions and ids stand on every line of a log.

use super::keys::{Name, mix, same};

/// The longest text that is remembered.
pub(super) const LONGEST: usize = 83;

/// How many are remembered.
const PLACES: usize = 1024;

/// Texts that were looked at before, each with the name it was given to. What is compared is all of their bytes: a hash
/// only says where to look. Texts with anything in them are never remembered.
///
/// Most texts that are short never come again: times, ids. What is seen for the first time leaves no more than its hash,
/// and is written down when that is seen once more.
pub(super) struct Clean {
    hashes: Box<[u32]>,
    places: Box<[Slot]>,
}

#[derive(Clone, Copy)]
struct Slot {
    name: Name,
    len: u8,
    text: [u8; LONGEST],
}

impl Clean {
    pub(super) fn new() -> Self {
        let empty = Slot {
            name: Name::OTHER,
            len: 0,
            text: [0; LONGEST],
        };
        Self {
            hashes: vec![0; PLACES].into(),
            places: vec![empty; PLACES].into(),
        }
    }

    /// Whether nothing was found in a text before.
    #[inline]
    pub(super) fn knows(&self, name: Name, text: &[u8]) -> bool {
        if name == Name::OTHER || text.len() > LONGEST {
            return false;
        }
        let (slot, hash) = slot(name, text);
        if self.hashes[slot] != hash {
            return false;
        }
        let place = &self.places[slot];
        place.name == name
            && usize::from(place.len) == text.len()
            && same(&place.text[..text.len()], text)
    }

    /// Nothing was found in a text.
    #[inline]
    pub(super) fn remember(&mut self, name: Name, text: &[u8]) {
        if name == Name::OTHER || text.len() > LONGEST {
            return;
        }
        let (slot, hash) = slot(name, text);
        if self.hashes[slot] != hash {
            self.hashes[slot] = hash;
            return;
        }
        let place = &mut self.places[slot];
        place.name = name;
        place.len = u8::try_from(text.len()).unwrap_or_default();
        place.text[..text.len()].copy_from_slice(text);
    }
}

/// By its first and last bytes and its length: what repeats is told apart by them, and the rest is compared.
#[inline]
fn slot(name: Name, text: &[u8]) -> (usize, u32) {
    let mixed = mix(u64::from(name.number()) << 20, text);
    let hash = u32::try_from(mixed >> 32).unwrap_or_default();
    (hash as usize % PLACES, hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::raw::keys::{Class, Keys};

    #[test]
    fn a_text_is_known_with_its_name_only() {
        let mut keys = Keys::new();
        let mut name = |key: &[u8]| keys.remember(key, Class::NONE).name;
        let (role, other) = (name(b"role"), name(b"roles"));
        let mut clean = Clean::new();
        assert!(!clean.knows(Name::NONE, b""));
        clean.remember(role, b"user");
        assert!(!clean.knows(role, b"user"));
        clean.remember(role, b"user");
        assert!(clean.knows(role, b"user"));
        assert!(!clean.knows(other, b"user"));
        assert!(!clean.knows(Name::NONE, b"user"));
        assert!(!clean.knows(role, b"users"));
        clean.remember(Name::OTHER, b"user");
        clean.remember(Name::OTHER, b"user");
        assert!(!clean.knows(Name::OTHER, b"user"));
        let long = [b'x'; LONGEST + 1];
        clean.remember(role, &long);
        clean.remember(role, &long);
        assert!(!clean.knows(role, &long));
        clean.remember(role, &long[1..]);
        clean.remember(role, &long[1..]);
        assert!(clean.knows(role, &long[1..]));
    }

    proptest! {
        #[test]
        fn only_what_was_remembered_is_known(
            texts in prop::collection::vec((0_usize..3, "[ab]{0,20}"), 1..60),
            other in (0_usize..3, "[ab]{0,20}"),
        ) {
            let mut keys = Keys::new();
            let names = [
                Name::NONE,
                keys.remember(b"a", Class::NONE).name,
                keys.remember(b"b", Class::NONE).name,
            ];
            let mut clean = Clean::new();
            for (name, text) in &texts {
                clean.remember(names[*name], text.as_bytes());
                clean.remember(names[*name], text.as_bytes());
                prop_assert!(clean.knows(names[*name], text.as_bytes()));
            }
            let known = clean.knows(names[other.0], other.1.as_bytes());
            prop_assert!(!known || texts.contains(&other));
        }
    }
}
