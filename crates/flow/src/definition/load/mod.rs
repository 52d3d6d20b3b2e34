//! Reading a workflow file.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use sha2::{Digest as _, Sha256};

use super::diagnostic::{Diagnostics, Findings, Severity};
use super::keys;
use super::node::{Kind, MOST_BYTES, Node};
use super::places::Places;
use super::{
    Action, At, Budget, Diagnostic, Hook, Input, InputKind, McpServer, OnFailure, Step, StepHooks,
    TerminalStep, Text, Transition, Validation, Workflow, WorkflowHooks,
};
use crate::names::did_you_mean;

mod expand;
mod fields;
mod step;

#[cfg(test)]
mod tests;

use fields::{Fields, shown};

/// A workflow, and what looks wrong in its file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The workflow.
    pub workflow: Workflow,
    /// What looks wrong.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a workflow file.
///
/// # Errors
///
/// All that is wrong with it, what [`check`](super::check::check) finds included.
pub fn load(path: &Path, places: &Places) -> Result<Loaded, Diagnostics> {
    match read(path) {
        Ok(text) => parse(&text, path, places),
        Err(why) => {
            let mut findings = Findings::new(path.to_owned());
            findings.error("unreadable", At::default(), why, None);
            Err(Diagnostics(findings.sorted()))
        }
    }
}

/// A file as text, when it is not too large.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err("is not a file".to_owned());
    }
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("is larger than {} MiB", MOST_BYTES >> 20));
    }
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

/// Reads a workflow from a text; `file` is where it comes from.
///
/// # Errors
///
/// As [`load`].
pub fn parse(text: &str, file: &Path, places: &Places) -> Result<Loaded, Diagnostics> {
    parse_with(text, file, places, true)
}

/// Reads a workflow that another one calls, without checking it; else its first error.
pub(super) fn parse_only(path: &Path, places: &Places) -> Result<Workflow, String> {
    let text = read(path)?;
    match parse_with(&text, path, places, false) {
        Ok(loaded) => Ok(loaded.workflow),
        Err(found) => Err(found
            .0
            .into_iter()
            .find(|found| found.severity == Severity::Error)
            .map(|found| found.message)
            .unwrap_or_default()),
    }
}

fn parse_with(
    text: &str,
    file: &Path,
    places: &Places,
    checks: bool,
) -> Result<Loaded, Diagnostics> {
    let mut findings = Findings::new(file.to_owned());
    if text.len() as u64 > MOST_BYTES {
        let why = format!("is larger than {} MiB", MOST_BYTES >> 20);
        findings.error("unreadable", At::default(), why, None);
        return Err(Diagnostics(findings.sorted()));
    }
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(broken) => {
            findings.error("yaml", broken.at, broken.message, None);
            return Err(Diagnostics(findings.sorted()));
        }
    };
    let mut digest = Sha256::new();
    digest.update(text.as_bytes());
    let mut loader = Loader {
        findings,
        places,
        file: file.to_owned(),
        pack: places.pack_of(file),
        has_plugins: false,
        digest,
        digested: Vec::new(),
    };
    let Some(workflow) = loader.workflow(&root) else {
        return Err(Diagnostics(loader.findings.sorted()));
    };
    if loader.findings.has_errors() {
        // What else is wrong is said at once, not after the first mistakes are mended.
        if checks {
            let more = super::check::check(&workflow, places);
            loader.findings.found.extend(more);
        }
        return Err(Diagnostics(loader.findings.sorted()));
    }
    Ok(Loaded {
        workflow,
        warnings: loader.findings.sorted(),
    })
}

struct Loader<'p> {
    findings: Findings,
    places: &'p Places,
    file: PathBuf,
    pack: Option<String>,
    /// Whether the file names plugins, which may give any kind of step.
    has_plugins: bool,
    digest: Sha256,
    /// The templates that are in the digest already.
    digested: Vec<PathBuf>,
}

