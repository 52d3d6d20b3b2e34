//! Which blobs a line of a trace may refer to.
//!
//! A blob that is referred to must not be collected, in whatever field and shape the reference is, also on a
//! line that is no record. So every 64 lowercase hex digits that stand alone count as one: `sha256:…`,
//! `agentlog-blob://…/…`, and what is neither. What names no blob does no harm.
//!
//! The ids that tie records together are left out: they are hashes of payloads, and there are two on every
//! line.

use quipu_formats::agentlog::{ContentId, Record};

use crate::blobs::BlobId;

/// How many digits a name has.
const DIGITS: usize = 64;

/// JSON may be in a string of JSON, with its escapes escaped; so often they are taken off.
const LEVELS: usize = 8;

/// Stands for a character that is no digit.
const OTHER: u8 = b' ';

/// Calls `found` with every blob that a record may refer to; with the same perhaps several times.
pub(super) fn find(record: &Record<'_>, found: &mut dyn FnMut(BlobId)) {
    for (key, value) in record.node().fields() {
        let is_tie = (key.is("id") || key.is("parent"))
            && value
                .as_str()
                .is_some_and(|text| text.parse::<ContentId>().is_ok());
        if !is_tie {
            find_in_line(key.to_text_lossy().as_bytes(), found);
            find_in_line(value.raw().get().as_bytes(), found);
        }
    }
}

/// As [`find`], in what need not be JSON.
pub(super) fn find_in_line(line: &[u8], found: &mut dyn FnMut(BlobId)) {
    find_in(line, found);
    // Digits may be written as escapes, and an escape may end in what looks like a digit.
    let mut text = decoded(line);
    for _ in 0..LEVELS {
        let Some(plain) = text else { return };
        find_in(&plain, found);
        text = decoded(&plain);
    }
}

/// Text without its escapes; `None` when none of them can hide a digit.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let hides = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'u' | b'b' | b'f');
    if !text.windows(2).any(hides) {
        return None;
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, len) = match rest {
            [b'u', code @ ..] => match code.first_chunk().copied().and_then(unit) {
                Some(unit) => (unit, 5),
                None => (OTHER, 1),
            },
            [byte @ (b'\\' | b'"' | b'/'), ..] => (*byte, 1),
            [_, ..] => (OTHER, 1),
            [] => break,
        };
        plain.push(byte);
        rest = &rest[len..];
    }
    plain.extend_from_slice(rest);
    Some(plain)
}

/// What four hex digits stand for, as far as that is ASCII.
fn unit(code: [u8; 4]) -> Option<u8> {
    let mut unit = 0;
    for digit in code {
        unit = unit * 16 + char::from(digit).to_digit(16)?;
    }
    Some(
        u8::try_from(unit)
            .ok()
            .filter(u8::is_ascii)
            .unwrap_or(OTHER),
    )
}

fn find_in(bytes: &[u8], found: &mut dyn FnMut(BlobId)) {
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
                && let Ok(text) = str::from_utf8(&bytes[start..start + length])
                && let Ok(id) = text.parse()
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
    use quipu_formats::agentlog::{Item, Reader};

    use super::*;

    fn found(text: &str) -> Vec<BlobId> {
        let mut all = Vec::new();
        find_in_line(text.as_bytes(), &mut |id| all.push(id));
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
    }

    #[test]
    fn however_it_is_written() {
        let id = BlobId::of(b"x");
        let all = |c: char| format!("\\u{:04x}", u32::from(c));
        let spelled: String = id.to_string().chars().map(all).collect();
        let twice = spelled.replace('\\', "\\\\");
        assert_eq!(found(&format!("[\"{spelled}\"]")), [id]);
        assert_eq!(found(&format!("[\"{{\\\"a\\\":\\\"{twice}\\\"}}\"]")), [id]);
        for before in [
            r"\b",
            r"\f",
            r"\u002f",
            r"\u00e9",
            r"\n",
            r"\t",
            r"\\",
            r"\/",
            r"\\\b",
            r"\ud83d\ude00",
        ] {
            for behind in ["", r"\b", r"\u002fb\u", r"\"] {
                let text = format!("[\"{before}{id}{behind}\"]");
                assert!(found(&text).contains(&id), "{text}");
            }
        }
        // Not JSON, not text.
        let mut torn = format!("{{\"a\":\"\\b{id}").into_bytes();
        torn.insert(0, 0xff);
        let mut all = Vec::new();
        find_in_line(&torn, &mut |id| all.push(id));
        assert_eq!(all, [id]);
    }

    #[test]
    fn all_of_a_record_but_what_ties_it_to_others() {
        let [a, b, c, d] = [b"a", b"b", b"c", b"d"].map(|it| BlobId::of(it));
        let line = format!(
            r#"{{"version":"0.1","id":"sha256:{a}","kind":"k","parent":"sha256:{b}","meta":{{"{c}":1}},"x":"{d}","payload":["{a}"]}}"#
        );
        let of = |line: &str| {
            let mut all = Vec::new();
            match Reader::new(line.as_bytes()).next() {
                Ok(Some(Item::Record(record))) => find(&record, &mut |id| all.push(id)),
                other => panic!("{other:?}"),
            }
            all
        };
        assert_eq!(of(&line), [c, d, a]);
        let uri = line.replace(&format!("sha256:{b}"), &b.uri());
        assert_eq!(of(&uri), [b, c, d, a]);
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
