//! JSON objects, put together as text.
//!
//! Payloads are mostly values that are kept as text already. Making trees of them to write them out
//! again would cost time and change numbers.

use quipu_model::Json;

/// An object that is being written.
#[derive(Debug, Clone)]
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A field whose value is JSON already.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(Json::string(key).get());
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    pub(super) fn text(self, key: &str, text: &str) -> Self {
        self.raw(key, Json::string(text).get())
    }

    pub(super) fn number(self, key: &str, number: impl std::fmt::Display) -> Self {
        self.raw(key, &number.to_string())
    }

    pub(super) fn flag(self, key: &str, value: bool) -> Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// A field that is only there when there is something in it.
    pub(super) fn text_if(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    pub(super) fn number_if(self, key: &str, number: Option<impl std::fmt::Display>) -> Self {
        match number {
            Some(number) => self.number(key, number),
            None => self,
        }
    }

    pub(super) fn flag_if(self, key: &str, value: bool) -> Self {
        if value { self.flag(key, true) } else { self }
    }

    /// The fields of another behind those of this one.
    pub(super) fn and(mut self, other: &Self) -> Self {
        if self.0.len() > 1 && other.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&other.0[1..]);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// A list of values that are JSON already.
pub(super) fn list<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::from("[");
    for value in values {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(value);
    }
    text.push(']');
    text
}

/// Whether a JSON text is an object.
pub(super) fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{')
}

/// Whether a JSON text is a string.
pub(super) fn is_string(json: &str) -> bool {
    json.trim_start().starts_with('"')
}
