//! Attributes, and the values they have.

use std::borrow::Cow;
use std::cell::Cell;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, Money, Timestamp};

use crate::cost::Cost;

/// The fields of a span that have a place of their own.
pub(super) const SPAN: &[&str] = &[
    "spanId",
    "parentSpanId",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
];

/// The fields of a log record that have a place of their own.
pub(super) const LOG: &[&str] = &[
    "spanId",
    "timeUnixNano",
    "observedTimeUnixNano",
    "attributes",
    "body",
];

/// The attributes of a span, an event, a log record or a resource. Each that is asked for is marked; the others are kept.
#[derive(Debug, Default)]
pub(super) struct Attrs<'a>(Vec<Attr<'a>>);

#[derive(Debug)]
struct Attr<'a> {
    key: Cow<'a, str>,
    value: Node<'a>,
    used: Cell<bool>,
}

impl<'a> Attrs<'a> {
    /// Those of an object.
    pub(super) fn of(object: Node<'a>) -> Self {
        let items = object.get("attributes").into_iter().flat_map(Node::items);
        let items = items.filter_map(|item| {
            Some(Attr {
                key: item.text("key")?,
                value: item.get("value")?,
                used: Cell::new(false),
            })
        });
        Self(items.collect())
    }

    fn find(&self, key: &str) -> Option<&Attr<'a>> {
        self.0.iter().find(|it| it.key == key)
    }

    /// Whether there is one of this name, without asking for it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// A value, whichever type it has.
    pub(super) fn any(&self, key: &str) -> Option<Node<'a>> {
        let found = self.find(key)?;
        found.used.set(true);
        Some(found.value)
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        let found = self.find(key)?;
        let text = found.value.get("stringValue")?.as_str()?;
        found.used.set(true);
        Some(text).filter(|text| !text.is_empty())
    }

    /// A text, without asking for it.
    pub(super) fn peek(&self, key: &str) -> Option<Cow<'a, str>> {
        self.find(key)?.value.get("stringValue")?.as_str()
    }

    /// Asks for a text if it is such a one.
    pub(super) fn mark_if(&self, key: &str, is: impl FnOnce(&str) -> bool) {
        if let Some(found) = self.find(key)
            && self.peek(key).is_some_and(|text| is(&text))
        {
            found.used.set(true);
        }
    }

    /// The first of these that is a text.
    pub(super) fn first_text(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// A whole number.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let found = self.find(key)?;
        let count = count(found.value)?;
        found.used.set(true);
        Some(count)
    }

    /// A number that stands under several names. One that says something else stays where it is.
    pub(super) fn same_count(&self, keys: &[&str]) -> Option<u64> {
        let of = |key: &&str| self.find(key).and_then(|it| count(it.value));
        let first = keys.iter().find_map(of)?;
        for key in keys.iter().filter(|key| of(key) == Some(first)) {
            self.any(key);
        }
        Some(first)
    }

    /// Marks a number that others add up to.
    pub(super) fn is_sum(&self, key: &str, sum: u64) {
        if self.find(key).and_then(|it| count(it.value)) == Some(sum) {
            self.any(key);
        }
    }

    /// Seconds, as milliseconds.
    pub(super) fn seconds(&self, key: &str) -> Option<u64> {
        let seconds = number(self.find(key)?.value)?;
        self.any(key);
        let millis = seconds * 1_000.0;
        // Numbers that cannot be are dealt with where all durations are.
        (0.0..1e15).contains(&millis).then(|| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in bounds"
            )]
            let whole = millis.round() as u64;
            whole
        })
    }

    /// A sum of dollars.
    pub(super) fn money(&self, key: &str) -> Option<Money> {
        let found = self.find(key)?;
        let (_, value) = found.value.fields().next()?;
        let cost = Cost::of(value)?;
        found.used.set(true);
        Some(cost.money())
    }

    /// A list of texts, or one text.
    pub(super) fn texts(&self, key: &str) -> Vec<Cow<'a, str>> {
        let Some(value) = self.any(key) else {
            return Vec::new();
        };
        match value.get("stringValue").and_then(|text| text.as_str()) {
            Some(text) => vec![text],
            None => values(value)
                .filter_map(|item| item.text("stringValue"))
                .collect(),
        }
    }

    /// A value that may be structured, or JSON in a text, or a text: as JSON where it is some.
    pub(super) fn document(&self, key: &str) -> Option<Cow<'a, str>> {
        let value = self.any(key)?;
        match value.get("stringValue").and_then(|text| text.as_str()) {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => Some(Cow::Owned(plain_text(value))),
        }
    }

    /// Attributes whose names begin so, with what follows. They are asked for thereby.
    pub(super) fn below(&self, prefix: &str) -> Vec<(&str, Node<'a>)> {
        let below = self.0.iter().filter_map(|it| {
            let rest = it.key.strip_prefix(prefix)?;
            it.used.set(true);
            Some((rest, it.value))
        });
        below.collect()
    }

    /// Those that nobody asked for, as an object.
    pub(super) fn rest(&self) -> Option<Json> {
        object(
            self.0
                .iter()
                .filter(|it| !it.used.get())
                .map(|it| (&*it.key, it.value)),
        )
    }

    /// Those whose names begin so, as an object, without that. They are asked for thereby.
    pub(super) fn object_below(&self, prefix: &str, but: &[&str]) -> Option<Json> {
        let below = self.0.iter().filter_map(|it| {
            let rest = it.key.strip_prefix(prefix)?;
            if but.contains(&rest) {
                return None;
            }
            it.used.set(true);
            Some((rest, it.value))
        });
        object(below)
    }
}