impl Loader<'_> {
    /// The workflow, with defaults where something is wrong. `None` when nothing can be said about it.
    fn workflow(&mut self, root: &Node) -> Option<Workflow> {
        if matches!(root.kind, Kind::Null) {
            self.findings.error(
                "empty",
                At { line: 1, column: 1 },
                "the file is empty",
                Some("a workflow has a `name` and `states`".to_owned()),
            );
            return None;
        }
        let fields = Fields::of(root, "the workflow", &[&keys::WORKFLOW], &mut self.findings)?;
        let name = fields.string("name", &mut self.findings);
        let version = fields.string("version", &mut self.findings);
        let description = fields.string("description", &mut self.findings);
        let author = fields.string("author", &mut self.findings);
        let tags = fields.strings("tags", &mut self.findings);
        let inputs = self.inputs(&fields);
        let env = fields.texts("env", &mut self.findings);
        let mut plugins = BTreeMap::new();
        for (key, node) in fields.map("plugins", &mut self.findings) {
            let name = node.text().map(|text| text.text);
            plugins.insert(key.text.clone(), name.unwrap_or_else(|| key.text.clone()));
        }
        self.has_plugins = !plugins.is_empty();
        let mcp_servers = self.mcp_servers(&fields);
        let hooks = self.workflow_hooks(&fields);
        let budget = self.budget(&fields);
        let (initial, steps) = self.states(&fields);
        fields.finish(&mut self.findings, |_| None);
        Some(Workflow {
            name: name.unwrap_or_default(),
            version,
            description,
            author,
            tags,
            inputs,
            env,
            initial,
            steps,
            hooks,
            plugins,
            mcp_servers,
            budget,
            file: self.file.clone(),
            pack: self.pack.clone(),
            digest: hex(&self.digest.clone().finalize()),
        })
    }

    fn inputs(&mut self, fields: &Fields<'_>) -> Vec<Input> {
        let Some(node) = fields.get("inputs") else {
            return Vec::new();
        };
        let Kind::List(items) = &node.kind else {
            let hint = node.entries().and_then(|entries| {
                let (key, _) = entries.first()?;
                Some(format!(
                    "write `- name: {}` and its keys below it",
                    key.text
                ))
            });
            self.findings.error(
                "wrong-type",
                node.at,
                format!("`inputs` must be a list, not {}", node.what()),
                hint,
            );
            return Vec::new();
        };
        let mut inputs: Vec<Input> = Vec::new();
        for item in items {
            let Some(input) = self.input(item) else {
                continue;
            };
            if inputs.iter().any(|other| other.name == input.name) && !input.name.is_empty() {
                self.findings.error(
                    "duplicate-input",
                    input.at,
                    format!("there are two inputs {}", shown(&input.name)),
                    None,
                );
            }
            inputs.push(input);
        }
        inputs
    }

    fn input(&mut self, node: &Node) -> Option<Input> {
        let name = node.get("name").and_then(Node::text);
        let what = match &name {
            Some(name) => format!("input {}", shown(&name.text)),
            None => "an input".to_owned(),
        };
        let findings = &mut self.findings;
        let fields = Fields::of(node, what, &[&keys::INPUT], findings)?;
        let kind = match fields.word("type", findings) {
            Some(1) => InputKind::Integer,
            Some(2) => InputKind::Boolean,
            _ => InputKind::String,
        };
        let input = Input {
            name: fields.string("name", findings).unwrap_or_default(),
            at: node.at,
            kind,
            description: fields.string("description", findings),
            required: fields.bool("required", findings).unwrap_or(false),
            default: fields.get("default").map(Node::json),
            validation: fields
                .get("validation")
                .and_then(|node| validation(node, findings))
                .unwrap_or_default(),
        };
        fields.finish(findings, |_| None);
        Some(input)
    }

    fn mcp_servers(&mut self, fields: &Fields<'_>) -> BTreeMap<String, McpServer> {
        let mut servers = BTreeMap::new();
        let findings = &mut self.findings;
        for (key, node) in fields.map("mcp_servers", findings) {
            let what = format!("MCP server {}", shown(&key.text));
            let Some(fields) = Fields::of(node, &what, &[&keys::MCP_SERVER], findings) else {
                continue;
            };
            let mut command = match fields.get("command") {
                Some(node) => match node.text() {
                    Some(text) => words(&text, findings),
                    None => fields.strings("command", findings),
                },
                None => Vec::new(),
            };
            command.extend(fields.strings("args", findings));
            let server = McpServer {
                command,
                env: fields.text_map("env", findings),
                url: fields.string("url", findings),
                headers: fields.text_map("headers", findings),
            };
            if server.command.is_empty() == server.url.is_none() {
                findings.error(
                    "mcp-server",
                    key.at,
                    format!("{what} needs one of `command` and `url`"),
                    None,
                );
            }
            fields.finish(findings, |_| None);
            servers.insert(key.text.clone(), server);
        }
        servers
    }

    fn workflow_hooks(&mut self, fields: &Fields<'_>) -> WorkflowHooks {
        let findings = &mut self.findings;
        let Some(node) = fields.get("hooks") else {
            return WorkflowHooks::default();
        };
        let Some(fields) = Fields::of(node, "`hooks`", &[&keys::WORKFLOW_HOOKS], findings) else {
            return WorkflowHooks::default();
        };
        let hooks = WorkflowHooks {
            workflow_start: hooks(&fields, "workflow_start", findings),
            workflow_end: hooks(&fields, "workflow_end", findings),
            workflow_error: hooks(&fields, "workflow_error", findings),
            workflow_cancel: hooks(&fields, "workflow_cancel", findings),
        };
        fields.finish(findings, |_| None);
        hooks
    }

    fn budget(&mut self, fields: &Fields<'_>) -> Option<Budget> {
        let node = fields.get("budget_usd")?;
        let findings = &mut self.findings;
        if node.entries().is_none() {
            let usd = node.text().and_then(|text| text.text.parse::<f64>().ok());
            let usd = usd.filter(|usd| usd.is_finite() && *usd >= 0.0);
            if usd.is_none() {
                findings.error(
                    "wrong-type",
                    node.at,
                    "`budget_usd` must be a number of dollars, or a map with `usd` and `mode`",
                    None,
                );
            }
            return usd.map(|usd| Budget { usd, enforce: true });
        }
        let fields = Fields::of(node, "`budget_usd`", &[&keys::BUDGET], findings)?;
        let usd = fields.number("usd", findings);
        let enforce = fields.word("mode", findings) != Some(1);
        fields.finish(findings, |_| None);
        usd.map(|usd| Budget { usd, enforce })
    }

    fn states(&mut self, fields: &Fields<'_>) -> (Text, IndexMap<String, Step>) {
        let mut initial = None;
        let mut steps = IndexMap::new();
        for (key, node) in fields.map("states", &mut self.findings) {
            if key.text == "initial" {
                initial = node.text();
                if initial.is_none() {
                    self.findings.error(
                        "wrong-type",
                        node.at,
                        format!("`initial` must name a step, not be {}", node.what()),
                        None,
                    );
                }
                continue;
            }
            self.step_name(key);
            // What is wrong with a step is said once; other steps may name it nevertheless.
            let step = self
                .step(key, node)
                .unwrap_or_else(|| placeholder(key, node));
            steps.insert(key.text.clone(), step);
        }
        if initial.is_none()
            && let Some(node) = fields.get("states")
            && node.get("initial").is_none()
        {
            let hint = steps
                .keys()
                .next()
                .map(|first: &String| format!("write `initial: {first}` below `states:`"));
            self.findings.error(
                "missing-key",
                node.at,
                "`states` has no `initial`, the step that a run begins with",
                hint,
            );
        }
        (initial.unwrap_or_default(), steps)
    }

    fn step_name(&mut self, key: &Text) {
        let wrong = if key.text.is_empty() {
            "a step has no name"
        } else if key.text.contains('.') {
            "the name of a step may not contain a dot: dots are between the parts of a path"
        } else if key.text.chars().any(char::is_control) || key.text.len() > 200 {
            "the name of a step may not contain control characters, nor be longer than 200 bytes"
        } else {
            return;
        };
        self.findings.error("step-name", key.at, wrong, None);
    }
}

