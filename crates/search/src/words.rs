//! What a word is.
//!
//! A word is a run of letters and digits. What stands between words divides them: `snake_case` is two
//! words, and so are `src/main.rs` and `std::fs` more than one; asked for as a whole they are a phrase.
//! `camelCase` is one word, whose parts can be found as well, at the same place in the text. Words of
//! scripts that do not divide them (Chinese, Japanese, Thai) are as long as one character.
//!
//! Words are compared in composed form and without case. The same rules hold for what is kept, what is
//! asked for, and what is marked in a snippet.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Longer words are cut to this many bytes, when they are kept and when they are asked for.
pub const LONGEST: usize = 128;

/// A word with more parts than this, or with shorter ones, is not made of words: it is encoded data.
const MOST_PARTS: usize = 12;
const SHORTEST_PARTS: usize = 3;

/// A word in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'w> {
    /// As it is compared.
    pub text: &'w str,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// The how-manieth word of the text it is, or is a part of.
    pub position: u32,
    /// Whether it is only a part of a word.
    pub part: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Between,
    Lower,
    Upper,
    Digit,
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            0x80.. => Class::Other,
            _ => Class::Between,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

/// Gives each word of a text to `take`, in order; a word before its parts.
pub fn each(text: &str, mut take: impl FnMut(Word<'_>)) {
    scan(text, |word, cased| {
        let humps = cased.then(|| (word.text.to_owned(), word.range.clone(), word.position));
        take(word);
        if let Some((folded, range, position)) = humps {
            parts(&text[range.clone()], &folded, |from, part| {
                take(Word {
                    text: part,
                    range: range.start + from..range.start + from + part.len(),
                    position,
                    part: true,
                });
            });
        }
    });
}

/// Gives each word of a text to `take`, in order, without the parts of words.
pub fn whole(text: &str, mut take: impl FnMut(Word<'_>)) {
    scan(text, |word, _| take(word));
}

/// Gives each word, and whether it may have parts.
fn scan(text: &str, mut take: impl FnMut(Word<'_>, bool)) {
    let bytes = text.as_bytes();
    let mut folded = String::new();
    let mut position = 0;
    let mut at = 0;
    while at < bytes.len() {
        let first = class(bytes[at]);
        if first == Class::Between {
            at += 1;
            continue;
        }
        let start = at;
        let mut upper = false;
        let mut last = first;
        while last != Class::Between && last != Class::Other {
            upper |= last == Class::Upper;
            at += 1;
            last = bytes.get(at).map_or(Class::Between, |byte| class(*byte));
        }
        if last == Class::Other {
            at = foreign(text, start, &mut position, &mut folded, &mut take);
            continue;
        }
        plain(text, start..at, upper, position, &mut folded, &mut take);
        position += 1;
    }
}

/// A word of letters and digits of ASCII.
fn plain(
    text: &str,
    range: Range<usize>,
    upper: bool,
    position: u32,
    folded: &mut String,
    take: &mut impl FnMut(Word<'_>, bool),
) {
    let word = &text[range.clone()];
    let text = if upper {
        folded.clear();
        folded.push_str(word);
        folded.make_ascii_lowercase();
        folded.as_str()
    } else {
        word
    };
    let word = Word {
        text: cut(text),
        range,
        position,
        part: false,
    };
    take(word, upper);
}

/// Gives the parts of a word of ASCII to `take`, and where they begin in it.
fn parts<'f>(word: &str, folded: &'f str, mut take: impl FnMut(usize, &'f str)) {
    let mut starts = [0_u16; MOST_PARTS];
    let Some(starts) = humps(word.as_bytes(), &mut starts) else {
        return;
    };
    for (n, start) in starts.iter().enumerate() {
        let start = usize::from(*start);
        let next = starts.get(n + 1);
        let end = next.map_or(word.len(), |next| usize::from(*next));
        take(start, &folded[start..end]);
    }
}

/// Where the parts of a word begin. `None` when it has none, or seems to be no word.
fn humps<'s>(word: &[u8], starts: &'s mut [u16; MOST_PARTS]) -> Option<&'s [u16]> {
    if word.len() > LONGEST {
        return None;
    }
    let mut found = 1;
    for at in 1..word.len() {
        if class(word[at]) != Class::Upper {
            continue;
        }
        let before = class(word[at - 1]);
        let next = word.get(at + 1);
        let small = next.is_some_and(|next| class(*next) == Class::Lower);
        if before == Class::Lower || small {
            *starts.get_mut(found)? = u16::try_from(at).ok()?;
            found += 1;
        }
    }
    (found > 1 && word.len() >= found * SHORTEST_PARTS).then(|| &starts[..found])
}

/// Adds the parts of the words of a text to `found`, each once, with spaces between.
///
/// Most words have none, and are passed over at the speed of looking at their bytes.
pub fn all_parts(text: &str, found: &mut String) {
    let bytes = text.as_bytes();
    let mut seen = rustc_hash::FxHashSet::default();
    let mut at = 1;
    while at < bytes.len() {
        // The place where a part begins: a capital behind a small letter, or before one within a word.
        let here = class(bytes[at]) == Class::Upper
            && (class(bytes[at - 1]) == Class::Lower
                || (class(bytes[at - 1]) != Class::Between
                    && bytes
                        .get(at + 1)
                        .is_some_and(|next| class(*next) == Class::Lower)));
        if !here {
            at += 1;
            continue;
        }
        let plain = |byte: &u8| !matches!(class(*byte), Class::Between | Class::Other);
        let back = bytes[..at]
            .iter()
            .rev()
            .take_while(|byte| plain(byte))
            .count();
        let ahead = bytes[at..].iter().take_while(|byte| plain(byte)).count();
        let (start, end) = (at - back, at + ahead);
        let edge = |byte: Option<&u8>| byte.is_none_or(|byte| class(*byte) == Class::Between);
        let alone = edge(bytes.get(end)) && edge(start.checked_sub(1).map(|at| &bytes[at]));
        if alone && seen.insert(&bytes[start..end]) {
            let word = &text[start..end];
            parts(word, word, |_, part| {
                if seen.insert(part.as_bytes()) {
                    found.push(' ');
                    found.extend(part.chars().map(|c| c.to_ascii_lowercase()));
                }
            });
        }
        at = end + 1;
    }
}

/// Words that are not all of ASCII. Gives where they end.
fn foreign(
    text: &str,
    start: usize,
    position: &mut u32,
    folded: &mut String,
    take: &mut impl FnMut(Word<'_>, bool),
) -> usize {
    let mut from = start;
    let mut end = start;
    folded.clear();
    for c in text[start..].chars() {
        let next = end + c.len_utf8();
        let alone = stands_alone(c);
        if alone || !(c.is_alphanumeric() || is_combining_mark(c)) {
            give(text, from..end, position, folded, take);
            if alone {
                fold(c, folded);
                give(text, end..next, position, folded, take);
            }
            from = next;
            end = next;
            // What follows may be plain again; the quick way is the other one.
            if !alone {
                return end;
            }
            continue;
        }
        fold(c, folded);
        end = next;
    }
    give(text, from..end, position, folded, take);
    end
}

fn give(
    text: &str,
    range: Range<usize>,
    position: &mut u32,
    folded: &mut String,
    take: &mut impl FnMut(Word<'_>, bool),
) {
    // Marks that follow no letter are no word.
    if text[range.clone()].chars().any(char::is_alphanumeric) {
        if is_nfc_quick(folded.chars()) != IsNormalized::Yes {
            *folded = folded.nfc().collect();
        }
        let word = Word {
            text: cut(folded),
            range,
            position: *position,
            part: false,
        };
        take(word, false);
        *position += 1;
    }
    folded.clear();
}

/// Without case: upper case first, so that letters with several small forms meet.
fn fold(c: char, folded: &mut String) {
    if c.is_ascii() {
        folded.push(c.to_ascii_lowercase());
        return;
    }
    for upper in c.to_uppercase() {
        folded.extend(upper.to_lowercase());
    }
}

/// Letters of scripts that put no space between words.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0E7F            // Thai
        | 0x0E80..=0x0EFF          // Lao
        | 0x1000..=0x109F          // Myanmar
        | 0x1780..=0x17FF          // Khmer
        | 0x3005..=0x3007
        | 0x3040..=0x30FF          // Hiragana, Katakana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF          // Han
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9D
        | 0x2_0000..=0x3_FFFF)
        && c.is_alphanumeric()
}

fn cut(word: &str) -> &str {
    if word.len() <= LONGEST {
        return word;
    }
    let end = (0..=LONGEST).rev().find(|end| word.is_char_boundary(*end));
    &word[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(String, u32, bool)> {
        let mut found = Vec::new();
        each(text, |word| {
            assert!(text.get(word.range.clone()).is_some());
            found.push((word.text.to_owned(), word.position, word.part));
        });
        found
    }

    fn wholes(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        whole(text, |word| found.push(word.text.to_owned()));
        found
    }

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|(word, ..)| word).collect()
    }

    #[test]
    fn what_stands_between_words_divides_them() {
        for (text, expected) in [
            ("snake_case", vec!["snake", "case"]),
            ("src/auth/mod.rs:12", vec!["src", "auth", "mod", "rs", "12"]),
            ("std::fs", vec!["std", "fs"]),
            ("don't", vec!["don", "t"]),
            ("v1.22.3-rc1", vec!["v1", "22", "3", "rc1"]),
            ("  ", vec![]),
            ("---", vec![]),
            ("sha256:3f2a9c0d", vec!["sha256", "3f2a9c0d"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn parts_stand_where_their_word_stands() {
        let expected = [
            ("the", 0, false),
            ("getusername", 1, false),
            ("get", 1, true),
            ("user", 1, true),
            ("name", 1, true),
            ("of", 2, false),
        ]
        .map(|(word, at, part)| (word.to_owned(), at, part));
        assert_eq!(words("the getUserName of"), expected);
    }

    #[test]
    fn words_in_upper_case_have_parts_only_where_they_change() {
        for (text, expected) in [
            ("HTTPServer", vec!["httpserver", "http", "server"]),
            ("GITHUB", vec!["github"]),
            ("GitHub", vec!["github", "git", "hub"]),
            ("v2Beta", vec!["v2beta", "v2", "beta"]),
            ("3F2A9C", vec!["3f2a9c"]),
            ("Word", vec!["word"]),
            // Encoded data.
            ("aGVsbG8gd29ybGQgaGVsbG8", vec!["agvsbg8gd29ybgqgagvsbg8"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn any_script_without_case_and_composed() {
        for (text, expected) in [
            ("Straße", vec!["strasse"]),
            ("STRASSE", vec!["strasse"]),
            ("ΣΊΣΥΦΟΣ", vec!["σίσυφοσ"]),
            ("σίσυφος", vec!["σίσυφοσ"]),
            ("cafe\u{301}s ok", vec!["cafés", "ok"]),
            ("CAFÉS", vec!["cafés"]),
            ("Привет, мир", vec!["привет", "мир"]),
            ("数据库error", vec!["数", "据", "库", "error"]),
            ("データ", vec!["デ", "ー", "タ"]),
            ("日 x", vec!["日", "x"]),
            ("\u{301}", vec![]),
            ("naïve_Plan", vec!["naïve", "plan"]),
            ("😀ok😀", vec!["ok"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn long_words_are_cut_alike() {
        let long = "é".repeat(500);
        assert_eq!(texts(&long)[0].len(), LONGEST);
        assert_eq!(texts(&"A".repeat(500))[0], "a".repeat(LONGEST));
    }

    proptest::proptest! {
        #[test]
        fn every_word_is_found_by_itself(text in "\\PC{0,60}") {
            each(&text, |word| {
                if !word.part && word.range.len() < LONGEST {
                    let again = wholes(&text[word.range.clone()]);
                    assert_eq!(again, [word.text]);
                }
            });
        }

        #[test]
        fn parts_are_found_by_either_way(text in "[a-zA-Zé0-9 _]{0,60}") {
            let mut one = std::collections::BTreeSet::new();
            each(&text, |word| {
                if word.part {
                    one.insert(word.text.to_owned());
                }
            });
            let mut found = String::new();
            all_parts(&text, &mut found);
            let other = found.split_whitespace().map(str::to_owned).collect();
            assert_eq!(one, other);
        }

        #[test]
        fn words_do_not_overlap(text in "\\PC{0,60}") {
            let (mut end, mut next) = (0, 0);
            each(&text, |word| {
                if !word.part {
                    assert!(word.range.start >= end);
                    assert_eq!(word.position, next);
                    (end, next) = (word.range.end, next + 1);
                }
            });
        }
    }
}
