//! `claude`: Claude Code.

use serde_json::json;

use super::{Invocation, SERVER, Stream, Turn, Which, file, fits, servers};

pub(super) const OPTIONS: &[&str] = &[
    "allowed_tools",
    "disallowed_tools",
    "max_turns",
    "permission_mode",
    "add_dirs",
    "dangerously_skip_permissions",
];

fn is_model(model: &str) -> bool {
    matches!(model, "sonnet" | "opus" | "haiku") || model.starts_with("claude-")
}

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let mut files = Vec::new();
    let mut argv = turn.argv();
    let prompt = turn.prompt();
    argv.push("-p");
    // The prompt is an operand, not the value of -p.
    let by_stdin = prompt.starts_with('-') || !fits(&prompt);
    if !by_stdin {
        argv.push(&prompt);
    }
    let model = turn.model(
        is_model,
        "sonnet, opus, haiku or a name that begins with claude-",
    )?;
    argv.option("--model", model)
        .push("--output-format")
        .push("stream-json")
        .push("--verbose");
    match turn.system() {
        None => {}
        Some(system) if !fits(system) => {
            let (system, path) = file(".md", system)?;
            files.push(system);
            argv.push("--system-prompt-file").push(path);
        }
        Some(system) if system.starts_with('-') => {
            argv.push(format!("--system-prompt={system}"));
        }
        Some(system) => {
            argv.push("--system-prompt").push(system);
        }
    }
    argv.option("-r", turn.session.as_ref());
    let mut allowed = turn.options.list("allowed_tools")?;
    if let Some(tools) = turn.tools() {
        let (config, path) = file(
            ".json",
            &servers(tools, json!({"type": "stdio"})).to_string(),
        )?;
        files.push(config);
        argv.push("--mcp-config").push(path);
        if tools.intercept_builtins {
            argv.push("--tools").push("").push("--strict-mcp-config");
        }
        // Without it every call would wait for a permission that nobody gives.
        allowed.push(format!("mcp__{SERVER}"));
    }
    let joined = |tools: Vec<String>| Some(tools.join(",")).filter(|tools| !tools.is_empty());
    argv.option("--allowedTools", joined(allowed))
        .option(
            "--disallowedTools",
            joined(turn.options.list("disallowed_tools")?),
        )
        .option("--max-turns", turn.options.count("max_turns")?)
        .option("--permission-mode", turn.options.value("permission_mode")?);
    for dir in turn.options.list("add_dirs")? {
        argv.push("--add-dir").push(dir);
    }
    argv.flag("--dangerously-skip-permissions", turn.skips_permissions()?);
    let stdin = by_stdin.then(|| prompt.clone());
    let stream = Stream::of("claude-stream", Which::Result);
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    invocation.files = files;
    Ok(invocation)
}
