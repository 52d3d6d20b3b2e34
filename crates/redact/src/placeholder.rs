//! What stands where something was.

use rustc_hash::FxHashMap;

use crate::Key;

/// How every placeholder begins.
const BEGIN: &str = "[REDACTED:";

/// Gives the placeholders of one transcript: `[REDACTED:aws]` for the first secret of a kind, `[REDACTED:aws#2]` for the
/// second. The same value gets the same one wherever it stands, so that the story stays readable. Values are remembered
/// by a hash under a key that is thrown away; neither they nor anything that tells of them is held.
#[derive(Debug)]
pub struct Placeholders {
    key: Key,
    /// By label and value; the number is its place among those of its label.
    numbers: FxHashMap<[u8; 16], u32>,
    next: FxHashMap<String, u32>,
}

impl Placeholders {
    /// None given yet.
    pub fn new(key: Key) -> Self {
        Self {
            key,
            numbers: FxHashMap::default(),
            next: FxHashMap::default(),
        }
    }

    /// Numbers that were given before, by another process: they are not given again.
    pub fn given(&mut self, placeholder: &str) {
        let Some(inside) = placeholder
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(']'))
        else {
            return;
        };
        let (label, number) = match inside.split_once('#') {
            Some((label, number)) => (label, number.parse().unwrap_or(1)),
            None => (inside, 1),
        };
        let next = self.next.entry(label.to_owned()).or_default();
        *next = number.max(*next);
    }

    /// What stands for a value.
    pub fn of(&mut self, label: &str, value: &str) -> String {
        let hash = self
            .key
            .hash("placeholder", &[label.as_bytes(), value.as_bytes()]);
        let mut short = [0; 16];
        short.copy_from_slice(&hash[..16]);
        let number = *self.numbers.entry(short).or_insert_with(|| {
            let next = self.next.entry(label.to_owned()).or_default();
            *next = next.saturating_add(1);
            *next
        });
        match number {
            1 => format!("{BEGIN}{label}]"),
            more => format!("{BEGIN}{label}#{more}]"),
        }
    }
}

/// Whether a text is a placeholder and nothing else.
pub fn is_placeholder(text: &str) -> bool {
    text.strip_prefix(BEGIN)
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inside| {
            !inside.is_empty()
                && inside.len() <= 64
                && inside
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'#'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_the_same_number() {
        let mut placeholders = Placeholders::new(Key::from_bytes([1; 32]));
        assert_eq!(placeholders.of("aws", "one"), "[REDACTED:aws]");
        assert_eq!(placeholders.of("aws", "two"), "[REDACTED:aws#2]");
        assert_eq!(placeholders.of("email", "one"), "[REDACTED:email]");
        assert_eq!(placeholders.of("aws", "one"), "[REDACTED:aws]");
        placeholders.given("[REDACTED:jwt#4]");
        assert_eq!(placeholders.of("jwt", "x"), "[REDACTED:jwt#5]");
        for text in ["[REDACTED:aws]", "[REDACTED:aws#2]"] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["[REDACTED:]", "[REDACTED:aws] ", "[REDACTED:a b]", "aws"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
