//! Which blobs a payload may refer to.
//!
//! A blob that is referred to must not be collected, in whatever field and shape the reference is. So every
//! 64 lowercase hex digits that stand alone count as one: `sha256:…`, `agentlog-blob://…/…`, and what is
//! neither. What names no blob does no harm.

use quipu_model::json::{Kind, Node};

use crate::blobs::BlobId;

/// How many digits a name has.
const DIGITS: usize = 64;

/// Calls `found` with every blob that a payload may refer to; with the same perhaps several times.
pub(super) fn find(payload: Node<'_>, found: &mut dyn FnMut(BlobId)) {
    let text = payload.raw().get();
    find_in(text, found);
    // Digits may be written as escapes. Nobody does, but it is JSON.
    let escaped = ["\\u003", "\\u006"]
        .iter()
        .any(|escape| text.contains(escape));
    if !escaped {
        return;
    }
    let mut left = vec![payload];
    while let Some(node) = left.pop() {
        match node.kind() {
            Kind::List => left.extend(node.items()),
            Kind::Object => left.extend(node.fields().map(|(_, value)| value)),
            Kind::String => {
                if let Some(raw) = node.as_raw_str() {
                    find_in(&raw.to_text_lossy(), found);
                }
            }
            _ => {}
        }
    }
}

fn find_in(text: &str, found: &mut dyn FnMut(BlobId)) {
    let bytes = text.as_bytes();
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    // So many digits in a row cover one of these places.
    let mut at = DIGITS - 1;
    while at < bytes.len() {
        if is_digit(&bytes[at]) {
            let before = bytes[..at].iter().rev().take(DIGITS);
            let start = at - before.take_while(|byte| is_digit(byte)).count();
            let length = bytes[start..]
                .iter()
                .take_while(|byte| is_digit(byte))
                .count();
            // Further back than is looked, it is longer than a name.
            if length == DIGITS
                && let Ok(id) = text[start..start + length].parse()
            {
                found(id);
            }
            at = at.max(start + length);
        }
        at += DIGITS;
    }
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use super::*;

    fn found(text: &str) -> Vec<BlobId> {
        let mut all = Vec::new();
        find(Tape::new().read(text, 10).unwrap(), &mut |id| all.push(id));
        all
    }

    #[test]
    fn wherever_it_stands() {
        let id = BlobId::of(b"x");
        for padding in 0..130 {
            for form in [id.to_string(), id.prefixed(), id.uri()] {
                let text = format!("{{\"{}\":[\"{form}\"]}}", "z".repeat(padding));
                assert_eq!(found(&text), [id], "{text}");
            }
        }
        let two = format!("[\"{id}\",\"{}\"]", BlobId::of(b"y"));
        assert_eq!(found(&two), [id, BlobId::of(b"y")]);
        let escaped = format!("[\"\\u006{}{}\"]", "1", &"a".repeat(63));
        assert_eq!(found(&escaped)[0].to_string(), "a".repeat(64));
    }

    #[test]
    fn longer_and_shorter_ones_are_no_names() {
        for length in [0, 1, 63, 65, 127, 128, 129, 1000] {
            let text = format!("[\"{}\"]", "a".repeat(length));
            assert_eq!(found(&text), [], "{length}");
        }
        assert_eq!(found(&format!("[\"{}\"]", "A".repeat(64))), []);
    }
}
