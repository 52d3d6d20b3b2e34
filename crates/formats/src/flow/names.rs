//! File names, and what they can be taken for.
//!
//! `<step>-<agent>-<engine>.jsonl` cannot be taken apart for sure: steps and agents have hyphens of their
//! own. What a receipt says in its body is asked first, then which agents there are, then the names beside
//! it; the first hyphen is the last resort.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use quipu_model::hex;
use sha2::Digest as _;

/// What a file name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The step.
    pub step: String,
    /// The agent; empty where the name has no room for one.
    pub agent: String,
    /// The engine, in the name of a transcript.
    pub engine: Option<String>,
    /// The iteration, from 1. The plain name is the latest and does not say which that is.
    pub iteration: Option<u64>,
    /// Whether it could be taken for something else as well.
    pub ambiguous: bool,
    /// By what it was taken apart.
    pub by: By,
}

/// By what a name was taken apart, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum By {
    /// A receipt says so in its body.
    Body,
    /// It ends in the name of an agent that is known.
    Agent,
    /// There is a receipt of that name, which says where the engine begins.
    Sibling,
    /// The first hyphen.
    Hyphen,
}

/// What is known when names are taken apart.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The agents that there are.
    pub agents: BTreeSet<String>,
    /// What bodies of receipts say, by the beginning of names that follows from it.
    bodies: BTreeMap<String, BTreeSet<(String, String)>>,
    /// The names of receipts, without their endings.
    receipts: BTreeSet<String>,
}

impl Known {
    /// Takes in the name of a receipt, and what its body says: step and agent.
    pub fn receipt(&mut self, file: &str, body: Option<(&str, &str)>) {
        if let Some((stem, _)) = stem(file, ".json") {
            self.receipts.insert(stem.to_owned());
            if let Some((step, agent)) = body {
                self.agents.insert(agent.to_owned());
                let said = (step.to_owned(), agent.to_owned());
                for stem in [stem.to_owned(), joined(step, agent)] {
                    self.bodies.entry(stem).or_default().insert(said.clone());
                }
            }
        }
    }

    /// What the name of a transcript says; `None` when it is not one.
    pub fn transcript(&self, file: &str) -> Option<Name> {
        let (stem, iteration) = stem(file, ".jsonl")?;
        // The engine is one word. Without a hyphen there is none.
        let (rest, engine) = match stem.rsplit_once('-') {
            Some((rest, engine)) if !rest.is_empty() && is_word(engine) => (rest, Some(engine)),
            _ => (stem, None),
        };
        let name = self.split(rest);
        Some(Name {
            engine: engine.map(str::to_owned),
            iteration,
            ..name
        })
    }

    /// What the name of a receipt says; `None` when it is not one.
    pub fn of_receipt(&self, file: &str) -> Option<Name> {
        let (stem, iteration) = stem(file, ".json")?;
        Some(Name {
            iteration,
            ..self.split(stem)
        })
    }

    fn split(&self, rest: &str) -> Name {
        let name = |step: &str, agent: &str, ambiguous, by| Name {
            step: unescape(step).into_owned(),
            agent: unescape(agent).into_owned(),
            engine: None,
            iteration: None,
            ambiguous,
            by,
        };
        if let Some(said) = self.bodies.get(rest)
            && let Some((step, agent)) = said.first()
        {
            // Not the parts of the name: the name may have been made safe, or made unlike another.
            return Name {
                step: step.clone(),
                agent: agent.clone(),
                ..name("", "", said.len() > 1, By::Body)
            };
        }
        let mut ending = self.agents.iter().filter_map(|agent| {
            let agent = escape(agent);
            let step = rest.strip_suffix(&*agent)?.strip_suffix('-')?;
            (!step.is_empty() && !agent.is_empty()).then(|| (step, agent.len()))
        });
        if let Some(first) = ending.next() {
            let more: Vec<_> = ending.collect();
            let (step, len) = more
                .iter()
                .copied()
                .fold(first, |a, b| if b.1 > a.1 { b } else { a });
            let agent = &rest[rest.len() - len..];
            return name(step, agent, !more.is_empty(), By::Agent);
        }
        let by = if self.receipts.contains(rest) {
            By::Sibling
        } else {
            By::Hyphen
        };
        match rest.split_once('-') {
            Some((step, agent)) if !step.is_empty() => name(step, agent, agent.contains('-'), by),
            _ => name(rest, "", true, by),
        }
    }
}

