//! What an id that is wrong was made by.
//!
//! This is slow: it tries what other programs do. So it is done for some, and what they were made by is tried
//! first on the next.

use quipu_model::json::{Node, Tape};
use sha2::{Digest as _, Sha256};

use super::super::record::{Field, Record};
use super::super::{Canon, ContentId, Form};

/// Ids that are explained at most.
const MOST: u32 = if cfg!(test) { 150 } else { 1000 };

/// Bytes of payloads that are looked at for it at most.
const MOST_BYTES: usize = 16 << 20;

/// Explains ids, as long as it is not too much.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    tried: u32,
    bytes: usize,
    /// What the last one was made by.
    last: Option<Form>,
    /// Whether some were not looked at.
    pub(super) capped: bool,
}

impl Diagnosis {
    /// What this id of a record was made by, in words.
    pub(super) fn explain(&mut self, record: &Record<'_>, id: ContentId) -> Option<String> {
        if is_placeholder(id) {
            return Some("a placeholder, made by no hash".to_owned());
        }
        let payload = record.payload()?;
        let len = record.text().len();
        if self.tried >= MOST || self.bytes.saturating_add(len) > MOST_BYTES {
            self.capped = true;
            return None;
        }
        self.tried += 1;
        self.bytes += len;
        let again = self.last.filter(|form| form.id(payload) == Some(id));
        if let Some(form) = again.or_else(|| Form::of(payload, id)) {
            self.last = Some(form);
            return Some(form.to_string());
        }
        other(record, payload, id).map(str::to_owned)
    }
}

/// Ids of something else than the canonical payload.
fn other(record: &Record<'_>, payload: Node<'_>, id: ContentId) -> Option<&'static str> {
    let hash = |text: &str| ContentId(Sha256::digest(text.as_bytes()).into());
    if hash(payload.raw().get()) == id {
        return Some("the payload as it stands, not its canonical form");
    }
    if hash(record.text()) == id {
        return Some("the whole line");
    }
    let mut canon = Canon::new();
    let mut is = |record: Node<'_>| canon.id(record).is_ok_and(|made| made == id);
    if is(record.node()) {
        return Some("the whole record, not its payload");
    }
    let mut text = "{".to_owned();
    for (key, value) in record.node().fields() {
        if !key.is(Field::Id.as_str()) {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(key.raw().get());
            text.push(':');
            text.push_str(value.raw().get());
        }
    }
    text.push('}');
    let mut tape = Tape::new();
    let rest = tape.read(&text, usize::MAX).ok()?;
    is(rest).then_some("the whole record without its id, not its payload")
}

/// Digits that repeat, or nearly all zeros: no hash looks so.
fn is_placeholder(id: ContentId) -> bool {
    let bytes = id.0;
    let repeats = (1..=8).any(|period| bytes.iter().zip(&bytes[period..]).all(|(a, b)| a == b));
    repeats || memchr::memchr_iter(0, &bytes).count() >= 16
}

/// What is wrong with a text that should be an id; nothing where it is just something else.
pub(super) fn malformed(text: &str, true_id: Option<ContentId>) -> String {
    let digits = text.strip_prefix("sha256:");
    let bare = digits.unwrap_or(text);
    if bare.len() != 64 || !bare.bytes().all(|b| b.is_ascii_hexdigit()) {
        return String::new();
    }
    let right = format!("sha256:{}", bare.to_ascii_lowercase());
    let matches = true_id.is_some_and(|id| right.parse() == Ok(id));
    let what = match digits {
        None => "`sha256:` is missing",
        Some(_) => "digits are in uppercase",
    };
    let matches = if matches {
        "it is the payload's"
    } else {
        "it is not the payload's either"
    };
    format!(": {what}; apart from that {matches}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_no_placeholders() {
        for n in 0..2000u32 {
            let hash = ContentId(Sha256::digest(n.to_be_bytes()).into());
            assert!(!is_placeholder(hash));
        }
        for made_up in ["2", "ab", "0123456789abcdef", "0000000000000001"] {
            let text = format!("sha256:{}", made_up.repeat(64 / made_up.len()));
            assert!(is_placeholder(text.parse().unwrap()), "{text}");
        }
        let mut one = [0; 32];
        one[31] = 1;
        assert!(is_placeholder(ContentId(one)));
    }
}
