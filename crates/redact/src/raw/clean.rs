//! Short texts in which nothing was found: types, roles, folders, versions and ids stand on every line of a log.

/// A text and its name are remembered when they are no longer than this together.
const LONGEST: usize = 92;

/// How many are remembered.
const PLACES: usize = 4096;

/// Texts that were looked at before, each with the name it was given to. What is compared is all of their bytes: a hash
/// only says where to look. Texts with anything in them are never remembered.
pub(super) struct Clean {
    places: Box<[Place]>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The name, and the text behind it.
    bytes: [u8; LONGEST],
    /// One more than the length of the name; nothing without one.
    name: u8,
    /// One more than the length of the text, so that the empty text is told from none.
    text: u8,
}

impl Clean {
    pub(super) fn new() -> Self {
        let empty = Place {
            bytes: [0; LONGEST],
            name: 0,
            text: 0,
        };
        Self {
            places: vec![empty; PLACES].into(),
        }
    }

    /// Whether nothing was found in a text before.
    #[inline]
    pub(super) fn knows(&self, name: Option<&str>, text: &str) -> bool {
        let Some(lengths) = lengths(name, text) else {
            return false;
        };
        let place = &self.places[slot(name, text)];
        let (name, text) = (name.unwrap_or_default().as_bytes(), text.as_bytes());
        (place.name, place.text) == lengths
            && place.bytes[name.len()..][..text.len()] == *text
            && place.bytes[..name.len()] == *name
    }

    /// Remembers a text in which nothing was found.
    pub(super) fn remember(&mut self, name: Option<&str>, text: &str) {
        let Some(lengths) = lengths(name, text) else {
            return;
        };
        let place = &mut self.places[slot(name, text)];
        let name = name.unwrap_or_default().as_bytes();
        place.bytes[..name.len()].copy_from_slice(name);
        place.bytes[name.len()..][..text.len()].copy_from_slice(text.as_bytes());
        (place.name, place.text) = lengths;
    }
}

/// How the lengths of a name and a text are written down, if both are short enough.
#[inline]
fn lengths(name: Option<&str>, text: &str) -> Option<(u8, u8)> {
    let all = name.map_or(0, str::len).checked_add(text.len())?;
    if all > LONGEST {
        return None;
    }
    let name = u8::try_from(name.map_or(0, |name| name.len() + 1)).ok()?;
    Some((name, u8::try_from(text.len() + 1).ok()?))
}

#[inline]
fn slot(name: Option<&str>, text: &str) -> usize {
    let name = name.unwrap_or_default().as_bytes();
    let all = mix(0, text.as_bytes());
    let all = mix(all ^ (name.len() as u64).rotate_left(17), name);
    usize::try_from(all >> 40).unwrap_or_default() % PLACES
}

/// By its first and last bytes and its length: what repeats is told apart by them, and the rest is compared.
#[inline]
fn mix(before: u64, bytes: &[u8]) -> u64 {
    let both = bytes.first_chunk::<8>().zip(bytes.last_chunk::<8>());
    let (first, last) = both.map_or_else(
        || {
            let all = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
            (bytes.iter().fold(0, all), 0)
        },
        |(first, last)| (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
    );
    let mixed = before ^ first ^ last.rotate_left(29);
    let mixed = mixed
        .wrapping_add(bytes.len() as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_known_with_its_name_only() {
        let mut clean = Clean::new();
        assert!(!clean.knows(None, ""));
        clean.remember(Some("role"), "user");
        assert!(clean.knows(Some("role"), "user"));
        for (name, text) in [
            (None, "user"),
            (Some(""), "user"),
            (None, "roleuser"),
            (Some("roleu"), "ser"),
            (Some("role"), "users"),
        ] {
            assert!(!clean.knows(name, text), "{name:?} {text}");
        }
        let long = "x".repeat(LONGEST + 1);
        clean.remember(None, &long);
        assert!(!clean.knows(None, &long));
    }

    proptest! {
        #[test]
        fn only_what_was_remembered_is_known(
            texts in prop::collection::vec((prop::option::of("[ab]{0,3}"), "[ab]{0,12}"), 1..60),
            other in (prop::option::of("[ab]{0,3}"), "[ab]{0,12}"),
        ) {
            let mut clean = Clean::new();
            for (name, text) in &texts {
                clean.remember(name.as_deref(), text);
                prop_assert!(clean.knows(name.as_deref(), text));
            }
            let known = clean.knows(other.0.as_deref(), &other.1);
            prop_assert!(!known || texts.contains(&other));
        }
    }
}
