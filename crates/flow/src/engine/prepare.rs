//! What a step is given, with everything filled in. Working it out has no effects, and its hash tells whether a step
//! of an earlier execution was given the same.

use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use quipu_model::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::call::PreparedCall;
use super::context::Context;
use super::run::Run;
use crate::agent::AskRequest;
use crate::definition::{Action, CommandStep, Items, LoopBody, Step, Text};
use crate::template::{self, Template, TemplateError};
use crate::{agent, expression};

/// The longest script.
const SCRIPT_BYTES: u64 = 1 << 20;

/// How many passes a loop with a condition has where the file does not say.
const USUAL_PASSES: u64 = 100;

/// The most passes that a loop may have.
const MOST_PASSES: u64 = 1_000_000;

/// How long a called workflow may take where the file does not say.
const USUAL_CALL: Duration = Duration::from_secs(300);

/// What a step is given.
pub(super) enum Prepared {
    Command(PreparedCommand),
    Agent(Box<PreparedAgent>),
    Operation {
        name: String,
        inputs: Map<String, Value>,
    },
    Terminal {
        message: Option<String>,
        failure: bool,
        exit_code: u8,
    },
    Parallel,
    ForEach {
        items: Vec<Value>,
        limit: Option<u64>,
    },
    While {
        limit: u64,
    },
    Call(PreparedCall),
    Approval {
        message: String,
    },
    Set {
        values: Map<String, Value>,
    },
    Wait {
        until: Until,
    },
    Custom {
        kind: String,
        config: Map<String, Value>,
    },
}

/// A command with everything filled in.
pub(super) struct PreparedCommand {
    pub(super) command: String,
    /// The command is a script with an interpreter of its own.
    pub(super) is_script: bool,
    pub(super) dir: PathBuf,
    pub(super) env: Vec<(String, String)>,
}

/// A question with everything filled in.
pub(super) struct PreparedAgent {
    pub(super) request: AskRequest,
    pub(super) checks: Vec<(String, String, Option<Duration>)>,
    /// The name of its role.
    pub(super) role: Option<String>,
}

/// What a step waits for.
pub(super) enum Until {
    After(Duration),
    At(quipu_model::Timestamp),
}

impl Prepared {
    /// The hash of what the step is given.
    pub(super) fn hash(&self) -> String {
        let input = match self {
            Self::Command(command) => json!({
                "command": command.command, "dir": command.dir, "env": command.env,
            }),
            Self::Agent(agent) => {
                let request = &agent.request;
                json!({
                    "provider": request.provider, "prompt": request.prompt,
                    "system_prompt": request.system_prompt, "options": request.options,
                    "dir": request.dir, "schema": request.schema,
                    "checks": agent.checks.iter().map(|check| &check.1).collect::<Vec<_>>(),
                    "session": request.session.as_ref().and_then(|session| session.id.clone()),
                })
            }
            Self::Operation { name, inputs } => json!({ "operation": name, "inputs": inputs }),
            Self::Terminal {
                message,
                failure,
                exit_code,
            } => {
                json!({ "message": message, "failure": failure, "exit_code": exit_code })
            }
            Self::Parallel => json!("parallel"),
            Self::ForEach { items, limit } => json!({ "items": items, "limit": limit }),
            Self::While { limit } => json!({ "limit": limit }),
            Self::Call(call) => json!({ "workflow": call.file, "inputs": call.inputs }),
            Self::Approval { message } => json!({ "message": message }),
            Self::Set { values } => json!(values),
            Self::Wait {
                until: Until::After(after),
            } => json!(after.as_millis()),
            Self::Wait {
                until: Until::At(at),
            } => json!(at.to_string()),
            Self::Custom { kind, config } => json!({ "kind": kind, "config": config }),
        };
        hex::encode(&Sha256::digest(input.to_string().as_bytes()))
    }

    /// How long it may take where the file does not say.
    pub(super) fn usual_timeout(&self) -> Option<Duration> {
        matches!(self, Self::Call(_)).then_some(USUAL_CALL)
    }
}

