//! Programs that a run starts: commands, agents, checks, plugins.
//!
//! A program gets a process group of its own. When it is cancelled or its time is up, the whole group and every
//! descendant that left it are asked to end (SIGTERM), and after a grace period made to (SIGKILL).
//! Standard output and standard error are read apart, as they come, and never held in memory beyond what the
//! listener keeps.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

mod run;
mod tree;

#[cfg(test)]
mod tests;

pub use run::run;
pub use tree::{ProcessTree, adopt_orphans};

/// A program to be started.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments. It is started directly, not by a shell.
    pub argv: Vec<OsString>,
    /// The directory it runs in; that of this process unless it is given.
    pub dir: Option<PathBuf>,
    /// Variables that are set for it beside those of this process.
    pub env: BTreeMap<OsString, OsString>,
    /// What it reads on standard input; nothing unless it is given. A program that ends before it has read all of it
    /// is not an error.
    pub stdin: Option<Vec<u8>>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it has between being asked to end and being made to.
    pub grace: Duration,
}

impl Program {
    /// A program with its arguments.
    pub fn new<I: IntoIterator<Item: Into<OsString>>>(argv: I) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            dir: None,
            env: BTreeMap::new(),
            stdin: None,
            timeout: None,
            grace: Duration::from_secs(2),
        }
    }

    /// A command for the user's shell: `$SHELL` where that is an absolute path that exists, else `/bin/sh`.
    pub fn shell(command: &str) -> Self {
        let shell = std::env::var_os("SHELL")
            .map(PathBuf::from)
            .filter(|shell| shell.is_absolute() && shell.exists())
            .unwrap_or_else(|| PathBuf::from("/bin/sh"));
        Self::new([shell.into_os_string(), "-c".into(), command.into()])
    }
}

/// Takes the output of a program as it comes, in pieces of any size.
pub trait Listener: Send {
    /// Bytes of standard output.
    fn stdout(&mut self, bytes: &[u8]);
    /// Bytes of standard error.
    fn stderr(&mut self, bytes: &[u8]);
    /// Some time has passed, whether or not the program said anything.
    fn tick(&mut self) {}
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that Quipu did not send.
    Signalled(i32),
    /// Its time was up.
    TimedOut,
    /// It was cancelled.
    Cancelled,
}

impl Ended {
    /// Whether it ended by itself with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code: 128 and the signal's number for signals, -1 when Quipu ended it.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut | Self::Cancelled => -1,
        }
    }
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It was not found.
    #[error("{program} was not found; install it or put it on the PATH")]
    NotFound {
        /// Its name.
        program: String,
    },
    /// The directory that it is to run in is not there.
    #[error("there is no directory {}", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
    },
    /// The system refused.
    #[error("cannot start {program}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
}
