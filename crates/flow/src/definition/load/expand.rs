//! Steps that are made from a step template.

use std::path::PathBuf;

use serde_json::{Map, Value};
use sha2::Digest as _;

use super::super::keys;
use super::super::node::{Kind, Node};
use super::super::{At, Text};
use super::fields::Fields;
use super::{Findings, Loader, read, shown};
use crate::names::did_you_mean;
use crate::template::{Variables, fill_root};

/// The values of the parameters.
struct Parameters(Map<String, Value>);

impl Variables for Parameters {
    fn value(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["parameters"] => Some(Value::Object(self.0.clone())),
            ["parameters", name, rest @ ..] => rest
                .iter()
                .try_fold(self.0.get(*name)?, |value, name| value.get(*name))
                .cloned(),
            _ => None,
        }
    }
}

impl Loader<'_> {
    /// The fields of a step: its own, and those of its template that it does not have itself.
    pub(super) fn expanded(&mut self, node: &Node) -> Option<Node> {
        self.expand(node, &mut Vec::new())
    }

    fn expand(&mut self, node: &Node, used: &mut Vec<PathBuf>) -> Option<Node> {
        let Some(name) = node.get("use_template") else {
            return Some(node.clone());
        };
        let at = name.at;
        let Some(name) = name.text() else {
            self.findings.error(
                "wrong-type",
                at,
                format!("`use_template` must be a name, not {}", name.what()),
                None,
            );
            return None;
        };
        let Some(path) = self.places.step_template(&name.text, self.pack.as_deref()) else {
            let known = self.places.step_templates(self.pack.as_deref());
            let hint =
                did_you_mean(&name.text, known.iter().map(String::as_str)).unwrap_or_else(|| {
                    "templates are looked for in .quipu/templates and .awf/templates".to_owned()
                });
            self.findings.error(
                "missing-template",
                at,
                format!("there is no step template {}", shown(&name.text)),
                hint,
            );
            return None;
        };
        if used.contains(&path) {
            self.findings.error(
                "template-cycle",
                at,
                format!("the step template {} uses itself", shown(&name.text)),
                None,
            );
            return None;
        }
        used.push(path.clone());
        let given = node.get("parameters").map(Node::json);
        let given = match given {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        let mut template = self.template_step(&path, &name, given, at)?;
        template.moved_to(at);
        let template = self.expand(&template, used)?;
        Some(merged(node, template))
    }

    /// The step of a template file with its parameters filled in.
    fn template_step(
        &mut self,
        path: &PathBuf,
        name: &Text,
        given: Map<String, Value>,
        at: At,
    ) -> Option<Node> {
        let shown_path = path.display();
        let text = match read(path) {
            Ok(text) => text,
            Err(why) => {
                let message = format!("the step template {shown_path} {why}");
                self.findings.error("unreadable", at, message, None);
                return None;
            }
        };
        if !self.digested.contains(path) {
            self.digest.update(text.as_bytes());
            self.digested.push(path.clone());
        }
        let root = match Node::parse(&text) {
            Ok(root) => root,
            Err(broken) => {
                let (line, column, why) = (broken.at.line, broken.at.column, broken.message);
                let message = format!("the step template {shown_path}:{line}:{column}: {why}");
                self.findings.error("yaml", at, message, None);
                return None;
            }
        };
        // Findings of the template's own file name that file.
        let mut inner = Findings::new(path.clone());
        let step = read_template(&root, &mut inner);
        self.findings.found.append(&mut inner.found);
        let (declared, mut step) = step?;
        let values = self.parameters(&declared, given, name, at);
        fill(&mut step, &Parameters(values), &mut |message| {
            let message = format!("in the step template {}: {message}", shown(&name.text));
            self.findings.error("template", at, message, None);
        });
        Some(step)
    }

    fn parameters(
        &mut self,
        declared: &[Parameter],
        mut given: Map<String, Value>,
        name: &Text,
        at: At,
    ) -> Map<String, Value> {
        let mut values = Map::new();
        for parameter in declared {
            let value = given.remove(&parameter.name);
            match (value, &parameter.default) {
                (Some(value), _) => {
                    values.insert(parameter.name.clone(), value);
                }
                (None, Some(default)) => {
                    values.insert(parameter.name.clone(), default.clone());
                }
                (None, None) if parameter.required => self.findings.error(
                    "missing-parameter",
                    at,
                    format!(
                        "the step template {} needs the parameter `{}`",
                        shown(&name.text),
                        parameter.name
                    ),
                    Some(format!(
                        "write it below `parameters:`, as `{}: …`",
                        parameter.name
                    )),
                ),
                (None, None) => {
                    values.insert(parameter.name.clone(), Value::String(String::new()));
                }
            }
        }
        for unknown in given.keys() {
            self.findings.warning(
                "unknown-parameter",
                at,
                format!(
                    "the step template {} has no parameter `{}`",
                    shown(&name.text),
                    shown(unknown)
                ),
                did_you_mean(unknown, declared.iter().map(|known| known.name.as_str())),
            );
        }
        values
    }
}

