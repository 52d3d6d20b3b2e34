//! Finds the places where numbers stand, for rules that go by digits and have no words.
//!
//! Texts are full of numbers. Nearly all are too short for any rule, which is seen before any rule is tried.

/// How a rule without keywords is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Around an `@`.
    At {
        before: usize,
        behind: Option<usize>,
    },
    /// Where hex digits with colons begin.
    Colons,
    /// Where a number begins: as many bytes as it takes at least, as many digits in a row at first, and whether there are
    /// dots in it.
    Number { least: usize, row: usize, dot: bool },
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

/// A number and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cluster {
    pub(super) begin: usize,
    /// Bytes up to the end of its last digit.
    pub(super) length: usize,
    pub(super) dots: usize,
    /// How many digits it begins with.
    pub(super) row: usize,
}

/// Digits that the shortest thing that is looked for has.
pub(super) const LEAST_DIGITS: usize = 4;

/// Calls `found` with each place where digits begin that follow no digit. Looks at eight bytes at a time.
pub(super) fn numbers(text: &[u8], mut found: impl FnMut(usize)) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (blocks, rest) = text.as_chunks::<8>();
    let mut before = 0;
    for (index, block) in blocks.iter().enumerate() {
        let off = u64::from_le_bytes(*block) ^ 0x3030_3030_3030_3030;
        // A byte of it is below ten where there was a digit.
        let digits = !(((off & !HIGH) + 0x7676_7676_7676_7676) | off) & HIGH;
        let mut begins = digits & !(digits << 8 | before);
        before = digits >> 56;
        while begins != 0 {
            found(index * 8 + begins.trailing_zeros() as usize / 8);
            begins &= begins - 1;
        }
    }
    let mut digit = before != 0;
    for (index, byte) in rest.iter().enumerate() {
        if byte.is_ascii_digit() && !digit {
            found(blocks.len() * 8 + index);
        }
        digit = byte.is_ascii_digit();
    }
}

/// The number that begins at a digit, when it is long enough for anything.
pub(super) fn cluster(text: &[u8], begin: usize) -> Option<Cluster> {
    let rest = &text[begin..text.len().min(begin + 40)];
    let (mut digits, mut dots, mut length, mut joints) = (0, 0, 0, 0);
    for (index, byte) in rest.iter().enumerate() {
        if byte.is_ascii_digit() {
            digits += 1;
            length = index + 1;
            joints = 0;
        } else if joint(*byte) && joints < 3 {
            joints += 1;
            dots += usize::from(*byte == b'.');
        } else {
            break;
        }
    }
    let row = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits >= LEAST_DIGITS).then_some(Cluster {
        begin,
        length,
        dots,
        row,
    })
}

/// Calls `found` with each place where hex digits with several colons begin.
pub(super) fn colons(text: &[u8], mut found: impl FnMut(usize)) {
    let mut end = 0;
    for at in memchr::memchr_iter(b':', text) {
        let hex = |place: usize| text.get(place).is_some_and(u8::is_ascii_hexdigit);
        let next = text.get(at + 1).copied().unwrap_or(0);
        if at < end || at == 0 || !hex(at - 1) || !(next == b':' || next.is_ascii_hexdigit()) {
            continue;
        }
        let low = at.saturating_sub(8);
        let begin = at
            - text[low..at]
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
        let rest = &text[at..text.len().min(at + 64)];
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
            .count();
        end = at + length;
        let count = memchr::memchr_iter(b':', &rest[..length]).count();
        if count >= 2 {
            found(begin);
            let groups = memchr::memchr_iter(b':', &rest[..length]).map(|colon| at + colon + 1);
            groups.filter(|group| hex(*group)).for_each(&mut found);
        }
    }
}

/// Calls `found` with each place where a long word begins before two dots so far apart.
pub(super) fn dots(text: &[u8], before: usize, between: usize, mut found: impl FnMut(usize)) {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    for at in memchr::memchr_iter(b'.', text) {
        // Two dots so far apart are seldom, and a word so long is seldom before a dot.
        if text.get(at + between + 1) != Some(&b'.') || at < before {
            continue;
        }
        if text[at - before..at].iter().rev().all(word) {
            let more = text[..at - before].iter().rev().take(before);
            found(at - before - more.take_while(|byte| word(byte)).count());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_seen() {
        let text = "1a22 333\u{e9}4:5/60000000000000007x8 \u{ff}9;;;;;;;;;;0";
        for cut in 0..24 {
            let text = &text.as_bytes()[cut..];
            let mut all = Vec::new();
            numbers(text, |at| all.push(at));
            let begins = |at: &usize| {
                text[*at].is_ascii_digit() && (*at == 0 || !text[*at - 1].is_ascii_digit())
            };
            assert_eq!(all, (0..text.len()).filter(begins).collect::<Vec<_>>());
        }
    }

    #[test]
    fn short_numbers_are_none() {
        let mut all = Vec::new();
        let text = b"line 12, 4111 1111 1111 1111; 81.2.69.160 x";
        numbers(text, |at| all.extend(cluster(text, at)));
        let begins: Vec<usize> = all.iter().map(|cluster| cluster.begin).collect();
        assert!(begins.contains(&9), "{begins:?}");
        assert!(!begins.contains(&5));
        let address = all.iter().find(|cluster| cluster.begin == 30).unwrap();
        assert_eq!((address.length, address.dots), (11, 3));
    }

    #[test]
    fn two_dots_are_so_far_apart() {
        let mut all = Vec::new();
        let text = b"a.bcdefg.h (abcdefgh.123456.7) abcdefg.12345.6 xabcdefgh.123456.7";
        dots(text, 8, 6, |at| all.push(at));
        assert_eq!(all, [12, 47]);
    }

    #[test]
    fn colons_join_hex_digits() {
        let mut all = Vec::new();
        colons(
            b"std::fmt a: b 2a02:8071:b84::17 00:1b:44:11:3a:b7 {\"a\":1} 12:30",
            |at| all.push(at),
        );
        assert!(all.contains(&14) && all.contains(&32), "{all:?}");
        assert!(all.iter().all(|at| *at < 49 && *at != 9), "{all:?}");
    }
}
