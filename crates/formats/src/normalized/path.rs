//! How receipts name a field: `tool.input.edits[0].new_string`.
//!
//! | step | goes to |
//! |---|---|
//! | `name` or `.name` | the field of this name; the first, where there are several |
//! | `["a.b"]` | the same, where the name is more than letters, digits, `_`, `-` and `$`: a JSON string |
//! | `[2]` | the third item of a list, or the value of the third field of an object |
//! | `{2}` | the name of the third field itself |

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use quipu_model::Json;
use quipu_model::json::Node;

/// What a path leads to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A value.
    Value(Node<'a>),
    /// The name of the field that has this value.
    Name(Node<'a>, quipu_model::json::RawStr<'a>),
}

impl<'a> Target<'a> {
    /// The text that is there: a string, or a name. `None` where there is something else.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Value(node) => node.as_str(),
            Self::Name(_, name) => name.to_text(),
        }
    }
}

/// Adds a field's name to a path.
pub fn push_name(path: &mut String, name: &str) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$');
    if !name.is_empty() && name.bytes().all(is_plain) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    } else {
        path.push('[');
        path.push_str(Json::string(name).get());
        path.push(']');
    }
}

/// Adds a place in a list, or among the fields of an object, to a path.
pub fn push_index(path: &mut String, index: usize) {
    path.push('[');
    path.push_str(itoa::Buffer::new().format(index));
    path.push(']');
}

/// Adds the name of a field, as that which is meant, to a path.
pub fn push_name_of(path: &mut String, index: usize) {
    path.push('{');
    path.push_str(itoa::Buffer::new().format(index));
    path.push('}');
}

/// Follows a path. `None` when it leads nowhere, or is none.
pub fn resolve<'a>(node: Node<'a>, path: &str) -> Option<Target<'a>> {
    resolve_all(node, [path]).remove(path)
}

/// Follows many paths at once: however many there are, each value is looked at once. Those that lead nowhere are not in
/// what is given back.
pub fn resolve_all<'a, 'p>(
    node: Node<'a>,
    paths: impl IntoIterator<Item = &'p str>,
) -> HashMap<&'p str, Target<'a>> {
    let mut ways = Ways::default();
    for path in paths {
        ways.add(path);
    }
    let mut found = HashMap::new();
    ways.follow(0, node, &mut found);
    found
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Name(String),
    Index(usize),
    NameOf(usize),
}

/// Paths that have their beginnings in common.
#[derive(Debug)]
struct Ways<'p> {
    /// Where each goes on, and the paths that end there.
    forks: Vec<(HashMap<Step, usize>, Vec<&'p str>)>,
}

impl Default for Ways<'_> {
    fn default() -> Self {
        Self {
            forks: vec![(HashMap::new(), Vec::new())],
        }
    }
}

impl<'p> Ways<'p> {
    /// Adds a path, if it is one.
    fn add(&mut self, path: &'p str) {
        let (mut at, mut rest) = (0, path);
        while !rest.is_empty() {
            let Some((step, behind)) = step(rest) else {
                return;
            };
            let next = self.forks.len();
            let fork = *self.forks[at].0.entry(step).or_insert(next);
            if fork == next {
                self.forks.push((HashMap::new(), Vec::new()));
            }
            (at, rest) = (fork, behind);
        }
        self.forks[at].1.push(path);
    }

    fn follow<'a>(&self, at: usize, node: Node<'a>, found: &mut HashMap<&'p str, Target<'a>>) {
        let (ways, ends) = &self.forks[at];
        found.extend(ends.iter().map(|path| (*path, Target::Value(node))));
        if ways.is_empty() {
            return;
        }
        for (index, item) in node.items().enumerate() {
            if let Some(way) = ways.get(&Step::Index(index)) {
                self.follow(*way, item, found);
            }
        }
        let mut met = HashSet::new();
        for (index, (name, value)) in node.fields().enumerate() {
            if let Some(way) = ways.get(&Step::Index(index)) {
                self.follow(*way, value, found);
            }
            if let Some(way) = ways.get(&Step::NameOf(index)) {
                let ends = self.forks[*way].1.iter();
                found.extend(ends.map(|path| (*path, Target::Name(value, name))));
            }
            let named = Step::Name(name.to_text_lossy().into_owned());
            if let Some(way) = ways.get(&named)
                && met.insert(*way)
            {
                self.follow(*way, value, found);
            }
        }
    }
}

