//! What a run would do, as far as it is known before: for `--dry-run`.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use super::ways::{Ways, Why, named};
use super::{
    Action, AgentStep, Backoff, Check, Items, LoopBody, OnFailure, Step, Strategy, Text, Workflow,
};
use crate::template::{Variables, fill_known, printed};

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The workflow's name.
    pub workflow: String,
    /// The values of the inputs.
    pub inputs: IndexMap<String, Value>,
    /// The steps that a run can reach, in the order in which it comes to them.
    pub steps: Vec<PlannedStep>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedStep {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How deep it is inside of loops and parallel steps.
    pub depth: usize,
    /// What it is for.
    pub description: Option<String>,
    /// What it does: names and texts, in which what is not known yet is left as `{{…}}`.
    pub does: Vec<(String, String)>,
    /// Where the run goes: when, and the step.
    pub next: Vec<(String, String)>,
}

/// The plan of a run with these inputs.
pub fn plan(workflow: &Workflow, inputs: &IndexMap<String, Value>) -> Plan {
    let known = Known {
        name: &workflow.name,
        inputs,
    };
    plan_with(workflow, inputs, &known)
}

/// The plan of a run with these inputs, filled in with what these variables know.
pub fn plan_with(
    workflow: &Workflow,
    inputs: &IndexMap<String, Value>,
    known: &dyn Variables,
) -> Plan {
    Plan {
        workflow: workflow.name.clone(),
        inputs: inputs.clone(),
        steps: in_order(workflow)
            .into_iter()
            .map(|(step, depth)| planned(step, depth, known))
            .collect(),
    }
}

/// What is known before a run: its inputs and its name.
struct Known<'k> {
    name: &'k str,
    inputs: &'k IndexMap<String, Value>,
}

impl Variables for Known<'_> {
    fn value(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["inputs"] => Some(Value::Object(
                self.inputs
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )),
            ["inputs", name] => self.inputs.get(*name).cloned(),
            ["workflow", "Name" | "name"] => Some(self.name.into()),
            _ => None,
        }
    }
}

/// The steps that a run can reach: the way of success first, members of loops and parallel steps below them.
fn in_order(workflow: &Workflow) -> Vec<(&Step, usize)> {
    let ways = Ways::new(workflow);
    let mut seen = vec![false; ways.steps.len()];
    let mut order = Vec::new();
    let mut todo: Vec<(usize, usize)> = ways
        .number(&workflow.initial.text)
        .map(|first| (first, 0))
        .into_iter()
        .collect();
    while let Some((number, depth)) = todo.pop() {
        if std::mem::replace(&mut seen[number], true) {
            continue;
        }
        let step = ways.steps[number];
        order.push((step, depth));
        // What is put last is taken first.
        let rank = |why: &Why<'_>| match why {
            Why::Branch | Why::Body => 0,
            Why::When(_) => 1,
            Why::Success | Why::Complete => 2,
            Why::Failure => 3,
        };
        let mut next = named(step);
        next.sort_by_key(|(why, _)| rank(why));
        for (why, name) in next.into_iter().rev() {
            if let Some(to) = ways.number(&name.text) {
                let inner = matches!(why, Why::Branch | Why::Body);
                let at = if inner {
                    depth + 1
                } else if ways.inside[to].is_empty() {
                    0
                } else {
                    depth
                };
                todo.push((to, at));
            }
        }
    }
    order
}

fn planned(step: &Step, depth: usize, known: &dyn Variables) -> PlannedStep {
    let mut does = Does {
        known,
        lines: Vec::new(),
    };
    let kind = does.action(&step.action);
    does.common(step);
    let mut next: Vec<(String, String)> = named(step)
        .into_iter()
        .filter(|(why, _)| !matches!(why, Why::Branch | Why::Body))
        .map(|(why, name)| {
            let when = match why {
                Why::When(Some(when)) => format!("when {when}"),
                Why::When(None) => "otherwise".to_owned(),
                Why::Failure => "fails".to_owned(),
                Why::Complete => "done".to_owned(),
                _ => "ok".to_owned(),
            };
            (when, name.text.clone())
        })
        .collect();
    if let Some(OnFailure::Inline { message, status }) = &step.on_failure {
        let message = message.as_ref().map(|text| does.filled(text));
        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
        next.push((
            "fails".to_owned(),
            format!("(the run ends with {status}{message})"),
        ));
    }
    PlannedStep {
        name: step.name.clone(),
        kind,
        depth,
        description: step.description.clone(),
        does: does.lines,
        next,
    }
}