struct Parameter {
    name: String,
    required: bool,
    default: Option<Value>,
}

fn read_template(root: &Node, findings: &mut Findings) -> Option<(Vec<Parameter>, Node)> {
    let fields = Fields::of(root, "the step template", &[&keys::TEMPLATE_FILE], findings)?;
    for about in ["name", "version", "description"] {
        fields.get(about);
    }
    let mut parameters = Vec::new();
    for node in fields.list("parameters", findings) {
        let object = &[&keys::TEMPLATE_PARAMETER];
        let Some(fields) = Fields::of(node, "a parameter", object, findings) else {
            continue;
        };
        fields.get("description");
        parameters.push(Parameter {
            name: fields.string("name", findings).unwrap_or_default(),
            required: fields.bool("required", findings).unwrap_or(false),
            default: fields.get("default").map(Node::json),
        });
        fields.finish(findings, |_| None);
    }
    let states = fields.map("states", findings);
    let mut steps = states.iter().filter(|(key, _)| key.text != "initial");
    let step = steps.next();
    if let Some((key, _)) = steps.next() {
        findings.error(
            "template-steps",
            key.at,
            "a step template has one step, and this is another",
            None,
        );
    }
    if step.is_none() && root.get("states").is_some() {
        findings.error(
            "template-steps",
            root.at,
            "the step template has no step",
            None,
        );
    }
    fields.finish(findings, |_| None);
    step.map(|(_, node)| (parameters, node.clone()))
}

/// Fills the parameters into every text.
fn fill(node: &mut Node, parameters: &Parameters, failed: &mut dyn FnMut(String)) {
    let at = node.at;
    match &mut node.kind {
        Kind::Text(text) if text.contains("{{") && text.contains("parameters") => {
            match fill_root(&Text::new(text.as_str()), "parameters", parameters) {
                Ok(Value::String(filled)) => *text = filled,
                Ok(other) => *node = Node::from_json(other, at),
                Err(error) => failed(error.to_string()),
            }
        }
        Kind::List(items) => items
            .iter_mut()
            .for_each(|item| fill(item, parameters, failed)),
        Kind::Map(entries) => entries
            .iter_mut()
            .for_each(|(_, value)| fill(value, parameters, failed)),
        _ => {}
    }
}

/// The step's own fields, then those of the template that it does not have.
fn merged(own: &Node, template: Node) -> Node {
    let mut merged = own.clone();
    if let (Kind::Map(entries), Kind::Map(more)) = (&mut merged.kind, template.kind) {
        for (key, value) in more {
            let there = entries.iter().any(|(known, _)| known.text == key.text);
            if !there {
                entries.push((key, value));
            }
        }
    }
    merged
}
