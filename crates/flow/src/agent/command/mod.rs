//! From a question to a program: its arguments, its standard input and the files it needs.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::options::Options;
use super::provider::Provider;
use super::{AskRequest, ToolAccess};

mod claude;
mod cli;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod vibe;

/// The name under which agents know Quipu's tools.
const SERVER: &str = "quipu";

/// The longest argument that is sent. Linux refuses single arguments of 128 KiB and more; what is left out is room for
/// an option's name before the text.
pub(super) const LONGEST_ARGUMENT: usize = (128 << 10) - 64;

/// A program that is about to be started.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Files that it reads; they are removed with this value.
    pub(super) files: Vec<NamedTempFile>,
    pub(super) stream: Stream,
    /// Whether the program is told of Quipu's tools, where there are any.
    pub(super) offers_tools: bool,
    /// The prompt as the agent sees it. An agent that repeats it is not heard twice.
    pub(super) prompt: String,
}

/// How what a program prints is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    /// The dialect of quipu-agents; `None` for plain text.
    pub(super) dialect: Option<String>,
    pub(super) answer: Which,
}

/// Which of the things that an agent says is the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The record that the agent ends with.
    Result,
    /// All messages, a line each.
    All,
    /// The last message.
    Last,
}

impl Stream {
    fn of(dialect: &str, answer: Which) -> Self {
        Self {
            dialect: Some(dialect.to_owned()),
            answer,
        }
    }
}

/// The program for a question.
///
/// # Errors
///
/// When an option does not fit, or the question cannot be handed to the program; the message says what to do.
pub(super) fn build(
    provider: Provider,
    request: &AskRequest,
    program: String,
) -> Result<Invocation, String> {
    let turn = Turn {
        request,
        options: Options(&request.options),
        program,
        session: session(provider, request)?,
    };
    match provider {
        Provider::Claude => claude::build(&turn),
        Provider::Codex => codex::build(&turn),
        Provider::Gemini => gemini::build(&turn),
        Provider::Copilot => copilot::build(&turn),
        Provider::OpenCode => opencode::build(&turn),
        Provider::Vibe => vibe::build(&turn),
        Provider::Cli => cli::build(&turn),
        Provider::OpenAi => Err("openai_compatible is a server, not a program".to_owned()),
    }
}

/// The options that a provider knows, beside those that all know.
pub(super) fn known_options(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => claude::OPTIONS,
        Provider::Codex => codex::OPTIONS,
        Provider::Gemini => gemini::OPTIONS,
        Provider::Copilot => copilot::OPTIONS,
        Provider::OpenCode => opencode::OPTIONS,
        Provider::Vibe => vibe::OPTIONS,
        Provider::Cli => cli::OPTIONS,
        Provider::OpenAi => super::chat::OPTIONS,
    }
}

/// The agent's own id of the session that goes on.
fn session(provider: Provider, request: &AskRequest) -> Result<Option<String>, String> {
    let Some(session) = &request.session else {
        return Ok(None);
    };
    if session.provider != provider.name() {
        return Err(format!(
            "a session with {} cannot go on with {}",
            session.provider,
            provider.name()
        ));
    }
    match session.id.as_deref() {
        Some(id) if id.starts_with('-') || id.contains('\0') || id.is_empty() => {
            Err(format!("{id:?} is not an id of a session"))
        }
        id => Ok(id.map(str::to_owned)),
    }
}

/// A question on its way to a program.
struct Turn<'a> {
    request: &'a AskRequest,
    options: Options<'a>,
    program: String,
    session: Option<String>,
}

