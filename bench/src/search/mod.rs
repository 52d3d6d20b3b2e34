//! Indexing and searching, beside bare tantivy, FTS5, agentsview and ripgrep.
//!
//! | module | what it measures |
//! |---|---|
//! | `indexing` | an import with full text: time, memory, the size of the index |
//! | `process` | `quipu search` as a command |
//! | `latency` | looking something up, in process |
//! | `finding` | whether everything is found, and nothing else |
//!
//! Indexing by others is done in processes of their own, which begin with `alone`: what they take can then be told,
//! and what they held is not said to have been held by the commands that are run after them.

mod bare;
mod finding;
mod fts5;
mod indexing;
mod latency;
mod process;
pub(crate) mod queries;
pub(crate) mod texts;

pub(crate) use indexing::count_events;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::corpus::planted::PHRASES;
use crate::peers;
use crate::serve;
use crate::setup::Setup;
use crate::table::Table;

/// What is done in a process of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Alone {
    /// Takes what is to be indexed out of logs
    Texts { home: PathBuf, to: PathBuf },
    /// Indexes it with tantivy and nothing else
    Bare { texts: PathBuf, to: PathBuf },
    /// Indexes it with FTS5
    Fts5 { texts: PathBuf, to: PathBuf },
    #[command(flatten)]
    Serve(serve::Alone),
}

pub(crate) fn alone(what: &Alone) -> Result<()> {
    match what {
        Alone::Texts { home, to } => texts::extract(home, to),
        Alone::Bare { texts, to } => bare::index(texts, to),
        Alone::Fts5 { texts, to } => fts5::index(texts, to),
        Alone::Serve(what) => serve::alone(what),
    }
}

/// Ourselves, doing one thing.
pub(crate) fn ourselves(what: &str, from: &Path, to: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["alone", what]).arg(from).arg(to);
    Ok(command)
}

/// What is measured beside ours, and what is looked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Beside {
    /// The agentsview binary, to compare with
    #[arg(long)]
    agentsview: Option<PathBuf>,
    /// The ripgrep binary, to compare with
    #[arg(long)]
    rg: Option<PathBuf>,
    /// The phrase that commands look for; it has to be there
    #[arg(long, default_value = PHRASES[1].text)]
    phrase: String,
}

pub(crate) fn measure(table: &mut Table, setup: &Setup, beside: &Beside) -> Result<()> {
    let peers = setup.peers()?;
    let agentsview = beside.agentsview.clone();
    let agentsview = agentsview.or_else(|| peers::agentsview(&peers));
    let rg = beside.rg.clone().or_else(|| peers::ripgrep(&peers));
    let corpus = setup.corpus()?;
    let (quipu, directory) = (setup.quipu()?, setup.place("search")?);
    let with = indexing::With {
        quipu: &quipu,
        agentsview: agentsview.as_deref(),
        home: &corpus.home,
        directory: &directory,
    };
    let built = indexing::measure(table, &with, setup.rounds)?;
    let phrase = &beside.phrase;
    process::measure(
        table,
        &quipu,
        &corpus.home,
        &built.store,
        phrase,
        rg.as_deref(),
    )?;
    // Last, because a command that is run from a process that has held much is said to have held it.
    latency::measure(table, &built)?;
    finding::measure(table, &corpus, &built.store)
}
