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