/// The name without its ending and iteration (from 1), and that iteration.
fn stem<'a>(file: &'a str, ending: &str) -> Option<(&'a str, Option<u64>)> {
    let stem = file.strip_suffix(ending).filter(|stem| !stem.is_empty())?;
    if let Some((plain, number)) = stem.rsplit_once(".i")
        && !plain.is_empty()
        && let Some(number) = iteration(number)
    {
        return Some((plain, Some(number)));
    }
    Some((stem, None))
}

fn iteration(digits: &str) -> Option<u64> {
    let fits = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|number| fits && *number > 0)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn joined(step: &str, agent: &str) -> String {
    format!("{}-{}", escape(step), escape(agent))
}

/// The name, without ending, without its iteration; and that iteration.
pub(super) fn without_iteration(name: &str) -> (&str, Option<u64>) {
    stem(name, "").unwrap_or((name, None))
}

/// Whether a name, without ending and engine, may stand for this step and this agent.
pub(super) fn stands_for(name: &str, step: &str, agent: &str) -> bool {
    let (name, _) = without_iteration(name);
    // Behind this, a name was made unlike another.
    let plain = name.split_once("~~").map_or(name, |(plain, _)| plain);
    let fits =
        |name: &str| name == joined(step, agent) || unescape(name) == format!("{step}-{agent}");
    fits(name) || fits(plain)
}

/// The longest part of a name. Four of them, and the endings, are below what file systems take.
const LONGEST: usize = 56;

/// A text as a part of a file name. What is not a letter, a digit, `-`, `_` or a `.` inside becomes `%` and
/// the number of the byte; what is too long is cut and ends in a hash of the whole.
pub fn escape(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_plain = text.bytes().all(plain)
        && !text.is_empty()
        && !text.starts_with('.')
        && !text.ends_with('.')
        && !is_reserved(text)
        && stem(text, "").is_none_or(|(_, number)| number.is_none());
    if is_plain && text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let mut made = String::new();
    for byte in text.bytes() {
        // A dot at either end hides a file or is cut off; `.i2` is the end of another name.
        let dot = byte == b'.' && !is_plain;
        let reserved = made.is_empty() && is_reserved(text);
        if plain(byte) && !dot && !reserved {
            made.push(char::from(byte));
        } else {
            made.push('%');
            made.push_str(&hex::encode(&[byte]).to_ascii_uppercase());
        }
        if made.len() > LONGEST {
            break;
        }
    }
    if text.is_empty() {
        made.push('%');
    }
    if made.len() > LONGEST {
        made.truncate(LONGEST - 17);
        made.push('~');
        let hash = sha2::Sha256::digest(text.as_bytes());
        made.push_str(&hex::encode(&hash[..8]));
    }
    Cow::Owned(made)
}

/// The text that [`escape`] made a name of, unless it was cut.
pub fn unescape(name: &str) -> Cow<'_, str> {
    if !name.contains('%') {
        return Cow::Borrowed(name);
    }
    if name == "%" {
        return Cow::Borrowed("");
    }
    let bytes = name.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        text.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    match String::from_utf8(text) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(name),
    }
}

/// Names that some systems take for devices, whatever follows a dot.
fn is_reserved(text: &str) -> bool {
    let base = text.split('.').next().unwrap_or(text).to_ascii_lowercase();
    matches!(base.as_str(), "con" | "prn" | "aux" | "nul")
        || matches!(base.as_bytes(), [b'c', b'o', b'm', d] | [b'l', b'p', b't', d] if d.is_ascii_digit())
}

/// A text as an engine in the name of a transcript: letters and digits only, because a hyphen ends it.
pub fn engine(text: &str) -> String {
    let word: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(24)
        .collect();
    if word.is_empty() {
        "agent".to_owned()
    } else {
        word.to_ascii_lowercase()
    }
}

