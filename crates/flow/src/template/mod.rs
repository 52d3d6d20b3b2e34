//! Templates: texts of a workflow file with `{{…}}` in them.
//!
//! The language is that of Go's text templates, as far as workflow files use it: paths, pipes, calls, variables,
//! `if`, `range` and `with`. It is evaluated here, and not by a crate, because every error must name its place in the
//! workflow file, an undefined name must be an error, and depth, output and iterations must have limits.

use serde_json::Value;

use crate::definition::{At, Text};

mod functions;
mod lex;
mod parse;
mod print;
mod run;

#[cfg(test)]
mod tests;

pub use functions::NAMES as FUNCTIONS;
pub use parse::Reference;

/// The values that templates and expressions can name.
pub trait Variables {
    /// The value at a path such as `["states", "build", "Output"]`; `None` when it is not defined. The first part is
    /// one of `inputs`, `states`, `workflow`, `env`, `context`, `loop`, `error`, `awf`. A path of one part gives all
    /// of it as an object.
    fn value(&self, path: &[&str]) -> Option<Value>;
}

/// The names that a path may begin with.
pub const ROOTS: [&str; 8] = [
    "inputs", "states", "workflow", "env", "context", "loop", "error", "awf",
];

/// The most bytes that one template may give.
const MOST_OUTPUT: usize = 64 << 20;

/// The most iterations of all `range` of one template.
const MOST_ITERATIONS: usize = 1_000_000;

/// How deep blocks and parentheses may be nested.
const MOST_DEPTH: usize = 64;

/// What is wrong with a template, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// The place in the workflow file.
    pub at: At,
    /// What may help.
    pub hint: Option<String>,
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.at.line > 0 {
            write!(f, "line {}, column {}: ", self.at.line, self.at.column)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TemplateError {}

/// A template that has been read.
#[derive(Debug, Clone)]
pub struct Template {
    text: Text,
    nodes: Vec<parse::Node>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// When it is not one.
    pub fn parse(text: &Text) -> Result<Self, TemplateError> {
        let nodes = parse::parse(&text.text).map_err(|error| error.placed(text))?;
        Ok(Self {
            text: text.clone(),
            nodes,
        })
    }

    /// Fills it in.
    ///
    /// # Errors
    ///
    /// When it names something that is not defined, a function fails, or a limit is reached.
    pub fn render(&self, variables: &dyn Variables) -> Result<String, TemplateError> {
        run::render(&self.nodes, variables).map_err(|error| error.placed(&self.text))
    }

    /// Works it out: a template that is one single action gives its value, any other its text.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render).
    pub fn eval(&self, variables: &dyn Variables) -> Result<Value, TemplateError> {
        run::eval(&self.nodes, variables).map_err(|error| error.placed(&self.text))
    }

    /// The paths that it names, each with its place. Paths inside `range` and `with` that begin at the item, not at
    /// the variables, are left out.
    pub fn references(&self) -> Vec<(Reference, At)> {
        let mut found = Vec::new();
        parse::references(&self.nodes, true, &mut found);
        found
            .into_iter()
            .map(|(reference, offset)| (reference, place(&self.text, offset)))
            .collect()
    }
}

/// Fills a template in. A text without `{{` is given back as it is.
///
/// # Errors
///
/// As [`Template::parse`] and [`Template::render`].
pub fn render(text: &Text, variables: &dyn Variables) -> Result<String, TemplateError> {
    if text.text.contains("{{") {
        Template::parse(text)?.render(variables)
    } else {
        Ok(text.text.clone())
    }
}

/// Fills in every text inside a JSON value. A text that is one single action becomes its value, with its type.
///
/// # Errors
///
/// As [`render`].
pub fn fill(value: &Value, variables: &dyn Variables) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) if text.contains("{{") => {
            Template::parse(&Text::new(text.as_str()))?.eval(variables)?
        }
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| fill(item, variables))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| Ok((key.clone(), fill(value, variables)?)))
                .collect::<Result<_, TemplateError>>()?,
        ),
        other => other.clone(),
    })
}

/// Fills in the actions of a template that name something below `root`, and leaves the others as they are in the
/// source. An action that is nothing but such a name becomes its value; elsewhere the name becomes a literal.
///
/// # Errors
///
/// As [`render`].
pub(crate) fn fill_root(
    text: &Text,
    root: &str,
    variables: &dyn Variables,
) -> Result<Value, TemplateError> {
    run::fill_root(&text.text, root, variables).map_err(|error| error.placed(text))
}

/// Fills in what is known: an action that names something undefined stays as it is in the source. A template with
/// blocks is filled in whole or not at all.
pub(crate) fn fill_known(text: &Text, variables: &dyn Variables) -> String {
    if !text.text.contains("{{") {
        return text.text.clone();
    }
    if let Ok(filled) = render(text, variables) {
        return filled;
    }
    run::fill_known(&text.text, variables).unwrap_or_else(|| text.text.clone())
}

/// How a value reads where a template prints it.
pub fn printed(value: &Value) -> String {
    print::printed(value)
}

/// An error before it is known where in the file its template begins.
#[derive(Debug)]
struct Fault {
    message: String,
    offset: usize,
    hint: Option<String>,
}

impl Fault {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            offset,
            hint: None,
        }
    }

    fn placed(self, text: &Text) -> TemplateError {
        TemplateError {
            message: self.message,
            at: place(text, self.offset),
            hint: self.hint,
        }
    }
}

/// The place in the file of an offset into a text. Lines of a block begin at the same column; for a text that was
/// folded from several lines the place is as near as its line breaks tell.
pub(crate) fn place(text: &Text, offset: usize) -> At {
    if text.at.line == 0 {
        return At::default();
    }
    let before = text.text.get(..offset).unwrap_or(&text.text);
    let (lines, rest) = match before.rfind('\n') {
        Some(end) => (before.matches('\n').count(), &before[end + 1..]),
        None => (0, before),
    };
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    At {
        line: text.at.line.saturating_add(number(lines)),
        column: text.at.column.saturating_add(number(rest.chars().count())),
    }
}
