//! The functions that templates can call.

use std::cmp::Ordering;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::{MOST_OUTPUT, Variables, print};

/// The most bytes that `readFile` reads.
const MOST_FILE: u64 = 1 << 20;

/// The names of the functions.
pub const NAMES: [&str; 21] = [
    "and",
    "eq",
    "escape",
    "ge",
    "gt",
    "index",
    "join",
    "json",
    "le",
    "len",
    "lt",
    "ne",
    "not",
    "or",
    "print",
    "printf",
    "println",
    "readFile",
    "slice",
    "split",
    "trimSpace",
];

pub(super) fn exists(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Whether a value counts as true: not null, false, zero or empty.
pub(super) fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Calls a function other than `and` and `or`.
pub(super) fn call(
    name: &str,
    arguments: &[Value],
    variables: &dyn Variables,
) -> Result<Value, String> {
    Ok(match (name, arguments) {
        ("escape", [value]) => Value::String(escape(&print::printed(value))),
        ("json", [value]) => Value::String(value.to_string()),
        ("trimSpace", [value]) => Value::String(print::printed(value).trim().to_owned()),
        ("split", [text, separator]) => split(text, separator),
        ("join", [items, separator]) => join(items, separator)?,
        ("readFile", [path]) => Value::String(read_file(&print::printed(path), variables)?),
        ("not", [value]) => Value::Bool(!truth(value)),
        ("len", [value]) => len(value)?,
        ("index", [value, keys @ ..]) => keys
            .iter()
            .try_fold(value.clone(), |value, key| index(&value, key))?,
        ("slice", [value, bounds @ ..]) if bounds.len() <= 3 => slice(value, bounds)?,
        ("eq", [first, others @ ..]) if !others.is_empty() => {
            let mut same = false;
            for other in others {
                same = same || equal(first, other)?;
            }
            Value::Bool(same)
        }
        ("ne", [a, b]) => Value::Bool(!equal(a, b)?),
        ("lt", [a, b]) => Value::Bool(order(a, b)? == Ordering::Less),
        ("le", [a, b]) => Value::Bool(order(a, b)? != Ordering::Greater),
        ("gt", [a, b]) => Value::Bool(order(a, b)? == Ordering::Greater),
        ("ge", [a, b]) => Value::Bool(order(a, b)? != Ordering::Less),
        ("print", values) => Value::String(print::print(values)),
        ("println", values) => Value::String(print::println(values)),
        ("printf", [Value::String(format), values @ ..]) => {
            Value::String(print::printf(format, values)?)
        }
        ("printf", _) => return Err("the first argument is the format, a text".to_owned()),
        (_, arguments) => return Err(wrong_count(name, arguments.len())),
    })
}

fn wrong_count(name: &str, given: usize) -> String {
    let needs = match name {
        "split" => "a text and a separator",
        "join" => "a list and a separator",
        "eq" => "two values or more",
        "ne" | "lt" | "le" | "gt" | "ge" => "two values",
        "index" => "a list or map, and an index or key",
        "slice" => "a text or list, and up to three bounds",
        "readFile" => "a path",
        _ => "one value",
    };
    format!("it takes {needs}; {given} were given")
}

/// A word for a POSIX shell: in single quotes when it has a character with a meaning of its own.
pub(super) fn escape(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%_-+=:,./".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn split(text: &Value, separator: &Value) -> Value {
    let (text, separator) = (print::printed(text), print::printed(separator));
    if text.trim().is_empty() {
        return Value::Array(Vec::new());
    }
    let parts: Vec<Value> = if separator.is_empty() {
        text.chars().map(|c| Value::String(c.to_string())).collect()
    } else {
        text.split(separator.as_str())
            .map(|part| Value::String(part.trim().to_owned()))
            .collect()
    };
    Value::Array(parts)
}

fn join(items: &Value, separator: &Value) -> Result<Value, String> {
    let Value::Array(items) = items else {
        return Err(format!(
            "the first argument is a list, not {}",
            print::kind(items)
        ));
    };
    let separator = print::printed(separator);
    let parts: Vec<String> = items.iter().map(print::printed).collect();
    let length: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    if length > MOST_OUTPUT {
        return Err("the text is too long".to_owned());
    }
    Ok(Value::String(parts.join(&separator)))
}

/// The text of a file. A path that is not absolute begins at the directory the workflow runs in.
fn read_file(path: &str, variables: &dyn Variables) -> Result<String, String> {
    let base = variables.value(&["context", "WorkingDir"]);
    let path = match base.as_ref().and_then(Value::as_str) {
        Some(base) => Path::new(base).join(path),
        None => Path::new(path).to_owned(),
    };
    let shown = path.display();
    let failed = |error: std::io::Error| format!("cannot read {shown}: {error}");
    let file = std::fs::File::open(&path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{shown} is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MOST_FILE {
        return Err(format!("{shown} is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8 text"))
}

fn len(value: &Value) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => text.len().into(),
        Value::Array(items) => items.len().into(),
        Value::Object(map) => map.len().into(),
        other => return Err(format!("{} has no length", print::kind(other))),
    })
}

fn index(value: &Value, key: &Value) -> Result<Value, String> {
    match (value, key) {
        (Value::Object(map), Value::String(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Object(_), _) => Err(format!("a map is indexed by a text, not by {key}")),
        (Value::Array(items), key) => {
            let at = whole(key)?;
            items
                .get(at)
                .cloned()
                .ok_or_else(|| format!("{at} is not in a list of {}", items.len()))
        }
        (Value::String(text), key) => {
            let at = whole(key)?;
            let byte = text.as_bytes().get(at);
            byte.map(|byte| Value::from(*byte))
                .ok_or_else(|| format!("{at} is not in a text of {} bytes", text.len()))
        }
        (other, _) => Err(format!("{} has no items", print::kind(other))),
    }
}

fn whole(key: &Value) -> Result<usize, String> {
    key.as_u64()
        .and_then(|at| usize::try_from(at).ok())
        .ok_or_else(|| format!("an index is a whole number from 0, not {key}"))
}

fn slice(value: &Value, bounds: &[Value]) -> Result<Value, String> {
    let length = match value {
        Value::String(text) if bounds.len() <= 2 => text.len(),
        Value::Array(items) => items.len(),
        other => return Err(format!("{} cannot be cut so", print::kind(other))),
    };
    let mut ends = [0, length, length];
    for (end, bound) in ends.iter_mut().zip(bounds) {
        *end = whole(bound)?;
    }
    let [from, to, most] = ends;
    if !(from <= to && to <= most && most <= length) {
        return Err(format!("{from} to {to} is not within 0 to {length}"));
    }
    match value {
        Value::String(text) => text
            .get(from..to)
            .map(|part| Value::String(part.to_owned()))
            .ok_or_else(|| format!("{from} to {to} cuts a character in two")),
        Value::Array(items) => Ok(Value::Array(items[from..to].to_vec())),
        _ => Ok(Value::Null),
    }
}

fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Ok(a == b),
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
            Err("lists and maps cannot be compared".to_owned())
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        _ => Ok(order(a, b)? == Ordering::Equal),
    }
}

fn order(a: &Value, b: &Value) -> Result<Ordering, String> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Ok(a.cmp(&b)),
            _ => a
                .as_f64()
                .zip(b.as_f64())
                .and_then(|(a, b)| a.partial_cmp(&b))
                .ok_or_else(|| "these numbers cannot be compared".to_owned()),
        },
        _ => Err(format!(
            "{} and {} cannot be compared",
            print::kind(a),
            print::kind(b)
        )),
    }
}
