//! Expressions: the conditions of a workflow file.
//!
//! The language is expr, by the crate expr-lang. Only the values that an expression names are looked up, so that a
//! condition costs the same after a thousand steps as after one.

use std::sync::LazyLock;

use expr::{Context, Environment};
use serde_json::Value;

use crate::definition::{At, Text};
use crate::template::{TemplateError, Variables, place, render};

mod arithmetic;
mod scan;

#[cfg(test)]
mod tests;

pub use scan::Name;

/// The longest expression.
const MOST_BYTES: usize = 16 << 10;

/// The longest text that `repeat` gives.
const MOST_REPEATED: usize = 1 << 20;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// The place in the workflow file.
    pub at: At,
    /// What may help.
    pub hint: Option<String>,
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { message, at, hint } = self.clone();
        std::fmt::Display::fmt(&TemplateError { message, at, hint }, f)
    }
}

impl std::error::Error for ExpressionError {}

impl From<TemplateError> for ExpressionError {
    fn from(error: TemplateError) -> Self {
        Self {
            message: error.message,
            at: error.at,
            hint: error.hint,
        }
    }
}

fn fault(text: &Text, offset: usize, message: impl Into<String>) -> ExpressionError {
    ExpressionError {
        message: message.into(),
        at: place(text, offset),
        hint: None,
    }
}

/// An expression that has been read.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Text,
    program: expr::Program,
    names: Vec<Name>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// When it is not one, or it is too long or nested too deep.
    pub fn parse(text: &Text) -> Result<Self, ExpressionError> {
        let source = &text.text;
        if source.contains("{{") {
            let mut error = fault(
                text,
                source.find("{{").unwrap_or_default(),
                "an expression, not a template, belongs here",
            );
            error.hint = Some("write inputs.x, without {{ and }}".to_owned());
            return Err(error);
        }
        if source.len() > MOST_BYTES {
            let message = format!("the expression is longer than {} KiB", MOST_BYTES >> 10);
            return Err(fault(text, 0, message));
        }
        let names = scan::names(source).map_err(|(at, message)| fault(text, at, message))?;
        let program = expr::compile(source).map_err(|error| {
            let (offset, message) = unparsed(source, &error.to_string());
            fault(text, offset, message)
        })?;
        Ok(Self {
            text: text.clone(),
            program,
            names,
        })
    }

    /// The paths that it names, each with its place.
    pub fn references(&self) -> Vec<(&[String], At)> {
        self.names
            .iter()
            .map(|name| (name.path.as_slice(), place(&self.text, name.at)))
            .collect()
    }

    /// Whether it holds. A comparison with an input, variable of the environment or step that does not exist is
    /// false.
    ///
    /// # Errors
    ///
    /// When its result is not true or false, or it cannot be worked out.
    pub fn eval_bool(&self, variables: &dyn Variables) -> Result<bool, ExpressionError> {
        let mut known = Vec::new();
        let mut missing = Vec::new();
        for name in &self.names {
            let path: Vec<&str> = name.path.iter().map(String::as_str).collect();
            match look_up(variables, &path) {
                Some(value) => known.push((name, value)),
                None => missing.push(name),
            }
        }
        let outcome = self.run(&known, &missing, &expr::Value::Nil);
        if missing.is_empty() {
            return outcome.map_err(|message| fault(&self.text, 0, message));
        }
        if let Ok(holds) = outcome {
            return Ok(holds);
        }
        if let Some(name) = missing
            .iter()
            .find(|name| !matches!(name.path[0].as_str(), "inputs" | "env" | "states"))
        {
            let message = format!("undefined variable: {}", name.path.join("."));
            return Err(fault(&self.text, name.at, message));
        }
        // The language refuses most operations on nil. Other values, each of which makes a comparison of its kind
        // false, are put in its place.
        let stand_ins = [
            expr::Value::Bool(false),
            expr::Value::Float(f64::NAN),
            expr::Value::String("\u{ffff}".to_owned()),
        ];
        Ok(stand_ins
            .iter()
            .find_map(|value| self.run(&known, &missing, value).ok())
            .unwrap_or(false))
    }

    fn run(
        &self,
        known: &[(&Name, Value)],
        missing: &[&Name],
        stand_in: &expr::Value,
    ) -> Result<bool, String> {
        let mut roots = expr_map();
        for (name, value) in known {
            let coerce = name.path[0] == "inputs";
            put(&mut roots, &name.path, converted(value, coerce, 0));
        }
        for name in missing {
            put(&mut roots, &name.path, stand_in.clone());
        }
        let context: Context = roots.into_iter().collect();
        match ENVIRONMENT.run(&self.program, &context) {
            Ok(expr::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!(
                "the result is {}, and true or false is needed",
                kind(&other)
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Works out a whole number: a template whose text is a number, or numbers with `+ - * / %` and parentheses.
///
/// # Errors
///
/// When the template fails, or its text is not that.
pub fn number(text: &Text, variables: &dyn Variables) -> Result<i64, ExpressionError> {
    let filled = render(text, variables)?;
    arithmetic::work_out(&filled).map_err(|message| {
        let shown: String = filled.chars().take(60).collect();
        fault(
            text,
            0,
            format!("{shown:?} is not a whole number: {message}"),
        )
    })
}

/// The value at a path. Variables need not look into values: the longest part that they know is walked here.
fn look_up(variables: &dyn Variables, path: &[&str]) -> Option<Value> {
    if let Some(value) = variables.value(path) {
        return Some(value);
    }
    (2..path.len()).rev().find_map(|known| {
        let mut value = variables.value(&path[..known])?;
        for name in &path[known..] {
            value = value.get_mut(*name)?.take();
        }
        Some(value)
    })
}

type Map = indexmap::IndexMap<String, expr::Value>;

fn expr_map() -> Map {
    Map::new()
}

/// Puts a value at a path. Where the path leads into a value that is there as a whole already, it has it.
fn put(map: &mut Map, path: &[String], value: expr::Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        // A part of it may have come before the whole.
        match (map.get_mut(first), value) {
            (Some(expr::Value::Map(old)), expr::Value::Map(new)) => {
                for (key, value) in new {
                    old.entry(key).or_insert(value);
                }
            }
            (_, value) => {
                map.insert(first.clone(), value);
            }
        }
        return;
    }
    let inner = map
        .entry(first.clone())
        .or_insert_with(|| expr::Value::Map(expr_map()));
    if let expr::Value::Map(inner) = inner {
        put(inner, rest, value);
    }
}

/// A value for the expression. Texts of inputs become booleans and numbers where they read as such, since inputs of the
/// command line are texts.
fn converted(value: &Value, coerce: bool, depth: usize) -> expr::Value {
    if depth > 100 {
        return expr::Value::Nil;
    }
    match value {
        Value::Null => expr::Value::Nil,
        Value::Bool(yes) => expr::Value::Bool(*yes),
        Value::Number(number) => match number.as_i64() {
            Some(number) => expr::Value::Integer(number),
            None => expr::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) if coerce => match text.as_str() {
            "true" => expr::Value::Bool(true),
            "false" => expr::Value::Bool(false),
            text => match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(number), _) => expr::Value::Integer(number),
                (_, Ok(number)) if text.starts_with(is_numeric) => expr::Value::Float(number),
                _ => expr::Value::String(text.to_owned()),
            },
        },
        Value::String(text) => expr::Value::String(text.clone()),
        Value::Array(items) => expr::Value::Array(
            items
                .iter()
                .map(|item| converted(item, false, depth + 1))
                .collect(),
        ),
        Value::Object(map) => expr::Value::Map(
            map.iter()
                .map(|(key, value)| {
                    (
                        key.clone(),
                        converted(value, coerce && depth == 0, depth + 1),
                    )
                })
                .collect(),
        ),
    }
}

fn is_numeric(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | '+' | '.')
}

