//! Templates and expressions: whether they can be read, and whether what they name exists.

use std::collections::{HashMap, HashSet};

use super::super::diagnostic::Findings;
use super::super::places::Places;
use super::super::texts::{self, Use, Used};
use super::super::ways::Ways;
use super::super::{At, Workflow};
use crate::expression::Expression;
use crate::names::did_you_mean;
use crate::template::{ROOTS, Template};

/// The fields of `states.<step>`.
pub const STATE_FIELDS: [&str; 12] = [
    "Output",
    "Stderr",
    "ExitCode",
    "Status",
    "Response",
    "JSON",
    "TokensUsed",
    "TokensInput",
    "TokensOutput",
    "TokensEstimated",
    "Data",
    "Error",
];
/// The fields of `workflow`.
pub const WORKFLOW_FIELDS: [&str; 5] = ["ID", "Name", "CurrentState", "StartedAt", "Duration"];
/// The fields of `context`.
pub const CONTEXT_FIELDS: [&str; 3] = ["WorkingDir", "User", "Hostname"];
/// The fields of `loop`.
pub const LOOP_FIELDS: [&str; 7] = [
    "Item", "Index", "Index1", "First", "Last", "Length", "Parent",
];
/// The fields of `error`.
pub const ERROR_FIELDS: [&str; 4] = ["Message", "State", "ExitCode", "Type"];

/// How much work may be spent on the order of steps; a workflow of thousands of steps that all name one another would
/// take minutes.
const MOST_WORK: usize = 50_000_000;

pub(super) fn check(workflow: &Workflow, ways: &Ways<'_>, findings: &mut Findings) {
    let mut checker = Checker {
        workflow,
        ways,
        in_loops: ways.in_loops(),
        inputs: workflow
            .inputs
            .iter()
            .map(|input| input.name.as_str())
            .collect(),
        after: HashMap::new(),
        work: 0,
        findings,
    };
    for (number, step) in ways.steps.iter().enumerate() {
        for used in texts::of_step(step) {
            checker.text(Some(number), used);
        }
    }
    for used in texts::of_hooks(workflow) {
        checker.text(None, used);
    }
}

struct Checker<'c, 'w> {
    workflow: &'w Workflow,
    ways: &'c Ways<'w>,
    in_loops: Vec<bool>,
    inputs: HashSet<&'w str>,
    /// For a step, those that may run after it.
    after: HashMap<usize, Vec<bool>>,
    work: usize,
    findings: &'c mut Findings,
}

impl Checker<'_, '_> {
    fn text(&mut self, step: Option<usize>, used: Used<'_>) {
        match used.how {
            Use::Template | Use::Number => {
                if !used.text.text.contains("{{") {
                    return;
                }
                match Template::parse(used.text) {
                    Ok(template) => {
                        for (reference, at) in template.references() {
                            let path: Vec<&str> =
                                reference.path.iter().map(String::as_str).collect();
                            self.path(step, used, &path, at);
                        }
                    }
                    Err(error) => {
                        self.findings
                            .error("template", error.at, error.message, error.hint);
                    }
                }
            }
            Use::Expression => match Expression::parse(used.text) {
                Ok(expression) => {
                    for (path, at) in expression.references() {
                        let path: Vec<&str> = path.iter().map(String::as_str).collect();
                        self.path(step, used, &path, at);
                    }
                }
                Err(error) => {
                    self.findings
                        .error("expression", error.at, error.message, error.hint);
                }
            },
        }
    }