/// Collects what a step does.
struct Does<'k> {
    known: &'k dyn Variables,
    lines: Vec<(String, String)>,
}

impl Does<'_> {
    fn filled(&self, text: &Text) -> String {
        fill_known(text, self.known)
    }

    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.lines.push((name.to_owned(), value.into()));
    }

    fn text(&mut self, name: &str, text: Option<&Text>) {
        if let Some(text) = text {
            let filled = self.filled(text);
            self.add(name, filled);
        }
    }

    fn values<'v>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = (&'v String, &'v Value)>,
    ) {
        for (key, value) in values {
            let filled = self.filled(&Text::new(printed(value)));
            self.add(&format!("{name}.{key}"), filled);
        }
    }

    fn strings<'v>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = (&'v String, &'v String)>,
    ) {
        for (key, value) in values {
            let filled = self.filled(&Text::new(value.as_str()));
            self.add(&format!("{name}.{key}"), filled);
        }
    }

    fn list(&mut self, name: &str, texts: &[Text]) {
        if !texts.is_empty() {
            let names: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
            self.add(name, names.join(", "));
        }
    }

    /// What an action does; its kind.
    fn action(&mut self, action: &Action) -> String {
        let kind = match action {
            Action::Agent(agent) => {
                self.agent(agent);
                "agent"
            }
            Action::Command(command) => {
                self.text("command", command.command.as_ref());
                self.text("script_file", command.script_file.as_ref());
                self.text("dir", command.dir.as_ref());
                self.strings("env", &command.env);
                "command"
            }
            Action::Operation(operation) => {
                self.add("operation", operation.operation.text.clone());
                self.values("inputs", &operation.inputs);
                "operation"
            }
            Action::Terminal(end) => {
                let status = if end.failure { "failure" } else { "success" };
                self.add("status", status);
                self.text("message", end.message.as_ref());
                if let Some(code) = end.exit_code {
                    self.add("exit_code", code.to_string());
                }
                "terminal"
            }
            Action::Parallel(parallel) => {
                self.list("parallel", &parallel.branches);
                let strategy = match parallel.strategy {
                    Strategy::AllSucceed => "all_succeed",
                    Strategy::AnySucceed => "any_succeed",
                    Strategy::BestEffort => "best_effort",
                };
                self.add("strategy", strategy);
                if let Some(most) = parallel.max_concurrent {
                    self.add("max_concurrent", most.to_string());
                }
                "parallel"
            }
            Action::ForEach(each) => {
                match &each.items {
                    Items::Template(text) => self.text("items", Some(text)),
                    Items::List(items) => {
                        let items = Value::Array(items.clone()).to_string();
                        let filled = self.filled(&Text::new(items));
                        self.add("items", filled);
                    }
                }
                self.body(&each.body);
                "for_each"
            }
            Action::While(each) => {
                self.add("while", each.condition.text.clone());
                self.body(&each.body);
                "while"
            }
            Action::CallWorkflow(call) => {
                self.text("workflow", Some(&call.workflow));
                self.values("inputs", &call.inputs);
                "call_workflow"
            }
            Action::Approval(approval) => {
                self.text("message", Some(&approval.message));
                if !approval.approvers.is_empty() {
                    self.add("approvers", approval.approvers.join(", "));
                }
                if approval.not_starter {
                    self.add("not_starter", "true");
                }
                "approval"
            }
            Action::Set(set) => {
                self.values("values", &set.values);
                "set"
            }
            Action::Wait(wait) => {
                self.text("duration", wait.duration.as_ref());
                self.text("until", wait.until.as_ref());
                "wait"
            }
            Action::Custom(custom) => {
                self.values("config", &custom.config);
                &custom.kind
            }
        };
        kind.to_owned()
    }

    fn agent(&mut self, agent: &AgentStep) {
        self.text("provider", Some(&agent.provider));
        self.text("role", agent.role.as_ref());
        self.list("skills", &agent.skills);
        self.text("system_prompt", agent.system_prompt.as_ref());
        self.text("prompt", agent.prompt.as_ref());
        self.text("prompt_file", agent.prompt_file.as_ref());
        self.text("dir", agent.dir.as_ref());
        self.values("options", &agent.options);
        if let Some(from) = agent
            .conversation
            .as_ref()
            .and_then(|talk| talk.continue_from.as_ref())
        {
            self.add("continue_from", from.text.clone());
        }
        if let Some(output) = &agent.output {
            let most = output.max_corrections;
            self.add(
                "output",
                format!("must fit a schema; sent back up to {most} times"),
            );
        }
        for Check { name, command, .. } in &agent.checks {
            let name = name
                .as_ref()
                .map_or("check".to_owned(), |name| format!("check {name}"));
            self.text(&name, Some(command));
        }
    }

    fn body(&mut self, body: &LoopBody) {
        self.list("body", &body.steps);
        self.text("max_iterations", body.max_iterations.as_ref());
        if let Some(when) = &body.break_when {
            self.add("break_when", when.text.clone());
        }
    }

    /// What steps of all kinds have.
    fn common(&mut self, step: &Step) {
        if let Some(timeout) = step.timeout {
            self.add("timeout", format!("{timeout:?}"));
        }
        if let Some(retry) = &step.retry {
            let backoff = match retry.backoff {
                Backoff::Constant => "constant",
                Backoff::Linear => "linear",
                Backoff::Exponential => "exponential",
            };
            let (most, delay) = (retry.max_attempts, retry.initial_delay);
            self.add(
                "retry",
                format!("up to {most} attempts, {delay:?} between them, {backoff}"),
            );
        }
        if step.continue_on_error {
            self.add("continue_on_error", "true");
        }
        if let Some(budget) = step.budget {
            let mode = if budget.enforce {
                "enforced"
            } else {
                "audited"
            };
            self.add("budget_usd", format!("{} ({mode})", budget.usd));
        }
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "Plan of {}", shown(&self.workflow))?;
        for (name, value) in &self.inputs {
            writeln!(f, "  input {} = {}", shown(name), shown(&printed(value)))?;
        }
        for (at, step) in self.steps.iter().enumerate() {
            let indent = "  ".repeat(step.depth.min(20));
            writeln!(
                f,
                "\n{indent}{}. {} ({})",
                at + 1,
                shown(&step.name),
                shown(&step.kind)
            )?;
            if let Some(about) = &step.description {
                writeln!(f, "{indent}   {}", shown(about))?;
            }
            for (name, text) in &step.does {
                let mut lines = text.trim_end().lines();
                writeln!(
                    f,
                    "{indent}   {}: {}",
                    shown(name),
                    shown(lines.next().unwrap_or(""))
                )?;
                for line in lines {
                    writeln!(f, "{indent}     {}", shown(line))?;
                }
            }
            for (when, to) in &step.next {
                writeln!(f, "{indent}   → {}: {}", shown(when), shown(to))?;
            }
        }
        Ok(())
    }
}

