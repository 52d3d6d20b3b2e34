//! Finds the places where numbers stand, for rules that go by digits and have no words.
//!
//! Texts are full of numbers. Nearly all are too short for any rule, which is seen before any rule is tried.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// How a rule without keywords is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Trigger {
    /// Around an `@`.
    At {
        before: usize,
        behind: Option<usize>,
    },
    /// Where hex digits with colons begin: as many bytes as it takes at least, and whether it is an address, which has seven
    /// colons or two in a row.
    Colons { least: usize, address: bool },
    /// Where a number begins.
    Number,
    /// Where a plus stands before a digit.
    Plus,
    /// So many letters before a number begins.
    Lettered { letters: usize },
    /// Where so many letters and digits stand before a dot, and another dot so many bytes behind it.
    Dots { before: usize, between: usize },
}

/// What can stand between the digits of one number.
pub(super) fn joint(byte: u8) -> bool {
    matches!(byte, b' ' | b'.' | b'-' | b'/' | b'(' | b')' | b'+')
}

/// Digits that the shortest thing that is looked for has.
pub(super) const LEAST_DIGITS: usize = 4;

/// Hex digits with colons between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colons {
    pub(super) begin: usize,
    /// Bytes up to where there is something else.
    pub(super) length: usize,
    /// Whether it can be an address.
    pub(super) address: bool,
}

/// Calls `found` with each place where hex digits with several colons begin. `places` are colons behind hex digits.
pub(super) fn colons(text: &[u8], places: &[usize], mut found: impl FnMut(Colons)) {
    let mut end = 0;
    for at in places.iter().copied() {
        let hex = |place: usize| text.get(place).is_some_and(u8::is_ascii_hexdigit);
        let next = text.get(at + 1).copied().unwrap_or(0);
        if at < end || !(next == b':' || next.is_ascii_hexdigit()) {
            continue;
        }
        let low = at.saturating_sub(8);
        let before = text[low..at].iter().rev();
        let begin = at - before.take_while(|byte| byte.is_ascii_hexdigit()).count();
        let rest = &text[at..text.len().min(at + 64)];
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
            .count();
        let rest = &rest[..length];
        end = at + length;
        let count = memchr::memchr_iter(b':', rest).count();
        if count < 2 {
            continue;
        }
        let address = count >= 6 || rest.windows(2).any(|pair| pair == b"::");
        let mut tell = |begin: usize| {
            found(Colons {
                begin,
                length: end - begin,
                address,
            });
        };
        tell(begin);
        let groups = memchr::memchr_iter(b':', rest).map(|colon| at + colon + 1);
        groups.filter(|group| hex(*group)).for_each(tell);
    }
}

/// Calls `found` with each place where a long word may begin before two dots so far apart. `rows` are rows of letters that are
/// no shorter.
pub(super) fn dots(
    text: &[u8],
    rows: &[Range<usize>],
    before: usize,
    between: usize,
    mut found: impl FnMut(usize),
) {
    let word = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    for row in rows {
        let dot = |at: usize| text.get(at) == Some(&b'.');
        if !dot(row.end) || !dot(row.end + between + 1) {
            continue;
        }
        let length = text[row.clone()].iter().rev().take(2 * before);
        let length = length.take_while(word).count();
        // It may begin within the row, behind an escape or a hyphen.
        (before..=length).for_each(|length| found(row.end - length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_dots_are_so_far_apart() {
        let mut all = Vec::new();
        let text = b"abcdefgh.123456.7 (abc/abcdefgh.123456.7) abcdefg.12345.6 abcdefgh.12345";
        dots(text, &[0..8, 19..31, 42..49, 58..66], 8, 6, |at| {
            all.push(at);
        });
        assert_eq!(all, [0, 23]);
    }

    #[test]
    fn colons_join_hex_digits() {
        let text = b"std::fmt a: b 2a02:8071:b84::17 00:1b:44:11:3a:b7 {\"a\":1} 12:30";
        let behind_hex = |at: &usize| text[*at] == b':' && text[at - 1].is_ascii_hexdigit();
        let places: Vec<usize> = (1..text.len()).filter(behind_hex).collect();
        let mut all = Vec::new();
        colons(text, &places, |one| all.push(one.begin));
        assert!(all.contains(&14) && all.contains(&32), "{all:?}");
        assert!(all.iter().all(|at| *at < 49 && *at != 9), "{all:?}");
    }
}
