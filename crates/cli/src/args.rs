//! The command line, as one definition.

mod agentlog;
mod annotate;
mod convert;
mod redact;
mod run;
mod serve;
mod stats;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use agentlog::{
    Agentlog, AgentlogCommand, AtDirectory, Gc, Get, GetBlob, Keep, ListBlobs, ListTraces,
};
pub(crate) use annotate::{Label, LabelAction, Note};
pub(crate) use convert::{Convert, Export, Log, Target};
pub(crate) use redact::{Keys, KeysCommand, Redact, Rules, Shape, Share, ShareAs};
pub(crate) use run::{GraphFormat, McpProxy, McpServe, Run};
pub(crate) use serve::{LogForm, LogLevel, Serve, Up, address};
pub(crate) use stats::{BlocksArgs, BudgetArgs, Explain, Stats, StatsCommand, WasteArgs, Which};

/// The flight recorder and archive for AI agents
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Without a command: write what is on this machine as one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = HOME_HELP,
        help_heading = "Global options"
    )]
    pub(crate) home: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Global options")]
    pub(crate) color: colorchoice_clap::Color,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const HOME_HELP: &str =
    "Where Quipu keeps its files [env: QUIPU_HOME] [default: quipu in the data directory]";

const AFTER_HELP: &str = "\
Without a command, shows what agents' sessions are on this machine and what is kept of them. Nothing \
is written.

Exit: 0 done; 1 done and something was found; 2 wrong usage; 3 bad input data; 4 the environment \
refused; 130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The main job: import what is on this machine, keep watching, and serve it on loopback
    Up(Box<Up>),
    /// Serve what is kept over HTTP: the API, live streams, submissions
    Serve(Box<Serve>),
    /// Find, read and keep agents' sessions; what is kept and has not changed is left alone
    Import(Import),
    /// List sessions and runs, one a line
    List(List),
    /// Look for what was said, in everything that is kept
    Search(Search),
    /// What it came to: tokens, dollars, turns, tools and time
    Stats(Box<Stats>),
    /// Put labels on sessions, runs and their events, take them away, or list them
    Label(Label),
    /// Write notes on sessions, runs and their events, or read them
    Note(Note),
    /// Show one session or run
    Show(Show),
    /// Show a session with its sub-agents, or the step tree of a run across its child runs
    Tree(Tree),
    /// Show the end of a transcript, and follow it live
    Tail(Tail),
    /// Check transcripts and traces: order, vocabulary, pairing, links; ids and every rule of .agentlog
    Verify(Verify),
    /// Mend the torn end of transcripts, setting torn bytes aside; ids and parents of traces, into a new file
    Repair(Repair),
    /// Run a workflow: every step, message and tool call is recorded
    Run(Box<Run>),
    /// Record events from standard input, one JSON object a line
    Emit(Emit),
    /// Stand between an agent and an MCP server, and record the tool calls
    McpProxy(McpProxy),
    /// Connect an agent to the tools of a run that is under way
    #[command(hide = true)]
    McpServe(McpServe),
    /// Turn files of one format into another, and say what that cannot carry
    Convert(Box<Convert>),
    /// Write sessions and runs in another format, one or many, and say what that cannot carry
    Export(Box<Export>),
    /// Take secrets out of any JSONL, JSON or text, and leave the rest as it is; --check only looks
    Redact(Box<Redact>),
    /// Share a session: remove what a profile says, look it over, then write it or submit it
    Share(Box<Share>),
    /// Submission keys: make, list and revoke
    Keys(Keys),
    /// Show a trace as the graph it is: each record under the one it follows
    Log(Log),
    /// Traces in the .agentlog format: keep, list, and the format itself for other programs
    Agentlog(Agentlog),
    /// Print the agent's own command that continues a session
    Resume(Resume),
    /// Forget sessions: by age, size, project or agent; agents' own files are never touched
    Prune(Prune),
    /// Check what is kept, and say what adapters do not know
    Doctor(Doctor),
}

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Import {
    /// Files and directories [default: wherever agents keep sessions on this machine]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only sessions of this agent, by name or the beginning of it (can be repeated)
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Look and count, but keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on, and import what changes as it changes
    #[arg(long, conflicts_with_all = ["dry_run", "rebuild", "json"])]
    pub(crate) watch: bool,
    /// Make the catalogue and the search index again from the archive, and mend what is damaged in it; of agents' files,
    /// only those are looked at that are damaged here
    #[arg(long, conflicts_with_all = ["dry_run", "paths"])]
    pub(crate) rebuild: bool,
    /// How many logs are read at the same time [default: as many as there are processors]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Remove what the rules of this profile find before anything is kept [default: as the configuration says, else
    /// nothing]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) redact: Option<String>,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const IMPORT_HELP: &str = "\
The original bytes are kept first and read second. What is wrong with a single log is said once on \
standard error and does not fail the import. Exit 1 when something that was kept is lost; exit 3 when a given \
path is not there or nothing in it is a log that is known.";

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) only: Only,
    /// Sub-agents and copies as well
    #[arg(long)]
    pub(crate) all: bool,
    /// In which order
    #[arg(long, value_enum, default_value_t = Sort::Newest)]
    pub(crate) sort: Sort,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) jsonl: bool,
}

