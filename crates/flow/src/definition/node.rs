//! A YAML file as a tree that knows the place of every key and value.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::{At, Text};

/// The largest file that is read.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// A value of a file.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Where it begins; for a text, where its first character is.
    pub(crate) at: At,
    /// Where it begins and how long it is in the source, in bytes.
    span: (usize, usize),
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Null,
    /// A value that is not a text, as JSON, and as it is written.
    Scalar(Value, String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Text, Node)>),
}

/// YAML that cannot be read.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) at: At,
    pub(crate) message: String,
}

impl Node {
    /// Reads a file.
    pub(crate) fn parse(source: &str) -> Result<Self, Broken> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_depth: 64,
                max_nodes: 500_000,
                max_events: 1_000_000,
                max_aliases: 10_000,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: 100_000,
            },
            strict_booleans: true,
            with_snippet: false,
        };
        let mut node: Self =
            serde_saphyr::from_str_with_options(source, options).map_err(|error| {
                let at = error.location().map(place).unwrap_or_default();
                let message = error.to_string();
                Broken {
                    at,
                    message: first_line(&message),
                }
            })?;
        node.settle(source);
        Ok(node)
    }

    /// A value that was not written in this file, at a place of it.
    pub(crate) fn from_json(value: Value, at: At) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::String(text) => Kind::Text(text),
            Value::Array(items) => Kind::List(
                items
                    .into_iter()
                    .map(|item| Self::from_json(item, at))
                    .collect(),
            ),
            Value::Object(map) => Kind::Map(
                map.into_iter()
                    .map(|(text, value)| (Text { text, at }, Self::from_json(value, at)))
                    .collect(),
            ),
            scalar => {
                let written = scalar.to_string();
                Kind::Scalar(scalar, written)
            }
        };
        Self {
            at,
            span: (0, 0),
            kind,
        }
    }

    /// The value without its places.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Scalar(value, _) => value.clone(),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            Kind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.text.clone(), value.json()))
                    .collect(),
            ),
        }
    }

    /// The text, or how another simple value is written.
    pub(crate) fn text(&self) -> Option<Text> {
        let text = match &self.kind {
            Kind::Text(text) | Kind::Scalar(_, text) => text.clone(),
            _ => return None,
        };
        Some(Text { text, at: self.at })
    }

    pub(crate) fn entries(&self) -> Option<&[(Text, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let entries = self.entries()?;
        entries
            .iter()
            .find(|(name, _)| name.text == key)
            .map(|(_, value)| value)
    }

    /// The kind in words.
    pub(crate) fn what(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "nothing",
            Kind::Scalar(Value::Bool(_), _) => "a boolean",
            Kind::Scalar(..) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }

    /// Every text inside, itself included.
    pub(crate) fn texts(&self, found: &mut Vec<Text>) {
        match &self.kind {
            Kind::Text(text) => found.push(Text {
                text: text.clone(),
                at: self.at,
            }),
            Kind::List(items) => items.iter().for_each(|item| item.texts(found)),
            Kind::Map(entries) => entries.iter().for_each(|(_, value)| value.texts(found)),
            _ => {}
        }
    }

    /// Puts every node at another place.
    pub(crate) fn moved_to(&mut self, at: At) {
        self.at = at;
        match &mut self.kind {
            Kind::List(items) => items.iter_mut().for_each(|item| item.moved_to(at)),
            Kind::Map(entries) => {
                for (key, value) in entries {
                    key.at = at;
                    value.moved_to(at);
                }
            }
            _ => {}
        }
    }

    /// Looks up in the source what the parser does not hand on: how numbers are written, and where texts begin.
    fn settle(&mut self, source: &str) {
        let (begin, length) = self.span;
        let written = source.get(begin..begin + length).unwrap_or_default();
        match &mut self.kind {
            Kind::Null => {}
            Kind::Scalar(_, as_written) => {
                if !written.is_empty() {
                    written.trim().clone_into(as_written);
                }
            }
            Kind::Text(_) => {
                let rest = source.get(begin..).unwrap_or_default();
                if rest.starts_with(['"', '\'']) {
                    self.at.column += 1;
                } else if rest.starts_with(['|', '>']) {
                    self.at = block_begin(rest, self.at);
                }
            }
            Kind::List(items) => items.iter_mut().for_each(|item| item.settle(source)),
            Kind::Map(entries) => {
                for (_, value) in entries {
                    value.settle(source);
                }
            }
        }
    }
}

