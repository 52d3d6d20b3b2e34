//! The command line, as one definition.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// The flight recorder and archive for AI agents
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(long, global = true, value_name = "DIR", help = HOME_HELP)]
    pub(crate) home: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const HOME_HELP: &str =
    "Where Quipu keeps its files [env: QUIPU_HOME] [default: quipu in the data directory]";

const AFTER_HELP: &str = "\
Exit: 0 done; 1 done and something was found; 2 wrong usage; 3 bad input data; 4 the environment
refused; 130 interrupted.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show one transcript
    Show(Show),
    /// Show the step tree of a run, across its child runs
    Tree(Tree),
    /// Show the end of a transcript, and follow it live
    Tail(Tail),
    /// Check transcripts: order, vocabulary, pairing, links, permissions
    Verify(Verify),
    /// Mend the torn end of transcripts; sets torn bytes aside, never destroys them
    Repair(Repair),
    /// Record events from standard input, one JSON object a line
    Emit(Emit),
    /// Record a small nested run, show its tree and verify it
    Demo(Demo),
}

/// How events are written out.
#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Write events as JSON lines, as they are in the file
    #[arg(long)]
    pub(crate) jsonl: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// A transcript's path, a run id, or the beginning of one
    #[arg(value_name = "RUN")]
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
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tree {
    /// A transcript's path, a run id, or the beginning of one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// A transcript's path, a run id, or the beginning of one
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Wait for more; goes on when the file is truncated or replaced
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
pub(crate) struct Verify {
    /// A transcript's path, a run id, or the beginning of one (can be repeated)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Repair {
    /// A transcript's path, a run id, or the beginning of one (can be repeated)
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

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
}

const EMIT_HELP: &str = r#"Each line is an event without seq, run_id and timestamp, which the recorder gives:
  {"type":"step.started","path":"build","iteration":0,"payload":{"name":"build","kind":"command"}}
Links (child_run_id, parent_run_id) and the additive fields (model, usage, duration_ms, …) may be
there as well. The seq of each event is written to standard output, one a line, once the event is as
durable as asked. A line that cannot be recorded is refused on standard error with its number, the
rest goes on, and the command ends with 3."#;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// In the file
    None,
    /// On disk, many events with one sync
    Group,
    /// On disk, a sync for each event
    Each,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Record in DIR/transcripts [default: a new directory below the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
}
