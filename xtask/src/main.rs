//! Developer commands. `cargo xtask test` is the whole truth; the others are for when more is wanted.
//!
//! Nothing here needs more than Rust and a C compiler. Other tools are used where they are, and it is
//! said when they are not.

#![expect(clippy::print_stdout, reason = "these commands talk to a developer")]

mod coverage;
mod fuzz;
mod prices;
mod schemathesis;
mod test;
mod tool;
mod trees;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything: format, lints, tests, doctests, interleavings, documentation
    Test {
        /// Only the tests, in one build: for the inner loop
        #[arg(long)]
        quick: bool,
    },
    /// Measure beside the raw limit and peers: `record`, `import`, `search`, `stats`, `agentlog`,
    /// `formats`, `redact`, `run`, `serve`, `page`, `versions`
    Bench {
        /// What to measure, and how (see `cargo xtask bench search --help`)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        args: Vec<String>,
    },
    /// Kill the recorder at random instants and show the summary
    Kill {
        /// How often
        #[arg(long, default_value_t = 500)]
        rounds: u32,
    },
    /// Run the tests again and again, with other cases for the property tests each time
    Soak {
        /// How often
        #[arg(long, default_value_t = 10)]
        rounds: u32,
    },
    /// Measure the line coverage of model, formats and record; fails below 85 %
    Coverage,
    /// Fuzz every parser (needs a nightly toolchain and cargo-fuzz)
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Run the recorder's tests under the thread sanitizer (needs a nightly toolchain with rust-src)
    Tsan,
    /// Try the server with requests made from its `OpenAPI` document, valid and broken (needs Python and pip; skipped without)
    Schemathesis {
        /// How many requests for each operation and phase
        #[arg(long, default_value_t = 30)]
        examples: u32,
        /// Which requests: the same seed makes the same ones
        #[arg(long, default_value_t = 1)]
        seed: u32,
    },
    /// Fetch source trees for `bench redact --trees` (needs npm and pip)
    Trees,
    /// Make the table of prices again from the packages it is taken from (needs Python and pip)
    Prices {
        /// Write nothing, and fail if the table is another
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<ExitCode> {
    match Args::parse().task {
        Task::Test { quick: false } => test::run(),
        Task::Test { quick: true } => test::quick(),
        Task::Bench { args } => return bench(&args),
        Task::Kill { rounds } => test::kill(rounds),
        Task::Soak { rounds } => test::soak(rounds),
        Task::Coverage => coverage::run(),
        Task::Fuzz { seconds } => fuzz::run(seconds),
        Task::Tsan => test::tsan(),
        Task::Schemathesis { examples, seed } => schemathesis::run(examples, seed),
        Task::Trees => trees::run(),
        Task::Prices { check } => prices::run(check),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Builds and runs the benches. Their last lines say which goals were missed, so nothing is said after them.
fn bench(args: &[String]) -> Result<ExitCode> {
    let packages = ["--package", "quipu", "--package", "quipu-bench"];
    tool::cargo(["build", "--release"]).args(packages).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let bench = tool::root().join(target).join("release/quipu-bench");
    tool::program(&bench.to_string_lossy(), args).code()
}
