//! The options of a step, read one by one.

use serde_json::{Map, Value};

/// The options of a step. Every message names the option.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Options<'a> {
    /// An option that is set; null is not.
    fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn has(self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// A text. Numbers and booleans are taken as they are written; an empty text is none.
    pub(super) fn text(self, key: &str) -> Result<Option<String>, String> {
        let text = match self.get(key) {
            None => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
            Some(other) => return Err(wants(key, "a text", other)),
        };
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// A text that is put on a command line by itself, so it cannot look like an option.
    pub(super) fn value(self, key: &str) -> Result<Option<String>, String> {
        match self.text(key)? {
            Some(text) if text.starts_with('-') => Err(format!(
                "options.{key} is {text:?}; it cannot begin with a dash, the agent would take it for an option"
            )),
            text => Ok(text),
        }
    }

    /// One of some words.
    pub(super) fn word(self, key: &str, words: &[&str]) -> Result<Option<String>, String> {
        match self.text(key)? {
            Some(text) if !words.contains(&text.as_str()) => Err(format!(
                "options.{key} is {text:?}; it can be {}",
                words.join(", ")
            )),
            text => Ok(text),
        }
    }

    pub(super) fn flag(self, key: &str) -> Result<bool, String> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" || text.is_empty() => Ok(false),
            Some(other) => Err(wants(key, "true or false", other)),
        }
    }

    /// Texts: a list, or one text with commas.
    pub(super) fn list(self, key: &str) -> Result<Vec<String>, String> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(text
                .split(',')
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    other => Err(wants(key, "a list of texts", other)),
                })
                .collect(),
            Some(other) => Err(wants(key, "a list of texts", other)),
        }
    }

    /// A number within bounds.
    pub(super) fn number(self, key: &str, least: f64, most: f64) -> Result<Option<f64>, String> {
        let number = match self.get(key) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ if most.is_finite() => Err(format!(
                "options.{key} is {}; it has to be a number from {least} to {most}",
                shown(self.get(key))
            )),
            _ => Err(format!(
                "options.{key} is {}; it has to be a number of at least {least}",
                shown(self.get(key))
            )),
        }
    }

    /// A whole number of at least 1.
    pub(super) fn count(self, key: &str) -> Result<Option<u64>, String> {
        let count = match self.get(key) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        match count {
            Some(count) if count > 0 => Ok(Some(count)),
            _ => Err(format!(
                "options.{key} is {}; it has to be a whole number of at least 1",
                shown(self.get(key))
            )),
        }
    }
}

fn wants(key: &str, what: &str, got: &Value) -> String {
    format!("options.{key} has to be {what}, not {}", shown(Some(got)))
}

/// The beginning of a value, for a message.
fn shown(value: Option<&Value>) -> String {
    let text = value.map(Value::to_string).unwrap_or_default();
    text.chars().take(60).collect()
}
