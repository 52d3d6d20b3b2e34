//! `copilot`: GitHub Copilot CLI.

use serde_json::json;

use super::{Delivery, Invocation, SERVER, Stream, Turn, Which, delivery, file, servers};

pub(super) const OPTIONS: &[&str] = &[
    "mode",
    "effort",
    "allow_tools",
    "allowed_tools",
    "deny_tools",
    "denied_tools",
    "allow_all",
    "dangerously_skip_permissions",
];

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let options = turn.options;
    let mut argv = turn.argv();
    argv.joined("--resume", &turn.session);
    let prompt = turn.prompt_with_system();
    let mut stdin = None;
    match delivery(prompt.clone()) {
        Delivery::Argument(prompt) => {
            argv.push("-p").push(prompt);
        }
        Delivery::Joined(prompt) => {
            argv.push(format!("--prompt={prompt}"));
        }
        Delivery::Stdin(prompt) => stdin = Some(prompt),
    }
    argv.push("--output-format=json")
        .push("--silent")
        .joined("--model", options.text("model")?)
        .joined(
            "--mode",
            options.word("mode", &["interactive", "plan", "autopilot"])?,
        )
        .joined(
            "--effort",
            options.word("effort", &["low", "medium", "high"])?,
        );
    let mut allow = options.list("allow_tools")?;
    allow.extend(options.list("allowed_tools")?);
    let mut deny = options.list("deny_tools")?;
    deny.extend(options.list("denied_tools")?);
    let mut files = Vec::new();
    if let Some(tools) = turn.tools() {
        let config = servers(tools, json!({"type": "local", "tools": ["*"]}));
        let (file, path) = file(".json", &config.to_string())?;
        files.push(file);
        argv.push("--additional-mcp-config")
            .push(format!("@{path}"));
        allow.push(SERVER.to_owned());
        if tools.intercept_builtins {
            argv.push("--disable-builtin-mcps");
            deny.extend(["shell".to_owned(), "write".to_owned()]);
        }
    }
    argv.joined("--allow-tool", allow)
        .joined("--deny-tool", deny)
        .flag(
            "--allow-all",
            options.flag("allow_all")? || turn.skips_permissions()?,
        );
    let stream = Stream::of("copilot", Which::Last);
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    invocation.files = files;
    Ok(invocation)
}
