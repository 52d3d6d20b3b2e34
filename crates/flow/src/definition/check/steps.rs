//! Each step and input by itself: values that do not fit, and files that are missing.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

use super::super::diagnostic::Findings;
use super::super::places::Places;
use super::super::{
    Action, AgentStep, Backoff, Input, InputKind, Step, Text, Workflow, duration, inputs,
};
use crate::names::did_you_mean;
use crate::template::{Variables, printed, render};

/// The providers that Quipu has.
pub(super) const PROVIDERS: [&str; 8] = [
    "claude",
    "codex",
    "gemini",
    "github_copilot",
    "opencode",
    "mistral_vibe",
    "openai_compatible",
    "cli",
];

pub(super) fn check(workflow: &Workflow, places: &Places, findings: &mut Findings) {
    for declared in &workflow.inputs {
        input(declared, findings);
    }
    for step in workflow.steps.values() {
        retry(step, findings);
        match &step.action {
            Action::Agent(agent) => self::agent(workflow, step, agent, places, findings),
            Action::Command(command) => {
                if let Some(file) = &command.script_file {
                    exists(workflow, places, "scripts", file, findings);
                }
            }
            Action::Wait(wait) => {
                if let Some(text) = &wait.duration
                    && !text.text.contains("{{")
                    && let Err(why) = duration::parse(&text.text)
                {
                    findings.error("bad-duration", text.at, format!("`duration`: {why}"), None);
                }
                if let Some(text) = &wait.until
                    && !text.text.contains("{{")
                    && text.text.parse::<jiff::Timestamp>().is_err()
                {
                    findings.error(
                        "bad-time",
                        text.at,
                        format!("`until`: {:?} is not a time", text.text),
                        Some("write it as 2026-01-31T12:00:00Z".to_owned()),
                    );
                }
            }
            _ => {}
        }
    }
}

fn input(input: &Input, findings: &mut Findings) {
    let rules = &input.validation;
    if let Some(pattern) = &rules.pattern
        && let Err(error) = Regex::new(&pattern.text)
    {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or("it cannot be read").trim();
        findings.error(
            "bad-pattern",
            pattern.at,
            format!("input {}: the pattern is wrong: {why}", input.name),
            None,
        );
        return;
    }
    if let (Some(min), Some(max)) = (rules.min, rules.max)
        && min > max
    {
        findings.error(
            "bad-range",
            input.at,
            format!("input {}: `min` {min} is more than `max` {max}", input.name),
            None,
        );
    }
    if (rules.min.is_some() || rules.max.is_some()) && input.kind != InputKind::Integer {
        findings.warning(
            "unused-rule",
            input.at,
            format!(
                "input {}: `min` and `max` are checked for integers only",
                input.name
            ),
            Some("add `type: integer`".to_owned()),
        );
    }
    if let Some(default) = &input.default
        && !default.is_null()
        && *default != Value::String(String::new())
    {
        // Whether a file exists is known when a run begins.
        let mut static_rules = input.clone();
        static_rules.validation.file_exists = false;
        for why in inputs::fits(&static_rules, &printed(default)) {
            let message = format!("input {}: the default does not fit: {why}", input.name);
            findings.error("bad-default", input.at, message, None);
        }
    }
}

fn retry(step: &Step, findings: &mut Findings) {
    let Some(retry) = &step.retry else {
        return;
    };
    if !retry.max_delay.is_zero() && retry.max_delay < retry.initial_delay {
        findings.warning(
            "bad-range",
            step.at,
            format!(
                "step {}: `max_delay` is less than `initial_delay`",
                step.name
            ),
            None,
        );
    }
    if retry.backoff == Backoff::Exponential && retry.multiplier < 1.0 {
        findings.warning(
            "bad-range",
            step.at,
            format!(
                "step {}: with a `multiplier` below 1 delays get shorter",
                step.name
            ),
            None,
        );
    }
    if matches!(step.action, Action::Terminal(_)) {
        findings.warning(
            "unused-rule",
            step.at,
            format!(
                "step {}: a terminal step cannot fail, so `retry` has no effect",
                step.name
            ),
            None,
        );
    }
}

