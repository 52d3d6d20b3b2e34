//! Halves of surrogate pairs.
//!
//! JSON can name half of a character beyond U+FFFF (`\\ud83d`), as programs do that cut a text between two units of UTF-16.
//! No text holds such a half, and many readers refuse it.

use std::fmt::Write as _;

/// A JSON text with `\\ufffd` in place of halves of surrogate pairs; `None` where there are none.
pub fn mend_surrogates(json: &str) -> Option<String> {
    let mut mended = None::<String>;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        at += found;
        let Some(unit) = unit(json, at) else {
            // Another escape; both of its bytes are passed, so that an escaped backslash begins none.
            at = (at + 2).min(json.len());
            continue;
        };
        let behind = at + 6;
        let low = || unit_of_low(json, behind);
        match unit {
            0xd800..0xdc00 if low() => at = behind + 6,
            0xd800..0xe000 => {
                let mended = mended.get_or_insert_with(|| String::with_capacity(json.len()));
                mended.push_str(&json[copied..at]);
                write!(mended, "\\u{:04x}", 0xfffd).ok()?;
                copied = behind;
                at = behind;
            }
            _ => at = behind,
        }
    }
    let mut mended = mended?;
    mended.push_str(&json[copied..]);
    Some(mended)
}

/// The unit of UTF-16 that is escaped here.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

fn unit_of_low(json: &str, at: usize) -> bool {
    unit(json, at).is_some_and(|unit| (0xdc00..0xe000).contains(&unit))
}
