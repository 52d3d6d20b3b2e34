//! What a workflow file says, as types.
//!
//! [`load`](load::load) reads a file, [`check`](check::check) finds what is wrong with it. Every text that is filled in
//! at run time knows where in the file it begins ([`Text`]), so that an error at run time names file, line and column.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;

pub mod check;
pub mod diagnostic;
pub mod duration;
pub mod graph;
pub mod inputs;
pub mod keys;
pub mod load;
mod node;
pub mod places;
pub mod plan;
#[cfg(test)]
mod reference;
pub mod schema;
mod texts;
mod ways;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};

/// A place in a workflow file: line and column from 1. Both are 0 where the place is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, serde::Serialize)]
pub struct At {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A text of a workflow file and where it begins: a template, an expression or a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The text as it is in the file, before anything is filled in.
    pub text: String,
    /// Where it begins.
    pub at: At,
}

impl Text {
    /// A text from nowhere in particular.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            at: At::default(),
        }
    }
}

/// A workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// Its version, as the author counts.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What it takes, in the order of the file.
    pub inputs: Vec<Input>,
    /// Names of environment variables that must be set.
    pub env: Vec<Text>,
    /// The step it begins with.
    pub initial: Text,
    /// Its steps by name, in the order of the file.
    pub steps: IndexMap<String, Step>,
    /// What runs around it.
    pub hooks: WorkflowHooks,
    /// Plugins by the name that this file gives them.
    pub plugins: BTreeMap<String, String>,
    /// MCP servers by name, whose tools agent steps may be given.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// What a run may cost.
    pub budget: Option<Budget>,
    /// The file it was read from.
    pub file: PathBuf,
    /// The pack it belongs to.
    pub pack: Option<String>,
    /// SHA-256 of the file's bytes and of the templates it uses, in hexadecimal.
    pub digest: String,
}

/// An input of a workflow.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub at: At,
    /// What values it takes.
    pub kind: InputKind,
    /// What it is for.
    pub description: Option<String>,
    /// Whether a run needs it.
    pub required: bool,
    /// What it is when nothing is given.
    pub default: Option<Value>,
    /// What its value must fulfil.
    pub validation: Validation,
}

/// What values an input takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputKind {
    /// Any text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
}

/// What the value of an input must fulfil.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    /// A regular expression that matches it.
    pub pattern: Option<Text>,
    /// The values it may have.
    pub allowed: Vec<String>,
    /// The least number.
    pub min: Option<i64>,
    /// The greatest number.
    pub max: Option<i64>,
    /// Whether it names a file that exists.
    pub file_exists: bool,
    /// Endings of file names, with their dot.
    pub file_extension: Vec<String>,
}

/// One step.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name, unique in the workflow.
    pub name: String,
    /// Where it is defined.
    pub at: At,
    /// What it is for.
    pub description: Option<String>,
    /// What it does.
    pub action: Action,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// Where the run goes when it succeeds.
    pub on_success: Option<Text>,
    /// Where the run goes when it fails.
    pub on_failure: Option<OnFailure>,
    /// Where the run goes, the first that holds.
    pub transitions: Vec<Transition>,
    /// Whether the run goes on as after a success when it fails.
    pub continue_on_error: bool,
    /// How often it is tried again.
    pub retry: Option<Retry>,
    /// What runs before each step and after it.
    pub hooks: StepHooks,
    /// Names under which the output is kept in `states.<step>.Data`.
    pub capture: Option<Capture>,
    /// Steps that must have succeeded before.
    pub depends_on: Vec<Text>,
    /// What it may cost.
    pub budget: Option<Budget>,
    /// Templates inside its maps and lists (`options`, `inputs`, `items`, …), with their places.
    pub texts: Vec<Text>,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Asks an agent.
    Agent(Box<AgentStep>),
    /// Runs a shell command.
    Command(CommandStep),
    /// Runs an operation of Quipu or of a plugin.
    Operation(OperationStep),
    /// Ends the run.
    Terminal(TerminalStep),
    /// Runs several steps at once.
    Parallel(ParallelStep),
    /// Runs steps for each item.
    ForEach(ForEachStep),
    /// Runs steps while a condition holds.
    While(WhileStep),
    /// Runs another workflow.
    CallWorkflow(CallStep),
    /// Waits for a person's consent.
    Approval(ApprovalStep),
    /// Works out values.
    Set(SetStep),
    /// Waits.
    Wait(WaitStep),
    /// A kind of step that a plugin gives.
    Custom(CustomStep),
}