/// A step that could not be read, with the steps that it names. An error was found, so that it never runs.
fn placeholder(key: &Text, node: &Node) -> Step {
    let lists = ["transitions", "parallel", "body"].map(|key| node.get(key));
    let named = lists
        .into_iter()
        .flatten()
        .flat_map(|list| match &list.kind {
            Kind::List(items) => items.as_slice(),
            _ => &[],
        });
    let transitions = named
        .filter_map(|item| item.get("goto").unwrap_or(item).text())
        .map(|goto| Transition { when: None, goto })
        .collect();
    Step {
        name: key.text.clone(),
        at: key.at,
        description: None,
        action: Action::Terminal(TerminalStep::default()),
        timeout: None,
        on_success: node.get("on_success").and_then(Node::text),
        on_failure: node
            .get("on_failure")
            .and_then(Node::text)
            .map(OnFailure::Step),
        transitions,
        continue_on_error: false,
        retry: None,
        hooks: StepHooks::default(),
        capture: None,
        depends_on: Vec::new(),
        budget: None,
        texts: Vec::new(),
    }
}

fn validation(node: &Node, findings: &mut Findings) -> Option<Validation> {
    let fields = Fields::of(node, "`validation`", &[&keys::VALIDATION], findings)?;
    let validation = Validation {
        pattern: fields.text("pattern", findings),
        allowed: fields.strings("enum", findings),
        min: fields.whole("min", findings),
        max: fields.whole("max", findings),
        file_exists: fields.bool("file_exists", findings).unwrap_or(false),
        file_extension: fields.strings("file_extension", findings),
    };
    fields.finish(findings, |_| None);
    Some(validation)
}

fn hooks(fields: &Fields<'_>, name: &'static str, findings: &mut Findings) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for node in fields.list(name, findings) {
        let Some(fields) = Fields::of(node, "a hook", &[&keys::HOOK], findings) else {
            continue;
        };
        let log = fields.text("log", findings);
        let command = fields.text("command", findings);
        if log.is_none() && command.is_none() {
            findings.error("hook", node.at, "a hook has `log` or `command`", None);
        }
        hooks.extend(log.map(Hook::Log));
        hooks.extend(command.map(Hook::Command));
        fields.finish(findings, |_| None);
    }
    hooks
}

/// The words of a command that is written as one text, without the rules of a shell.
fn words(text: &Text, findings: &mut Findings) -> Vec<String> {
    if text.text.contains(['"', '\'', '\\']) {
        findings.error(
            "mcp-server",
            text.at,
            "quotes are not read here",
            Some("write the command as a list of its words".to_owned()),
        );
    }
    text.text.split_whitespace().map(str::to_owned).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        write!(out, "{byte:02x}").ok();
        out
    })
}