/// Fills in what a step is given. The error names the place in the file.
pub(super) fn prepare(run: &Run, context: &Context, step: &Step) -> Result<Prepared, String> {
    let filler = Filler { run, context };
    Ok(match &step.action {
        Action::Command(command) => Prepared::Command(filler.command(command)?),
        Action::Agent(agent) => Prepared::Agent(Box::new(filler.agent(step, agent)?)),
        Action::Operation(operation) => Prepared::Operation {
            name: filler.text(&operation.operation)?,
            inputs: filler.map(&operation.inputs)?,
        },
        Action::Terminal(terminal) => Prepared::Terminal {
            message: filler.optional(terminal.message.as_ref())?,
            failure: terminal.failure,
            exit_code: terminal.exit_code.unwrap_or(u8::from(terminal.failure)),
        },
        Action::Parallel(_) => Prepared::Parallel,
        Action::ForEach(each) => Prepared::ForEach {
            items: filler.items(&each.items)?,
            limit: filler.limit(&each.body)?,
        },
        Action::While(looped) => Prepared::While {
            limit: filler.limit(&looped.body)?.unwrap_or(USUAL_PASSES),
        },
        Action::CallWorkflow(call) => {
            let name = filler.text(&call.workflow)?;
            let inputs = filler.map(&call.inputs)?;
            Prepared::Call(PreparedCall::find(run, &name, inputs)?)
        }
        Action::Approval(approval) => Prepared::Approval {
            message: filler.text(&approval.message)?,
        },
        Action::Set(set) => Prepared::Set {
            values: filler.values(&set.values)?,
        },
        Action::Wait(wait) => Prepared::Wait {
            until: filler.until(wait.duration.as_ref(), wait.until.as_ref())?,
        },
        Action::Custom(custom) => Prepared::Custom {
            kind: custom.kind.clone(),
            config: filler.map(&custom.config)?,
        },
    })
}

/// Fills in texts with the values of a context.
pub(super) struct Filler<'a> {
    pub(super) run: &'a Run,
    pub(super) context: &'a Context,
}

