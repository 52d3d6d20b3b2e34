//! Reading one step: its fields are flat, and `type` says which of them count.

use indexmap::IndexMap;
use serde_json::Value;

use super::super::keys::{self, CUSTOM, KINDS, STEP};
use super::super::node::{Kind, Node};
use super::super::{
    Action, AgentMode, AgentStep, ApprovalStep, Backoff, CallStep, Capture, Check, CommandStep,
    Conversation, CustomStep, ForEachStep, Items, LoopBody, McpProxy, OnFailure, OperationStep,
    OutputFormat, OutputSchema, ParallelStep, Retry, SetStep, Step, StepHooks, Strategy,
    TerminalStep, Text, Transition, WaitStep, WhileStep,
};
use super::fields::{Fields, shown, whole};
use super::{Findings, Loader, did_you_mean, hooks};

impl Loader<'_> {
    pub(super) fn step(&mut self, key: &Text, node: &Node) -> Option<Step> {
        let what = format!("step {}", shown(&key.text));
        if node.entries().is_none() {
            Fields::of(node, what, &[&STEP], &mut self.findings);
            return None;
        }
        let node = &self.expanded(node)?;
        let kind = self.kind(key, node)?;
        let object = match kind {
            StepType::Known(kind) => &kind.object,
            StepType::Custom(_) => &CUSTOM,
        };
        let fields = Fields::of(node, what, &[&STEP, object], &mut self.findings)?;
        fields.get("type");
        fields.get("use_template");
        fields.get("parameters");
        let action = match kind {
            StepType::Known(kind) => self.action(kind.name, &fields, key),
            StepType::Custom(name) => Action::Custom(CustomStep {
                kind: name,
                config: fields.json_map("config", &mut self.findings),
            }),
        };
        let budget = self.budget(&fields);
        let findings = &mut self.findings;
        let step = Step {
            name: key.text.clone(),
            at: key.at,
            description: fields.string("description", findings),
            action,
            timeout: fields.duration("timeout", findings),
            on_success: fields.text("on_success", findings),
            on_failure: on_failure(&fields, findings),
            transitions: transitions(&fields, findings),
            continue_on_error: fields.bool("continue_on_error", findings).unwrap_or(false),
            retry: retry(&fields, findings),
            hooks: step_hooks(&fields, findings),
            capture: capture(&fields, findings),
            depends_on: fields.texts("depends_on", findings),
            budget,
            texts: free_texts(node),
        };
        fields.finish(findings, belongs_to);
        Some(step)
    }

    /// The kind of a step.
    fn kind(&mut self, key: &Text, node: &Node) -> Option<StepType> {
        let Some(word) = node.get("type").and_then(Node::text) else {
            let likely = KINDS.iter().find(|kind| {
                node.get(kind.name).is_some()
                    || kind
                        .object
                        .required
                        .iter()
                        .any(|name| node.get(name).is_some())
            });
            let hint = likely.map_or_else(
                || format!("kinds are {}", kind_names().join(", ")),
                |kind| format!("write `type: {}`", kind.name),
            );
            self.findings.error(
                "missing-key",
                key.at,
                format!("step {} has no `type`", shown(&key.text)),
                hint,
            );
            return None;
        };
        if let Some(kind) = keys::kind(&word.text) {
            return Some(StepType::Known(kind));
        }
        // A plugin's kind has a dot in its name; a file that names plugins may use any word.
        if word.text.contains('.') || self.has_plugins {
            return Some(StepType::Custom(word.text));
        }
        let hint = did_you_mean(&word.text, kind_names()).unwrap_or_else(|| {
            format!(
                "kinds are {}; one of a plugin has a dot in its name",
                kind_names().join(", ")
            )
        });
        self.findings.error(
            "unknown-type",
            word.at,
            format!("{} is not a kind of step", shown(&word.text)),
            hint,
        );
        None
    }

    fn action(&mut self, kind: &str, fields: &Fields<'_>, key: &Text) -> Action {
        let findings = &mut self.findings;
        match kind {
            "agent" => Action::Agent(Box::new(self.agent(fields))),
            "command" => Action::Command(command(fields, findings)),
            "operation" => {
                let mut inputs = fields.json_map("inputs", findings);
                for (name, value) in fields.json_map("operation_inputs", findings) {
                    inputs.entry(name).or_insert(value);
                }
                Action::Operation(OperationStep {
                    operation: fields.text("operation", findings).unwrap_or_default(),
                    inputs,
                })
            }
            "terminal" => Action::Terminal(TerminalStep {
                failure: fields.word("status", findings) == Some(1),
                message: fields.text("message", findings),
                exit_code: fields.whole("exit_code", findings),
            }),
            "parallel" => Action::Parallel(ParallelStep {
                branches: fields.texts("parallel", findings),
                strategy: match fields.word("strategy", findings) {
                    Some(1) => Strategy::AnySucceed,
                    Some(2) => Strategy::BestEffort,
                    _ => Strategy::AllSucceed,
                },
                max_concurrent: fields
                    .whole::<u32>("max_concurrent", findings)
                    .and_then(|most| usize::try_from(most).ok()),
            }),
            "for_each" => Action::ForEach(ForEachStep {
                items: items(fields, findings),
                body: body(fields, findings),
            }),
            "while" => Action::While(WhileStep {
                condition: fields.text("while", findings).unwrap_or_default(),
                body: body(fields, findings),
            }),
            "call_workflow" => Action::CallWorkflow(call(fields, findings)),
            "approval" => {
                let mut approvers = fields.strings("approvers", findings);
                approvers.extend(fields.string("required_approver", findings));
                Action::Approval(ApprovalStep {
                    message: fields.text("message", findings).unwrap_or_default(),
                    approvers,
                    not_starter: fields.bool("not_starter", findings).unwrap_or(false),
                })
            }
            "set" => Action::Set(SetStep {
                values: fields
                    .map("values", findings)
                    .iter()
                    .map(|(key, node)| (key.text.clone(), node.json()))
                    .collect(),
            }),
            _ => {
                let step = WaitStep {
                    duration: fields.text("duration", findings),
                    until: fields.text("until", findings),
                };
                if step.duration.is_some() == step.until.is_some() {
                    findings.error(
                        "one-of",
                        key.at,
                        format!("{} needs one of `duration` and `until`", fields.what),
                        None,
                    );
                }
                Action::Wait(step)
            }
        }
    }

    fn agent(&mut self, fields: &Fields<'_>) -> AgentStep {
        let output = self.output(fields);
        let findings = &mut self.findings;
        let prompt = fields.text("prompt", findings);
        let prompt_file = fields.text("prompt_file", findings);
        let mode = match fields.word("mode", findings) {
            Some(1) => AgentMode::Conversation,
            _ => AgentMode::Single,
        };
        if prompt.is_some() == prompt_file.is_some() {
            findings.error(
                "one-of",
                fields.at,
                format!("{} needs one of `prompt` and `prompt_file`", fields.what),
                None,
            );
        } else if let (AgentMode::Conversation, Some(file)) = (mode, &prompt_file) {
            findings.error(
                "one-of",
                file.at,
                "`prompt_file` is not read in a conversation; write `prompt`",
                None,
            );
        }
        AgentStep {
            provider: fields.text("provider", findings).unwrap_or_default(),
            prompt,
            prompt_file,
            system_prompt: fields.text("system_prompt", findings),
            role: fields.text("role", findings),
            skills: skills(fields, findings),
            options: fields.json_map("options", findings),
            mode,
            conversation: conversation(fields, findings),
            output_format: match fields.word("output_format", findings) {
                Some(1) => OutputFormat::Json,
                _ => OutputFormat::Text,
            },
            output,
            checks: checks(fields, findings),
            max_check_rounds: fields.whole("max_check_rounds", findings).unwrap_or(2),
            mcp_proxy: mcp_proxy(fields, findings),
            dir: fields.text("dir", findings),
        }
    }

    fn output(&mut self, fields: &Fields<'_>) -> Option<OutputSchema> {
        let node = fields.get("output")?;
        let wrapped = node.get("schema").is_some() || node.get("schema_file").is_some();
        if !wrapped {
            let schema = node.json();
            if !schema.is_object() && !schema.is_boolean() {
                self.findings.error(
                    "wrong-type",
                    node.at,
                    format!("`output` must be a JSON Schema, not {}", node.what()),
                    None,
                );
                return None;
            }
            return Some(OutputSchema {
                schema,
                max_corrections: 2,
            });
        }
        let findings = &mut self.findings;
        let fields = Fields::of(node, "`output`", &[&keys::OUTPUT], findings)?;
        let schema = fields.get("schema").map(Node::json);
        let file = fields.text("schema_file", findings);
        let max_corrections = fields.whole("max_corrections", findings).unwrap_or(2);
        fields.finish(findings, |_| None);
        let schema = match (schema, file) {
            (Some(schema), None) => Some(schema),
            (None, Some(file)) => self.schema_file(&file),
            _ => {
                let message = "`output` needs one of `schema` and `schema_file`";
                findings.error("one-of", node.at, message, None);
                None
            }
        }?;
        Some(OutputSchema {
            schema,
            max_corrections,
        })
    }

    fn schema_file(&mut self, file: &Text) -> Option<Value> {
        let path = std::path::Path::new(&file.text);
        let pack = self.pack.as_deref();
        let path = self.places.file("schemas", path, &self.file, pack);
        let read = super::read(&path).and_then(|text| {
            serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))
        });
        read.map_err(|why| {
            let message = format!("the schema {} {why}", path.display());
            self.findings.error("schema-file", file.at, message, None);
        })
        .ok()
    }
}

