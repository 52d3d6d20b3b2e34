//! `quipu convert`, `quipu export`, `quipu log`

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use quipu_convert::Format;

use super::{Only, Rules};

#[derive(Debug, clap::Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct Convert {
    /// Files and run directories, in any format that is known; - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct Export {
    /// The ids of sessions or runs, beginnings of ids, or paths [default: all that the filters leave]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// All that the filters leave, sub-agents as well
    #[arg(long, help_heading = "Which sessions, without an id")]
    pub(crate) all: bool,
    #[command(flatten, next_help_heading = "Which sessions, without an id")]
    pub(crate) only: Only,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Keep it among the traces of Quipu's home instead, and say where (--to agentlog)
    #[arg(long, conflicts_with = "output")]
    pub(crate) keep: bool,
}

/// What is written, and where.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Target {
    /// In which format
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(crate) to: Format,
    /// Write to this file, or into this directory [default: standard output]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Write over files that are there
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Write what was not carried, and what was filled in, to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Exit 1 when something was not carried
    #[arg(long)]
    pub(crate) strict: bool,
    /// With --to otlp: put what was said into the spans as well
    #[arg(long)]
    pub(crate) content: bool,
    #[arg(
        long,
        help = "With --to otlp: name things as OpenInference does, which Phoenix reads"
    )]
    pub(crate) openinference: bool,
    /// With --to otlp: send it to this OTLP/HTTP endpoint
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    pub(crate) endpoint: Option<String>,
    /// With --endpoint: send this header as well, as NAME=VALUE (can be repeated)
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "endpoint")]
    pub(crate) headers: Vec<String>,
    /// With --endpoint: send protobuf, for endpoints that do not take JSON
    #[arg(long, requires = "endpoint")]
    pub(crate) protobuf: bool,
    /// With --to claude-code or codex: the directory to go on in [default: the session's; this one where none is known]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// With --to huggingface: copy logs as they are where the Hub shows them as they are
    #[arg(long)]
    pub(crate) native: bool,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// Encrypt the page (--to html), or open one, with the passphrase on the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

fn format_parser() -> impl clap::builder::TypedValueParser<Value = Format> {
    let values = Format::ALL
        .iter()
        .map(|format| PossibleValue::new(format.as_str()).help(format.about()));
    PossibleValuesParser::new(values)
        .try_map(|word| Format::from_word(&word).ok_or_else(|| format!("{word} is no format")))
}

const CONVERT_HELP: &str = "\
What a file is is decided from its content: any agent's log, a recorded run, a .agentlog trace, a normalized \
transcript, a page that Quipu wrote, ATIF, a Hugging Face session, inspect logs, ACP streams, run directories.

What the format has no place for, what it has to hold in another shape, and what had to be filled in is \
said on standard error. docs/formats says what becomes of what, for each of them.";

const EXPORT_HELP: &str = "\
What the format has no place for, what it has to hold in another shape, and what had to be filled in is \
said on standard error. docs/formats says what becomes of what, for each of them.";

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
