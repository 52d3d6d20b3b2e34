//! Asking an agent: which program or server it is, what exactly it is given, and what it answers, as it answers.
//!
//! A provider turns an [`AskRequest`] into a program with its arguments or a request to a server, reads the answer as
//! it streams, and hands every event of it to a [`Hearer`] at once. What was heard before an agent failed, hung or was
//! cancelled is therefore on the record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use quipu_model::{Annotations, Attachment, Body, Money, Usage};
use serde_json::{Map, Value};

use crate::tools::Router;

mod agents;
mod chat;
mod command;

mod listen;
mod options;
mod program;
mod provider;
pub mod stub;

#[cfg(test)]
mod tests;

pub use agents::{AgentOptions, Agents};
pub use stub::{Script, Stub};

/// A question to an agent, with everything filled in.
#[derive(Debug, Clone)]
pub struct AskRequest {
    /// The provider: `claude`, `codex`, `gemini`, `github_copilot`, `opencode`, `mistral_vibe`, `openai_compatible`,
    /// `cli`.
    pub provider: String,
    /// The prompt, skills included.
    pub prompt: String,
    /// The system prompt, the role included.
    pub system_prompt: Option<String>,
    /// The options of the step: `model`, `allowed_tools`, ….
    pub options: Map<String, Value>,
    /// The session that is continued.
    pub session: Option<SessionHandle>,
    /// Whether the agent's session will be continued later, by a correction, a check or another step.
    pub keep_session: bool,
    /// The directory the agent works in.
    pub dir: PathBuf,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How a CLI agent is given Quipu's tools.
    pub tools: Option<ToolAccess>,
    /// The JSON Schema that the answer has to fit. Only stubs look at it: whoever asks checks the answer.
    pub schema: Option<Value>,
    /// The path of the step that asks, e.g. `build.plan`.
    pub step: String,
}

impl AskRequest {
    /// A question to a provider, in this directory, with nothing else set.
    pub fn new(
        provider: impl Into<String>,
        prompt: impl Into<String>,
        dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            provider: provider.into(),
            prompt: prompt.into(),
            system_prompt: None,
            options: Map::new(),
            session: None,
            keep_session: false,
            dir: dir.into(),
            env: BTreeMap::new(),
            timeout: None,
            tools: None,
            schema: None,
            step: String::new(),
        }
    }
}

/// How an agent is given the tools of the router.
#[derive(Debug, Clone)]
pub struct ToolAccess {
    /// The router, for providers whose tool calls Quipu makes itself.
    pub router: Router,
    /// The program and arguments of an MCP server on stdin and stdout that serves the same tools, for CLI agents.
    pub server: Vec<String>,
    /// Whether the agent's own file and shell tools are turned off.
    pub intercept_builtins: bool,
}

/// A conversation that can go on.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SessionHandle {
    /// The provider that it is with.
    pub provider: String,
    /// The agent's own id of the session; `None` where the provider has none and the turns are sent again.
    pub id: Option<String>,
    /// The messages so far in the provider's own form, for providers that have no sessions.
    #[serde(default)]
    pub messages: Vec<Value>,
    /// The system prompt that the agent was given last. One that has not changed is not put before the prompt again.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// The tokens that were counted so far, for agents that report the sum of the whole session at each turn.
    #[serde(default)]
    pub counted: Option<quipu_agents::Tokens>,
}

/// Takes what happens while an agent answers. Called in order.
pub trait Hearer: Send {
    /// The program and arguments, or the address and body, as they are sent. Keys are not in it. Called once for a
    /// question, before anything else: not again for requests that are tried again or that give back tools' results.
    fn sent(&mut self, sent: Sent<'_>);
    /// An event: messages, tool calls and results as the agent reports them, calls to models, chunks, harness events.
    fn event(&mut self, body: Body, annotations: Annotations);
    /// Text of the answer as it streams, for the display.
    fn text(&mut self, text: &str);
    /// Bytes that the agent wrote to standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// Content that an event refers to by its hash, such as an image. Called before the event. Not kept by default.
    fn blob(&mut self, _attachment: &Attachment, _bytes: &[u8]) {}
}

/// What an agent is given, exactly.
#[derive(Debug, Clone, Copy)]
pub enum Sent<'a> {
    /// A program.
    Program {
        /// Its arguments, the program first.
        argv: &'a [String],
        /// What it reads on standard input.
        stdin: Option<&'a str>,
    },
    /// A request to a server.
    Request {
        /// The address, without credentials.
        url: &'a str,
        /// The body.
        body: &'a Value,
    },
    /// Nothing: nobody is asked, the reply is a stub's.
    Simulated,
}

/// What came of a question.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The agent's answer as text.
    pub output: String,
    /// The session, where it can go on.
    pub session: Option<SessionHandle>,
    /// The model that answered, as the agent names it.
    pub model: Option<String>,
    /// Tokens, in disjoint buckets; `None` where the agent does not say.
    pub usage: Option<Usage>,
    /// What it cost, as the agent says.
    pub cost: Option<Money>,
    /// The exit code of a program.
    pub exit_code: Option<i32>,
    /// Whether nobody was asked (stub mode, replies from a file or a transcript).
    pub simulated: bool,
}

/// Why a question has no answer. What was heard until then was handed to the [`Hearer`], and is in `heard`.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct AskError {
    /// What went wrong.
    pub why: AskFailure,
    /// What is known nevertheless: the text so far, tokens, the session.
    pub heard: Box<Answer>,
}

/// What went wrong with a question.
#[derive(Debug, thiserror::Error)]
pub enum AskFailure {
    /// The options do not fit the provider, or the provider is not known.
    #[error("{0}")]
    Request(String),
    /// The agent's program is not installed.
    #[error(
        "{program} was not found; install it, or run with --stub to go through the workflow without agents"
    )]
    Missing {
        /// Its name.
        program: String,
    },
    /// The program ended with an error.
    #[error("{program} ended with exit code {code}{}", said(.stderr))]
    Exit {
        /// Its name.
        program: String,
        /// The code.
        code: i32,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// The agent said that it failed.
    #[error("the agent failed: {0}")]
    Agent(String),
    /// The server answered with an error.
    #[error("the server answered {status}: {message}")]
    Server {
        /// The status.
        status: u16,
        /// What it says.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// The server could not be reached, or the answer broke off.
    #[error("{0}")]
    Connection(String),
    /// Its time was up.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        said => format!(": {said}"),
    }
}
