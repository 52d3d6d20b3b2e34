//! Where a word begins, for somebody who reads the text.

use std::ops::Range;

/// Whether a token can begin at a place: behind what is no letter, and behind what only looks like one, because it is
/// the end of an escape: `\n`, `%20`, `\u0022`, a colour of a terminal.
pub(super) fn begins(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else {
        return true;
    };
    if !is_word(before) {
        return true;
    }
    let back = |count: usize| at.checked_sub(count).map(|from| &text[from..at]);
    let hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    if back(2).is_some_and(|escape| escape[0] == b'\\' && b"nrtbfv0".contains(&escape[1])) {
        return true;
    }
    if back(3).is_some_and(|escape| escape[0] == b'%' && hex(&escape[1..])) {
        return true;
    }
    if back(4).is_some_and(|escape| escape.starts_with(b"\\x") && hex(&escape[2..])) {
        return true;
    }
    if back(6).is_some_and(|escape| escape.starts_with(b"\\u") && hex(&escape[2..])) {
        return true;
    }
    before == b'm' && colour(&text[at.saturating_sub(24)..at - 1])
}

/// Calls `found` with each place where a word begins only because an escape of this part of the text ends there.
pub(super) fn behind_escapes(text: &[u8], part: Range<usize>, mut found: impl FnMut(usize)) {
    let escapes = memchr::memchr3_iter(b'\\', b'%', 0x1b, &text[part.clone()]);
    for at in escapes.map(|at| part.start + at) {
        let mut try_at = |place: usize| {
            if place < text.len() && is_word(text[place - 1]) && begins(text, place) {
                found(place);
            }
        };
        let next = text.get(at + 1).copied().unwrap_or_default();
        let length = match (text[at], next) {
            (b'%', _) => 3,
            (0x1b, _) => 1,
            (_, b'x' | b'0') => 4,
            (_, b'u') => 6,
            _ => 2,
        };
        if text[at] != 0x1b {
            try_at(at + length);
        }
        if next == b'0' {
            try_at(at + 2);
        }
        if text.get(at + length) == Some(&b'[') {
            let numbers = text[at + length + 1..]
                .iter()
                .take(24)
                .take_while(|byte| byte.is_ascii_digit() || **byte == b';');
            let end = at + length + 1 + numbers.count();
            if text.get(end) == Some(&b'm') {
                try_at(end + 1);
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The same of what stands behind these bytes.
pub(super) fn begins_behind(before: &[u8]) -> bool {
    begins(before, before.len())
}

/// Whether `ESC [ 1 ; 32` is the end, however the escape is written.
fn colour(before: &[u8]) -> bool {
    let numbers = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let length = before.iter().rev().take_while(numbers).count();
    let Some(before) = before[..before.len() - length].strip_suffix(b"[") else {
        return false;
    };
    [
        &b"\x1b"[..],
        b"\\x1b",
        b"\\u001b",
        b"\\033",
        b"\\e",
        b"\\x1B",
        b"\\u001B",
    ]
    .iter()
    .any(|escape| before.ends_with(escape))
}

/// The same as an expression, for where it is searched rather than tried.
pub(super) const BEGINS: &str =
    r"(?:\b|\\[nrtbfv0]|%[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\[[0-9;]{0,20}m)";

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn escapes_are_no_letters() {
        for (before, expected) in [
            ("", true),
            (" ", true),
            ("\"", true),
            ("é", true),
            ("x", false),
            ("_", false),
            ("\\n", true),
            ("\\q", false),
            ("%3D", true),
            ("%zz", false),
            ("\\x1b", true),
            ("\\u0022", true),
            ("\x1b[32m", true),
            ("\\u001b[1;32m", true),
            ("[32m", false),
            ("them", false),
        ] {
            assert_eq!(
                begins(format!("{before}ghp").as_bytes(), before.len()),
                expected,
                "{before}"
            );
        }
    }
}
