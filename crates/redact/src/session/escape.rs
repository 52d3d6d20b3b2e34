//! Places in JSON strings.

use std::ops::Range;

/// Where a part of what a JSON string says is in the JSON.
pub(super) fn escaped(raw: &str, span: &Range<usize>, offset: usize) -> Range<usize> {
    let inner = &raw[1..raw.len() - 1];
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return offset + 1 + span.start..offset + 1 + span.end;
    }
    let bytes = inner.as_bytes();
    let (mut at, mut said) = (0, 0);
    let (mut start, mut end) = (None, inner.len());
    while at < bytes.len() {
        if said >= span.start && start.is_none() {
            start = Some(at);
        }
        if said >= span.end {
            end = at;
            break;
        }
        let (raw, decoded) = unit(bytes, at);
        (at, said) = (at + raw, said + decoded);
    }
    offset + 1 + start.unwrap_or(inner.len())..offset + 1 + end
}

/// How many bytes a character of a JSON string has, and how many what it says has.
fn unit(bytes: &[u8], at: usize) -> (usize, usize) {
    let code = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match (bytes[at], bytes.get(at + 1)) {
        (b'\\', Some(b'u')) => match (code(at), code(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, 4),
            (Some(code), _) => (6, char::from_u32(code).map_or(3, char::len_utf8)),
            (None, _) => (1, 1),
        },
        (b'\\', Some(_)) => (2, 1),
        _ => (1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_behind_escapes_are_found() {
        let raw = r#""a\n\u00e9\ud83d\ude00\ud800x\"y""#;
        let said = "a\n\u{e9}\u{1f600}\u{fffd}x\"y";
        for (from, character) in said.char_indices() {
            let span = escaped(raw, &(from..from + character.len_utf8()), 0);
            let part = format!("\"{}\"", &raw[span]);
            let back = quipu_model::Json::parse(&part).unwrap();
            let is_half = character == '\u{fffd}';
            assert!(
                is_half || back.as_str().as_deref() == Some(&*character.to_string()),
                "{part}"
            );
        }
    }
}
