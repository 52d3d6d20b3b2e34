//! What is not text although it is a string.

use super::frame::Spot;
use crate::raw::keys::Class;

/// Whether a string is for machines alone: what a provider encrypted or signed, or a picture.
#[inline]
pub(super) fn sealed(raw: &[u8], spot: Spot<'_>) -> bool {
    const DATA_URL: usize = 64;
    if spot.media || spot.class.any(Class::SEALED) && raw.len() >= 64 {
        return is_base64(raw);
    }
    let Some(kind) = raw.strip_prefix(b"data:") else {
        return false;
    };
    if kind.starts_with(b"image/") || kind.starts_with(b"audio/") || kind.starts_with(b"video/") {
        let comma = memchr::memchr(b',', &raw[..raw.len().min(DATA_URL)]);
        return comma.is_some_and(|comma| {
            raw[..comma].ends_with(b";base64") && is_base64(&raw[comma + 1..])
        });
    }
    false
}

/// How providers begin the numbers of calls, messages and requests.
const NUMBERED: [&[u8]; 7] = [
    b"toolu_",
    b"msg_",
    b"req_",
    b"call_",
    b"srvtoolu_",
    b"resp_",
    b"chatcmpl-",
];

/// Whether a string is a time, a UUID, or what a provider numbers things by: what stands on every line, and is never
/// twice the same.
#[inline]
pub(super) fn unique(text: &[u8]) -> bool {
    match text {
        [b'0'..=b'9', ..] if text.len() <= 30 => is_time(text),
        [b'c' | b'm' | b'r' | b's' | b't', ..] if text.len() <= 80 && is_numbered(text) => true,
        _ => text.len() == 36 && is_uuid(text),
    }
}

fn is_numbered(text: &[u8]) -> bool {
    let behind = NUMBERED.iter().find_map(|head| text.strip_prefix(*head));
    behind.is_some_and(|number| number.len() >= 8 && number.iter().all(u8::is_ascii_alphanumeric))
}

/// Whether it is a time as RFC 3339 has it, in UTC.
fn is_time(text: &[u8]) -> bool {
    let Some((head, rest)) = text.split_first_chunk::<19>() else {
        return false;
    };
    let [fraction @ .., b'Z'] = rest else {
        return false;
    };
    let right = head.iter().zip(b"0000-00-00T00:00:00").all(|(is, like)| {
        if *like == b'0' {
            is.is_ascii_digit()
        } else {
            is == like
        }
    });
    let digits = fraction.strip_prefix(b".").unwrap_or(fraction);
    let whole = fraction.is_empty() || fraction.len() == digits.len() + 1;
    right && whole && digits.iter().all(u8::is_ascii_digit)
}

fn is_uuid(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Whether all of it is base64, of either alphabet.
fn is_base64(bytes: &[u8]) -> bool {
    let one =
        |byte: u8| byte.is_ascii_alphanumeric() | matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    // Without a way out within a stretch, so that it is done with vector instructions.
    let stretch = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & one(*byte));
    bytes.chunks(256).all(stretch)
}

/// Whether it is worth reading a text as JSON.
pub(super) fn looks_like_json(text: &str) -> bool {
    let bytes = text.as_bytes();
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let last = bytes.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    matches!(
        (first, last),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_uuids() {
        for time in ["2026-05-24T12:10:43Z", "2026-05-24T12:10:43.544Z"] {
            assert!(unique(time.as_bytes()), "{time}");
        }
        for other in [
            "2026-05-24T12:10:43.",
            "2026-05-24T12:10:43xZ",
            "2026-05-24T12:10:43..5Z",
            "2026-05-24 12:10:43.544Z",
            "2026-05-24T12:10:43.5x4Z",
        ] {
            assert!(!unique(other.as_bytes()), "{other}");
        }
        assert!(unique(b"toolu_01ABCdef23456"));
        assert!(!unique(b"toolu_01ABCdef23456/x"));
        assert!(!unique(b"toolu_"));
        assert!(!unique(b""));
        assert!(unique(b"4290921c-c760-4cbd-b871-7507891b2fd0"));
        assert!(!unique(b"4290921c-c760-4cbd-b871-7507891b2fdx"));
        assert!(!unique(b"4290921c-c760-4cbd-b8717-507891b2fd0"));
    }
}
