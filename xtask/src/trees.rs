//! `cargo xtask trees`: source trees for the redaction bench, from the packages of `trees.txt` and of Cargo.lock.
//!
//! A tree that is there is not fetched again, so a run that was stopped goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::tool;

const PACKAGES: &str = include_str!("trees.txt");

/// A package of a registry, at one version.
struct Package<'a> {
    registry: &'a str,
    name: &'a str,
    version: &'a str,
}

/// Fetches what is not there yet.
pub(crate) fn run() -> Result<()> {
    let place = tool::root().join("target/bench/trees");
    let mut absent = Vec::new();
    for package in packages()? {
        let directory = place.join(package.registry).join(package.directory());
        if !directory.is_dir() && package.fetch(&directory).is_err() {
            absent.push(format!(
                "{} {} {}",
                package.registry, package.name, package.version
            ));
        }
    }
    let crates = place.join("crates");
    let vendored = tool::cargo(["vendor", "--locked", "--versioned-dirs", "--quiet"])
        .args([&crates])
        .works();
    if !vendored {
        absent.push("crates of Cargo.lock".to_owned());
    }
    println!("{}", place.display());
    ensure!(
        absent.is_empty(),
        "not fetched, is the registry reachable? {}",
        absent.join(", ")
    );
    Ok(())
}

fn packages<'a>() -> Result<Vec<Package<'a>>> {
    let lines = PACKAGES.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().with_context(|| format!("trees.txt: {line}"));
            Ok(Package {
                registry: word()?,
                name: word()?,
                version: word()?,
            })
        })
        .collect()
}

impl Package<'_> {
    /// What its tree is called.
    fn directory(&self) -> String {
        let name = self.name.trim_start_matches('@').replace('/', "-");
        format!("{name}-{}", self.version)
    }

    fn fetch(&self, directory: &Path) -> Result<()> {
        let loading = directory.with_extension("loading");
        if loading.exists() {
            fs::remove_dir_all(&loading)?;
        }
        fs::create_dir_all(&loading)?;
        let there = loading.to_string_lossy().into_owned();
        let tree = loading.join("tree");
        fs::create_dir_all(&tree)?;
        if self.registry == "npm" {
            let package = format!("{}@{}", self.name, self.version);
            tool::program(
                "npm",
                ["pack", "--silent", "--pack-destination", &there, &package],
            )
            .run()?;
            let file = packed(&loading, "tgz")?;
            tool::program("tar", ["xzf", &file, "--strip-components=1", "-C"])
                .args([&tree])
                .run()?;
        } else {
            let package = format!("{}=={}", self.name, self.version);
            let wanted = [
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "-d",
                &there,
            ];
            tool::program("pip", wanted).args([&package]).run()?;
            let file = packed(&loading, "whl")?;
            tool::program("python3", ["-m", "zipfile", "-e", &file])
                .args([&tree])
                .run()?;
        }
        fs::rename(&tree, directory)?;
        fs::remove_dir_all(&loading)?;
        Ok(())
    }
}

/// The file with an ending in a directory.
fn packed(directory: &Path, ending: &str) -> Result<String> {
    let files = fs::read_dir(directory)?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let file: Option<PathBuf> = files
        .into_iter()
        .find(|path| path.extension().is_some_and(|found| found == ending));
    let file = file.with_context(|| format!("nothing was packed in {}", directory.display()))?;
    Ok(file.to_string_lossy().into_owned())
}