/// The first step of a path, and what is behind it.
fn step(path: &str) -> Option<(Step, &str)> {
    if path.starts_with("[\"") {
        let (name, behind) = quoted(&path[1..])?;
        return Some((Step::Name(name), behind.strip_prefix(']')?));
    }
    if let Some(behind) = path.strip_prefix('[') {
        let (index, behind) = behind.split_once(']')?;
        return Some((Step::Index(index.parse().ok()?), behind));
    }
    if let Some(behind) = path.strip_prefix('{') {
        // Nothing is inside of a name.
        let index = behind.strip_suffix('}')?.parse().ok()?;
        return Some((Step::NameOf(index), ""));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let end = path.find(['.', '[', '{']).unwrap_or(path.len());
    Some((Step::Name(path[..end].to_owned()), &path[end..]))
}

/// The JSON string that a text begins with, and what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            break;
        }
        at += 2;
    }
    let (string, behind) = text.split_at_checked(at + 1)?;
    Some((Json::parse(string).ok()?.as_str()?.into_owned(), behind))
}

/// Finds places in a text that are counted in characters, one behind the other: all of them together cost one walk over
/// the text.
#[derive(Debug, Clone, Default)]
pub struct Characters {
    /// How many were passed over, and their bytes.
    passed: (u64, usize),
}

impl Characters {
    /// The byte at which a character begins; the length of the text behind its last. `None` when there are fewer, and when
    /// it was passed over before.
    pub fn place(&mut self, text: &str, character: u64) -> Option<usize> {
        let (mut count, from) = self.passed;
        let rest = text.get(from..).filter(|_| character >= count)?;
        for (at, _) in rest.char_indices() {
            if count == character {
                self.passed = (count, from + at);
                return Some(from + at);
            }
            count += 1;
        }
        self.passed = (count, text.len());
        (count == character).then_some(text.len())
    }

    /// The characters from the one to the other; `None` as in [`Self::place`].
    pub fn slice<'t>(&mut self, text: &'t str, start: u64, end: u64) -> Option<&'t str> {
        let from = self.place(text, start)?;
        let to = self.place(text, end.max(start))?;
        (start <= end).then(|| &text[from..to])
    }
}

#[cfg(test)]
mod tests {
    use quipu_model::json::Tape;

    use super::*;

    #[test]
    fn paths_lead_to_what_they_name() {
        let text =
            r#"{"tool":{"input":{"edits":[{"new_string":"x"}],"a.b":"y","a\"]":"z","d":1,"d":2}}}"#;
        let mut tape = Tape::new();
        let node = tape.read(text, 20).unwrap();
        let at = |path: &str| match resolve(node, path) {
            Some(Target::Value(node)) => Some(node.raw().get().to_owned()),
            Some(Target::Name(_, name)) => Some(format!("name {}", name.to_text_lossy())),
            None => None,
        };
        for (path, value) in [
            ("tool.input.edits[0].new_string", "\"x\""),
            ("tool.input[\"a.b\"]", "\"y\""),
            (r#"tool.input["a\"]"]"#, "\"z\""),
            ("tool.input.d", "1"),
            ("tool.input[4]", "2"),
            ("tool.input{0}", "name edits"),
        ] {
            assert_eq!(at(path).as_deref(), Some(value), "{path}");
        }
        for path in [
            "tool.output",
            "tool.input[9]",
            "tool.input{",
            "tool.input{x}",
            "tool[\"",
            "tool[\"a\\",
            "tool.input{0}.x",
        ] {
            assert_eq!(at(path), None, "{path}");
        }
        let mut path = String::new();
        push_name(&mut path, "tool");
        push_name(&mut path, "a.b");
        push_index(&mut path, 3);
        push_name(&mut path, "x");
        push_name_of(&mut path, 1);
        assert_eq!(path, r#"tool["a.b"][3].x{1}"#);
    }

    #[test]
    fn places_are_counted_in_characters() {
        let slice = |text, start, end| Characters::default().slice(text, start, end);
        assert_eq!(slice("aé\u{1f600}b", 1, 3), Some("é\u{1f600}"));
        assert_eq!(slice("aé", 2, 2), Some(""));
        assert_eq!(slice("aé", 2, 3), None);
        assert_eq!(slice("abc", 3, 2), None);
        assert_eq!(slice("abc", 1, 3), Some("bc"));
        let mut characters = Characters::default();
        for (start, end, text) in [(0, 1, "a"), (1, 3, "éx"), (3, 3, "")] {
            assert_eq!(characters.slice("aéx", start, end), Some(text));
        }
        assert_eq!(characters.slice("aéx", 4, 4), None);
        assert_eq!(characters.slice("aéx", 0, 1), None);
    }
}
