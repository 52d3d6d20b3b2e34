//! The arguments of `quipu run`, `quipu mcp-serve` and `quipu mcp-proxy`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Run {
    /// The workflow: its name, pack/name, or its file
    #[arg(value_name = "WORKFLOW", required_unless_present_any = ["resume", "list", "schema"])]
    pub(crate) workflow: Option<String>,
    /// An input of the workflow; NAME=@FILE reads it from a file (can be repeated)
    #[arg(short, long = "input", value_name = "NAME=VALUE")]
    pub(crate) inputs: Vec<String>,

    /// Check the workflow, say all that is wrong with it, and run nothing
    #[arg(long, help_heading = "Look first")]
    pub(crate) validate: bool,
    /// Show what would run, and run nothing
    #[arg(long, help_heading = "Look first")]
    pub(crate) dry_run: bool,
    /// Draw the workflow
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Look first")]
    pub(crate) graph: Option<GraphFormat>,
    /// List the workflows that can be run by name
    #[arg(long, help_heading = "Look first")]
    pub(crate) list: bool,
    /// Print the JSON Schema of workflow files, for editors
    #[arg(long, help_heading = "Look first")]
    pub(crate) schema: bool,

    /// Go on with a run: steps that ended answer from its transcript
    #[arg(long, value_name = "ID", help_heading = "Go on", conflicts_with_all = ["dry_run", "validate", "graph"])]
    pub(crate) resume: Option<String>,
    /// Run again from this step on, by its path
    #[arg(long, value_name = "STEP", requires = "resume", help_heading = "Go on")]
    pub(crate) from: Option<String>,
    /// Consent to what the run waits for
    #[arg(
        long,
        value_name = "TOKEN",
        requires = "resume",
        help_heading = "Go on"
    )]
    pub(crate) approve: Option<String>,
    /// Refuse what the run waits for
    #[arg(
        long,
        value_name = "TOKEN",
        requires = "resume",
        conflicts_with = "approve",
        help_heading = "Go on"
    )]
    pub(crate) deny: Option<String>,

    #[arg(
        help = "Ask no agent: give fixed replies marked [STUB], or those of a file or a kept transcript",
        long, value_name = "FILE|ID", num_args = 0..=1, require_equals = true, help_heading = "How it runs")]
    #[expect(
        clippy::option_option,
        reason = "not given, given, and given with a value: how clap says so"
    )]
    pub(crate) stub: Option<Option<String>>,
    /// The directory that steps begin in and tools may not leave [default: the current directory]
    #[arg(long, value_name = "DIR", help_heading = "How it runs")]
    pub(crate) root: Option<PathBuf>,
    /// End the run when it has cost more than this, in dollars
    #[arg(long, value_name = "DOLLARS", help_heading = "How it runs")]
    pub(crate) budget_usd: Option<f64>,
    /// Only say when the budget is spent
    #[arg(long, requires = "budget_usd", help_heading = "How it runs")]
    pub(crate) audit_budget: bool,

    /// Record in DIR/transcripts [default: Quipu's home]
    #[arg(long, value_name = "DIR", help_heading = "The record")]
    pub(crate) storage: Option<PathBuf>,
    /// Write an .agentlog trace of the run as well, live [default: traces/ab/cdef….agentlog, named by its root]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, help_heading = "The record")]
    #[expect(
        clippy::option_option,
        reason = "not given, given, and given with a file: how clap says so"
    )]
    pub(crate) agentlog: Option<Option<PathBuf>>,
    /// Write a transcript and a receipt for each agent step as well, in the run's directory below runs
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "The record")]
    pub(crate) artifacts: Option<Artifacts>,
    #[arg(
        long,
        help = "Mask secrets before anything is written [env: QUIPU_MASK]",
        help_heading = "The record"
    )]
    pub(crate) mask: bool,
    /// Go on when the run cannot be recorded
    #[arg(long, help_heading = "The record")]
    pub(crate) unrecorded: bool,

    /// Write every event to standard output as it is recorded, one JSON object a line
    #[arg(long, help_heading = "What is shown")]
    pub(crate) json: bool,
    /// Show only how the run ended
    #[arg(short, long, help_heading = "What is shown")]
    pub(crate) quiet: bool,
    /// Show the output of steps as it comes
    #[arg(short, long, conflicts_with = "quiet", help_heading = "What is shown")]
    pub(crate) verbose: bool,
}

const RUN_HELP: &str = "\
Examples:
  quipu run review.yaml --validate            what is wrong with a workflow, all at once
  quipu run review.yaml -i file=main.rs       run it
  quipu run review.yaml --stub                go through it without asking an agent
  quipu run --resume last                     go on with the last run
  quipu run --resume 3f2a --from build        run it again from the step build

Exit: 0 the run succeeded; 1 it failed or waits for an approval (a workflow may say another code); 2 wrong usage; \
3 the workflow is wrong; 4 it cannot be recorded; 130 cancelled. Ctrl-C cancels, a second one kills.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
    /// For a terminal
    Text,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Artifacts {
    /// `<flow>/llm/*.jsonl` and `<flow>/receipts/*.json`
    Flow,
}

/// Connects standard input and output to the tools of a run that is under way.
#[derive(Debug, clap::Args)]
pub(crate) struct McpServe {
    /// The socket of the run
    #[arg(long, value_name = "SOCKET")]
    pub(crate) connect: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MCP_PROXY_HELP)]
pub(crate) struct McpProxy {
    /// The run to record to; continued if it exists [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Record in DIR/transcripts [default: Quipu's home]
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    #[arg(
        long,
        help = "Mask secrets before anything is written [env: QUIPU_MASK]"
    )]
    pub(crate) mask: bool,
    /// The server and its arguments
    #[arg(value_name = "SERVER", last = true, required = true)]
    pub(crate) server: Vec<OsString>,
}

const MCP_PROXY_HELP: &str = "\
Put it before the server in an agent's configuration:
  quipu mcp-proxy -- npx some-mcp-server --flag
Bytes pass through as they are, both ways. Tool calls and their results are recorded as a run.";
