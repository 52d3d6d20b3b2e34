//! `cargo xtask test`

use anyhow::Result;

use crate::tool::{cargo, cargo_nightly};

pub(crate) fn run() -> Result<()> {
    if cargo(["fmt", "--version"]).works() {
        cargo(["fmt", "--all", "--check"]).run()?;
    } else {
        skipped("formatting", "rustfmt is not installed");
    }
    if cargo(["clippy", "--version"]).works() {
        cargo(["clippy", "--workspace", "--all-targets"])
            .args(["--", "-D", "warnings"])
            .run()?;
    } else {
        skipped("lints", "clippy is not installed");
    }
    // Cargo runs doctests only without a list of targets; nextest does not run them at all.
    if cargo(["nextest", "--version"]).works() {
        cargo(["nextest", "run", "--workspace", "--no-fail-fast"]).run()?;
        cargo(["test", "--workspace", "--doc"]).run()?;
    } else {
        cargo(["test", "--workspace", "--no-fail-fast"]).run()?;
    }
    // The fan-out on shuttle's primitives: thousands of interleavings of writer and subscribers.
    cargo([
        "test",
        "--package",
        "quipu-record",
        "--features",
        "shuttle",
        "--lib",
        "shuttle_tests",
    ])
    .run()?;
    // The fuzz targets on their seed corpus; fuzzing itself is `cargo xtask fuzz`.
    cargo(["test"]).within("fuzz").run()?;
    cargo([
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ])
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()?;
    println!("\nall of it passed");
    Ok(())
}

pub(crate) fn kill(rounds: u32) -> Result<()> {
    cargo([
        "test",
        "--release",
        "--package",
        "quipu",
        "--test",
        "runner",
        "--",
    ])
    .args([
        "cli::kill::killed_at_random_instants",
        "--exact",
        "--nocapture",
    ])
    .env("QUIPU_TEST_KILL_ROUNDS", rounds.to_string())
    .run()
}

pub(crate) fn skipped(what: &str, why: &str) {
    println!("\nskipped {what}: {why}");
}

pub(crate) fn has_nightly() -> bool {
    cargo_nightly(["--version"]).works()
}