impl Filler<'_> {
    pub(super) fn wrong(&self, error: &TemplateError) -> String {
        self.run.at_place(error.at, &error.to_string())
    }

    pub(super) fn text(&self, text: &Text) -> Result<String, String> {
        template::render(text, self.context).map_err(|error| self.wrong(&error))
    }

    pub(super) fn optional(&self, text: Option<&Text>) -> Result<Option<String>, String> {
        text.map(|text| self.text(text)).transpose()
    }

    pub(super) fn map(&self, map: &Map<String, Value>) -> Result<Map<String, Value>, String> {
        let fill = |(name, value): (&String, &Value)| {
            let value = template::fill(value, self.context).map_err(|error| self.wrong(&error))?;
            Ok((name.clone(), value))
        };
        map.iter().map(fill).collect()
    }

    /// Values of a step that sets them. A text that is one action keeps the type of its value.
    fn values(&self, values: &IndexMap<String, Value>) -> Result<Map<String, Value>, String> {
        let fill = |(name, value): (&String, &Value)| {
            let value = match value {
                Value::String(text) => {
                    let text = Text::new(text.clone());
                    let parsed = Template::parse(&text);
                    parsed.and_then(|template| template.eval(self.context))
                }
                other => template::fill(other, self.context),
            };
            Ok((name.clone(), value.map_err(|error| self.wrong(&error))?))
        };
        values.iter().map(fill).collect()
    }

    fn command(&self, step: &CommandStep) -> Result<PreparedCommand, String> {
        let (command, is_script) = match (&step.command, &step.script_file) {
            (Some(command), _) => (self.text(command)?, false),
            (None, Some(file)) => {
                let path = self.run.file("scripts", &self.text(file)?);
                let script = read(&path, SCRIPT_BYTES)?;
                let at = file.at;
                let script = self.text(&Text { text: script, at })?;
                let is_script = script.starts_with("#!");
                (script, is_script)
            }
            (None, None) => {
                return Err("the step has neither a command nor a script_file".to_owned());
            }
        };
        let dir = match self.optional(step.dir.as_ref())? {
            Some(dir) => self.run.options.root.join(dir),
            None => self.run.options.root.clone(),
        };
        let mut env = Vec::new();
        for (name, value) in &self.context.facts.inputs {
            if let Value::String(value) = value
                && is_variable(name)
                && !value.contains('\0')
            {
                env.push((name.clone(), value.clone()));
            }
        }
        for (name, value) in &step.env {
            env.push((name.clone(), self.text(&Text::new(value.clone()))?));
        }
        Ok(PreparedCommand {
            command,
            is_script,
            dir,
            env,
        })
    }

    fn items(&self, items: &Items) -> Result<Vec<Value>, String> {
        let text = match items {
            Items::List(list) => {
                let fill =
                    |item| template::fill(item, self.context).map_err(|error| self.wrong(&error));
                return list.iter().map(fill).collect();
            }
            Items::Template(text) => text,
        };
        let parsed = Template::parse(text).and_then(|template| template.eval(self.context));
        match parsed.map_err(|error| self.wrong(&error))? {
            Value::Array(items) => Ok(items),
            Value::String(text) => Ok(items_in(&text)),
            Value::Null => Ok(Vec::new()),
            other => Ok(vec![other]),
        }
    }

    fn limit(&self, body: &LoopBody) -> Result<Option<u64>, String> {
        let Some(text) = &body.max_iterations else {
            return Ok(None);
        };
        let number = expression::number(text, self.context)
            .map_err(|error| self.run.at_place(error.at, &error.to_string()))?;
        match u64::try_from(number) {
            Ok(number @ 1..=MOST_PASSES) => Ok(Some(number)),
            _ => Err(format!(
                "max_iterations is {number}; it must be from 1 to {MOST_PASSES}"
            )),
        }
    }

    fn until(&self, duration: Option<&Text>, until: Option<&Text>) -> Result<Until, String> {
        if let Some(duration) = self.optional(duration)? {
            return crate::definition::duration::parse(duration.trim()).map(Until::After);
        }
        let until = self.optional(until)?.unwrap_or_default();
        match until.trim().parse() {
            Ok(at) => Ok(Until::At(at)),
            Err(_) => Err(format!(
                "{until:?} is not a time; write it as 2026-01-31T12:00:00Z"
            )),
        }
    }

    fn agent(
        &self,
        step: &Step,
        agent: &crate::definition::AgentStep,
    ) -> Result<PreparedAgent, String> {
        let request = self.ask(step, agent)?;
        let mut checks = Vec::new();
        for (number, check) in agent.checks.iter().enumerate() {
            let name = check.name.clone();
            let name = name.unwrap_or_else(|| format!("check {}", number + 1));
            checks.push((name, self.text(&check.command)?, check.timeout));
        }
        self.run
            .options
            .agents
            .check(&request.provider, &request.options)?;
        let role = self.optional(agent.role.as_ref())?;
        Ok(PreparedAgent {
            request,
            checks,
            role,
        })
    }

    fn ask(&self, step: &Step, agent: &crate::definition::AgentStep) -> Result<AskRequest, String> {
        let mut prompt = match (&agent.prompt, &agent.prompt_file) {
            (Some(prompt), _) => self.text(prompt)?,
            (None, Some(file)) => {
                let path = self.run.file("prompts", &self.text(file)?);
                let text = read(&path, SCRIPT_BYTES)?;
                self.text(&Text { text, at: file.at })?
            }
            (None, None) => {
                return Err("the step has neither a prompt nor a prompt_file".to_owned());
            }
        };
        let skills = self.run.skills(self, &agent.skills)?;
        if !skills.is_empty() {
            prompt = format!("{skills}\n\n{prompt}");
        }
        if prompt.trim().is_empty() {
            return Err("the prompt is empty".to_owned());
        }
        let role = self.run.role(self, agent.role.as_ref())?;
        let system = self.optional(agent.system_prompt.as_ref())?;
        let system_prompt = match (role, system) {
            (Some(role), Some(system)) => Some(format!("{role}\n\n{system}")),
            (role, system) => role.or(system),
        };
        let mut options = self.map(&agent.options)?;
        if agent.output_format == crate::definition::OutputFormat::Json {
            options
                .entry("output_format")
                .or_insert_with(|| "json".into());
        }
        let session = match agent
            .conversation
            .as_ref()
            .and_then(|c| c.continue_from.as_ref())
        {
            None => None,
            Some(from) => {
                let state = self.context.states.get(&from.text);
                let session = state.and_then(|state| state.session.clone());
                Some(session.ok_or_else(|| {
                    format!("step {} has no session that can be continued; give it `conversation: {{}}`", from.text)
                })?)
            }
        };
        let dir = match self.optional(agent.dir.as_ref())? {
            Some(dir) => self.run.options.root.join(dir),
            None => self.run.options.root.clone(),
        };
        Ok(AskRequest {
            provider: self.text(&agent.provider)?,
            step: step.name.clone(),
            prompt,
            system_prompt,
            options,
            session,
            keep_session: agent.conversation.is_some()
                || agent.output.is_some()
                || !agent.checks.is_empty()
                || agent.mode == crate::definition::AgentMode::Conversation,
            schema: agent.output.as_ref().map(|output| output.schema.clone()),
            dir,
            env: std::collections::BTreeMap::new(),
            timeout: None,
            tools: None::<agent::ToolAccess>,
        })
    }
}

/// Whether a shell can have a variable of this name.
fn is_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A JSON array, or words with commas between them.
fn items_in(text: &str) -> Vec<Value> {
    if let Ok(Value::Array(items)) = serde_json::from_str(text.trim()) {
        return items;
    }
    let words = text.split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(Into::into)
        .collect()
}

/// Reads a text file that is not too long.
pub(super) fn read(path: &std::path::Path, most: u64) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let length = std::fs::metadata(path).map_err(wrong)?.len();
    if length > most {
        return Err(format!("{} has more than {most} bytes", path.display()));
    }
    std::fs::read_to_string(path).map_err(wrong)
}
