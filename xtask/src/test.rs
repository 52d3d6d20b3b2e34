//! `cargo xtask test`

use anyhow::Result;

use crate::tool::{Tool, cargo, cargo_nightly};

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
    dependencies()?;
    cargo([
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ])
    .env("RUSTDOCFLAGS", "-D warnings")
    .run()?;
    // The fuzz targets on their seed corpus; fuzzing itself is `cargo xtask fuzz`. The binaries are
    // only checked: forty of them linked take more room than all the rest of this run.
    cargo(["test", "--lib"]).within("fuzz").run()?;
    cargo(["check", "--bins"]).within("fuzz").run()?;
    // The fan-out on shuttle's primitives: thousands of interleavings of writer and subscribers.
    let interleavings = ["--features", "shuttle", "--lib", "shuttle_tests"];
    cargo(["test", "--package", "quipu-record"])
        .args(interleavings)
        .run()?;
    cargo(["test", "--workspace", "--doc"]).run()?;
    tests().run()?;
    println!("\nall of it passed");
    Ok(())
}

/// The inner loop: the tests alone, in one build.
pub(crate) fn quick() -> Result<()> {
    tests().run()
}

/// The tests with other cases each time. A seed that fails is shown, and shows the failure again.
pub(crate) fn soak(rounds: u32) -> Result<()> {
    let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    for round in 0..rounds {
        let seed = (began.as_secs() + u64::from(round)).to_string();
        println!(
            "\nround {} of {rounds}: PROPTEST_RNG_SEED={seed}",
            round + 1
        );
        tests().env("PROPTEST_RNG_SEED", seed).run()?;
    }
    Ok(())
}

/// The recorder's tests under ThreadSanitizer, which tells every access to memory that is not in order with another.
///
/// The standard library is built with it as well; otherwise its locks would be unknown to it, and every use of them a race.
pub(crate) fn tsan() -> Result<()> {
    let target = "x86_64-unknown-linux-gnu";
    cargo_nightly(["test", "-Zbuild-std", "--target", target])
        .args(["--target-dir", "target/tsan"])
        .args(["--package", "quipu-record", "--lib", "--tests"])
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .env("TSAN_OPTIONS", "halt_on_error=1")
        .run()
}

fn tests() -> Tool {
    if cargo(["nextest", "--version"]).works() {
        cargo(["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        cargo(["test", "--workspace", "--all-targets", "--no-fail-fast"])
    }
}

/// Licences, banned crates and sources of the dependencies (`deny.toml`), and known vulnerabilities.
///
/// Only the vulnerabilities need a database from outside, so a machine that cannot fetch it skips that part.
fn dependencies() -> Result<()> {
    if !cargo(["deny", "--version"]).works() {
        skipped(
            "licences and vulnerabilities of dependencies",
            "cargo-deny is not installed",
        );
        return Ok(());
    }
    cargo(["deny", "check", "licenses", "bans", "sources"]).run()?;
    if cargo(["deny", "fetch", "db"]).works() {
        cargo(["deny", "check", "advisories"]).run()
    } else {
        skipped(
            "vulnerabilities of dependencies",
            "the database of advisories cannot be fetched",
        );
        Ok(())
    }
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
