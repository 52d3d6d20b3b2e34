//! Strings: NFC, and only the escapes that must be.

use quipu_model::json::RawStr;

use super::{CanonError, CanonProblem, Sink, nfc};

/// Writes the canonical form of a string. `nfc` says that what stands there, escapes aside, surely is in NFC.
#[inline]
pub(super) fn write(
    raw: RawStr<'_>,
    nfc: bool,
    offset: usize,
    out: &mut impl Sink,
) -> Result<(), CanonError> {
    let written = raw.raw().get();
    if (raw.plain().is_some() || escapes_are_canonical(written))
        && (nfc || nfc::is_surely(written.as_bytes()))
    {
        out.put(written.as_bytes());
        return Ok(());
    }
    put(&text(raw, offset)?, out);
    Ok(())
}

/// What a string says, in NFC.
#[cold]
pub(super) fn text(raw: RawStr<'_>, offset: usize) -> Result<String, CanonError> {
    let text = raw.to_text().ok_or(CanonError {
        what: CanonProblem::LoneSurrogate,
        offset,
    })?;
    Ok(nfc::normalized(text.into_owned()))
}

/// Whether every escape in a JSON string is the one that the canonical form has: `\" \\ \b \f \n \r \t`, and
/// `\u00xx` in lowercase for the other control characters.
#[inline]
fn escapes_are_canonical(written: &str) -> bool {
    let bytes = written.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found + 2;
        match bytes.get(at - 1) {
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => {}
            Some(b'u') => match bytes.get(at..at + 4) {
                Some(
                    [b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f']
                    | [b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f'],
                ) => at += 4,
                _ => return false,
            },
            _ => return false,
        }
    }
    true
}

/// Writes a text as a JSON string.
pub(super) fn put(text: &str, out: &mut impl Sink) {
    out.byte(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest
        .iter()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        out.put(&rest[..at]);
        match rest[at] {
            b'"' => out.put(b"\\\""),
            b'\\' => out.put(b"\\\\"),
            0x08 => out.put(b"\\b"),
            0x0c => out.put(b"\\f"),
            b'\n' => out.put(b"\\n"),
            b'\r' => out.put(b"\\r"),
            b'\t' => out.put(b"\\t"),
            control => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let digits = [
                    DIGITS[usize::from(control >> 4)],
                    DIGITS[usize::from(control & 15)],
                ];
                out.put(b"\\u00");
                out.put(&digits);
            }
        }
        rest = &rest[at + 1..];
    }
    out.put(rest);
    out.byte(b'"');
}