/// What `type` says.
enum StepType {
    Known(&'static keys::StepKind),
    Custom(String),
}

fn kind_names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The kinds of step that a key belongs to.
fn belongs_to(key: &str) -> Option<String> {
    let kinds: Vec<&str> = KINDS
        .iter()
        .filter(|kind| kind.object.keys.iter().any(|known| known.name == key))
        .map(|kind| kind.name)
        .collect();
    (!kinds.is_empty()).then(|| format!("it belongs to {} steps", kinds.join(", ")))
}

/// The texts of a step that its types keep without a place.
fn free_texts(node: &Node) -> Vec<Text> {
    let mut texts = Vec::new();
    for key in [
        "options",
        "inputs",
        "operation_inputs",
        "items",
        "values",
        "config",
        "env",
    ] {
        match node.get(key) {
            // One text alone has its place in the step.
            Some(Node {
                kind: Kind::Text(_),
                ..
            })
            | None => {}
            Some(node) => node.texts(&mut texts),
        }
    }
    texts.retain(|text| text.text.contains("{{"));
    texts
}

fn command(fields: &Fields<'_>, findings: &mut Findings) -> CommandStep {
    let step = CommandStep {
        command: fields.text("command", findings),
        script_file: fields.text("script_file", findings),
        dir: fields.text("dir", findings),
        env: fields.text_map("env", findings),
    };
    if step.command.is_some() == step.script_file.is_some() {
        findings.error(
            "one-of",
            fields.at,
            format!("{} needs one of `command` and `script_file`", fields.what),
            None,
        );
    }
    step
}

fn call(fields: &Fields<'_>, findings: &mut Findings) -> CallStep {
    let mut outputs = IndexMap::new();
    for (key, node) in fields.map("outputs", findings) {
        match node.text() {
            Some(text) => {
                outputs.insert(key.text.clone(), text);
            }
            None => findings.error(
                "wrong-type",
                node.at,
                format!("`outputs.{}` must be a text, not {}", key.text, node.what()),
                None,
            ),
        }
    }
    CallStep {
        workflow: fields.text("workflow", findings).unwrap_or_default(),
        inputs: fields.json_map("inputs", findings),
        outputs,
    }
}

fn items(fields: &Fields<'_>, findings: &mut Findings) -> Items {
    let Some(node) = fields.get("items") else {
        return Items::default();
    };
    match (&node.kind, node.text()) {
        (Kind::List(items), _) => Items::List(items.iter().map(Node::json).collect()),
        (_, Some(text)) => Items::Template(text),
        _ => {
            findings.error(
                "wrong-type",
                node.at,
                format!("`items` must be a list or a template, not {}", node.what()),
                None,
            );
            Items::default()
        }
    }
}

fn body(fields: &Fields<'_>, findings: &mut Findings) -> LoopBody {
    let max_iterations = fields.text("max_iterations", findings);
    if let Some(text) = &max_iterations
        && !text.text.contains("{{")
        && let Some(node) = fields.get("max_iterations")
        && text.text.trim().parse::<i64>().is_ok()
    {
        whole::<u32>(node, "max_iterations", 1, 1_000_000, findings);
    }
    LoopBody {
        steps: fields.texts("body", findings),
        max_iterations,
        break_when: fields.text("break_when", findings),
        on_complete: fields.text("on_complete", findings),
    }
}

fn skills(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Text> {
    let mut skills = Vec::new();
    for node in fields.list("skills", findings) {
        if let Some(text) = node.text() {
            skills.push(text);
            continue;
        }
        let Some(fields) = Fields::of(node, "a skill", &[&keys::SKILL], findings) else {
            continue;
        };
        let name = fields.text("name", findings);
        let path = fields.text("path", findings);
        match name.or(path) {
            Some(text) => skills.push(text),
            None => findings.error("missing-key", node.at, "a skill has `name` or `path`", None),
        }
        fields.finish(findings, |_| None);
    }
    skills
}

fn conversation(fields: &Fields<'_>, findings: &mut Findings) -> Option<Conversation> {
    let node = fields.get("conversation")?;
    let fields = Fields::of(node, "`conversation`", &[&keys::CONVERSATION], findings)?;
    let conversation = Conversation {
        continue_from: fields.text("continue_from", findings),
    };
    fields.finish(findings, |_| None);
    Some(conversation)
}

fn checks(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Check> {
    let mut checks = Vec::new();
    for node in fields.list("checks", findings) {
        if let Some(command) = node.text() {
            checks.push(Check {
                name: None,
                command,
                timeout: None,
            });
            continue;
        }
        let Some(fields) = Fields::of(node, "a check", &[&keys::CHECK], findings) else {
            continue;
        };
        checks.push(Check {
            name: fields.string("name", findings),
            command: fields.text("command", findings).unwrap_or_default(),
            timeout: fields.duration("timeout", findings),
        });
        fields.finish(findings, |_| None);
    }
    checks
}

fn mcp_proxy(fields: &Fields<'_>, findings: &mut Findings) -> Option<McpProxy> {
    let node = fields.get("mcp_proxy")?;
    let fields = Fields::of(node, "`mcp_proxy`", &[&keys::MCP_PROXY], findings)?;
    let mut plugin_tools = Vec::new();
    for node in fields.list("plugin_tools", findings) {
        let Some(fields) = Fields::of(node, "`plugin_tools`", &[&keys::PLUGIN_TOOL], findings)
        else {
            continue;
        };
        plugin_tools.push((
            fields.string("plugin", findings).unwrap_or_default(),
            fields.strings("expose", findings),
        ));
        fields.finish(findings, |_| None);
    }
    let proxy = McpProxy {
        enable: fields.bool("enable", findings).unwrap_or(false),
        intercept_builtins: fields.bool("intercept_builtins", findings).unwrap_or(true),
        plugin_tools,
        servers: fields.strings("servers", findings),
    };
    fields.finish(findings, |_| None);
    Some(proxy)
}

fn on_failure(fields: &Fields<'_>, findings: &mut Findings) -> Option<OnFailure> {
    let node = fields.get("on_failure")?;
    if let Some(text) = node.text() {
        return Some(OnFailure::Step(text));
    }
    let fields = Fields::of(node, "`on_failure`", &[&keys::ON_FAILURE], findings)?;
    let inline = OnFailure::Inline {
        message: fields.text("message", findings),
        status: fields.whole("status", findings).unwrap_or(1),
    };
    fields.finish(findings, |_| None);
    Some(inline)
}

fn transitions(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Transition> {
    let mut transitions = Vec::new();
    for node in fields.list("transitions", findings) {
        let Some(fields) = Fields::of(node, "a transition", &[&keys::TRANSITION], findings) else {
            continue;
        };
        let when = fields.text("when", findings);
        if let Some(goto) = fields.text("goto", findings) {
            transitions.push(Transition {
                when: when.filter(|when| !when.text.trim().is_empty()),
                goto,
            });
        }
        fields.finish(findings, |_| None);
    }
    transitions
}

fn retry(fields: &Fields<'_>, findings: &mut Findings) -> Option<Retry> {
    let node = fields.get("retry")?;
    let fields = Fields::of(node, "`retry`", &[&keys::RETRY], findings)?;
    let mut retryable_exit_codes = Vec::new();
    for code in fields.list("retryable_exit_codes", findings) {
        retryable_exit_codes.extend(whole::<i32>(
            code,
            "retryable_exit_codes",
            -1,
            255,
            findings,
        ));
    }
    let retry = Retry {
        max_attempts: fields.whole("max_attempts", findings).unwrap_or(1),
        initial_delay: fields
            .duration("initial_delay", findings)
            .unwrap_or_default(),
        max_delay: fields.duration("max_delay", findings).unwrap_or_default(),
        backoff: match fields.word("backoff", findings) {
            Some(1) => Backoff::Linear,
            Some(2) => Backoff::Exponential,
            _ => Backoff::Constant,
        },
        multiplier: fields.number("multiplier", findings).unwrap_or(2.0),
        jitter: fields.number("jitter", findings).unwrap_or(0.0),
        retryable_exit_codes,
    };
    fields.finish(findings, |_| None);
    Some(retry)
}

fn step_hooks(fields: &Fields<'_>, findings: &mut Findings) -> StepHooks {
    let Some(node) = fields.get("hooks") else {
        return StepHooks::default();
    };
    let Some(fields) = Fields::of(node, "`hooks`", &[&keys::STEP_HOOKS], findings) else {
        return StepHooks::default();
    };
    let hooks = StepHooks {
        pre: hooks(&fields, "pre", findings),
        post: hooks(&fields, "post", findings),
    };
    fields.finish(findings, |_| None);
    hooks
}

fn capture(fields: &Fields<'_>, findings: &mut Findings) -> Option<Capture> {
    let node = fields.get("capture")?;
    let fields = Fields::of(node, "`capture`", &[&keys::CAPTURE], findings)?;
    let max_size = fields.text("max_size", findings).and_then(|text| {
        let size = bytes(&text.text);
        if size.is_none() {
            findings.error(
                "bad-value",
                text.at,
                format!(
                    "`max_size`: {:?} is not a size; write bytes, or 10MB",
                    shown(&text.text)
                ),
                None,
            );
        }
        size
    });
    let capture = Capture {
        stdout: fields.string("stdout", findings),
        stderr: fields.string("stderr", findings),
        max_size,
    };
    fields.finish(findings, |_| None);
    Some(capture)
}

/// A size: a number of bytes, or a number with KB, MB or GB.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}