/// Asks an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentStep {
    /// Which provider: `claude`, `codex`, …; a template.
    pub provider: Text,
    /// What is asked. One of this and `prompt_file`.
    pub prompt: Option<Text>,
    /// A file that holds the prompt.
    pub prompt_file: Option<Text>,
    /// Instructions that come before the prompt.
    pub system_prompt: Option<Text>,
    /// A role whose `AGENTS.md` comes before the system prompt.
    pub role: Option<Text>,
    /// Skills whose texts are put before the prompt.
    pub skills: Vec<Text>,
    /// Options of the provider; texts in it are templates.
    pub options: serde_json::Map<String, Value>,
    /// One question, or a conversation with a person.
    pub mode: AgentMode,
    /// Whether the agent's session is kept for later steps, and which one it continues.
    pub conversation: Option<Conversation>,
    /// How the answer reads.
    pub output_format: OutputFormat,
    /// A JSON Schema that the answer must fit.
    pub output: Option<OutputSchema>,
    /// Commands that must pass.
    pub checks: Vec<Check>,
    /// How often the agent is asked again when checks fail.
    pub max_check_rounds: u32,
    /// Tools that Quipu gives the agent.
    pub mcp_proxy: Option<McpProxy>,
    /// The directory the agent works in.
    pub dir: Option<Text>,
}

/// One question, or a conversation with a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentMode {
    /// One question.
    #[default]
    Single,
    /// Questions until a person ends it.
    Conversation,
}

/// How an agent's session goes on.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The step whose session is continued.
    pub continue_from: Option<Text>,
}

/// How an answer reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// As text; a code fence around all of it is removed.
    #[default]
    Text,
    /// As JSON, into `states.<step>.JSON`.
    Json,
}

/// A JSON Schema that an answer must fit.
#[derive(Debug, Clone)]
pub struct OutputSchema {
    /// The schema.
    pub schema: Value,
    /// How often an answer that does not fit is sent back.
    pub max_corrections: u32,
}

/// A command that must pass after an agent has answered.
#[derive(Debug, Clone)]
pub struct Check {
    /// What it is called.
    pub name: Option<String>,
    /// The command; a template.
    pub command: Text,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// Tools that Quipu gives an agent.
#[derive(Debug, Clone, Default)]
pub struct McpProxy {
    /// Whether it is on.
    pub enable: bool,
    /// Whether the agent's own file and shell tools are replaced by Quipu's.
    pub intercept_builtins: bool,
    /// Tools of plugins: the plugin, and which of its operations.
    pub plugin_tools: Vec<(String, Vec<String>)>,
    /// Names of MCP servers of the workflow.
    pub servers: Vec<String>,
}

/// An MCP server that tools come from.
#[derive(Debug, Clone, Default)]
pub struct McpServer {
    /// The program and its arguments, for a server on stdin and stdout.
    pub command: Vec<String>,
    /// Variables that are set for it; texts are templates.
    pub env: BTreeMap<String, String>,
    /// The address, for a server over HTTP.
    pub url: Option<String>,
    /// Headers for a server over HTTP; texts are templates.
    pub headers: BTreeMap<String, String>,
}

/// Runs a shell command.
#[derive(Debug, Clone, Default)]
pub struct CommandStep {
    /// The command; a template. One of this and `script_file`.
    pub command: Option<Text>,
    /// A file that holds it.
    pub script_file: Option<Text>,
    /// The directory it runs in; a template.
    pub dir: Option<Text>,
    /// Variables that are set for it; texts are templates.
    pub env: BTreeMap<String, String>,
}

/// Runs an operation.
#[derive(Debug, Clone, Default)]
pub struct OperationStep {
    /// Its name, e.g. `http.request`.
    pub operation: Text,
    /// What it is given; texts are templates.
    pub inputs: serde_json::Map<String, Value>,
}

/// Ends the run.
#[derive(Debug, Clone, Default)]
pub struct TerminalStep {
    /// Whether the run failed.
    pub failure: bool,
    /// What is said; a template.
    pub message: Option<Text>,
    /// The exit code; 0 for success and 1 for failure unless it is given.
    pub exit_code: Option<u8>,
}

/// Runs several steps at once.
#[derive(Debug, Clone, Default)]
pub struct ParallelStep {
    /// The steps.
    pub branches: Vec<Text>,
    /// When it succeeds.
    pub strategy: Strategy,
    /// How many run at once; all unless it is given.
    pub max_concurrent: Option<usize>,
}

/// When a parallel step succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// When every branch does. The first failure cancels the others.
    #[default]
    AllSucceed,
    /// When one branch does. The first success cancels the others.
    AnySucceed,
    /// Always, when all branches have ended.
    BestEffort,
}

/// Runs steps for each item.
#[derive(Debug, Clone, Default)]
pub struct ForEachStep {
    /// The items.
    pub items: Items,
    /// The loop.
    pub body: LoopBody,
}

/// What a loop goes over.
#[derive(Debug, Clone)]
pub enum Items {
    /// A template that gives a JSON array, or words with commas between them.
    Template(Text),
    /// A list of the file; texts in it are templates.
    List(Vec<Value>),
}

