//! Measures Quipu beside the raw limit of the machine, as ratios in one run.
//!
//! Machines are noisy, so nothing here is an absolute goal: each figure is measured in turn with the
//! limit it is compared to, several times over, and the median of the ratios is what counts.

#![expect(clippy::print_stdout, reason = "a report is what this program is for")]
#![expect(
    clippy::cast_precision_loss,
    reason = "figures are rounded to two digits anyway"
)]

mod append;
mod corpus;
mod fanout;
mod group;
mod import;
mod read;
mod sample;
mod startup;
mod table;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The recorder and the reader of the exchange format
    Record {
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
    },
    /// Importing agents' logs
    Import {
        /// Where to work
        #[arg(long, default_value = "target/bench/import")]
        directory: PathBuf,
        /// A home with logs in it, in place of one that is made up
        #[arg(long)]
        home: Option<PathBuf>,
        /// How much is made up
        #[arg(long, default_value_t = 1_000_000_000)]
        bytes: u64,
        /// The quipu binary
        #[arg(long, default_value = "target/release/quipu")]
        quipu: PathBuf,
        /// The agentsview binary, to compare with
        #[arg(long)]
        agentsview: Option<PathBuf>,
        /// How often each pair is measured
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    /// Reads a transcript in one way and tells its speed and peak memory (used by `record`)
    #[command(hide = true)]
    Read { way: read::Way, file: PathBuf },
}

fn main() -> Result<()> {
    match Args::parse().what {
        What::Read { way, file } => read::measure_here(way, &file),
        What::Import {
            directory,
            home,
            bytes,
            quipu,
            agentsview,
            rounds,
        } => {
            let mut table = table::Table::new();
            let agentsview = agentsview.or_else(|| import::peer(&directory));
            let setup = import::Setup {
                quipu,
                directory,
                home,
                bytes,
                rounds,
                agentsview,
            };
            import::measure(&mut table, &setup)?;
            table.finish()
        }
        What::Record {
            disk,
            memory,
            quipu,
            read_bytes,
            rounds,
            only,
        } => {
            std::fs::create_dir_all(&disk).with_context(|| format!("create {}", disk.display()))?;
            let mut table = table::Table::new();
            let wanted = |part: &str| part.contains(&only);
            if wanted("append") {
                if memory.is_dir() {
                    append::measure(&mut table, "tmpfs", &memory, rounds, 0.60)?;
                } else {
                    println!("skipped: no tmpfs at {}", memory.display());
                }
                append::measure(&mut table, "disk", &disk, rounds, 0.50)?;
            }
            if wanted("group") {
                group::measure(&mut table, &disk, rounds)?;
            }
            if wanted("fanout") {
                let dir = if memory.is_dir() { &memory } else { &disk };
                fanout::measure(&mut table, dir, rounds)?;
            }
            if wanted("read") {
                read::measure(&mut table, &disk, read_bytes, rounds)?;
            }
            if wanted("start") {
                startup::measure(&mut table, &quipu, &disk, rounds)?;
            }
            table.finish()
        }
    }
}
