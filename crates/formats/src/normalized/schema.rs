//! The published schema, and as much of JSON Schema as it needs.
//!
//! A document may be longer than memory is large, and a general validator wants all of it, as a tree. This
//! checks a value on a tape against a part of the schema. It knows the few keywords that the schema uses; a
//! test says that it uses no others, so that nothing is published that is not checked.

use std::fmt::Write as _;
use std::sync::LazyLock;

use quipu_model::json::{Kind, Node};
use serde_json::Value;

use super::SCHEMA;

/// The schema, read.
#[derive(Debug)]
pub(super) struct Schema(Value);

/// Keywords that say what a value must be.
#[cfg(test)]
pub(super) const CHECKED: &[&str] = &[
    "type",
    "enum",
    "minimum",
    "minLength",
    "pattern",
    "required",
    "properties",
    "items",
    "anyOf",
    "if",
    "then",
    "$ref",
];
/// Keywords that say something to people.
#[cfg(test)]
pub(super) const FOR_PEOPLE: &[&str] =
    &["$schema", "$id", "$defs", "title", "description", "format"];

/// The schema does not refer to itself, so that this is never reached.
const DEEPEST: usize = 16;

impl Schema {
    /// The published one.
    pub(super) fn published() -> &'static Self {
        static PUBLISHED: LazyLock<Schema> =
            LazyLock::new(|| Schema(serde_json::from_str(SCHEMA).expect("a test reads it")));
        &PUBLISHED
    }

    /// The fields that a document must have.
    pub(super) fn required(&self) -> impl Iterator<Item = &str> {
        let required = self.0["required"].as_array();
        required.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Checks a field of the document.
    pub(super) fn field(&self, key: &str, node: Node<'_>, found: &mut dyn FnMut(&str, String)) {
        if let Some(schema) = self.0["properties"].get(key) {
            self.check(schema, node, &mut key.to_owned(), 0, found);
        }
    }

    /// Checks an item of a list of the document.
    pub(super) fn item(&self, key: &str, node: Node<'_>, found: &mut dyn FnMut(&str, String)) {
        if let Some(schema) = self.0["properties"]
            .get(key)
            .and_then(|list| list.get("items"))
        {
            self.check(schema, node, &mut String::new(), 0, found);
        }
    }

    fn follow<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        while let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.strip_prefix("#/$defs/").unwrap_or(name);
            schema = &self.0["$defs"][name];
        }
        schema
    }

    fn fits(&self, schema: &Value, node: Node<'_>, depth: usize) -> bool {
        let mut fits = true;
        self.check(schema, node, &mut String::new(), depth, &mut |_, _| {
            fits = false;
        });
        fits
    }

    fn check(
        &self,
        schema: &Value,
        node: Node<'_>,
        path: &mut String,
        depth: usize,
        found: &mut dyn FnMut(&str, String),
    ) {
        let schema = self.follow(schema);
        if depth > DEEPEST {
            return;
        }
        if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
            // One of them is `null`; what is wrong is said of the other.
            let first = any.iter().find(|one| one.get("type").is_none());
            if !any.iter().any(|one| self.fits(one, node, depth + 1)) {
                let one = first.or(any.first()).unwrap_or(&Value::Null);
                self.check(one, node, path, depth + 1, found);
            }
        }
        if let Some(problem) = wrong(schema, node) {
            return found(path, problem);
        }
        if node.kind() == Kind::Object {
            self.object(schema, node, path, depth, found);
        }
        if let Some(items) = schema.get("items") {
            for (index, item) in node.items().enumerate() {
                let len = path.len();
                _ = write!(path, "[{index}]");
                self.check(items, item, path, depth + 1, found);
                path.truncate(len);
            }
        }
        if let (Some(when), Some(then)) = (schema.get("if"), schema.get("then"))
            && self.fits(when, node, depth + 1)
        {
            self.check(then, node, path, depth + 1, found);
        }
    }

    fn object(
        &self,
        schema: &Value,
        node: Node<'_>,
        path: &mut String,
        depth: usize,
        found: &mut dyn FnMut(&str, String),
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if node.get(name).is_none() {
                found(path, format!("`{name}` is missing"));
            }
        }
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (key, value) in node.fields() {
            let key = key.to_text_lossy();
            if let Some(schema) = properties.get(&*key) {
                let len = path.len();
                if len > 0 {
                    path.push('.');
                }
                path.push_str(&key);
                self.check(schema, value, path, depth + 1, found);
                path.truncate(len);
            }
        }
    }
}

/// What is wrong with a value by itself, whatever is inside it.
fn wrong(schema: &Value, node: Node<'_>) -> Option<String> {
    if let Some(types) = schema.get("type") {
        let mut types = match types {
            Value::Array(types) => types.as_slice(),
            one => std::slice::from_ref(one),
        }
        .iter()
        .filter_map(Value::as_str);
        let wanted: Vec<&str> = types.by_ref().collect();
        if !wanted.iter().any(|wanted| is(node, wanted)) {
            return Some(format!(
                "should be {}, is {}",
                wanted.join(" or "),
                name(node)
            ));
        }
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let fits = |word: &Value| match word {
            Value::String(word) => node.is(word),
            _ => node.is_null(),
        };
        if !words.iter().any(fits) {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            return Some(format!("should be one of {}", words.join(", ")));
        }
    }
    if let (Some(least), Some(n)) = (schema.get("minimum").and_then(Value::as_f64), node.as_f64())
        && n < least
    {
        return Some(format!("should be at least {least}"));
    }
    let shortest = schema.get("minLength").and_then(Value::as_u64);
    if let (Some(shortest), Some(text)) = (shortest, node.as_str())
        && (text.chars().count() as u64) < shortest
    {
        return Some("should not be empty".to_owned());
    }
    // The patterns of the schema are beginnings of texts, with dots escaped.
    if let (Some(pattern), Some(text)) =
        (schema.get("pattern").and_then(Value::as_str), node.as_str())
    {
        let start = pattern.trim_start_matches('^').replace("\\.", ".");
        if !text.starts_with(&start) {
            return Some(format!("should begin with {start:?}"));
        }
    }
    None
}

fn is(node: Node<'_>, wanted: &str) -> bool {
    match wanted {
        "null" => node.is_null(),
        "boolean" => node.kind() == Kind::Bool,
        "string" => node.kind() == Kind::String,
        "array" => node.kind() == Kind::List,
        "object" => node.kind() == Kind::Object,
        "number" => node.kind() == Kind::Number,
        "integer" => {
            let text = node.raw().get();
            node.kind() == Kind::Number && !text.contains(['.', 'e', 'E'])
        }
        _ => false,
    }
}

fn name(node: Node<'_>) -> &'static str {
    match node.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::List => "an array",
        Kind::Object => "an object",
    }
}