/// Sessions, by what is known of them.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Only {
    /// Only sessions of this agent, by name or the beginning of it (can be repeated)
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Only sessions in this directory or below it: a path, or the beginning of a name in one
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
    /// Only sessions on this branch
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// Only sessions with this model, by name or a part of it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Only sessions whose title has this text in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Only sessions with this label, on themselves or on any of their events
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Only sessions that went on at or after this: a date, a time, today, yesterday, a weekday, or an age such as 24h, 7d, 2w, 3mo, 1y
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only sessions that began before this; a day is named to its end
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only what others submitted to this home
    #[arg(long)]
    pub(crate) received: bool,
    /// Only what this submitter sent: a pseudonym, or the beginning of one
    #[arg(long, value_name = "PSEUDONYM")]
    pub(crate) submitter: Option<String>,
}

impl Only {
    /// Whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            agents,
            project,
            branch,
            model,
            title,
            label,
            since,
            until,
            received,
            submitter,
        } = self;
        let texts = [
            project, branch, model, title, label, since, until, submitter,
        ];
        !received && agents.is_empty() && texts.iter().all(|text| text.is_none())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// The latest first
    Newest,
    /// The earliest first
    Oldest,
    /// The most tokens first
    Tokens,
    /// The longest logs first
    Size,
    /// The most events first
    Events,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SEARCH_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Search {
    /// What to look for
    #[arg(value_name = "QUERY", required = true)]
    pub(crate) query: Vec<String>,
    /// The query is a regular expression, looked for in the archive itself
    #[arg(long, conflicts_with_all = ["sort", "count", "context"])]
    pub(crate) regex: bool,
    /// What comes first
    #[arg(long, value_enum, default_value_t = SearchSort::Relevance)]
    pub(crate) sort: SearchSort,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Show so many events before and after each
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) context: u64,
    /// Only say how many events match
    #[arg(long)]
    pub(crate) count: bool,
    /// Also what stands in copies of sessions
    #[arg(long)]
    pub(crate) copies: bool,
    /// Show secrets that stand in what is found, as they are
    #[arg(long)]
    pub(crate) reveal: bool,
    #[arg(
        long,
        help = "Do not ask the server that runs for this home [env: QUIPU_NO_SERVER]"
    )]
    pub(crate) no_server: bool,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) jsonl: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchSort {
    /// What fits best
    Relevance,
    /// The latest
    Newest,
    /// What was said in the dearest sessions
    Cost,
}

const SEARCH_HELP: &str = r#"Words must all be there; "a phrase" in quotation marks, a OR b, -not, begin*, a NEAR b.
Filters: agent: model: role: tool: project: path: branch: since: until: status: has:error cost:>1 session: title:
  quipu search 'retry "connection reset" tool:bash since:7d'
  quipu search 'path:src/auth -agent:codex' --sort newest
A query that begins with - comes after --. docs/search.md has all of it."#;

