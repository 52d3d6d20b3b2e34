//! Workflow files, and the templates and expressions in them.

use std::path::Path;

use quipu_flow::definition::check::check;
use quipu_flow::definition::graph::{Format, render};
use quipu_flow::definition::load::parse;
use quipu_flow::definition::places::Places;
use quipu_flow::definition::plan::plan;
use quipu_flow::definition::{At, Severity, Text};
use quipu_flow::expression::{Expression, number};
use quipu_flow::template::{Template, Variables};
use serde_json::{Value, json};

/// Reads a file, checks it, draws it and plans a run of it.
pub fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // A place without files: nothing of this machine is read.
    let places = Places::from_lookup(Path::new("/nonexistent"), |_| None);
    let name = Path::new("w.yaml");
    match parse(text, name, &places) {
        Ok(loaded) => {
            for found in check(&loaded.workflow, &places) {
                placed(text, found.at);
            }
            for format in [Format::Mermaid, Format::Dot, Format::Svg, Format::Text] {
                assert!(!render(&loaded.workflow, format).is_empty());
            }
            assert!(!plan(&loaded.workflow, &Default::default()).to_string().is_empty());
        }
        Err(found) => {
            assert!(found.0.iter().any(|found| found.severity == Severity::Error));
            for found in &found.0 {
                placed(text, found.at);
                // A finding is one line, and its hint another.
                assert!(found.to_string().lines().count() <= 2);
            }
        }
    }
}

/// A place is a line of the file, or the end of it.
fn placed(text: &str, at: At) {
    let lines = text.lines().count() + 2;
    assert!((at.line as usize) <= lines, "line {} of {lines}", at.line);
}

struct Known(Value);

impl Variables for Known {
    fn value(&self, path: &[&str]) -> Option<Value> {
        path.iter()
            .try_fold(&self.0, |value, name| value.get(*name))
            .cloned()
    }
}

fn known() -> Known {
    Known(json!({
        "inputs": {"a": "1", "list": ["x", "y"], "map": {"k": 1.5}, "none": null},
        "states": {"s": {"Output": "text", "ExitCode": 0}},
        "loop": {"Index": 1},
    }))
}

/// Reads a template and fills it in.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // A file of this machine could be read by its name.
    if text.contains("readFile") {
        return;
    }
    let text = Text {
        text: text.to_owned(),
        at: At { line: 1, column: 1 },
    };
    let Ok(template) = Template::parse(&text) else {
        return;
    };
    template.references();
    let filled = template.render(&known());
    let worked_out = template.eval(&known());
    assert_eq!(filled.is_ok(), worked_out.is_ok());
    if !text.text.contains("{{") {
        assert_eq!(filled.as_deref(), Ok(text.text.as_str()));
    }
    number(&text, &known()).ok();
}

/// Reads an expression and works it out.
pub fn expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(expression) = Expression::parse(&Text::new(text)) {
        expression.references();
        expression.eval_bool(&known()).ok();
    }
}