fn object<'a, 'k>(fields: impl Iterator<Item = (&'k str, Node<'a>)>) -> Option<Json> {
    let mut made = String::from("{");
    for (key, value) in fields {
        if made.len() > 1 {
            made.push(',');
        }
        made.push_str(Json::string(key).get());
        made.push(':');
        plain(value, &mut made);
    }
    if made.len() == 1 {
        return None;
    }
    made.push('}');
    Some(parsed(&made))
}

/// JSON; what nests too deep for it is kept as a text.
pub(super) fn parsed(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|_| Json::string(text))
}

/// The items of a list.
pub(super) fn values(any: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let list = any.path(&["arrayValue", "values"]);
    list.into_iter().flat_map(Node::items)
}

/// A value as JSON that does not name its type.
pub(super) fn plain_text(any: Node<'_>) -> String {
    let mut out = String::new();
    plain(any, &mut out);
    out
}

/// A text as it is, and anything else as JSON.
pub(super) fn said(any: Node<'_>) -> String {
    let text = any.get("stringValue").and_then(|text| text.as_str());
    text.map_or_else(|| plain_text(any), Cow::into_owned)
}

/// Writes a value as JSON that does not name its type. It nests no deeper than the log.
fn plain(any: Node<'_>, out: &mut String) {
    let mut fields = any.fields();
    let (Some((key, value)), None) = (fields.next(), fields.next()) else {
        // Nothing at all, or not a value.
        out.push_str(any.raw().get());
        return;
    };
    match &*key.to_text_lossy() {
        "intValue" => match value.as_str().and_then(|text| text.parse::<i64>().ok()) {
            Some(number) => out.push_str(&number.to_string()),
            None => out.push_str(value.raw().get()),
        },
        "arrayValue" => {
            out.push('[');
            let items = value.get("values").into_iter().flat_map(Node::items);
            for (at, item) in items.enumerate() {
                if at > 0 {
                    out.push(',');
                }
                plain(item, out);
            }
            out.push(']');
        }
        "kvlistValue" => {
            out.push('{');
            let items = value.get("values").into_iter().flat_map(Node::items);
            for (at, item) in items.enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(Json::string(&item.text("key").unwrap_or_default()).get());
                out.push(':');
                match item.get("value") {
                    Some(value) => plain(value, out),
                    None => out.push_str("null"),
                }
            }
            out.push('}');
        }
        "stringValue" | "boolValue" | "doubleValue" | "bytesValue" => {
            out.push_str(value.raw().get());
        }
        _ => out.push_str(any.raw().get()),
    }
}

/// A number of any type.
fn number(any: Node<'_>) -> Option<f64> {
    let (_, value) = any.fields().next()?;
    match value.kind() {
        Kind::Number => value.as_f64(),
        Kind::String => value.as_str()?.parse().ok(),
        _ => None,
    }
}

/// A whole number, which the mapping writes as a text, and some programs as one with a fraction.
pub(super) fn count(any: Node<'_>) -> Option<u64> {
    let (key, value) = any.fields().next()?;
    let whole = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    if whole.is_some() || !key.is("doubleValue") {
        return whole;
    }
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in bounds"
    )]
    is_whole.then_some(number as u64)
}

/// A time in nanoseconds. Zero is none.
pub(super) fn moment(of: Node<'_>, key: &str) -> Option<Timestamp> {
    let node = of.get(key)?;
    let nanos = node.as_u64().or_else(|| node.as_str()?.parse().ok())?;
    if nanos == 0 {
        return None;
    }
    Timestamp::from_nanosecond(i128::from(nanos)).ok()
}

/// A field that is a small number, which some programs write as a text.
pub(super) fn small(of: Node<'_>, path: &[&str]) -> Option<u64> {
    let node = of.path(path)?;
    node.as_u64().or_else(|| match &*node.as_str()? {
        "STATUS_CODE_OK" => Some(1),
        "STATUS_CODE_ERROR" => Some(2),
        text => text.parse().ok(),
    })
}
