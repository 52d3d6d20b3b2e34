//! Workflows that a workflow calls: they exist, take the inputs that they are given, and do not call one another in
//! a circle.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::diagnostic::Findings;
use super::super::load;
use super::super::places::Places;
use super::super::{Action, At, CallStep, Text, Workflow};
use crate::names::did_you_mean;
use crate::template::Template;

/// The most files that are read for one check.
const MOST_FILES: usize = 200;

pub(super) fn check(workflow: &Workflow, places: &Places, findings: &mut Findings) {
    let mut read = Read {
        places,
        files: HashMap::new(),
    };
    let own = real(&workflow.file);
    for step in workflow.steps.values() {
        let Action::CallWorkflow(call) = &step.action else {
            continue;
        };
        if call.workflow.text.is_empty() || call.workflow.text.contains("{{") {
            for from in call.outputs.values() {
                steps_of(from, findings);
            }
            continue;
        }
        let path = match places.find(&call.workflow.text) {
            Ok(path) => path,
            Err(error) => {
                findings.error(
                    "missing-workflow",
                    call.workflow.at,
                    error.to_string(),
                    None,
                );
                continue;
            }
        };
        if real(&path) == own || read.leads_to(&path, &own, &mut vec![own.clone()]) {
            findings.error(
                "calls-itself",
                call.workflow.at,
                format!("the workflow {} leads back to this one", call.workflow.text),
                None,
            );
            continue;
        }
        match read.get(&path) {
            Some(Ok(called)) => matches(call, called, findings),
            Some(Err(why)) => findings.error(
                "broken-workflow",
                call.workflow.at,
                format!("the workflow {} has errors: {why}", call.workflow.text),
                None,
            ),
            None => {}
        }
    }
}

/// Whether a call fits what the other workflow declares.
fn matches(call: &CallStep, called: &Workflow, findings: &mut Findings) {
    let at = call.workflow.at;
    for input in &called.inputs {
        if input.required && input.default.is_none() && !call.inputs.contains_key(&input.name) {
            findings.error(
                "missing-input",
                at,
                format!("{} needs the input {}", call.workflow.text, input.name),
                None,
            );
        }
    }
    for name in call.inputs.keys() {
        if !called.inputs.iter().any(|input| input.name == *name) {
            findings.warning(
                "undeclared-input",
                at,
                format!("{} does not declare the input {name}", call.workflow.text),
                did_you_mean(name, called.inputs.iter().map(|input| input.name.as_str())),
            );
        }
    }
    for from in call.outputs.values() {
        for (name, at) in steps_of(from, findings) {
            if !called.steps.contains_key(&name) {
                findings.error(
                    "missing-step",
                    at,
                    format!("{} has no step {name}", call.workflow.text),
                    did_you_mean(&name, called.steps.keys().map(String::as_str)),
                );
            }
        }
    }
}

/// The steps of the called workflow that an output is taken from: a name alone, or those of a template over the values
/// of that workflow.
fn steps_of(from: &Text, findings: &mut Findings) -> Vec<(String, At)> {
    if !from.text.contains("{{") {
        let is_name = !from.text.contains('.');
        return is_name
            .then(|| (from.text.clone(), from.at))
            .into_iter()
            .collect();
    }
    let template = match Template::parse(from) {
        Ok(template) => template,
        Err(error) => {
            findings.error("template", error.at, error.message, error.hint);
            return Vec::new();
        }
    };
    let named = template.references().into_iter();
    named
        .filter_map(|(reference, at)| match reference.path.as_slice() {
            [root, step, ..] if root == "states" => Some((step.clone(), at)),
            _ => None,
        })
        .collect()
}

/// The workflows that were read, or why not.
struct Read<'p> {
    places: &'p Places,
    files: HashMap<PathBuf, Result<Workflow, String>>,
}

impl Read<'_> {
    /// A workflow; `None` when too many were read.
    fn get(&mut self, path: &Path) -> Option<&Result<Workflow, String>> {
        let path = real(path);
        if !self.files.contains_key(&path) {
            if self.files.len() >= MOST_FILES {
                return None;
            }
            let read = load::parse_only(&path, self.places);
            self.files.insert(path.clone(), read);
        }
        self.files.get(&path)
    }

    /// Whether calls lead from a file to another.
    fn leads_to(&mut self, from: &Path, to: &Path, seen: &mut Vec<PathBuf>) -> bool {
        let from = real(from);
        if seen.contains(&from) {
            return from == to;
        }
        seen.push(from.clone());
        let Some(Ok(workflow)) = self.get(&from) else {
            return false;
        };
        let called: Vec<String> = workflow
            .steps
            .values()
            .filter_map(|step| match &step.action {
                Action::CallWorkflow(call) => Some(call.workflow.text.clone()),
                _ => None,
            })
            .collect();
        called.iter().any(|name| {
            let path = self.places.find(name);
            path.is_ok_and(|path| self.leads_to(&path, to, seen))
        })
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