/// The engine that an agent or a model is run by: `claude-code` and `claude-sonnet-4` are both run by `claude`.
pub(super) fn engine_of(word: &str) -> String {
    engine(word.split(['-', '_', ' ']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(name: &Name) -> (&str, &str, Option<&str>, Option<u64>, bool, By) {
        let engine = name.engine.as_deref();
        (
            &name.step,
            &name.agent,
            engine,
            name.iteration,
            name.ambiguous,
            name.by,
        )
    }

    #[test]
    fn the_first_hyphen_is_the_last_resort() {
        let known = Known::default();
        let read = |file: &str| known.transcript(file).unwrap();
        let seed = read("impl-loop-code-implementer-claude.jsonl");
        let claude = Some("claude");
        assert_eq!(
            parts(&seed),
            (
                "impl",
                "loop-code-implementer",
                claude,
                None,
                true,
                By::Hyphen
            )
        );
        let real = read("author_tests-author-claude.i2.jsonl");
        assert_eq!(
            parts(&real),
            ("author_tests", "author", claude, Some(2), false, By::Hyphen)
        );
        let dotted = read("3.4-critic-gemini.jsonl");
        assert_eq!(
            (dotted.step.as_str(), dotted.agent.as_str()),
            ("3.4", "critic")
        );
        let bare = read("main.jsonl");
        assert_eq!(parts(&bare), ("main", "", None, None, true, By::Hyphen));
        for other in ["x.json", ".jsonl", "notes.md"] {
            assert_eq!(known.transcript(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_known_is_asked_in_order() {
        let mut known = Known::default();
        known.agents.insert("code-implementer".to_owned());
        known.agents.insert("implementer".to_owned());
        let file = "impl-loop-code-implementer-claude.jsonl";
        let by_agent = known.transcript(file).unwrap();
        let claude = Some("claude");
        assert_eq!(
            parts(&by_agent),
            (
                "impl-loop",
                "code-implementer",
                claude,
                None,
                true,
                By::Agent
            )
        );
        known.receipt(
            "impl-loop-code-implementer.json",
            Some(("impl-loop", "code-implementer")),
        );
        let by_body = known.transcript(file).unwrap();
        assert_eq!(
            parts(&by_body),
            (
                "impl-loop",
                "code-implementer",
                claude,
                None,
                false,
                By::Body
            )
        );
        let mut beside = Known::default();
        beside.receipt("a-b-c.json", None);
        let sibling = beside.transcript("a-b-c-claude.jsonl").unwrap();
        assert_eq!(
            parts(&sibling),
            ("a", "b-c", claude, None, true, By::Sibling)
        );
        // Two bodies that one name can stand for.
        beside.receipt("a-b-c.json", Some(("a", "b-c")));
        beside.receipt("a%2Db-c.json", Some(("a-b", "c")));
        assert!(beside.of_receipt("a-b-c.json").unwrap().ambiguous);
        assert_eq!(beside.of_receipt("a%2Db-c.i3.json").unwrap().step, "a-b");
    }

    #[test]
    fn names_that_could_do_harm() {
        for (text, name) in [
            ("context-load", "context-load"),
            ("3.4", "3.4"),
            ("../../etc", "%2E%2E%2F%2E%2E%2Fetc"),
            (".", "%2E"),
            ("a/b\\c:d", "a%2Fb%5Cc%3Ad"),
            ("", "%"),
            ("\0", "%00"),
            ("nul", "%6Eul"),
            ("COM1.x", "%43OM1%2Ex"),
            ("x.i2", "x%2Ei2"),
            ("a b%", "a%20b%25"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(escape(text), name, "{text:?}");
            assert_eq!(unescape(name), text, "{name:?}");
        }
        let long = escape(&"x".repeat(500)).into_owned();
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, escape(&"x".repeat(501)));
        for (text, word) in [
            ("claude-code", "claudecode"),
            ("é-", "agent"),
            ("Gemini", "gemini"),
        ] {
            assert_eq!(engine(text), word);
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_name(text in "\\PC{0,80}|[./\\\\:%\0a-c]{0,30}") {
            let name = escape(&text);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.%~".contains(&b)));
            prop_assert!(!name.starts_with('.') && !name.ends_with('.'));
            if !name.contains('~') {
                let back = unescape(&name);
                prop_assert_eq!(&*back, text.as_str());
            }
        }

        #[test]
        fn any_name_is_read(name in "\\PC{0,30}") {
            let known = Known::default();
            known.transcript(&format!("{name}.jsonl"));
            known.of_receipt(&format!("{name}.json"));
        }
    }
}