/// Where the first line of a block text begins: the text after `|` or `>`, whose place is given.
fn block_begin(rest: &str, at: At) -> At {
    let mut lines = rest.lines().enumerate().skip(1);
    let Some((below, line)) = lines.find(|(_, line)| !line.trim().is_empty()) else {
        return at;
    };
    let indent = line.len() - line.trim_start_matches(' ').len();
    At {
        // Empty lines before it belong to the text.
        line: at.line + u32::from(below > 0),
        column: u32::try_from(indent + 1).unwrap_or(1),
    }
}

fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or("it cannot be read");
    // The place is told apart from the message.
    let line = match line.rsplit_once(" at line ") {
        Some((before, _)) => before,
        None => line,
    };
    line.trim_start_matches("error: ").to_owned()
}

fn place(location: Location) -> At {
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    At {
        line: number(location.line()),
        column: number(location.column()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Raw>::deserialize(deserializer)?;
        let span = spanned.defined.span();
        let number = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        Ok(Self {
            at: place(spanned.defined),
            span: (number(span.byte_offset()), number(span.byte_len())),
            kind: spanned.value.0,
        })
    }
}

/// A value before its place is known.
struct Raw(Kind);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor).map(Self)
    }
}

struct RawVisitor;

fn scalar(value: impl Into<Value>) -> Kind {
    let value = value.into();
    let written = value.to_string();
    Kind::Scalar(value, written)
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(scalar(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Kind, E> {
        Ok(Kind::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Kind, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Kind::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Kind, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let text = Text {
                at: place(key.defined),
                text: key.value,
            };
            map.push((text, entries.next_value()?));
        }
        Ok(Kind::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> At {
        At { line, column }
    }

    #[test]
    fn keys_and_values_know_their_place() {
        let source = "name: x\nversion: 1.10\nlist:\n  - a: \"q\"\n    b: |\n      one\n      two\n  - [1, 2]\n";
        let node = Node::parse(source).unwrap();
        assert_eq!(node.get("name").unwrap().at, at(1, 7));
        let version = node.get("version").unwrap().text().unwrap();
        assert_eq!((version.text.as_str(), version.at), ("1.10", at(2, 10)));
        let Kind::List(items) = &node.get("list").unwrap().kind else {
            panic!("a list");
        };
        assert_eq!(items[0].entries().unwrap()[0].0.at, at(4, 5));
        assert_eq!(items[0].get("a").unwrap().at, at(4, 9), "after the quote");
        assert_eq!(items[0].get("b").unwrap().at, at(6, 7), "the first line");
        assert_eq!(items[1].at, at(8, 5));
    }

    #[test]
    fn words_that_old_yaml_took_for_booleans_are_texts() {
        let node = Node::parse("a: yes\nb: on\nc: true\n").unwrap();
        assert_eq!(
            node.json(),
            serde_json::json!({"a": "yes", "b": "on", "c": true})
        );
    }

    #[test]
    fn broken_files_are_refused_with_their_place() {
        for (source, line) in [
            ("a: 1\na: 2\n", 2),
            ("a: [1, 2\n", 1),
            ("a: \"x\n", 1),
            ("a: 1\n b: 2\n", 2),
            ("a: *gone\n", 1),
        ] {
            let broken = Node::parse(source).expect_err(source);
            assert!(broken.at.line >= line, "{source}: {broken:?}");
            assert!(!broken.message.is_empty());
        }
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
        assert!(Node::parse(bomb).is_err());
        assert!(Node::parse(&"[".repeat(10_000)).is_err());
        assert!(Node::parse(&"a: ".repeat(200)).is_err());
    }
}