impl Turn<'_> {
    /// The system prompt, where there is one.
    fn system(&self) -> Option<&str> {
        let system = self.request.system_prompt.as_deref();
        system.filter(|system| !system.trim().is_empty())
    }

    /// The prompt, after what was said before where the agent does not remember it.
    fn prompt(&self) -> String {
        let said = self.request.session.as_ref();
        let said = said.filter(|session| session.id.is_none());
        let said = said.map_or(&[][..], |session| &session.messages);
        if said.is_empty() {
            return self.request.prompt.clone();
        }
        let mut text = String::from("The conversation so far:\n");
        for message in said {
            let role = match message["role"].as_str() {
                Some("assistant") => "Assistant",
                _ => "User",
            };
            let content = message["content"].as_str().unwrap_or_default();
            for part in ["\n", role, ": ", content, "\n"] {
                text.push_str(part);
            }
        }
        text.push_str("\nUser: ");
        text.push_str(&self.request.prompt);
        text
    }

    /// The prompt with the system prompt before it, for agents that have no place for one. A session that goes on has
    /// been given it already, unless it is another one now.
    fn prompt_with_system(&self) -> String {
        let prompt = self.prompt();
        let given = self.request.session.as_ref();
        let given = given.filter(|session| session.id.is_some());
        let given = given.and_then(|session| session.system_prompt.as_deref());
        match self.system() {
            Some(system) if given != Some(system) => format!("{system}\n\n{prompt}"),
            _ => prompt,
        }
    }

    /// The arguments so far: the program.
    fn argv(&self) -> Argv {
        Argv(vec![self.program.clone()])
    }

    /// The model, if it is one that the provider knows.
    fn model(&self, known: fn(&str) -> bool, expected: &str) -> Result<Option<String>, String> {
        match self.options.value("model")? {
            Some(model) if !known(&model) => {
                Err(format!("options.model is {model:?}; expected {expected}"))
            }
            model => Ok(model),
        }
    }

    fn tools(&self) -> Option<&ToolAccess> {
        let tools = self.request.tools.as_ref();
        tools.filter(|tools| !tools.server.is_empty())
    }

    fn skips_permissions(&self) -> Result<bool, String> {
        self.options.flag("dangerously_skip_permissions")
    }

    /// Puts all together.
    fn invocation(
        &self,
        argv: Argv,
        stdin: Option<String>,
        prompt: String,
        stream: Stream,
    ) -> Invocation {
        Invocation {
            argv: argv.0,
            stdin,
            env: self.request.env.clone(),
            files: Vec::new(),
            stream,
            offers_tools: true,
            prompt,
        }
    }
}

/// Arguments in the making.
struct Argv(Vec<String>);

impl Argv {
    fn push(&mut self, argument: impl Into<String>) -> &mut Self {
        self.0.push(argument.into());
        self
    }

    /// `--name value`, where there is a value.
    fn option(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        if let Some(value) = value {
            self.push(name).push(value.to_string());
        }
        self
    }

    /// `--name=value`, for each value.
    fn joined(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>) -> &mut Self {
        for value in values {
            self.push(format!("{name}={}", value.to_string()));
        }
        self
    }

    fn flag(&mut self, name: &str, is_set: bool) -> &mut Self {
        if is_set {
            self.push(name);
        }
        self
    }
}

/// Whether a text can be an argument: not too long, and without a zero byte.
fn fits(text: &str) -> bool {
    text.len() <= LONGEST_ARGUMENT && !text.contains('\0')
}

/// How a prompt gets to a program that has an option for it.
enum Delivery {
    /// As an argument of its own.
    Argument(String),
    /// In the same argument as the option's name, because it begins with a dash.
    Joined(String),
    /// On standard input.
    Stdin(String),
}

fn delivery(prompt: String) -> Delivery {
    if !fits(&prompt) {
        Delivery::Stdin(prompt)
    } else if prompt.starts_with('-') {
        Delivery::Joined(prompt)
    } else {
        Delivery::Argument(prompt)
    }
}

/// `{"command": …, "args": […]}` of Quipu's server.
fn server(tools: &ToolAccess) -> Value {
    let (command, arguments) = tools
        .server
        .split_first()
        .map_or(("", &[][..]), |it| (it.0.as_str(), it.1));
    json!({"command": command, "args": arguments})
}

/// `{"mcpServers": {"quipu": …}}`, as most agents write it down.
fn servers(tools: &ToolAccess, more: Value) -> Value {
    let mut entry = server(tools);
    if let (Some(entry), Value::Object(more)) = (entry.as_object_mut(), more) {
        entry.extend(more);
    }
    json!({"mcpServers": {SERVER: entry}})
}

/// A file that only its owner can read, and its path.
fn file(ending: &str, content: &str) -> Result<(NamedTempFile, String), String> {
    // tempfile makes files with mode 0600.
    let made = tempfile::Builder::new()
        .prefix("quipu-")
        .suffix(ending)
        .tempfile()
        .and_then(|mut file| {
            file.write_all(content.as_bytes())?;
            file.flush()?;
            Ok(file)
        });
    let file = made.map_err(|error| format!("cannot write a temporary file: {error}"))?;
    let path = file.path().to_str().map(str::to_owned);
    let path = path.ok_or("the temporary directory has a name that is not UTF-8")?;
    Ok((file, path))
}
