//! `json.*`: reading and changing values.
//!
//! A path is a JSON Pointer (`/items/0/name`) or names with dots (`items.0.name`, `items[0].name`).

use serde_json::{Map, Value};

use super::OperationError;
use super::builtin::{Done, failed, response};
use super::inputs::{Inputs, text};

/// How deep values may be put into values, and merged.
const MAX_DEPTH: usize = 100;

pub(super) fn run(operation: &str, inputs: Inputs<'_>) -> Done {
    let value = |name| inputs.value(name).cloned().unwrap_or(Value::Null);
    match operation {
        "parse" => Ok(response([("value", parse(&inputs.text("text"))?)])),
        "get" => {
            let whole = json_of(&value("value"))?;
            let found = at(&whole, &parts(&inputs.text("path"))?);
            let is_there = found.is_some();
            let found = found.cloned().unwrap_or_else(|| value("default"));
            Ok(response([("value", found), ("found", is_there.into())]))
        }
        "set" => {
            let mut whole = json_of(&value("value"))?;
            let path = parts(&inputs.text("path"))?;
            set(&mut whole, &path, value("to"))?;
            Ok(response([("value", whole)]))
        }
        _ => {
            let mut all = Value::Object(Map::new());
            for next in inputs.list("values").unwrap_or_default() {
                merge(&mut all, json_of(&next)?, 0)?;
            }
            Ok(response([("value", all)]))
        }
    }
}

fn parse(text: &str) -> Result<Value, OperationError> {
    serde_json::from_str(text).map_err(|error| failed(format!("not JSON: {error}")))
}

/// A value; text that came from a template is read as JSON where it is an object or a list.
fn json_of(value: &Value) -> Result<Value, OperationError> {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => parse(text),
        other => Ok(other.clone()),
    }
}

/// The parts of a path.
fn parts(path: &str) -> Result<Vec<String>, OperationError> {
    let parts: Vec<String> = if path.is_empty() {
        Vec::new()
    } else if let Some(pointer) = path.strip_prefix('/') {
        let parts = pointer.split('/');
        parts
            .map(|it| it.replace("~1", "/").replace("~0", "~"))
            .collect()
    } else {
        let dotted = path.replace('[', ".").replace(']', "");
        dotted.split('.').map(str::to_owned).collect()
    };
    if parts.len() > MAX_DEPTH {
        return Err(failed(format!("{path:?} has more than {MAX_DEPTH} parts")));
    }
    Ok(parts)
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(all) => all.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Puts a value at a path. Objects that are missing on the way are made; a list takes a new value at its end.
fn set(value: &mut Value, path: &[String], to: Value) -> Result<(), OperationError> {
    let Some((part, rest)) = path.split_first() else {
        *value = to;
        return Ok(());
    };
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => {
            let next = map.entry(part.clone()).or_insert(Value::Null);
            set(next, rest, to)
        }
        Value::Array(all) => {
            let length = all.len();
            let index = if part == "-" {
                Some(length)
            } else {
                part.parse().ok().filter(|it| *it <= length)
            };
            let index = index
                .ok_or_else(|| failed(format!("{part:?} is not a place in a list of {length}")))?;
            if index == length {
                all.push(Value::Null);
            }
            set(&mut all[index], rest, to)
        }
        other => Err(failed(format!("{part:?} cannot be set in {}", text(other)))),
    }
}

/// Puts the names of one object over those of another, also inside. Anything else is replaced.
fn merge(into: &mut Value, from: Value, depth: usize) -> Result<(), OperationError> {
    if depth > MAX_DEPTH {
        return Err(failed(format!(
            "more than {MAX_DEPTH} objects inside each other"
        )));
    }
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(&name) {
                    Some(old) => merge(old, value, depth + 1)?,
                    None => {
                        into.insert(name, value);
                    }
                }
            }
        }
        (into, from) => *into = from,
    }
    Ok(())
}
