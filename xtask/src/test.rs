//! `cargo xtask test`

use anyhow::Result;

use crate::tool::{Tool, cargo, cargo_nightly, program, root};

/// The checker of accessibility that the page's tests use, and where they look for it.
const AXE: &str = "axe-core@4.14.0";
const AXE_IN: &str = "target/page";

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
    chromium();
    axe();
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
    // Another one for each run of this command.
    let first = u64::from(std::process::id()) << 20;
    for round in 0..rounds {
        let seed = (first + u64::from(round)).to_string();
        println!(
            "\nround {} of {rounds}: PROPTEST_RNG_SEED={seed}",
            round + 1
        );
        tests().env("PROPTEST_RNG_SEED", seed).run()?;
    }
    Ok(())
}

/// The recorder's tests under `ThreadSanitizer`, which tells every access to memory that is not in order with another.
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

/// Has a browser for the tests of pages, or says that they are skipped.
fn chromium() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = || {
        names
            .iter()
            .any(|name| program(name, ["--version"]).works())
    };
    if is_there() {
        return;
    }
    let what = "tests in a browser";
    // Only root of a Debian may install it without asking anybody.
    if !program("apt-get", ["--version"]).works() {
        skipped(
            what,
            "there is no Chromium on the PATH, and no apt-get to install it",
        );
        return;
    }
    if !program("sh", ["-c", "test \"$(id -u)\" = 0"]).works() {
        skipped(
            what,
            "there is no Chromium on the PATH, and only root can install it (apt-get install chromium)",
        );
        return;
    }
    println!("\ninstalling Chromium for the tests of pages");
    let install = [
        "install",
        "--yes",
        "--quiet",
        "--no-install-recommends",
        "chromium",
    ];
    let apt = |args: &[&str]| {
        let tool = program("apt-get", args);
        tool.env("DEBIAN_FRONTEND", "noninteractive").works()
    };
    // The list of packages may be old or not there.
    if !(apt(&install) || (apt(&["update", "--quiet"]) && apt(&install))) || !is_there() {
        skipped(what, "apt-get cannot install chromium");
    }
}

/// Has axe-core for the tests of the page, or says that they do without.
fn axe() {
    let package = root()
        .join(AXE_IN)
        .join("node_modules/axe-core/package.json");
    let (_, version) = AXE.split_once('@').unwrap_or_default();
    let known = std::fs::read_to_string(&package).unwrap_or_default();
    if known.contains(&format!("\"version\": \"{version}\"")) {
        return;
    }
    let what = "accessibility of the page";
    if !program("npm", ["--version"]).works() {
        skipped(what, "npm is not installed");
        return;
    }
    let install = ["install", "--prefix", AXE_IN, "--no-save", "--no-audit"];
    let install = program("npm", install).args(["--no-fund", "--silent", AXE]);
    if !install.works() {
        skipped(what, "npm cannot fetch axe-core from its registry");
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
