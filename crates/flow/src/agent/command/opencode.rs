//! `opencode`.

use serde_json::{Value, json};

use super::{Delivery, Invocation, SERVER, Stream, Turn, Which, delivery};

pub(super) const OPTIONS: &[&str] = &[
    "framework",
    "verbose",
    "output",
    "agent",
    "dangerously_skip_permissions",
];

/// The variable that holds settings which are merged into the user's own.
const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// Its own tools that read, write and run.
const BUILTINS: [&str; 8] = [
    "bash", "edit", "write", "read", "grep", "glob", "list", "patch",
];

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let options = turn.options;
    let mut argv = turn.argv();
    argv.push("run");
    let prompt = turn.prompt_with_system();
    let (mut stdin, mut last) = (None, None);
    match delivery(prompt.clone()) {
        Delivery::Argument(prompt) => {
            argv.push(prompt);
        }
        Delivery::Joined(prompt) => last = Some(prompt),
        Delivery::Stdin(prompt) => stdin = Some(prompt),
    }
    argv.push("--format")
        .push("json")
        .option("-s", turn.session.as_ref())
        .option("--model", options.value("model")?)
        .option("--agent", options.value("agent")?)
        .flag("--dangerously-skip-permissions", turn.skips_permissions()?)
        .option("--framework", options.value("framework")?)
        .flag("--verbose", options.flag("verbose")?)
        .option("--output", options.value("output")?);
    if let Some(prompt) = last {
        argv.push("--").push(prompt);
    }
    let stream = Stream::of("opencode-run", Which::All);
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    if let Some(tools) = turn.tools() {
        let given = invocation.env.get(SETTINGS).cloned();
        let given = given.or_else(|| std::env::var(SETTINGS).ok());
        let mut settings = given
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({}));
        let server = json!({"type": "local", "command": tools.server, "enabled": true});
        put(&mut settings, "mcp", SERVER, server);
        if tools.intercept_builtins {
            for tool in BUILTINS {
                put(&mut settings, "tools", tool, json!(false));
            }
        }
        invocation
            .env
            .insert(SETTINGS.to_owned(), settings.to_string());
    }
    Ok(invocation)
}

/// Sets `settings[section][key]`, whatever was there.
fn put(settings: &mut Value, section: &str, key: &str, value: Value) {
    if !settings[section].is_object() {
        settings[section] = json!({});
    }
    settings[section][key] = value;
}
