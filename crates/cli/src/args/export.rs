//! `quipu export`, `quipu log`

use std::path::PathBuf;

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct Export {
    /// The id of a session or run, the beginning of one, or the path of a transcript or any agent's log
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// In which format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) to: Format,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "keep")]
    pub(crate) output: Option<PathBuf>,
    /// Write over the file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Keep it among the traces of Quipu's home instead, and say where
    #[arg(long)]
    pub(crate) keep: bool,
    /// Write what was not carried, and what was filled in, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit 1 when something was not carried
    #[arg(long)]
    pub(crate) strict: bool,
}

const EXPORT_HELP: &str = "\
What the format has no place for, what it has to hold in another shape, and what had to be filled in is \
said on standard error. docs/agentlog.md says what becomes of what.";

/// What a session can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A trace of content-addressed records
    Agentlog,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    /// A trace: its path, its id, or the beginning of it; or a session or run, which is shown as the trace it would be
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only records of this kind, without the graph (can be repeated)
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// At most so many records; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) limit: u64,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) jsonl: bool,
}
