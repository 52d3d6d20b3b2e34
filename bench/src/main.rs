//! Measures Quipu beside the raw limit of the machine, as ratios in one run.
//!
//! Machines are noisy, so nothing here is an absolute goal where a ratio can be one: each figure is measured in
//! turn with the limit it is compared to, several times over, and the median of the ratios is what counts.

#![expect(clippy::print_stdout, reason = "a report is what this program is for")]
#![expect(
    clippy::cast_precision_loss,
    reason = "figures are rounded to two digits anyway"
)]

mod agentlog;
mod append;
mod command;
mod corpus;
mod cpu;
mod fanout;
mod files;
mod follow;
mod formats;
mod group;
mod import;
mod page;
mod peers;
mod read;
mod redact;
mod run;
mod sample;
mod search;
mod serve;
mod setup;
mod startup;
mod stats;
mod table;
mod versions;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use setup::Setup;
use table::Table;

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The recorder and the reader of the exchange format
    Record(Record),
    /// Importing agents' logs
    Import {
        #[command(flatten)]
        setup: Setup,
        /// The agentsview binary, to compare with
        #[arg(long)]
        agentsview: Option<PathBuf>,
    },
    /// Indexing and searching what is kept
    Search {
        #[command(flatten)]
        setup: Setup,
        #[command(flatten)]
        beside: search::Beside,
    },
    /// Adding up tokens and dollars
    Stats {
        #[command(flatten)]
        setup: Setup,
        /// The native ccusage binary, to compare with
        #[arg(long)]
        ccusage: Option<PathBuf>,
    },
    /// Reading, checking and writing .agentlog traces
    Agentlog(agentlog::Options),
    /// Converting sessions between formats
    Formats(formats::Options),
    /// Finding secrets and taking them out
    Redact(redact::Options),
    /// Running workflows: steps, branches, loops, checking, resuming
    Run(run::Options),
    /// The server: headers, pages, search, live streams, doing nothing
    Serve(serve::Options),
    /// The web page in a headless Chromium: first paint, scrolling, search, weight, memory, doing nothing
    Page(page::Options),
    /// Two builds of Quipu beside each other: import, stats, formats, record
    Versions(versions::Options),
    /// Does one thing to a trace and tells what it took (used by `agentlog`)
    #[command(hide = true)]
    AgentlogWay { way: agentlog::Way, trace: PathBuf },
    /// Reads a transcript in one way and tells its speed and peak memory (used by `record`)
    #[command(hide = true)]
    Read { way: read::Way, file: PathBuf },
    /// Does one thing, so that what it takes can be told apart (used by `search` and `serve`)
    #[command(hide = true, subcommand)]
    Alone(search::Alone),
}

#[derive(clap::Args)]
struct Record {
    /// Where to write on disk
    #[arg(long, default_value = "target/bench")]
    disk: PathBuf,
    /// Where to write in memory
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// The quipu binary, for start-up time
    #[arg(long, default_value = "target/release/quipu")]
    quipu: PathBuf,
    /// The size of the transcript that is read
    #[arg(long, default_value_t = 1_000_000_000)]
    read_bytes: u64,
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only the parts whose name holds this
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let what = match Args::parse().what {
        What::Read { way, file } => return part(read::measure_here(way, &file)),
        What::Alone(what) => return part(search::alone(&what)),
        What::AgentlogWay { way, trace } => return part(agentlog::measure_here(way, &trace)),
        what => what,
    };
    let mut table = Table::new();
    let measured = measure(&mut table, what);
    Ok(table.finish(measured))
}

/// The end of a command that another bench runs.
fn part(measured: Result<()>) -> Result<ExitCode> {
    measured.map(|()| ExitCode::SUCCESS)
}

fn measure(table: &mut Table, what: What) -> Result<()> {
    match what {
        What::Record(what) => record(table, &what),
        What::Import { setup, agentsview } => {
            let peers = setup.peers()?;
            let agentsview = agentsview.or_else(|| peers::agentsview(&peers));
            import::measure(table, &setup, agentsview.as_deref())
        }
        What::Search { setup, beside } => search::measure(table, &setup, &beside),
        What::Stats { setup, ccusage } => {
            let peers = setup.peers()?;
            let ccusage = ccusage.or_else(|| peers::ccusage(&peers));
            stats::measure(table, &setup, ccusage.as_deref())
        }
        What::Agentlog(options) => agentlog::measure(table, &options),
        What::Formats(options) => formats::measure(table, &options),
        What::Redact(options) => redact::measure(table, &options),
        What::Run(options) => run::measure(table, &options),
        What::Serve(options) => serve::measure(table, &options),
        What::Page(options) => page::measure(table, &options),
        What::Versions(options) => versions::measure(table, &options),
        What::Read { .. } | What::Alone(_) | What::AgentlogWay { .. } => Ok(()),
    }
}

fn record(table: &mut Table, what: &Record) -> Result<()> {
    let Record {
        disk,
        memory,
        quipu,
        read_bytes,
        rounds,
        only,
    } = what;
    std::fs::create_dir_all(disk).with_context(|| format!("create {}", disk.display()))?;
    let wanted = |part: &str| part.contains(only.as_str());
    if wanted("append") {
        if memory.is_dir() {
            append::measure(table, "tmpfs", memory, *rounds, 0.60)?;
        } else {
            println!("skipped: no tmpfs at {}", memory.display());
        }
        append::measure(table, "disk", disk, *rounds, 0.50)?;
    }
    if wanted("group") {
        group::measure(table, disk, *rounds)?;
        follow::steady(table, disk)?;
    }
    if wanted("follow") {
        follow::measure(table, disk, *rounds)?;
    }
    if wanted("fanout") {
        let dir = if memory.is_dir() { memory } else { disk };
        fanout::measure(table, dir, *rounds)?;
    }
    if wanted("read") {
        read::measure(table, disk, *read_bytes, *rounds)?;
    }
    if wanted("start") {
        startup::measure(table, quipu, disk, *rounds)?;
    }
    Ok(())
}