    fn path(&mut self, step: Option<usize>, used: Used<'_>, path: &[&str], at: At) {
        let Some((root, rest)) = path.split_first() else {
            return;
        };
        match *root {
            "inputs" => self.input(rest, at),
            "states" => self.state(step, used, rest, at),
            "workflow" => self.field(root, &WORKFLOW_FIELDS, rest, at),
            "context" => self.field(root, &CONTEXT_FIELDS, rest, at),
            "error" => {
                self.field(root, &ERROR_FIELDS, rest, at);
                if !used.has_error {
                    self.findings.warning(
                        "undefined",
                        at,
                        "`error` is defined in `workflow_error` and `on_failure` only",
                        None,
                    );
                }
            }
            "awf" => self.field(root, &Places::AWF, rest, at),
            "loop" => {
                self.field(root, &LOOP_FIELDS, rest, at);
                let inside = step.is_some_and(|step| self.in_loops[step]);
                if !inside && !used.in_own_loop {
                    self.findings.error(
                        "undefined",
                        at,
                        "`loop` is defined in the body of a loop only",
                        None,
                    );
                }
            }
            "env" => {}
            "parameters" => self.findings.error(
                "undefined",
                at,
                "`parameters` are those of a step template; this is not one",
                None,
            ),
            _ => self.findings.error(
                "undefined",
                at,
                format!("undefined variable: {}", path.join(".")),
                did_you_mean(root, ROOTS)
                    .unwrap_or_else(|| format!("a path begins with {}", ROOTS.join(", "))),
            ),
        }
    }

    /// An input that is not declared is a warning: it may be given on the command line, as awf allows.
    fn input(&mut self, rest: &[&str], at: At) {
        let Some(name) = rest.first() else {
            return;
        };
        if !self.inputs.contains(name) {
            self.findings.warning(
                "undeclared-input",
                at,
                format!("the input {name} is not declared"),
                did_you_mean(name, self.inputs.iter().copied())
                    .unwrap_or_else(|| format!("add `- name: {name}` to `inputs`")),
            );
        }
    }

    fn state(&mut self, step: Option<usize>, used: Used<'_>, rest: &[&str], at: At) {
        let Some((name, fields)) = rest.split_first() else {
            return;
        };
        let Some(named) = self.ways.number(name) else {
            // In an expression a-b is a minus b.
            let dashed = self
                .workflow
                .steps
                .keys()
                .find(|step| step.split('-').next() == Some(name) && step.contains('-'))
                .filter(|_| used.how == Use::Expression)
                .map(|step| format!("write states[\"{step}\"]"));
            let hint = dashed
                .or_else(|| did_you_mean(name, self.workflow.steps.keys().map(String::as_str)));
            let message = format!("undefined variable: there is no step {name}");
            self.findings.error("undefined", at, message, hint);
            return;
        };
        self.field("states.STEP", &STATE_FIELDS, fields, at);
        let Some(step) = step else {
            return;
        };
        if (step == named && used.after) || self.may_follow(named, step) {
            return;
        }
        let message = if step == named {
            format!("step {name} names itself before it has run")
        } else {
            format!("step {name} has not run when this is worked out")
        };
        self.findings.warning("too-early", at, message, None);
    }

    /// Whether `later` may run after `earlier`.
    fn may_follow(&mut self, earlier: usize, later: usize) -> bool {
        if let Some(after) = self.after.get(&earlier) {
            return after[later];
        }
        self.work += self.ways.steps.len() + self.ways.next.iter().map(Vec::len).sum::<usize>();
        if self.work > MOST_WORK {
            return true;
        }
        let after = self.ways.after(earlier);
        let follows = after[later];
        self.after.insert(earlier, after);
        follows
    }

    fn field(&mut self, of: &str, known: &[&str], rest: &[&str], at: At) {
        let Some(name) = rest.first() else {
            return;
        };
        if known.iter().any(|known| is_spelling(known, name)) {
            return;
        }
        let hint = did_you_mean(&plain(name), known.iter().copied())
            .unwrap_or_else(|| format!("it has {}", known.join(", ")));
        self.findings.error(
            "undefined",
            at,
            format!("undefined variable: {of} has no {name}"),
            hint,
        );
    }
}

/// A name without its underscores.
fn plain(name: &str) -> String {
    name.replace('_', "")
}

/// Whether a name is `known`, or the same in lower case with underscores: `ExitCode`, `exit_code`.
fn is_spelling(known: &str, name: &str) -> bool {
    known == name || (name == name.to_lowercase() && plain(name) == plain(&known.to_lowercase()))
}
