//! `quipu agentlog`

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(crate) struct Agentlog {
    #[command(subcommand)]
    pub(crate) what: AgentlogCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentlogCommand {
    /// Read a trace from standard input, write its records as one JSON array
    Parse(Caps),
    /// Read a JSON array of records from standard input, write a trace
    Write,
    /// Read a JSON value from standard input, write its canonical form
    Canon,
    /// Read a payload from standard input, write its id
    Id,
    /// Keep traces, each by the id of its root; nothing that is kept is ever overwritten
    Keep(Keep),
    /// List traces that are kept
    List(ListTraces),
    /// Write a trace as it was kept
    Get(Get),
    /// List blobs: their types and sizes, what pictures look like, and who refers to them
    Blobs(ListBlobs),
    /// Write a blob, by its id or its agentlog-blob:// address
    Blob(GetBlob),
    /// Find blobs that nothing refers to; --yes removes them
    Gc(Gc),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Keep {
    /// Traces; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<std::path::PathBuf>,
    /// Also keep a trace whose root does not have the id that its payload has
    #[arg(long)]
    pub(crate) wrong_root: bool,
    #[command(flatten)]
    pub(crate) caps: Caps,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListTraces {
    /// Only traces whose root has this tag, with this value if there is one (can be repeated)
    #[arg(long = "tag", value_name = "KEY[=VALUE]")]
    pub(crate) tags: Vec<String>,
    /// Only traces with a session of this tag (can be repeated)
    #[arg(long = "session-tag", value_name = "TAG")]
    pub(crate) session_tags: Vec<String>,
    /// Only traces with records of this kind (can be repeated)
    #[arg(long = "kind", value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    /// Only traces in which this model was asked or answered (can be repeated)
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) models: Vec<String>,
    /// Only traces in which this tool was called (can be repeated)
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Only traces that went on at or after this: a date, a time, today, yesterday, a weekday, or an age such as 24h, 7d, 2w, 3mo, 1y
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only traces that began before this; a day is named to its end
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only replays of this trace
    #[arg(long, value_name = "ID")]
    pub(crate) replays_of: Option<String>,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) at: AtDirectory,
    /// Write one JSON document
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Write one JSON object a line
    #[arg(long)]
    pub(crate) jsonl: bool,
}

/// Where traces are.
#[derive(Debug, clap::Args)]
pub(crate) struct AtDirectory {
    /// Traces of this directory, such as a .shadow, which is only read
    #[arg(long, value_name = "DIR")]
    pub(crate) at: Option<std::path::PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// The id of a trace, or the beginning of it; with ~ and the beginning of the file's hash where two have the same
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Write to this file, which must not be there, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) at: AtDirectory,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListBlobs {
    /// Only pictures that look like this one: a blob, or a picture file
    #[arg(long, value_name = "ID|FILE")]
    pub(crate) near: Option<String>,
    #[command(flatten)]
    pub(crate) at: AtDirectory,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GetBlob {
    /// Its address, its id (sha256:…), or the beginning of the digits
    #[arg(value_name = "URI|ID")]
    pub(crate) id: String,
    /// Write to this file, which must not be there, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) at: AtDirectory,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Gc {
    /// Remove them
    #[arg(long)]
    pub(crate) yes: bool,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is read at most.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of flags")]
pub(crate) struct Caps {
    /// The longest line, with its end, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    pub(crate) max_line: usize,
    /// The longest trace, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    pub(crate) max_total: u64,
    /// The deepest nesting
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) max_depth: usize,
}

impl Caps {
    pub(crate) fn limits(&self) -> quipu_exchange::lines::Limits {
        quipu_exchange::lines::Limits {
            max_line_bytes: self.max_line,
            max_total_bytes: self.max_total,
            max_depth: self.max_depth,
        }
    }
}
