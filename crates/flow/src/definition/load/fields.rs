//! Taking the values of a map by key, with a finding for each that does not fit.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::super::diagnostic::Findings;
use super::super::keys::{Key, Object, Shape};
use super::super::node::{Kind, Node};
use super::super::{At, Text, duration};
use crate::names::did_you_mean;

/// A map of the file, and the keys that it may have.
pub(super) struct Fields<'n> {
    /// What it is, in messages: `step build`.
    pub(super) what: String,
    pub(super) at: At,
    entries: &'n [(Text, Node)],
    objects: Vec<&'static Object>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'n> Fields<'n> {
    /// The fields of a node; a finding when it is not a map.
    pub(super) fn of(
        node: &'n Node,
        what: impl Into<String>,
        objects: &[&'static Object],
        findings: &mut Findings,
    ) -> Option<Self> {
        let what = what.into();
        let Some(entries) = node.entries() else {
            findings.error(
                "wrong-type",
                node.at,
                format!("{what} must be a map, not {}", node.what()),
                None,
            );
            return None;
        };
        Some(Self {
            what,
            at: node.at,
            entries,
            objects: objects.to_vec(),
            asked: RefCell::default(),
        })
    }

    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let objects = self.objects.clone();
        objects.into_iter().flat_map(|object| object.keys)
    }

    /// The value of a key, unless it is null.
    pub(super) fn get(&self, name: &'static str) -> Option<&'n Node> {
        debug_assert!(
            self.keys().any(|key| key.name == name),
            "{name} is not in the table of keys"
        );
        self.asked.borrow_mut().insert(name);
        let (_, node) = self.entries.iter().find(|(key, _)| key.text == name)?;
        (!matches!(node.kind, Kind::Null)).then_some(node)
    }

    /// Warns of keys that nothing reads. `elsewhere` says where a key belongs that other maps have.
    pub(super) fn finish(
        self,
        findings: &mut Findings,
        elsewhere: impl Fn(&str) -> Option<String>,
    ) {
        debug_assert!(
            self.keys()
                .all(|key| self.asked.borrow().contains(key.name)),
            "a key of {} is in the table and never read",
            self.what
        );
        for object in &self.objects {
            for required in object.required {
                let there = self
                    .entries
                    .iter()
                    .any(|(key, node)| key.text == *required && !matches!(node.kind, Kind::Null));
                if !there {
                    findings.error(
                        "missing-key",
                        self.at,
                        format!("{} has no `{required}`", self.what),
                        None,
                    );
                }
            }
        }
        for (key, _) in self.entries {
            if self.keys().any(|known| known.name == key.text) {
                continue;
            }
            let (message, hint) = match elsewhere(&key.text) {
                Some(belongs) => (
                    format!("`{}` has no effect on {}", key.text, self.what),
                    Some(belongs),
                ),
                None => (
                    format!("`{}` is not a key of {}", shown(&key.text), self.what),
                    did_you_mean(&key.text, self.keys().map(|key| key.name)),
                ),
            };
            findings.warning("unknown-key", key.at, message, hint);
        }
    }

    pub(super) fn text(&self, name: &'static str, findings: &mut Findings) -> Option<Text> {
        let node = self.get(name)?;
        let text = node.text();
        if text.is_none() {
            unfit(name, node, "a text", findings);
        }
        text
    }

    pub(super) fn string(&self, name: &'static str, findings: &mut Findings) -> Option<String> {
        self.text(name, findings).map(|text| text.text)
    }

    pub(super) fn bool(&self, name: &'static str, findings: &mut Findings) -> Option<bool> {
        let node = self.get(name)?;
        let word = node.text().map(|text| text.text.to_lowercase());
        let value = match word.as_deref() {
            Some("true" | "yes" | "on") => Some(true),
            Some("false" | "no" | "off") => Some(false),
            _ => None,
        };
        if value.is_none() {
            unfit(name, node, "true or false", findings);
        }
        value
    }

    /// A whole number in the range that the table gives.
    pub(super) fn whole<T: TryFrom<i64>>(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<T> {
        let node = self.get(name)?;
        let (least, most) = self.range(name);
        whole(node, name, least, most, findings)
    }

    fn range(&self, name: &str) -> (i64, i64) {
        let shape = self
            .keys()
            .find(|key| key.name == name)
            .map(|key| key.shape);
        match shape {
            Some(Shape::Whole(least, most) | Shape::List(&Shape::Whole(least, most))) => {
                (least, most)
            }
            Some(Shape::Either([Shape::Whole(least, most), ..])) => (*least, *most),
            _ => (i64::MIN, i64::MAX),
        }
    }

    /// A number in the range that the table gives.
    pub(super) fn number(&self, name: &'static str, findings: &mut Findings) -> Option<f64> {
        let node = self.get(name)?;
        let number = node.text().and_then(|text| text.text.parse::<f64>().ok());
        let Some(number) = number.filter(|number| number.is_finite()) else {
            unfit(name, node, "a number", findings);
            return None;
        };
        let shape = self
            .keys()
            .find(|key| key.name == name)
            .map(|key| key.shape);
        if let Some(Shape::Number(least, most)) = shape
            && !(least..=most).contains(&number)
        {
            let range = if most >= f64::MAX {
                format!("at least {least}")
            } else {
                format!("from {least} to {most}")
            };
            findings.error(
                "out-of-range",
                node.at,
                format!("`{name}` must be {range}, not {number}"),
                None,
            );
            return None;
        }
        Some(number)
    }

    /// A duration; `None` for zero, which means that there is no limit.
    pub(super) fn duration(&self, name: &'static str, findings: &mut Findings) -> Option<Duration> {
        let node = self.get(name)?;
        let Some(text) = node.text() else {
            unfit(name, node, "a duration", findings);
            return None;
        };
        match duration::parse(&text.text) {
            Ok(duration) => Some(duration).filter(|duration| !duration.is_zero()),
            Err(why) => {
                findings.error("bad-duration", node.at, format!("`{name}`: {why}"), None);
                None
            }
        }
    }

    /// One of the words that the table gives, in any case: its index.
    pub(super) fn word(&self, name: &'static str, findings: &mut Findings) -> Option<usize> {
        let node = self.get(name)?;
        let shape = self
            .keys()
            .find(|key| key.name == name)
            .map(|key| key.shape);
        let Some(Shape::Words(words)) = shape else {
            return None;
        };
        let text = node.text().map(|text| text.text.to_lowercase());
        let at = words.iter().position(|word| Some(*word) == text.as_deref());
        if at.is_none() {
            let given = text.as_deref().unwrap_or(node.what());
            findings.error(
                "bad-value",
                node.at,
                format!("`{name}` cannot be {}", shown(given)),
                Some(
                    did_you_mean(given, words.iter().copied())
                        .unwrap_or_else(|| format!("it is one of {}", words.join(", "))),
                ),
            );
        }
        at
    }

    /// A list of texts; one text alone is a list of one.
    pub(super) fn texts(&self, name: &'static str, findings: &mut Findings) -> Vec<Text> {
        let Some(node) = self.get(name) else {
            return Vec::new();
        };
        if let Some(text) = node.text() {
            return vec![text];
        }
        let mut texts = Vec::new();
        for item in self.list(name, findings) {
            match item.text() {
                Some(text) => texts.push(text),
                None => findings.error(
                    "wrong-type",
                    item.at,
                    format!("`{name}` is a list of texts, and this is {}", item.what()),
                    None,
                ),
            }
        }
        texts
    }

    pub(super) fn strings(&self, name: &'static str, findings: &mut Findings) -> Vec<String> {
        let texts = self.texts(name, findings);
        texts.into_iter().map(|text| text.text).collect()
    }

    pub(super) fn list(&self, name: &'static str, findings: &mut Findings) -> &'n [Node] {
        match self.get(name) {
            Some(Node {
                kind: Kind::List(items),
                ..
            }) => items,
            Some(node) => {
                unfit(name, node, "a list", findings);
                &[]
            }
            None => &[],
        }
    }

    pub(super) fn map(&self, name: &'static str, findings: &mut Findings) -> &'n [(Text, Node)] {
        match self.get(name) {
            Some(Node {
                kind: Kind::Map(entries),
                ..
            }) => entries,
            Some(node) => {
                unfit(name, node, "a map", findings);
                &[]
            }
            None => &[],
        }
    }

    pub(super) fn json_map(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> serde_json::Map<String, Value> {
        let entries = self.map(name, findings);
        entries
            .iter()
            .map(|(key, node)| (key.text.clone(), node.json()))
            .collect()
    }

    pub(super) fn text_map(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        for (key, node) in self.map(name, findings) {
            match (node.text(), &node.kind) {
                (Some(text), _) => {
                    map.insert(key.text.clone(), text.text);
                }
                (None, Kind::Null) => {
                    map.insert(key.text.clone(), String::new());
                }
                _ => findings.error(
                    "wrong-type",
                    node.at,
                    format!("`{name}.{}` must be a text, not {}", key.text, node.what()),
                    None,
                ),
            }
        }
        map
    }
}

pub(super) fn whole<T: TryFrom<i64>>(
    node: &Node,
    name: &str,
    least: i64,
    most: i64,
    findings: &mut Findings,
) -> Option<T> {
    let number = node.text().and_then(|text| {
        let plain = text.text.replace('_', "");
        let json = match &node.kind {
            Kind::Scalar(value, _) => value.as_i64(),
            _ => None,
        };
        json.or_else(|| plain.parse::<i64>().ok())
    });
    let Some(number) = number else {
        let what = match node.text() {
            Some(text) if !matches!(node.kind, Kind::Scalar(Value::Bool(_), _)) => {
                shown(&text.text)
            }
            _ => node.what().to_owned(),
        };
        findings.error(
            "wrong-type",
            node.at,
            format!("`{name}` must be a whole number, not {what}"),
            None,
        );
        return None;
    };
    let fits = (least..=most).contains(&number);
    let value = T::try_from(number).ok().filter(|_| fits);
    if value.is_none() {
        let range = if most >= i64::from(u32::MAX) {
            format!("at least {least}")
        } else {
            format!("from {least} to {most}")
        };
        findings.error(
            "out-of-range",
            node.at,
            format!("`{name}` must be {range}, not {number}"),
            None,
        );
    }
    value
}

/// A text of the file in a message: no longer than a line holds.
pub(super) fn shown(text: &str) -> String {
    if text.chars().count() > 60 {
        let begin: String = text.chars().take(57).collect();
        return format!("{begin}…");
    }
    text.to_owned()
}

fn unfit(name: &str, node: &Node, must: &str, findings: &mut Findings) {
    findings.error(
        "wrong-type",
        node.at,
        format!("`{name}` must be {must}, not {}", node.what()),
        None,
    );
}
