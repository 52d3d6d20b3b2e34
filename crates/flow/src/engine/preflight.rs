//! What a workflow needs that its file alone does not tell: agents, operations and plugins that are there.

use std::path::Path;

use crate::agent::Agents;
use crate::definition::{Action, At, Diagnostic, Severity, Workflow};
use crate::operation;
use crate::plugin::Plugins;

/// Looks whether the agents, operations and plugins that a workflow names are there and take what it gives them. Nothing
/// is started.
pub fn preflight(
    workflow: &Workflow,
    agents: &Agents,
    plugins: &Plugins,
    simulated: bool,
) -> Vec<Diagnostic> {
    let mut looking = Looking {
        workflow,
        agents,
        plugins,
        simulated,
        found: Vec::new(),
    };
    looking.plugins();
    for step in workflow.steps.values() {
        match &step.action {
            Action::Agent(agent) => looking.agent(&step.name, step.at, agent),
            Action::Operation(operation) => looking.operation(operation),
            Action::Custom(custom) => looking.kind(step.at, &custom.kind),
            _ => {}
        }
    }
    looking.found
}

struct Looking<'a> {
    workflow: &'a Workflow,
    agents: &'a Agents,
    plugins: &'a Plugins,
    simulated: bool,
    found: Vec<Diagnostic>,
}

impl Looking<'_> {
    fn say(
        &mut self,
        severity: Severity,
        at: At,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) {
        self.found.push(Diagnostic {
            severity,
            file: self.workflow.file.clone(),
            at,
            message,
            hint,
            code,
        });
    }

    fn plugins(&mut self) {
        for (alias, name) in &self.workflow.plugins {
            if !self.plugins.found().any(|plugin| plugin.name == *name) {
                let message = format!("the plugin {name} ({alias}) was not found");
                let hint =
                    "put its directory into .quipu/plugins, or name it in QUIPU_PLUGINS_PATH";
                self.say(
                    Severity::Error,
                    At::default(),
                    "missing-plugin",
                    message,
                    Some(hint.to_owned()),
                );
            }
        }
        for problem in self.plugins.problems() {
            self.say(
                Severity::Warning,
                At::default(),
                "broken-plugin",
                problem.to_string(),
                None,
            );
        }
    }

    fn agent(&mut self, name: &str, at: At, agent: &crate::definition::AgentStep) {
        let provider = agent.provider.text.as_str();
        if provider.is_empty() || provider.contains("{{") {
            return;
        }
        // A provider that is not known is said with the file.
        if let Err(why) = self.agents.check(provider, &agent.options)
            && self.agents.is_known(provider)
        {
            self.say(
                Severity::Error,
                at,
                "wrong-option",
                format!("step {name}: {why}"),
                None,
            );
        }
        for unknown in self.agents.unknown_options(provider, &agent.options) {
            self.say(
                Severity::Warning,
                at,
                "unknown-option",
                format!("step {name}: {unknown}"),
                None,
            );
        }
        let other = agent
            .options
            .get("binary")
            .and_then(|program| program.as_str());
        let is_there = match other {
            Some(program) => program.contains("{{") || Path::new(program).exists(),
            None => self.agents.is_installed(provider),
        };
        if !is_there && !self.simulated {
            let program = other
                .or_else(|| self.agents.program(provider))
                .unwrap_or(provider);
            let message = format!("step {name}: {program} was not found");
            let hint = "install it, or go through the workflow without agents: --stub";
            self.say(
                Severity::Warning,
                agent.provider.at,
                "missing-program",
                message,
                Some(hint.to_owned()),
            );
        }
    }

    fn operation(&mut self, step: &crate::definition::OperationStep) {
        let name = step.operation.text.as_str();
        if name.contains("{{") {
            return;
        }
        let at = step.operation.at;
        if let Some(specs) = operation::inputs_of(name) {
            for (input, value) in &step.inputs {
                let Some(spec) = specs.iter().find(|spec| spec.name == input) else {
                    let like = operation::like(input, specs.iter().map(|spec| spec.name));
                    let hint = like.map(|like| format!("did you mean {like}?"));
                    let message = format!("{name} has no input {input}");
                    self.say(Severity::Error, at, "unknown-input", message, hint);
                    continue;
                };
                let is_open = value.to_string().contains("{{");
                if !is_open && !spec.kind.takes(value) {
                    let message = format!("{name}: {input} must be {}", spec.kind.name());
                    self.say(Severity::Error, at, "wrong-input", message, None);
                }
            }
            for spec in specs.iter().filter(|spec| spec.required) {
                if !step.inputs.contains_key(spec.name) {
                    let message = format!("{name} needs the input {}", spec.name);
                    self.say(Severity::Error, at, "missing-input", message, None);
                }
            }
            return;
        }
        let plugin = name.split('.').next().unwrap_or_default();
        let of_plugin = self.workflow.plugins.contains_key(plugin)
            || self.plugins.found().any(|found| found.name == plugin);
        if !of_plugin {
            let like = operation::like(name, operation::names().into_iter());
            let hint = like.map(|like| format!("did you mean {like}?"));
            self.say(
                Severity::Error,
                at,
                "unknown-operation",
                format!("{name} is not an operation"),
                hint,
            );
        }
    }

    fn kind(&mut self, at: At, kind: &str) {
        if self.plugins.of_step(kind).is_none() {
            let message = format!("no plugin gives steps of the kind {kind}");
            let kinds: Vec<&str> = self
                .plugins
                .found()
                .flat_map(|plugin| plugin.step_types.keys().map(String::as_str))
                .collect();
            let hint = match kinds.as_slice() {
                [] => "no plugins were found".to_owned(),
                kinds => format!("plugins give {}", kinds.join(", ")),
            };
            self.say(Severity::Error, at, "unknown-kind", message, Some(hint));
        }
    }
}
