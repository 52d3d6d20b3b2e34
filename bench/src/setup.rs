//! What the benches of logs have in common.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::corpus::Corpus;

/// What is measured, and with what.
#[derive(Debug, clap::Args)]
pub(crate) struct Setup {
    /// Where to work
    #[arg(long, default_value = "target/bench")]
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
    /// How often each pair is measured
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
}

impl Setup {
    pub(crate) fn corpus(&self) -> Result<Corpus> {
        Corpus::get(self.home.as_deref(), &self.place("corpus")?, self.bytes)
    }

    /// How much is made up.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A directory to work in.
    pub(crate) fn place(&self, name: &str) -> Result<PathBuf> {
        place(&self.directory, name)
    }

    /// Where the programs are that ours is compared with.
    pub(crate) fn peers(&self) -> Result<PathBuf> {
        self.place("peers")
    }

    /// The quipu binary.
    pub(crate) fn quipu(&self) -> Result<PathBuf> {
        let missing = || format!("there is no quipu binary at {}", self.quipu.display());
        fs::canonicalize(&self.quipu).with_context(missing)
    }
}

/// A directory to work in, below another.
pub(crate) fn place(directory: &Path, name: &str) -> Result<PathBuf> {
    let place = directory.join(name);
    fs::create_dir_all(&place).with_context(|| format!("create {}", place.display()))?;
    Ok(fs::canonicalize(place)?)
}
