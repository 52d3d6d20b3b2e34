//! Digests in texts: of commits, trees and files. Whoever looks one up has the repository's name.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::clock::is_uuid;

/// The shortest digest that tools print.
const SHORTEST: usize = 7;

/// Digests that are remembered, so that the front of one is known for it.
const MOST: usize = 4096;

/// Words that look like one and are not.
const WORDS: [&str; 4] = ["ed25519", "defaced", "facade1", "b64decode"];

/// Digests of a session that are written out, by their first digits.
#[derive(Debug, Clone, Default)]
pub(super) struct Digests(FxHashMap<[u8; SHORTEST], String>);

impl Digests {
    /// Takes in what is written out in a text.
    pub(super) fn learn(&mut self, text: &str) {
        for word in words(text).map(|span| &text[span]) {
            if word.len() >= 40 && self.0.len() < MOST {
                let mut first = [0; SHORTEST];
                first.copy_from_slice(&word.as_bytes()[..SHORTEST]);
                self.0.entry(first).or_insert_with(|| word.to_owned());
            }
        }
    }

    /// The whole digest that a word is the front of.
    pub(super) fn whole<'d>(&'d self, word: &'d str) -> &'d str {
        self.known(word).unwrap_or(word)
    }

    fn known(&self, word: &str) -> Option<&str> {
        let first: [u8; SHORTEST] = word.as_bytes().get(..SHORTEST)?.try_into().ok()?;
        let whole = self.0.get(&first)?;
        whole.starts_with(word).then_some(whole)
    }

    /// Where digests are in a text.
    pub(super) fn find(&self, text: &str, to: &mut Vec<Range<usize>>) {
        to.extend(words(text).filter(|span| {
            let word = &text[span.clone()];
            let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
            // Digits alone are a number, unless a whole digest begins with them.
            let is_mixed = letters > 0 && letters < word.len();
            (is_mixed || self.known(word).is_some()) && !WORDS.contains(&word)
        }));
        base64(text, to);
        to.sort_by_key(|span| span.start);
    }
}

/// Words of hexadecimal digits in one case that may be a digest.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !bytes[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let start = at;
            at += bytes[at..]
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            let word = &bytes[start..at];
            let lower = word
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let upper = || {
                let is = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
                word.len() >= 32 && word.iter().all(is)
            };
            let is_long = word.len() >= SHORTEST && word.len() <= 128;
            if is_long && (lower || upper()) && !is_part(bytes, &(start..at)) {
                return Some(start..at);
            }
        }
        None
    })
}

/// Whether a word is part of something else: a UUID, a colour, a pseudonym, a number.
fn is_part(bytes: &[u8], word: &Range<usize>) -> bool {
    let before = word.start.checked_sub(1).map(|at| bytes[at]);
    let uuid = match word.len() {
        8 => bytes.get(word.start..word.start + 36),
        12 => (word.start >= 24).then(|| &bytes[word.start - 24..word.end]),
        _ => None,
    };
    let uuid = uuid.is_some_and(is_uuid);
    let is_colour = before == Some(b'#') && word.len() == 8;
    // `hash_…`, `dir_…`: what stands for a name, and what may be joined to it.
    let is_pseudonym = before == Some(b'_')
        && word.len() >= 16
        && [
            "dir", "repo", "branch", "user", "host", "id", "hash", "anon",
        ]
        .iter()
        .any(|kind| bytes[..word.start - 1].ends_with(kind.as_bytes()));
    uuid || is_colour || is_pseudonym
}

/// `sha512-…`, as lock files have them.
fn base64(text: &str, to: &mut Vec<Range<usize>>) {
    for name in ["sha1-", "sha256-", "sha384-", "sha512-"] {
        for (at, _) in text.match_indices(name) {
            let start = at + name.len();
            let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
            let length = text.as_bytes()[start..].iter().take_while(is_digit).count();
            let padding = text.as_bytes()[start + length..]
                .iter()
                .take_while(|byte| **byte == b'=')
                .count();
            if (27..=88).contains(&length) {
                to.push(start..start + length + padding);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> String {
        let mut digests = Digests::default();
        digests.learn(&format!("commit 1234567{}", "0".repeat(33)));
        let mut found = Vec::new();
        digests.find(text, &mut found);
        let mut out = text.to_owned();
        for span in found.into_iter().rev() {
            out.replace_range(span, "D");
        }
        out
    }

    #[test]
    fn what_can_be_looked_up_is_found() {
        let sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
        for (text, expected) in [
            (format!("sha256:{sum}"), "sha256:D"),
            (
                "commit a1b2c3d4e5f60718293a4b5c6d7e8f9012345678".to_owned(),
                "commit D",
            ),
            ("[main a1b2c3d] mend it".to_owned(), "[main D] mend it"),
            (
                "index 83db48f..bf2c4ad 100644".to_owned(),
                "index D..D 100644",
            ),
            ("git show 1234567".to_owned(), "git show D"),
            (
                "v0.0.0-20220301184237-5011da428d02".to_owned(),
                "v0.0.0-20220301184237-D",
            ),
            (
                "\"integrity\": \"sha512-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFy==\"".to_owned(),
                "\"integrity\": \"sha512-D\"",
            ),
        ] {
            assert_eq!(without(&text), expected);
        }
    }

    #[test]
    fn what_is_not_a_digest_stays() {
        for text in [
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "#ff00aa80 0xdeadbeef ed25519 decade 12345678 abcdefab",
            "dir_19a2ef740659dca0 hash_0123456789abcdef",
        ] {
            assert_eq!(without(text), text);
        }
    }
}
