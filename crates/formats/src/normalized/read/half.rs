//! Texts with half a character in them: an escape of one half of a surrogate pair, without the other.
//!
//! No text of ours can hold one, so that U+FFFD stands in its place. Values that are copied as they are keep
//! theirs.

use quipu_model::json::{Kind, Node};

/// The sections whose texts are read.
const SECTIONS: &[&str] = &["source", "session", "submitter", "privacy", "metrics"];

/// Where in a part of the document the first such text is that is read as a text.
pub(super) fn place(key: &str, index: Option<u64>, node: Node<'_>) -> Option<String> {
    // Nearly no part has one.
    if !is_in(node.raw().get()) {
        return None;
    }
    match index {
        Some(index) => in_event(node).map(|at| format!("{key}[{index}].{at}")),
        None => (SECTIONS.contains(&key) || key == "transcriptId").then(|| key.to_owned()),
    }
}

fn in_event(event: Node<'_>) -> Option<String> {
    let known = |key: &str| super::EVENT_FIELDS.contains(&key);
    event.fields().find_map(|(key, value)| {
        let key = key.to_text_lossy();
        match (&*key, value.kind()) {
            (_, Kind::String) => (known(&key) && is_in(value.raw().get())).then(|| key.into()),
            ("tool", Kind::Object) => of(value, &["name", "callId", "error"], "tool"),
            ("meta", Kind::Object) => {
                of(value, &["name", "stepKind", "error", "childRunId"], "meta")
            }
            ("blocks", Kind::List) => value
                .items()
                .find_map(|block| of(block, &["text", "name", "callId"], "blocks")),
            _ => None,
        }
    })
}

fn of(node: Node<'_>, keys: &[&str], path: &str) -> Option<String> {
    let has = |key: &&&str| {
        node.get(key)
            .is_some_and(|value| value.kind() == Kind::String && is_in(value.raw().get()))
    };
    keys.iter().find(has).map(|key| format!("{path}.{key}"))
}

/// Whether there is half a pair among the escapes of some JSON.
fn is_in(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        at += next;
        let Some(unit) = unit(bytes, at) else {
            at = (at + 2).min(bytes.len());
            continue;
        };
        at += 6;
        match unit {
            0xd800..=0xdbff => match self::unit(bytes, at) {
                Some(0xdc00..=0xdfff) => at += 6,
                _ => return true,
            },
            0xdc00..=0xdfff => return true,
            _ => {}
        }
    }
    false
}

/// The number of an escape such as `\\ud83d`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