#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The id of a session, or the beginning of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Run it, in the session's directory
    #[arg(long)]
    pub(crate) run: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = PRUNE_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Prune {
    /// Only sessions whose last event is older than this, such as 90d, 12w, 6mo, 1y
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Only sessions whose log is larger than this, such as 500MB, 2GB
    #[arg(long, value_name = "SIZE")]
    pub(crate) larger_than: Option<String>,
    /// Only sessions in this directory or below it: a path, or a whole name in one
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<String>,
    /// Only sessions of this agent, by its whole name (can be repeated)
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// Do it; without this it is only said what would go
    #[arg(long)]
    pub(crate) yes: bool,
    /// With --yes: also what exists only here, because the agent's own log is gone
    #[arg(long, requires = "yes")]
    pub(crate) last_copies: bool,
    /// With --yes: also the labels and notes that people put on them, which are kept otherwise
    #[arg(long, requires = "yes")]
    pub(crate) annotations: bool,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const PRUNE_HELP: &str = "\
At least one filter is needed; of several, all must apply. What is removed is written down in \
<home>/receipts. A log that its agent still has is imported again by \
the next import.";

#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Doctor {
    /// Show record types and fields that adapters do not know, with an example of each
    #[arg(long)]
    pub(crate) drift: bool,
    /// Read everything that is kept, and check it against its name
    #[arg(long)]
    pub(crate) check: bool,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_HELP: &str = "\
Exit 1 when something needs attention: what is kept is damaged, a log could not be read wholly, others \
can read the home. What adapters do not know is kept as notes and is no such thing; that alone is \
exit 0.";

/// How events are written out.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Write events as JSON lines, as they are in the file but for escapes
    #[arg(long)]
    pub(crate) jsonl: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The id of a session or run, the beginning of one, or the path of a transcript or any agent's log
    #[arg(value_name = "ID")]
    pub(crate) run: String,
    /// Only events from this one on
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    pub(crate) from: u64,
    /// Only events up to this one
    #[arg(long, value_name = "SEQ", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) to: u64,
    /// Only events of this type (can be repeated)
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Show texts in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Show a session event by event, with notes, instead of as a conversation
    #[arg(long)]
    pub(crate) events: bool,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tree {
    /// The id of a session or run, the beginning of one, or the path of a transcript
    #[arg(value_name = "ID")]
    pub(crate) run: String,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// A transcript's path, the id of a run or session, or the beginning of one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Wait for more; goes on when the file is truncated or replaced. A session's log is imported as it grows
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many events to begin with
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 10,
        conflicts_with = "from"
    )]
    pub(crate) events: u64,
    /// Begin with this event
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// Show texts in full
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY_HELP)]
pub(crate) struct Verify {
    /// A transcript's path, a run id, or the beginning of one; an .agentlog trace, or - for one on standard
    /// input (can be repeated)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Of a shared transcript: check that it is this session without what it says was removed
    #[arg(long, value_name = "ID")]
    pub(crate) against: Option<String>,
    /// Of traces: allow kinds, versions and words that only a newer format may have
    #[arg(long)]
    pub(crate) permissive: bool,
    /// Of traces: how many threads look at records [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten, next_help_heading = "Limits of traces")]
    pub(crate) caps: agentlog::Caps,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

const VERIFY_HELP: &str = "\
A trace is a file whose name ends in .agentlog, or whose first record has an id that begins with sha256:. \
Exit 0 when nothing but notes was found, 1 otherwise. docs/agentlog.md has every rule.";

#[derive(Debug, clap::Args)]
#[command(after_help = REPAIR_HELP)]
#[command(group = clap::ArgGroup::new("mends").args(["rehash", "relink", "drop_torn"]).multiple(true).requires("output"))]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Repair {
    /// A transcript's path, a run id, or the beginning of one; an .agentlog trace, or - for one on standard
    /// input (can be repeated)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Of a trace: make every id again; what names a record by its id follows
    #[arg(long)]
    pub(crate) rehash: bool,
    /// Of a trace: hang records anew whose parent is missing, unknown or of the wrong kind
    #[arg(long)]
    pub(crate) relink: bool,
    /// Of a trace: leave out a last line that was cut off
    #[arg(long)]
    pub(crate) drop_torn: bool,
    /// Of a trace: where the mended one is written, which must not exist
    #[arg(short, long, value_name = "FILE", requires = "mends")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Limits of traces")]
    pub(crate) caps: agentlog::Caps,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const REPAIR_HELP: &str = "\
A transcript is mended in place; what was torn is set aside. An .agentlog trace is never changed: without \
--rehash, --relink or --drop-torn it is only said what could be mended (exit 1 when there is something), and \
with them a new file is written. Exit 1 as well when something is left that `quipu verify` finds.";

#[derive(Debug, clap::Args)]
#[command(after_help = EMIT_HELP)]
pub(crate) struct Emit {
    /// The run to record to; continued if it exists
    #[arg(long, value_name = "ID")]
    pub(crate) run: String,
    /// Record in DIR/transcripts [default: Quipu's home]
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    /// When an event is acknowledged
    #[arg(long, value_enum, default_value_t = Durability::Group)]
    pub(crate) durability: Durability,
    /// The run that called this one
    #[arg(long, value_name = "ID")]
    pub(crate) parent: Option<String>,
    /// Write an .agentlog trace of the run as well, live [default: traces/ab/cdef….agentlog, named by its root]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "not given, given, and given with a file: how clap says so"
    )]
    pub(crate) agentlog: Option<Option<PathBuf>>,
    #[arg(
        long,
        help = "Mask secrets before anything is written [env: QUIPU_MASK]"
    )]
    pub(crate) mask: bool,
}

const EMIT_HELP: &str = r#"Each line is an event without seq, run_id and timestamp, which the recorder gives:
  {"type":"step.started","path":"build","iteration":0,"payload":{"name":"build","kind":"command"}}
  {"type":"message.user","path":"review","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"Go on."}]}}
  {"type":"tool.call","path":"review","payload":{"name":"Read","call_id":"t1","input":{"path":"a"},"fidelity":"router"}}
Types are run.started, run.completed, step.started, step.completed, step.call_workflow.started, step.call_workflow.completed, message.user, message.assistant, tool.call and tool.result; docs/formats/exchange.md shows each.
Links (child_run_id, parent_run_id) and the additive fields (model, usage, duration_ms, …) may be there as well. The seq of each event is written to standard output, one a line, once the event is as durable as asked. A line that cannot be recorded is refused on standard error with its number, the rest goes on, and the command ends with 3."#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// In the file
    None,
    /// On disk, many events with one sync
    Group,
    /// On disk, a sync for each event
    Each,
}
