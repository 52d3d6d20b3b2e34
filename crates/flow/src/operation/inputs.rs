//! What operations are given: names, types, and how values are read.
//!
//! Inputs of a step are filled in from templates, so a number or a list often comes as text. It is read as what the
//! operation expects.

use std::time::Duration;

use serde_json::{Map, Value};

use super::OperationError;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputType {
    /// Text. Numbers and truth values are taken as they are written.
    Text,
    /// A whole number, or text that is one.
    Integer,
    /// Yes or no, or the text `true` or `false`.
    Boolean,
    /// Seconds, or text such as `500ms` or `2m`.
    Duration,
    /// Names with values, or their JSON as text.
    Object,
    /// A list, its JSON as text, or words with commas between them.
    List,
    /// Anything.
    Any,
}

impl InputType {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "a whole number",
            Self::Boolean => "true or false",
            Self::Duration => "a duration such as 30s or 500ms",
            Self::Object => "an object",
            Self::List => "a list",
            Self::Any => "a value",
        }
    }

    pub(crate) fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null),
            Self::Integer => integer(value).is_some(),
            Self::Boolean => boolean(value).is_some(),
            Self::Duration => duration(value).is_some(),
            Self::Object => object(value).is_some(),
            Self::List => list(value).is_some(),
            Self::Any => true,
        }
    }
}

/// An input of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputSpec {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: InputType,
    /// Whether the operation needs it.
    pub required: bool,
}

/// An input that an operation needs.
pub(super) const fn needed(name: &'static str, kind: InputType) -> InputSpec {
    InputSpec {
        name,
        kind,
        required: true,
    }
}

/// An input that may be left out.
pub(super) const fn optional(name: &'static str, kind: InputType) -> InputSpec {
    InputSpec {
        name,
        kind,
        required: false,
    }
}

/// Inputs that fit an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    given: &'a Map<String, Value>,
}

impl<'a> Inputs<'a> {
    /// Checks inputs; everything that is wrong is said at once. `null` is as if it was not given.
    pub(super) fn check(
        operation: &str,
        specs: &[InputSpec],
        given: &'a Map<String, Value>,
    ) -> Result<Self, OperationError> {
        let mut wrong = Vec::new();
        for (name, value) in given {
            let Some(spec) = specs.iter().find(|it| it.name == name) else {
                let mut text = format!("{name:?} is not an input of it");
                if let Some(like) = like(name, specs.iter().map(|it| it.name)) {
                    let hint = format!("; did you mean {like:?}?");
                    text.push_str(&hint);
                }
                wrong.push(text);
                continue;
            };
            if !value.is_null() && !spec.kind.takes(value) {
                wrong.push(format!("{name} must be {}", spec.kind.name()));
            }
        }
        for spec in specs.iter().filter(|it| it.required) {
            if given.get(spec.name).is_none_or(Value::is_null) {
                wrong.push(format!("{} is missing", spec.name));
            }
        }
        if wrong.is_empty() {
            return Ok(Self { given });
        }
        let names: Vec<_> = specs.iter().map(|it| it.name).collect();
        Err(OperationError::Inputs(format!(
            "{operation}: {} (it takes {})",
            wrong.join("; "),
            names.join(", ")
        )))
    }

    /// A value that was given.
    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.given.get(name).filter(|it| !it.is_null())
    }

    /// Text; empty where it was not given.
    pub(super) fn text(self, name: &str) -> String {
        self.value(name).map(text).unwrap_or_default()
    }

    /// Text that was given and is not empty.
    pub(super) fn some_text(self, name: &str) -> Option<String> {
        self.value(name).map(text).filter(|it| !it.is_empty())
    }

    pub(super) fn integer(self, name: &str) -> Option<i64> {
        self.value(name).and_then(integer)
    }

    pub(super) fn boolean(self, name: &str) -> Option<bool> {
        self.value(name).and_then(boolean)
    }

    pub(super) fn duration(self, name: &str) -> Option<Duration> {
        self.value(name).and_then(duration)
    }

    pub(super) fn object(self, name: &str) -> Option<Map<String, Value>> {
        self.value(name).and_then(object)
    }

    pub(super) fn list(self, name: &str) -> Option<Vec<Value>> {
        self.value(name).and_then(list)
    }
}

/// A value as text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(it) => Some(*it),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn duration(value: &Value) -> Option<Duration> {
    let seconds = |it: f64| Duration::try_from_secs_f64(it).ok();
    match value {
        Value::Number(number) => seconds(number.as_f64()?),
        Value::String(text) => {
            let text = text.trim();
            if let Ok(number) = text.parse() {
                return seconds(number);
            }
            let parsed: jiff::SignedDuration = text.parse().ok()?;
            parsed.try_into().ok()
        }
        _ => None,
    }
}

fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(all) => Some(all.clone()),
        Value::String(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str(text).ok()
        }
        Value::String(text) => {
            let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
            Some(words.map(Value::from).collect())
        }
        _ => None,
    }
}

/// The name that is most like another, if any is.
pub(crate) fn like<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = |it: &str| strsim::normalized_damerau_levenshtein(it, name);
    let best = names.max_by(|a, b| near(a).total_cmp(&near(b)))?;
    (near(best) >= 0.6).then_some(best)
}