/// A line for a terminal: control characters could move the cursor.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::definition::load::parse;
    use crate::definition::places::Places;

    fn workflow(text: &str) -> Workflow {
        parse(text, Path::new("w.yaml"), &Places::default())
            .unwrap_or_else(|found| panic!("{found}"))
            .workflow
    }

    #[test]
    fn a_plan_shows_each_step_with_what_is_known() {
        let workflow = workflow(include_str!("load/everything.yaml"));
        let inputs: IndexMap<String, Value> = [
            ("target".to_owned(), "all".into()),
            ("count".to_owned(), 3.into()),
        ]
        .into();
        let plan = plan(&workflow, &inputs);
        assert_eq!(plan.steps.len(), workflow.steps.len(), "all can be reached");
        insta::assert_snapshot!(plan.to_string());
        let json = serde_json::to_value(&plan).unwrap();
        assert_eq!(json["steps"][0]["name"], "build");
    }

    #[test]
    fn what_is_not_known_stays_a_template() {
        let workflow = workflow(
            "name: w\nstates:\n  initial: a\n  a:\n    type: command\n    command: \"x {{.inputs.k}} {{.states.b.Output}} {{- .inputs.k}} {{if .states.b.Output}}y{{end}}\"\n    dir: \"{{.inputs.k}}/{{.env.HOME}}\"\n    on_success: b\n  b: {type: terminal}\n",
        );
        let inputs: IndexMap<String, Value> = [("k".to_owned(), "v".into())].into();
        let plan = plan(&workflow, &inputs);
        let does = &plan.steps[0].does;
        assert_eq!(does[0].1, workflow_text(&workflow));
        assert_eq!(does[1].1, "v/{{.env.HOME}}");
    }

    /// The command: a template with blocks is filled in whole or not at all.
    fn workflow_text(workflow: &Workflow) -> String {
        match &workflow.steps["a"].action {
            Action::Command(command) => command.command.as_ref().unwrap().text.clone(),
            _ => String::new(),
        }
    }
}
