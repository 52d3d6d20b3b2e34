//! Shadow-diff, and ourselves, doing one thing to a trace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;

use super::way::{Took, Way};
use crate::command::output;
use crate::files::put;
use crate::peers;

/// Has the Python package do it.
const PYTHON: &str = include_str!("driver.py");
/// Has the core do it: a program that is built with it, and its manifest.
const PROGRAM: &str = include_str!("driver.rs");
const MANIFEST: &str = include_str!("driver.toml");

/// A program that does what is measured.
pub(super) struct Peer {
    pub(super) name: &'static str,
    /// What comes before the way and the trace.
    command: Vec<PathBuf>,
}

pub(super) struct Peers {
    pub(super) found: Vec<Peer>,
    /// Those that could not be installed.
    pub(super) missing: Vec<&'static str>,
}

pub(super) fn all(directory: &Path, no_python: bool) -> Result<Peers> {
    let mut all = Peers {
        found: Vec::new(),
        missing: Vec::new(),
    };
    let mut add = |name, command: Option<Vec<PathBuf>>| match command {
        Some(command) => all.found.push(Peer { name, command }),
        None => all.missing.push(name),
    };
    let core = peers::shadow_core(directory, MANIFEST, PROGRAM);
    add("shadow core", core.map(|program| vec![program]));
    if !no_python {
        let driver = directory.join("driver.py");
        put(&driver, PYTHON.as_bytes())?;
        let python = peers::shadow_python(directory);
        add("shadow python", python.map(|python| vec![python, driver]));
    }
    Ok(all)
}

impl Peer {
    pub(super) fn take(&self, way: Way, trace: &Path) -> Result<Took> {
        // It has nothing that checks more than ids.
        let way = if way == Way::Check { Way::Verify } else { way };
        take(&self.command, way, trace).context(self.name)
    }
}

/// The same in a process of our own.
pub(super) fn ours(way: Way, trace: &Path) -> Result<Took> {
    let program = std::env::current_exe()?;
    take(&[program, "agentlog-way".into()], way, trace)
}

fn take(command: &[PathBuf], way: Way, trace: &Path) -> Result<Took> {
    let name = way.to_possible_value().context("a name")?;
    let (program, first) = command.split_first().context("a program")?;
    let mut command = Command::new(program);
    command.args(first).arg(name.get_name()).arg(trace);
    Took::read(&output(command)?)
}
