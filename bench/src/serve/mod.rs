//! `quipu serve` as a process, beside a bare axum in the same run and beside agentsview.
//!
//! | module | what it measures |
//! |---|---|
//! | `header` | the header of a transcript, from memory |
//! | `events` | pages of events from anywhere in a long transcript |
//! | `search` | search with snippets, also while another process imports |
//! | `sse` | a live run with many subscribers |
//! | `idle` | a server that nobody asks anything, and how soon it answers |
//!
//! The load comes from this process (`load`, `http`, `crowd`), from half of the processors; no other tool is needed. The bare axum
//! (`hello`) and the recorder of the live run (`writer`) are processes of their own, which begin with `alone`.

mod crowd;
mod events;
mod header;
mod hello;
mod histogram;
mod http;
mod idle;
mod load;
mod logs;
mod process;
mod search;
mod sse;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use tempfile::TempDir;

use crate::command;
use crate::peers;
use crate::setup::Setup;
use crate::table::Table;
pub(crate) use http::get;
pub(crate) use load::once;
pub(crate) use process::Server;

/// What is done in a process of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum Alone {
    /// Serves something of a length with axum and nothing else
    Hello { bytes: usize },
    /// Records a run, with the moment of each event in it
    Writer(writer::Wanted),
}

pub(crate) fn alone(what: &Alone) -> Result<()> {
    match what {
        Alone::Hello { bytes } => hello::serve(*bytes),
        Alone::Writer(wanted) => writer::write(wanted),
    }
}

/// What is measured, and how much of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    setup: Setup,
    /// The agentsview binary, to compare with
    #[arg(long)]
    agentsview: Option<PathBuf>,
    /// Only the parts whose name holds this: header, events, search, sse, idle
    #[arg(long, default_value = "")]
    only: String,
    /// How long each round lasts [default: 2 for header, 5 for events, 10 for sse, 20 for idle; of search at most 30 for
    /// each kind of query]
    #[arg(long)]
    seconds: Option<u64>,
    /// How many events the long transcripts have
    #[arg(long, default_value_t = 100_000)]
    events: usize,
    /// How many sessions the home of the idle server has
    #[arg(long, default_value_t = 15_000)]
    sessions: usize,
    /// How many subscribe to the live run
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// How many events a second the live run has
    #[arg(long, default_value_t = 1_000)]
    rate: u64,
}

/// What all parts use.
struct Bench<'b> {
    quipu: PathBuf,
    place: PathBuf,
    agentsview: Option<&'b Path>,
    rounds: usize,
    seconds: Option<u64>,
    events: usize,
    sessions: usize,
    subscribers: usize,
    rate: u64,
}

impl Bench<'_> {
    /// A directory that goes away when the part has ended.
    fn fresh(&self, name: &str) -> Result<TempDir> {
        Ok(tempfile::Builder::new()
            .prefix(name)
            .tempdir_in(&self.place)?)
    }

    /// How long something lasts.
    fn lasting(&self, usual: u64) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(usual))
    }

    /// Imports what is in a home, or only what is below a directory.
    fn import(&self, home: &Path, logs: &Path, path: Option<&Path>) -> Result<()> {
        let mut import = command::quipu(&self.quipu, home, logs);
        import.arg("import").args(path);
        command::run(import)?;
        Ok(())
    }

    /// Lists what is in a home, which makes its recorded runs known.
    fn list(&self, home: &Path, logs: &Path) -> Result<()> {
        let mut list = command::quipu(&self.quipu, home, logs);
        list.arg("list");
        command::run(list)?;
        Ok(())
    }

    /// Starts a server of a home.
    fn start(&self, home: &Path, logs: &Path) -> Result<Server> {
        let mut serve = command::quipu(&self.quipu, home, logs);
        serve.args(["serve", "--listen", "127.0.0.1:0"]);
        Server::start(serve)
    }

    /// The same, and waits until it is ready.
    fn serve(&self, home: &Path, logs: &Path) -> Result<Server> {
        let server = self.start(home, logs)?;
        server.ready("/readyz")?;
        Ok(server)
    }
}

pub(crate) fn measure(table: &mut Table, options: &Options) -> Result<()> {
    let setup = &options.setup;
    process::raise_limits(options.subscribers + 256)?;
    let wanted = |part: &str| part.contains(options.only.as_str());
    let agentsview = if wanted("header") {
        let given = options.agentsview.clone();
        let peers = setup.peers()?;
        given.or_else(|| peers::agentsview(&peers))
    } else {
        None
    };
    let bench = Bench {
        quipu: setup.quipu()?,
        place: setup.place("serve")?,
        agentsview: agentsview.as_deref(),
        rounds: setup.rounds.max(1),
        seconds: options.seconds,
        events: options.events,
        sessions: options.sessions,
        subscribers: options.subscribers,
        rate: options.rate,
    };
    if wanted("header") {
        header::measure(table, &bench)?;
    }
    if wanted("events") {
        events::measure(table, &bench)?;
    }
    if wanted("search") {
        search::measure(table, &bench, setup)?;
    }
    if wanted("sse") {
        sse::measure(table, &bench)?;
    }
    if wanted("idle") {
        idle::measure(table, &bench)?;
    }
    Ok(())
}

/// How many processors there are.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
