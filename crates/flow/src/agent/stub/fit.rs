//! The smallest value that fits a JSON Schema.

use serde_json::{Map, Value, json};

/// How deep a schema is followed. Schemas can refer to themselves.
const DEEPEST: usize = 32;

/// A small value that fits.
///
/// # Errors
///
/// When none was found, which is not to say that there is none.
pub(super) fn value(schema: &Value) -> Result<Value, String> {
    let made = make(schema, schema, 0);
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| format!("the output schema is not a JSON Schema: {error}"))?;
    match validator.validate(&made) {
        Ok(()) => Ok(made),
        Err(error) => Err(format!(
            "no stub reply fits the output schema ({error}); give one in a script (--stub FILE)"
        )),
    }
}

fn make(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(rules) = schema.as_object() else {
        return json!({});
    };
    if depth > DEEPEST {
        return Value::Null;
    }
    for exact in ["const", "default"] {
        if let Some(value) = rules.get(exact) {
            return value.clone();
        }
    }
    for list in ["enum", "examples"] {
        if let Some(first) = rules.get(list).and_then(|list| list.get(0)) {
            return first.clone();
        }
    }
    if let Some(reference) = rules.get("$ref").and_then(Value::as_str) {
        let target = reference
            .strip_prefix('#')
            .and_then(|path| root.pointer(path));
        return target.map_or(Value::Null, |target| make(target, root, depth + 1));
    }
    let Some(kind) = kind(rules) else {
        return combined(rules, root, depth);
    };
    let mut made = match kind {
        "object" => object(rules, root, depth),
        "array" => array(rules, root, depth),
        "string" => string(rules),
        "integer" | "number" => number(rules, kind == "integer"),
        "boolean" => json!(false),
        _ => Value::Null,
    };
    // What else has to hold adds fields.
    merge_all(&mut made, rules, root, depth);
    made
}

/// The type that is made, where the schema says or tells by its other words.
fn kind(rules: &Map<String, Value>) -> Option<&str> {
    match rules.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        _ if rules.contains_key("properties") || rules.contains_key("required") => Some("object"),
        _ if rules.contains_key("items") => Some("array"),
        _ => None,
    }
}

fn combined(rules: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = rules.get(choice).and_then(|list| list.get(0)) {
            return make(first, root, depth + 1);
        }
    }
    let mut made = json!({});
    merge_all(&mut made, rules, root, depth);
    made
}

/// Adds what each part of `allOf` wants.
fn merge_all(made: &mut Value, rules: &Map<String, Value>, root: &Value, depth: usize) {
    let parts = rules.get("allOf").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        merge(made, make(part, root, depth + 1));
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

fn object(rules: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    let required = rules.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let nothing = json!({"type": "string"});
    let fields = names.map(|name| {
        let rule = rules.get("properties").and_then(|all| all.get(name));
        (
            name.to_owned(),
            make(rule.unwrap_or(&nothing), root, depth + 1),
        )
    });
    Value::Object(fields.collect())
}

fn array(rules: &Map<String, Value>, root: &Value, depth: usize) -> Value {
    let first = rules.get("prefixItems").and_then(Value::as_array);
    let mut items: Vec<Value> = first
        .into_iter()
        .flatten()
        .map(|rule| make(rule, root, depth + 1))
        .collect();
    let least = rules.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least).unwrap_or(usize::MAX).min(1000);
    let any = json!({"type": "string"});
    let rule = rules.get("items").unwrap_or(&any);
    while items.len() < least {
        items.push(make(rule, root, depth + 1));
    }
    Value::Array(items)
}

fn string(rules: &Map<String, Value>) -> Value {
    let format = rules.get("format").and_then(Value::as_str);
    let text = match format {
        Some("date-time") => "2000-01-01T00:00:00Z",
        Some("date") => "2000-01-01",
        Some("time") => "00:00:00Z",
        Some("email") => "stub@example.com",
        Some("uri") => "https://example.com/stub",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "[STUB]",
    };
    let mut text = text.to_owned();
    let count = |key: &str| rules.get(key).and_then(Value::as_u64);
    let count = |key: &str| count(key).and_then(|it| usize::try_from(it).ok());
    if let Some(least) = count("minLength") {
        let missing = least.min(1 << 16).saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('.', missing));
    }
    if let Some(most) = count("maxLength") {
        text = text.chars().take(most).collect();
    }
    json!(text)
}

fn number(rules: &Map<String, Value>, is_whole: bool) -> Value {
    let bound = |key: &str| rules.get(key).and_then(Value::as_f64);
    let (least, above) = (bound("minimum"), bound("exclusiveMinimum"));
    let (most, below) = (bound("maximum"), bound("exclusiveMaximum"));
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let mut number: f64 = 0.0;
    if let Some(least) = least {
        number = number.max(least);
    }
    if let Some(above) = above
        && number <= above
    {
        number = above + if is_whole { 1.0 } else { 0.5 };
    }
    if let Some(most) = most {
        number = number.min(most);
    }
    if let Some(below) = below
        && number >= below
    {
        number = below - if is_whole { 1.0 } else { 0.5 };
    }
    if let Some(step) = step {
        number = (number / step).ceil() * step;
    }
    if is_whole || number.fract() == 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "numbers beyond the range of i64 become its ends, and are then found not to fit"
        )]
        return json!(number.ceil() as i64);
    }
    json!(number)
}
