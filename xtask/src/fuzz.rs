//! `cargo xtask fuzz`

use anyhow::{Result, ensure};

use crate::test::has_nightly;
use crate::tool::{cargo_nightly, root};

pub(crate) fn run(seconds: u32) -> Result<()> {
    ensure!(
        has_nightly(),
        "fuzzing needs a nightly toolchain: rustup toolchain install nightly"
    );
    ensure!(
        cargo_nightly(["fuzz", "--version"]).works(),
        "fuzzing needs cargo-fuzz: cargo install cargo-fuzz"
    );
    let mut targets: Vec<String> = std::fs::read_dir(root().join("fuzz/fuzz_targets"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    targets.sort();
    for target in &targets {
        // New inputs go to a directory of their own; the seed corpus in the repository stays small.
        let found = root().join("target/fuzz").join(target);
        std::fs::create_dir_all(&found)?;
        cargo_nightly(["fuzz", "run", target])
            .args([found, root().join("fuzz/corpus").join(target)])
            .args([
                "--".to_owned(),
                format!("-max_total_time={seconds}"),
                "-max_len=65536".to_owned(),
            ])
            .run()?;
    }
    println!("\nfuzzed {} for {seconds} s each", targets.join(", "));
    Ok(())
}
