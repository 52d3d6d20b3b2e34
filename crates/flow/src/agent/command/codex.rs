//! `codex`: Codex CLI.

use serde_json::Value;

use super::{Invocation, SERVER, Stream, Turn, Which, fits, server};

pub(super) const OPTIONS: &[&str] = &[
    "sandbox",
    "skip_git_repo_check",
    "config",
    "dangerously_skip_permissions",
];

fn is_model(model: &str) -> bool {
    let is_o = model
        .strip_prefix('o')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_o || model.starts_with("gpt-") || model.starts_with("codex-")
}

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let mut argv = turn.argv();
    argv.push("exec");
    if let Some(thread) = &turn.session {
        argv.push("resume").push(thread);
    }
    argv.push("--json");
    let prompt = turn.prompt_with_system();
    let by_stdin = prompt.starts_with('-') || !fits(&prompt);
    argv.push(if by_stdin { "-" } else { &prompt });
    let model = turn.model(
        is_model,
        "a name that begins with gpt-, codex- or o and a digit",
    )?;
    argv.option("--model", model);
    let modes = ["read-only", "workspace-write", "danger-full-access"];
    let mut sandbox = turn.options.word("sandbox", &modes)?;
    if let Some(tools) = turn.tools() {
        let server = server(tools);
        argv.push("-c").push(format!(
            "mcp_servers.{SERVER}.command={}",
            toml(&server["command"])
        ));
        argv.push("-c").push(format!(
            "mcp_servers.{SERVER}.args={}",
            toml(&server["args"])
        ));
        if tools.intercept_builtins {
            sandbox.get_or_insert_with(|| "read-only".to_owned());
        }
    }
    for setting in turn.options.list("config")? {
        argv.push("-c").push(setting);
    }
    match sandbox {
        // `exec resume` has no -s.
        Some(mode) if turn.session.is_some() => {
            argv.push("-c").push(format!("sandbox_mode=\"{mode}\""));
        }
        mode => {
            argv.option("-s", mode);
        }
    }
    argv.flag(
        "--skip-git-repo-check",
        turn.options.flag("skip_git_repo_check")?,
    )
    .flag(
        "--dangerously-bypass-approvals-and-sandbox",
        turn.skips_permissions()?,
    );
    let stdin = by_stdin.then(|| prompt.clone());
    Ok(turn.invocation(argv, stdin, prompt, Stream::of("codex-exec", Which::All)))
}

/// A text or a list of texts in TOML. JSON strings are basic strings of TOML, but for a few escapes that do not occur
/// in what `serde_json` writes (`\/`), and DEL, which TOML wants escaped.
fn toml(value: &Value) -> String {
    value.to_string().replace('\u{7f}', "\\u007f")
}