fn agent(
    workflow: &Workflow,
    step: &Step,
    agent: &AgentStep,
    places: &Places,
    findings: &mut Findings,
) {
    let provider = &agent.provider;
    if !provider.text.is_empty()
        && !provider.text.contains("{{")
        && !PROVIDERS.contains(&provider.text.as_str())
    {
        findings.warning(
            "unknown-provider",
            provider.at,
            format!("{} is not a provider that Quipu has", provider.text),
            did_you_mean(&provider.text, PROVIDERS)
                .unwrap_or_else(|| format!("providers are {}", PROVIDERS.join(", "))),
        );
    }
    if let Some(file) = &agent.prompt_file {
        exists(workflow, places, "prompts", file, findings);
    }
    let pack = workflow.pack.as_deref();
    if let Some(role) = &agent.role {
        named_dir(
            "role",
            role,
            "AGENTS.md",
            &places.roles,
            places,
            pack,
            findings,
        );
    }
    for skill in &agent.skills {
        named_dir(
            "skill",
            skill,
            "SKILL.md",
            &places.skills,
            places,
            pack,
            findings,
        );
    }
    if let Some(from) = agent
        .conversation
        .as_ref()
        .and_then(|talk| talk.continue_from.as_ref())
    {
        match workflow.steps.get(&from.text) {
            None => findings.error(
                "missing-step",
                from.at,
                format!("step {}: there is no step {}", step.name, from.text),
                did_you_mean(&from.text, workflow.steps.keys().map(String::as_str)),
            ),
            Some(other) if !matches!(other.action, Action::Agent(_)) => findings.error(
                "not-an-agent",
                from.at,
                format!(
                    "step {} has no session to continue: it is not an agent step",
                    from.text
                ),
                None,
            ),
            Some(_) => {}
        }
    }
    if let Some(output) = &agent.output
        && let Err(error) = jsonschema::validator_for(&output.schema)
    {
        findings.error(
            "bad-schema",
            step.at,
            format!(
                "step {}: the schema of `output` is wrong: {error}",
                step.name
            ),
            None,
        );
    }
    for server in agent.mcp_proxy.iter().flat_map(|proxy| &proxy.servers) {
        if !workflow.mcp_servers.contains_key(server) {
            findings.error(
                "missing-server",
                step.at,
                format!("step {}: there is no MCP server {server}", step.name),
                did_you_mean(server, workflow.mcp_servers.keys().map(String::as_str)),
            );
        }
    }
}

/// The names of directories, which a path may begin with.
struct Dirs<'p>(&'p Places, Option<&'p str>);

impl Variables for Dirs<'_> {
    fn value(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["awf", name] => self.0.awf(name, self.1).map(Value::String),
            _ => None,
        }
    }
}

/// Whether a file exists whose path is known before the run.
fn exists(workflow: &Workflow, places: &Places, sort: &str, file: &Text, findings: &mut Findings) {
    let pack = workflow.pack.as_deref();
    let Ok(path) = render(file, &Dirs(places, pack)) else {
        return;
    };
    let found = places.file(sort, Path::new(&path), &workflow.file, pack);
    // Devices count: a prompt may come from /dev/stdin.
    if !found.exists() || found.is_dir() {
        findings.error(
            "missing-file",
            file.at,
            format!("there is no file {}", found.display()),
            None,
        );
    }
}

/// A role or skill, by its name or path.
fn named_dir(
    what: &str,
    name: &Text,
    holds: &str,
    dirs: &[PathBuf],
    places: &Places,
    pack: Option<&str>,
    findings: &mut Findings,
) {
    let Ok(text) = render(name, &Dirs(places, pack)) else {
        return;
    };
    if text.split(['/', '\\']).any(|part| part == "..") {
        let message = format!("the {what} {text:?} may not contain ..");
        findings.error("bad-name", name.at, message, None);
        return;
    }
    let there = |path: PathBuf| path.is_file() || path.join(holds).is_file();
    let found = there(places.cwd.join(&text))
        || dirs
            .iter()
            .any(|dir| there(dir.join(&text)) || dir.join(format!("{text}.md")).is_file());
    if !found {
        findings.warning(
            "missing-file",
            name.at,
            format!("the {what} {text} was not found"),
            Some(format!("{what}s are looked for as NAME/{holds} in .quipu/{what}s, .awf/{what}s and .agents/{what}s")),
        );
    }
}