impl Default for Items {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

/// Runs steps while a condition holds.
#[derive(Debug, Clone, Default)]
pub struct WhileStep {
    /// The condition; an expression.
    pub condition: Text,
    /// The loop.
    pub body: LoopBody,
}

/// What loops have in common.
#[derive(Debug, Clone, Default)]
pub struct LoopBody {
    /// The steps, in order.
    pub steps: Vec<Text>,
    /// How many iterations there may be: a number, or a template with arithmetic.
    pub max_iterations: Option<Text>,
    /// Ends the loop after an iteration; an expression.
    pub break_when: Option<Text>,
    /// Where the run goes after the loop.
    pub on_complete: Option<Text>,
}

/// Runs another workflow.
#[derive(Debug, Clone, Default)]
pub struct CallStep {
    /// Its name, `pack/name` or path; a template.
    pub workflow: Text,
    /// What it is given; texts are templates.
    pub inputs: serde_json::Map<String, Value>,
    /// What is taken from it: our name, and a step of the called workflow or a template over its values.
    pub outputs: IndexMap<String, Text>,
}

/// Waits for a person's consent.
#[derive(Debug, Clone, Default)]
pub struct ApprovalStep {
    /// What is asked; a template.
    pub message: Text,
    /// Who may consent: user names. Anybody when it is empty.
    pub approvers: Vec<String>,
    /// Whether whoever started the run may not consent.
    pub not_starter: bool,
}

/// Works out values, which are then `states.<step>.Data.<name>`.
#[derive(Debug, Clone, Default)]
pub struct SetStep {
    /// Names and templates, worked out in order.
    pub values: IndexMap<String, Value>,
}

/// Waits.
#[derive(Debug, Clone, Default)]
pub struct WaitStep {
    /// How long: a duration; a template.
    pub duration: Option<Text>,
    /// Until when: a time in RFC 3339; a template.
    pub until: Option<Text>,
}

/// A kind of step that a plugin gives.
#[derive(Debug, Clone, Default)]
pub struct CustomStep {
    /// The kind, e.g. `database.query`.
    pub kind: String,
    /// What it is given; texts are templates.
    pub config: serde_json::Map<String, Value>,
}

/// Where the run goes when a step fails.
#[derive(Debug, Clone)]
pub enum OnFailure {
    /// To a step.
    Step(Text),
    /// The run ends.
    Inline {
        /// What is said; a template.
        message: Option<Text>,
        /// The exit code of the run, from 1.
        status: u8,
    },
}

/// Where a run goes, if a condition holds.
#[derive(Debug, Clone)]
pub struct Transition {
    /// The condition; an expression. Always when it is `None`.
    pub when: Option<Text>,
    /// The step.
    pub goto: Text,
}

/// How often a step is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// How often it is tried, the first included.
    pub max_attempts: u32,
    /// The delay before the second attempt.
    pub initial_delay: Duration,
    /// The longest delay; no limit when it is zero.
    pub max_delay: Duration,
    /// How delays grow.
    pub backoff: Backoff,
    /// The factor of exponential growth.
    pub multiplier: f64,
    /// How far a delay may differ, as a part of it: 0 to 1.
    pub jitter: f64,
    /// Only these exit codes are tried again; all when it is empty.
    pub retryable_exit_codes: Vec<i32>,
}

/// How delays between attempts grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    /// They do not.
    #[default]
    Constant,
    /// By the initial delay each time.
    Linear,
    /// By the multiplier each time.
    Exponential,
}

/// Names under which output is kept.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    /// For standard output.
    pub stdout: Option<String>,
    /// For standard error.
    pub stderr: Option<String>,
    /// The most bytes that are kept under a name.
    pub max_size: Option<u64>,
}

/// What runs around a workflow.
#[derive(Debug, Clone, Default)]
pub struct WorkflowHooks {
    /// Before the first step. A failure ends the run.
    pub workflow_start: Vec<Hook>,
    /// After a run that succeeded.
    pub workflow_end: Vec<Hook>,
    /// After a run that failed; `error` is defined.
    pub workflow_error: Vec<Hook>,
    /// After a run that was cancelled.
    pub workflow_cancel: Vec<Hook>,
}

/// What runs around a step.
#[derive(Debug, Clone, Default)]
pub struct StepHooks {
    /// Before it.
    pub pre: Vec<Hook>,
    /// After it.
    pub post: Vec<Hook>,
}

/// One thing that runs beside steps.
#[derive(Debug, Clone)]
pub enum Hook {
    /// Says something; a template.
    Log(Text),
    /// Runs a shell command; a template.
    Command(Text),
}

/// What may be spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Dollars.
    pub usd: f64,
    /// Whether more than that ends the run, or is only said.
    pub enforce: bool,
}
