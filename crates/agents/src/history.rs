//! What is new in a request that repeats the history.
//!
//! A model's interface has no memory: each request carries the whole conversation so far. To make one
//! conversation of a series of requests, each message is hashed, and only what comes behind the longest
//! beginning that two requests share is taken.
//!
//! ```
//! use quipu_agents::history::{Prefix, Turn};
//! use quipu_model::json::Tape;
//!
//! let turn = |text: &str| Turn::of(Tape::new().read(text, 128).unwrap());
//! let ask = turn(r#"{"role":"user","content":"hello"}"#);
//! let reply = turn(r#"{"role":"assistant","content":"hi"}"#);
//! let more = turn(r#"{"role":"user","content":"and then?"}"#);
//!
//! let mut prefix = Prefix::default();
//! assert_eq!(prefix.advance(&[ask]), 0);
//! prefix.answered();
//! // The reply was seen as it came. Only the next question is new.
//! assert_eq!(prefix.advance(&[ask, reply, more]), 2);
//! ```

use quipu_model::json::{Kind, Node};
use serde::{Deserialize, Serialize};

use crate::hash;

/// How deep a message is looked into. What is deeper is hashed as it is written.
const DEPTH: usize = 64;

/// One message of a history: what it is known by, and whether the model wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The same for the same message, however it is written.
    pub hash: u64,
    /// Whether it comes from the model.
    pub reply: bool,
}

impl Turn {
    /// A message, or an item of the Responses kind.
    pub fn of(message: Node<'_>) -> Self {
        let role = message.text("role");
        let kind = message.text("type").unwrap_or_default();
        let reply = match role.as_deref() {
            Some(role) => matches!(role, "assistant" | "model"),
            None => kind == "reasoning" || kind == "program" || kind.ends_with("_call"),
        };
        Self {
            hash: of_message(message),
            reply,
        }
    }
}

/// The history that the last request had.
///
/// A proxy that sees several conversations at once keeps one of these for each, and asks each what it
/// has in common with a request ([`Self::common`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    seen: Vec<u64>,
    answered: bool,
}

impl Prefix {
    /// How many messages a history has in common with the last one, from the beginning.
    pub fn common(&self, history: &[Turn]) -> usize {
        self.seen
            .iter()
            .zip(history)
            .take_while(|(seen, turn)| **seen == turn.hash)
            .count()
    }

    /// Takes in the history of the next request. Gives the index of the first message that is new; that
    /// is the number of messages when none is.
    pub fn advance(&mut self, history: &[Turn]) -> usize {
        let mut new = self.common(history);
        if self.answered && new == self.seen.len() {
            // What the model answered was taken from the answer.
            let rest = history.get(new..).unwrap_or_default();
            new += rest.iter().take_while(|turn| turn.reply).count();
        }
        self.seen.clear();
        self.seen.extend(history.iter().map(|turn| turn.hash));
        self.answered = false;
        new
    }

    /// The answer to the last request was recorded, so that it is not new when the next one repeats it.
    pub fn answered(&mut self) {
        self.answered = true;
    }
}

/// The hash of a message. Where breakpoints for caching stand changes from request to request, and a
/// text may be written as a list of one block, so neither counts.
fn of_message(message: Node<'_>) -> u64 {
    if message.kind() != Kind::Object {
        return of_value(message, 0);
    }
    let fields = message.fields().map(|(key, value)| {
        let name = key.to_text_lossy();
        let value = if Kind::String == value.kind() && name == "content" {
            list([object([
                ("type", hash(b"text")),
                ("text", of_value(value, 1)),
            ])])
        } else {
            of_value(value, 1)
        };
        (name, value)
    });
    object(fields)
}

fn of_value(node: Node<'_>, depth: usize) -> u64 {
    match node.kind() {
        Kind::Object if depth < DEPTH => object(
            node.fields()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.to_text_lossy(), of_value(value, depth + 1))),
        ),
        Kind::List if depth < DEPTH => list(node.items().map(|item| of_value(item, depth + 1))),
        Kind::String => hash(node.as_str().unwrap_or_default().as_bytes()),
        _ => hash(node.raw().get().as_bytes()),
    }
}

/// The order of fields means nothing.
fn object<K: AsRef<str>>(fields: impl IntoIterator<Item = (K, u64)>) -> u64 {
    fields
        .into_iter()
        .filter(|(key, _)| key.as_ref() != "cache_control")
        .fold(0x6f62_6a65_6374, |sum: u64, (key, value)| {
            sum.wrapping_add(mix(hash(key.as_ref().as_bytes()), value))
        })
}

fn list(items: impl IntoIterator<Item = u64>) -> u64 {
    items.into_iter().fold(0x6c69_7374, mix)
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use super::{Prefix, Turn};

    fn turn(text: &str) -> Turn {
        Turn::of(Tape::new().read(text, 128).unwrap())
    }

    #[test]
    fn a_message_is_known_however_it_is_written() {
        let plain = turn(r#"{"role":"user","content":"h\u0069"}"#);
        for same in [
            r#"{"content":"hi","role":"user"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi","citations":null}]}"#,
        ] {
            assert_eq!(turn(same), plain, "{same}");
        }
        for other in [
            r#"{"role":"user","content":"ho"}"#,
            r#"{"role":"assistant","content":"hi"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}"#,
            r#"{"role":"user","content":[]}"#,
            r#""hi""#,
        ] {
            assert_ne!(turn(other), plain, "{other}");
        }
    }

    #[test]
    fn only_what_is_new_is_new() {
        let ask = |n: u32| turn(&format!(r#"{{"role":"user","content":"q{n}"}}"#));
        let reply = |n: u32| turn(&format!(r#"{{"role":"assistant","content":"a{n}"}}"#));
        let mut prefix = Prefix::default();
        assert_eq!(prefix.advance(&[ask(1)]), 0);
        prefix.answered();
        assert_eq!(prefix.advance(&[ask(1), reply(1), ask(2)]), 2);
        // Nobody saw the answer to the second: it is new when the third repeats it.
        assert_eq!(
            prefix.advance(&[ask(1), reply(1), ask(2), reply(2), ask(3)]),
            3
        );
        // The same again, as when a request is retried.
        assert_eq!(
            prefix.advance(&[ask(1), reply(1), ask(2), reply(2), ask(3)]),
            5
        );
        // Another conversation, or one that was condensed.
        assert_eq!(prefix.common(&[ask(9)]), 0);
        assert_eq!(prefix.advance(&[ask(9), ask(3)]), 0);
        prefix.answered();
        // An edited history: from the first difference on, all is new.
        assert_eq!(prefix.advance(&[ask(9), reply(7), ask(4)]), 1);
        assert_eq!(prefix.advance(&[]), 0);
    }

    #[test]
    fn items_of_the_model_are_replies() {
        for (text, reply) in [
            (r#"{"type":"function_call","call_id":"c"}"#, true),
            (r#"{"type":"reasoning"}"#, true),
            (r#"{"type":"function_call_output","call_id":"c"}"#, false),
            (r#"{"role":"model","parts":[]}"#, true),
            (r#"{"type":"message","role":"user"}"#, false),
            ("[]", false),
        ] {
            assert_eq!(turn(text).reply, reply, "{text}");
        }
    }
}
