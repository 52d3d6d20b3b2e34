//! `quipu redact`, `quipu share`, `quipu keys`

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use quipu_submit::keys::{NotAScope, Scope};

#[derive(Debug, clap::Args)]
#[command(after_help = REDACT_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Redact {
    /// JSONL, JSON or plain text; - for standard input [default: standard input to standard output]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write into this directory, under the same names
    #[arg(short, long, value_name = "DIR", conflicts_with_all = ["in_place", "check"])]
    pub(crate) output: Option<PathBuf>,
    /// Put the redacted file in the place of the file
    #[arg(long, conflicts_with = "check")]
    pub(crate) in_place: bool,
    /// Write over files that are there
    #[arg(long)]
    pub(crate) force: bool,
    /// Write nothing; exit 1 when something is found
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: also what is nearly a finding
    #[arg(long, requires = "check")]
    pub(crate) near: bool,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// What the files are [default: decided from their content]
    #[arg(long, value_enum, value_name = "SHAPE")]
    pub(crate) shape: Option<Shape>,
    /// Write the findings as one JSON document, without what was found: to standard output with --check, else to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// How many threads look [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) threads: Option<u16>,
    /// Say what the rules are, and end
    #[arg(long, conflicts_with_all = ["files", "check", "output", "in_place"])]
    pub(crate) list_rules: bool,
    /// Read a value from standard input and say the hash by which a rule file allows it
    #[arg(long, conflicts_with_all = ["files", "check", "output", "in_place", "list_rules"])]
    pub(crate) hash: bool,
}

const PROFILE_HELP: &str = "What is removed: local, team, research, public, hiring-signal, structure-only, or a file \
    [env: QUIPU_PROFILE]";

/// Which rules are applied.
#[derive(Debug, clap::Args)]
pub(crate) struct Rules {
    #[arg(long, value_name = "NAME|FILE", help = PROFILE_HELP)]
    pub(crate) profile: Option<String>,
    /// Also the rules of this file, ours or of gitleaks (can be repeated)
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) rule_files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// A JSON value a line
    Jsonl,
    /// One JSON document
    Json,
    /// Anything else
    Text,
}

const REDACT_HELP: &str = "\
Without -o or --in-place, FILE.ext is written as FILE.redacted.ext beside it. What nothing was found in stays as it is, \
byte for byte. What stands where something was is [REDACTED:aws], or [REDACTED:aws#2] for the second of its kind: \
the same value, the same number.
A profile only says which rules apply here; what it says of whole sessions is for `quipu share`.
Exit 0 when all was written, or nothing was found; 1 when --check found something. docs/redaction.md has the rest.";

#[derive(Debug, clap::Args)]
#[command(after_help = SHARE_HELP)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Share {
    /// The id of a session or run, the beginning of one, or a path
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// What is written
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ShareAs::Transcript)]
    pub(crate) to: ShareAs,
    /// Write to this file, or this directory for a bundle
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Write over what is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Submit it to this server
    #[arg(long, value_name = "URL", requires = "key_file")]
    pub(crate) submit: Option<String>,
    /// The submission key is on the first line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Do not ask; refuse when something risky was left for a person to look at
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only say what would be removed, and what was nearly
    #[arg(long, conflicts_with_all = ["yes", "output", "submit"])]
    pub(crate) review: bool,
    /// Keep the value with this mark, as a review shows it (can be repeated)
    #[arg(long, value_name = "MARK")]
    pub(crate) keep: Vec<String>,
    /// Remove the value with this mark, which was only nearly found (can be repeated)
    #[arg(long, value_name = "MARK")]
    pub(crate) remove: Vec<String>,
    /// Write what was removed as one JSON document, without what it was
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShareAs {
    /// A normalized transcript
    Transcript,
    /// A page
    Html,
    /// A directory with both, and what was removed
    Bundle,
}

const SHARE_HELP: &str = "\
Nothing leaves the machine unless --submit names a server. On a terminal, everything that would be removed and everything \
that was nearly is shown first, to be accepted or not. The shared copy says what was removed from each event, and anyone \
can check it: `quipu verify FILE`; whoever has the original, `quipu verify FILE --against ORIGINAL`.
Exit 1 when --yes refuses. docs/sharing.md has the rest.";

#[derive(Debug, clap::Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a submission key and show it, once
    New {
        /// What it is for
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// What it may do: submit transcripts; read everything; admin, which is both and deleting what others submitted
        /// (can be repeated) [default: submit]
        #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
        scopes: Vec<Scope>,
        /// Let it count no more after this time, such as 12h, 90d or 1y [default: never]
        #[arg(long, value_name = "AGE")]
        expires: Option<String>,
        /// Write one JSON document
        #[arg(long)]
        json: bool,
    },
    /// List submission keys, without the keys
    List {
        /// Write one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Let a submission key count no more
    Revoke {
        /// Its public id, or the beginning of it
        #[arg(value_name = "KEY")]
        key: String,
    },
}

fn scope(word: &str) -> Result<Scope, NotAScope> {
    word.parse()
}