fn kind(value: &expr::Value) -> &'static str {
    match value {
        expr::Value::Nil => "nil",
        expr::Value::Integer(_) | expr::Value::Float(_) => "a number",
        expr::Value::String(_) => "a text",
        expr::Value::Array(_) => "a list",
        _ => "another value",
    }
}

/// A condition on two texts.
type OfTexts = fn(&str, &str) -> bool;

/// The language's own functions, and awf's.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    let pairs: [(&str, OfTexts); 3] = [
        ("has_prefix", |text, part| text.starts_with(part)),
        ("has_suffix", |text, part| text.ends_with(part)),
        ("contains", |text, part| text.contains(part)),
    ];
    for (name, holds) in pairs {
        environment.add_function(name, move |call| match call.args.as_slice() {
            [expr::Value::String(text), expr::Value::String(part)] => Ok(holds(text, part).into()),
            [expr::Value::Array(items), item] if name == "contains" => {
                Ok(items.contains(item).into())
            }
            [expr::Value::Map(map), expr::Value::String(key)] if name == "contains" => {
                Ok(map.contains_key(key).into())
            }
            _ => Err(format!("{name} takes two texts").into()),
        });
    }
    environment.add_function("repeat", |call| match call.args.as_slice() {
        [expr::Value::String(text), expr::Value::Integer(times)] => {
            let times = usize::try_from(*times).unwrap_or(0);
            match text.len().checked_mul(times) {
                Some(bytes) if bytes <= MOST_REPEATED => Ok(text.repeat(times).into()),
                _ => Err("repeat: the text is too long".to_owned().into()),
            }
        }
        _ => Err("repeat takes a text and a whole number".to_owned().into()),
    });
    environment
});

/// Offset and message of an error that the parser gives as text: ` --> LINE:COLUMN`, and after `= ` what is wrong.
fn unparsed(source: &str, error: &str) -> (usize, String) {
    let place = error
        .split_once("--> ")
        .and_then(|(_, rest)| rest.split_once('\n'))
        .and_then(|(place, _)| place.trim().split_once(':'))
        .and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    let offset = place.map_or(0, |(line, column)| offset_of(source, line, column));
    let rest = source[offset..].chars().take(12).collect::<String>();
    let message = match (place, rest.trim()) {
        (None, _) => error
            .lines()
            .next()
            .unwrap_or("not an expression")
            .to_owned(),
        (_, "") => "the expression ends too early".to_owned(),
        (_, rest) => format!("not an expression from here: {rest:?}"),
    };
    (offset, message)
}

fn offset_of(source: &str, line: usize, column: usize) -> usize {
    let begin: usize = source
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = source.get(begin..).unwrap_or("");
    let within = rest
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(rest.len(), |(at, _)| at);
    (begin + within).min(source.len())
}
