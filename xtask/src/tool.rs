//! Running other programs.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map_or(own.clone(), PathBuf::from)
}

/// A program in the root of the repository.
pub(crate) struct Tool(Command);

pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Tool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    Tool(command)
}

/// Another program.
pub(crate) fn program<S: AsRef<OsStr>>(name: &str, args: impl IntoIterator<Item = S>) -> Tool {
    let mut command = Command::new(name);
    command.args(args).current_dir(root());
    Tool(command)
}

/// Cargo by way of rustup, which alone knows other toolchains.
pub(crate) fn cargo_nightly<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Tool {
    let mut command = Command::new("cargo");
    // Set by the cargo that runs this, and would win over the toolchain that is asked for.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command.arg("+nightly").args(args).current_dir(root());
    Tool(command)
}

impl Tool {
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.0.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn within(mut self, directory: &str) -> Self {
        self.0.current_dir(root().join(directory));
        self
    }

    /// Runs it, showing what it does.
    pub(crate) fn run(mut self) -> Result<()> {
        let status = self.status()?;
        ensure!(status.success(), "{} failed: {status}", self.shown());
        Ok(())
    }

    /// Runs it, showing what it does, and ends as it ends.
    pub(crate) fn code(mut self) -> Result<ExitCode> {
        let code = self.status()?.code();
        let code = code.and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }

    fn status(&mut self) -> Result<ExitStatus> {
        println!("\n$ {}", self.shown());
        self.0
            .status()
            .with_context(|| format!("start {}", self.shown()))
    }

    /// Whether it runs at all.
    pub(crate) fn works(mut self) -> bool {
        let status = self.0.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn shown(&self) -> String {
        let program = self.0.get_program().to_string_lossy();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        let args = self
            .0
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned());
        std::iter::once(program)
            .chain(args)
            .collect::<Vec<_>>()
            .join(" ")
    }
}
