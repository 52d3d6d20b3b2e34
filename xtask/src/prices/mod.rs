//! `cargo xtask prices`: the table of prices, from public packages.
//!
//! Two packages are downloaded as they were on the day that is pinned here, and their data is written as the
//! files of `crates/prices/data`. The same pins give the same bytes. To take newer prices, change the pins,
//! run it, and read the difference: `docs/prices.md` says how.

mod additions;
mod fetch;
mod genai;
mod litellm;
mod rules;
mod table;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::tool;
use fetch::Wheel;

/// The day on which the pinned versions were the newest.
const TAKEN: &str = "2026-11-15";

const GENAI: Wheel = Wheel {
    package: "genai-prices",
    version: "0.2.1",
    file: "genai_prices-0.2.1-py3-none-any.whl",
    sha256: "b438753161537f2e2a5c937887721467dd5a24297a52ae77f946f541ce22c3a0",
};

const LITELLM: Wheel = Wheel {
    package: "litellm",
    version: "1.108.4",
    file: "litellm-1.108.4-cp310-abi3-manylinux_2_28_x86_64.whl",
    sha256: "d51df0a967fb271c943994f8f1e941982d3ceff538298dc2134dcb03ef01b86a",
};

const COLUMNS: &str = "\
provider\tmodel\tservice\tfrom\thours\tabove\tinput\tcache_read\twrite_5m\twrite_1h\toutput\treasoning\tsearches\tsource";

/// Writes the files, or says that they are not what would be written.
pub(crate) fn run(check: bool) -> Result<()> {
    fetch::download(&[&GENAI, &LITELLM])?;
    let mut catalogue = genai::read(&GENAI.member("genai_prices/data.py")?)?;
    let second = LITELLM.member("litellm/model_prices_and_context_window_backup.json")?;
    additions::add(&mut catalogue)?;
    for model in litellm::add(&second, TAKEN, &mut catalogue)? {
        println!("the sources differ on {model}");
    }
    for (name, text) in [
        ("prices.tsv", head(PRICES) + &table::rows(&catalogue)),
        ("names.tsv", head(NAMES) + &table::names(&catalogue)),
        ("NOTICE", notice(&[&GENAI, &LITELLM])?),
    ] {
        let path = tool::root().join("crates/prices/data").join(name);
        if check {
            let there = std::fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
            ensure!(there == text, "{name} is not what its sources give");
        } else {
            write(&path, &text)?;
        }
        println!(
            "{name}: {} lines, {} bytes",
            text.lines().count(),
            text.len()
        );
    }
    Ok(())
}

const PRICES: &str = "\
What models cost, in dollars per million tokens; of searches, per thousand. `-` is nothing said.
Made by `cargo xtask prices`; see docs/prices.md. Do not edit: prices of your own go to config.toml.
";

const NAMES: &str = "\
Names of models: `=` is the name itself, `^` a name that others begin with, `>` whose names hold as well.
Made by `cargo xtask prices`; see docs/prices.md. Do not edit: aliases of your own go to config.toml.
";

fn head(about: &str) -> String {
    let source = |letter, wheel: &Wheel| {
        let (package, version) = (wheel.package, wheel.version);
        format!("source {letter}: {package} {version}, as of {TAKEN}")
    };
    let sources = [
        source(table::GENAI, &GENAI),
        source(table::LITELLM, &LITELLM),
        format!("source {}: the vendor's page, by hand", table::HAND),
    ];
    let columns = match about {
        PRICES => COLUMNS,
        _ => "provider\tname\trule\tmodel",
    };
    let lines = about.lines().chain(sources.iter().map(String::as_str));
    let lines: Vec<_> = lines
        .chain([columns])
        .map(|line| format!("# {line}\n"))
        .collect();
    lines.concat()
}

fn notice(wheels: &[&Wheel]) -> Result<String> {
    let mut text = vec![NOTICE.to_owned()];
    for wheel in wheels {
        let (package, version) = (wheel.package, wheel.version);
        let licence = wheel.licence()?;
        text.push(format!(
            "\n---- {package} {version} ----\n\n{}\n",
            licence.trim()
        ));
    }
    Ok(text.concat())
}

const NOTICE: &str = "\
The prices and names in this directory were taken from the packages below. Their licences:
";

/// Writes a file of the repository.
fn write(path: &Path, text: &str) -> Result<()> {
    let about = || format!("write {}", path.display());
    let mut file = File::create(path).with_context(about)?;
    file.write_all(text.as_bytes()).with_context(about)
}

#[cfg(test)]
mod tests;
