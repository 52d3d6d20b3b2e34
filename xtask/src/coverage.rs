//! `cargo xtask coverage`

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::tool::{cargo, root};

const CRATES: [&str; 9] = [
    "model", "exchange", "formats", "record", "agents", "store", "api", "files", "http",
];
const AT_LEAST: f64 = 85.0;

fn measure(directory: &Path, engine: &[&str]) -> Result<()> {
    let packages = CRATES
        .iter()
        .flat_map(|name| ["--package".to_owned(), format!("quipu-{name}")]);
    cargo(["tarpaulin", "--skip-clean", "--out", "Json", "--lib"])
        .args(engine)
        .args([Path::new("--output-dir"), directory])
        .args([Path::new("--target-dir"), &root().join("target/tarpaulin")])
        .args(packages)
        .run()
}

pub(crate) fn run() -> Result<()> {
    // tarpaulin needs no llvm-tools, which are not everywhere.
    if !cargo(["tarpaulin", "--version"]).works() {
        cargo(["install", "cargo-tarpaulin", "--locked"]).run()?;
    }
    let directory = root().join("target/coverage");
    std::fs::create_dir_all(&directory)?;
    measure(&directory, &["--engine", "llvm"]).or_else(|_| measure(&directory, &[]))?;
    let report = std::fs::read_to_string(directory.join("tarpaulin-report.json"))?;
    let report: Value = serde_json::from_str(&report)?;
    let files = report["files"].as_array().context("a list of files")?;
    println!();
    let mut low = Vec::new();
    for name in CRATES {
        let (mut covered, mut coverable) = (0, 0);
        for file in files {
            let path: Vec<&str> = file["path"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let of_crate = path.windows(3).any(|part| part == ["crates", name, "src"]);
            if of_crate
                && !path
                    .iter()
                    .any(|part| part.contains("tests") || *part == "faulty.rs")
            {
                covered += file["covered"].as_u64().unwrap_or(0);
                coverable += file["coverable"].as_u64().unwrap_or(0);
            }
        }
        ensure!(coverable > 0, "nothing was measured of quipu-{name}");
        #[expect(clippy::cast_precision_loss, reason = "lines are few")]
        let percent = covered as f64 * 100.0 / coverable as f64;
        println!("quipu-{name:<8} {percent:5.1} %  ({covered} of {coverable} lines)");
        if percent < AT_LEAST {
            low.push(name);
        }
    }
    ensure!(low.is_empty(), "below {AT_LEAST} %: {}", low.join(", "));
    Ok(())
}
