//! Payloads that cannot be written as they are.
//!
//! Tools take and give whatever JSON they like: with a key twice, half a surrogate pair, a number that
//! no double holds. None of that has a canonical form, so a record of it has no id. And a line has a
//! limit. Both are rare, so payloads are only looked at here once writing them has failed.

use std::collections::HashSet;

use quipu_model::json::{Kind as JsonKind, Node, Tape};
use quipu_model::{Attachment, Json};
use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::text::{Object, list};
use crate::agentlog::verify::is_field;
use crate::agentlog::{ContentId, Kind, LIMITS};

/// Strings shorter than this stay where they are.
const SHORT: usize = 32 * 1024;

/// A value with a canonical form that says as much as possible of one without: half surrogate pairs
/// become U+FFFD, numbers beyond a double become strings, a key that is there again is numbered.
pub(super) fn canonical(json: &str) -> Option<String> {
    let mut tape = Tape::new();
    let root = tape.read(json, LIMITS.max_depth).ok()?;
    let mut out = String::with_capacity(json.len());
    write(root, &mut out);
    Some(out)
}

/// Recursion is as deep as the value, which the tape has capped.
fn write(node: Node<'_>, out: &mut String) {
    match node.kind() {
        JsonKind::String => {
            let text = node
                .as_raw_str()
                .map(quipu_model::json::RawStr::to_text_lossy);
            out.push_str(Json::string(&text.unwrap_or_default()).get());
        }
        JsonKind::Number => {
            let token = node.raw().get();
            match token.parse::<f64>() {
                Ok(double) if double.is_finite() => out.push_str(token),
                _ => out.push_str(Json::string(token).get()),
            }
        }
        JsonKind::Null | JsonKind::Bool => out.push_str(node.raw().get()),
        JsonKind::List => {
            out.push('[');
            for (n, item) in node.items().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        JsonKind::Object => {
            out.push('{');
            let mut seen = HashSet::new();
            for (n, (key, value)) in node.fields().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                let said = key.to_text_lossy();
                let (mut name, mut again) = (said.to_string(), 1);
                while !seen.insert(name.nfc().collect::<String>()) {
                    again += 1;
                    name = format!("{said} ({again})");
                }
                out.push_str(Json::string(&name).get());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// As much of a field of a payload as the format allows there, and whether that is all of it. Of lists and objects that
/// are not as they should be, the parts that are stay.
pub(super) fn fit(kind: Kind, key: &str, value: Node<'_>) -> (Option<String>, bool) {
    if is_field(kind, key, value) {
        return (Some(value.raw().get().to_owned()), true);
    }
    let fits = |json: &str| {
        let mut tape = Tape::new();
        let node = tape.read(json, LIMITS.max_depth);
        node.is_ok_and(|node| is_field(kind, key, node))
    };
    let rest = match value.kind() {
        JsonKind::List => {
            let items = value.items().map(|item| item.raw().get());
            Some(list(items.filter(|item| fits(&list([*item])))))
        }
        JsonKind::Object => {
            let parts = value.fields().filter(|(name, part)| {
                let alone = Object::new().raw(&name.to_text_lossy(), part.raw().get());
                fits(&alone.end())
            });
            let object = parts.fold(Object::new(), |object, (name, part)| {
                object.raw(&name.to_text_lossy(), part.raw().get())
            });
            Some(object.end())
        }
        _ => None,
    };
    (rest.filter(|rest| fits(rest)), false)
}

/// A text that was taken out of a payload.
pub(super) struct Moved {
    pub(super) attachment: Attachment,
    pub(super) text: String,
}

/// Takes long strings out of a payload, the longest first, until it is no longer than `room`. What
/// stands in their place names them. `None` when that is not enough.
pub(super) fn move_out(json: &str, room: usize) -> Option<(String, Vec<Moved>)> {
    let mut tape = Tape::new();
    let root = tape.read(json, LIMITS.max_depth).ok()?;
    let mut long: Vec<Node<'_>> = Vec::new();
    let mut nodes = vec![root];
    while let Some(node) = nodes.pop() {
        match node.kind() {
            JsonKind::List => nodes.extend(node.items()),
            JsonKind::Object => nodes.extend(node.fields().map(|(_, value)| value)),
            JsonKind::String if node.raw().get().len() > SHORT => long.push(node),
            _ => {}
        }
    }
    long.sort_by_key(|node| std::cmp::Reverse(node.raw().get().len()));
    let mut len = json.len();
    let enough = long.iter().position(|node| {
        let is_enough = len <= room;
        len = len.saturating_sub(node.raw().get().len()) + MARK;
        is_enough
    });
    long.truncate(enough.unwrap_or(long.len()));
    let (out, moved) = move_strings(json, long);
    (out.len() <= room).then_some((out, moved))
}

/// What takes the place of a string is no longer than this.
const MARK: usize = 160;

/// Takes strings out of a value. What takes their place names them.
pub(super) fn move_strings(json: &str, mut strings: Vec<Node<'_>>) -> (String, Vec<Moved>) {
    strings.sort_by_key(Node::offset);
    let (mut out, mut from, mut moved) = (String::new(), 0, Vec::new());
    for node in strings {
        let text = node
            .as_raw_str()
            .map(|text| text.to_text_lossy().into_owned());
        let text = text.unwrap_or_default();
        let sha256 = ContentId(Sha256::digest(text.as_bytes()).into()).hex();
        let bytes = text.len() as u64;
        let mark = format!("[{bytes} bytes of text, kept as agentlog-blob://quipu/{sha256}]");
        let attachment = Attachment {
            mime: "text/plain".to_owned(),
            bytes,
            sha256,
        };
        out.push_str(&json[from..node.offset()]);
        out.push_str(Json::string(&mark).get());
        from = node.offset() + node.raw().get().len();
        moved.push(Moved { attachment, text });
    }
    out.push_str(&json[from..]);
    (out, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_canonical_form_gets_one() {
        let odd = r#"{"a":1,"a":2,"s":"x\ud800y","n":1e400,"l":[-1e999,1.5],"a (2)":3}"#;
        let mended = canonical(odd).unwrap();
        let expected = "{\"a\":1,\"a (2)\":2,\"s\":\"x\u{fffd}y\",\"n\":\"1e400\",\"l\":[\"-1e999\",1.5],\"a (2) (2)\":3}";
        assert_eq!(mended, expected);
        let mut tape = Tape::new();
        let node = tape.read(&mended, 10).unwrap();
        assert!(crate::agentlog::Canon::new().id(node).is_ok());
    }

    #[test]
    fn the_longest_strings_go_first_and_only_as_many_as_need_to() {
        let (long, longer) = ("a".repeat(40_000), "b\n".repeat(50_000));
        let json = format!(
            "{{\"k\":{},\"l\":[{},\"short\"]}}",
            Json::string(&long).get(),
            Json::string(&longer).get()
        );
        let (out, moved) = move_out(&json, 60_000).unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(moved[0].text, longer);
        assert!(out.contains(&long) && out.contains(&moved[0].attachment.sha256));
        assert!(out.contains("100000 bytes of text") && Json::parse(&out).is_ok());
        let (_, moved) = move_out(&json, 20_000).unwrap();
        assert_eq!(moved.len(), 2);
        assert!(move_out(&json, 100).is_none());
    }
}
