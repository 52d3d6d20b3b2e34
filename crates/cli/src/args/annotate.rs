//! `quipu label` and `quipu note` on the command line.

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
#[command(after_help = LABEL_HELP)]
pub(crate) struct Label {
    /// The id of a session or run, or the beginning of one [default: list all labels]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// What to do [default: list]
    #[arg(value_name = "ACTION", value_enum)]
    pub(crate) action: Option<LabelAction>,
    /// The label, of letters, digits and `-_.:/+` (can be repeated)
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// On the event with this number, not on the whole
    #[arg(long, value_name = "N", requires = "id")]
    pub(crate) seq: Option<u64>,
    /// Who puts it there or takes it away [default: the name of the user]
    #[arg(long, value_name = "NAME", env = "QUIPU_AUTHOR")]
    pub(crate) by: Option<String>,
    /// Write one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabelAction {
    /// Put labels there
    Add,
    /// Take labels away
    Remove,
    /// List them
    List,
}

const LABEL_HELP: &str = "\
Labels and notes are kept in <home>/annotations.jsonl, beside sessions and never inside them. Forgetting \
a session keeps them, unless `quipu prune --annotations` says otherwise. `quipu list --label LABEL` finds what has a label.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTE_HELP)]
pub(crate) struct Note {
    /// The id of a session or run, or the beginning of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// What to write [default: list the notes]
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// On the event with this number, not on the whole
    #[arg(long, value_name = "N", conflicts_with_all = ["edit", "delete"])]
    pub(crate) seq: Option<u64>,
    /// Change the note with this id
    #[arg(long, value_name = "NOTE", requires = "text")]
    pub(crate) edit: Option<String>,
    /// Delete the note with this id
    #[arg(long, value_name = "NOTE", conflicts_with_all = ["text", "edit"])]
    pub(crate) delete: Option<String>,
    /// Who writes [default: the name of the user]
    #[arg(long, value_name = "NAME", env = "QUIPU_AUTHOR")]
    pub(crate) by: Option<String>,
    /// Write one JSON document: all labels and notes, as they are afterwards
    #[arg(long)]
    pub(crate) json: bool,
}

const NOTE_HELP: &str = "\
A note has up to 16 KiB. Notes are kept in <home>/annotations.jsonl, beside sessions and never inside \
them. What a note said before it was changed or deleted stays in that file.";
