//! `vibe`: Mistral Vibe.

use serde_json::json;

use super::{Delivery, Invocation, SERVER, Stream, Turn, Which, delivery, server};

pub(super) const OPTIONS: &[&str] = &[
    "agent",
    "output",
    "max_turns",
    "max_tokens",
    "max_price",
    "workdir",
    "enabled_tools",
    "allowed_tools",
    "add_dirs",
    "trust",
    "dangerously_skip_permissions",
];

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let options = turn.options;
    let mut argv = turn.argv();
    let prompt = turn.prompt_with_system();
    let mut stdin = None;
    match delivery(prompt.clone()) {
        Delivery::Argument(prompt) => argv.push("--prompt").push(prompt),
        Delivery::Joined(prompt) => argv.push(format!("--prompt={prompt}")),
        Delivery::Stdin(prompt) => {
            stdin = Some(prompt);
            // Without a value it is read from standard input.
            argv.push("--prompt")
        }
    };
    let agent = options.value("agent")?;
    let agent = match (agent, turn.skips_permissions()?) {
        (Some(agent), _) => agent,
        (None, true) => "auto-approve".to_owned(),
        (None, false) => "default".to_owned(),
    };
    let output = options.word("output", &["text", "json", "streaming"])?;
    argv.push("--agent")
        .push(agent)
        .push("--output")
        .push(output.as_deref().unwrap_or("streaming"))
        .option("--max-turns", options.count("max_turns")?)
        .option("--max-tokens", options.count("max_tokens")?)
        .option(
            "--max-price",
            options.number("max_price", 0.0, f64::INFINITY)?,
        )
        .option("--workdir", options.value("workdir")?);
    let mut enabled = options.list("enabled_tools")?;
    enabled.extend(options.list("allowed_tools")?);
    if turn.tools().is_some_and(|tools| tools.intercept_builtins) {
        enabled = vec![format!("{SERVER}_*")];
    }
    for tool in enabled {
        argv.push("--enabled-tools").push(tool);
    }
    for dir in options.list("add_dirs")? {
        argv.push("--add-dir").push(dir);
    }
    argv.flag("--trust", options.flag("trust")?);
    let stream = match output.as_deref() {
        Some("text") => Stream {
            dialect: None,
            answer: Which::Last,
        },
        _ => Stream::of("vibe", Which::Last),
    };
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    // Vibe has no arguments for these; each setting of it can be a variable.
    if let Some(model) = options.value("model")? {
        invocation.env.insert("VIBE_ACTIVE_MODEL".to_owned(), model);
    }
    if let Some(tools) = turn.tools() {
        let mut entry = server(tools);
        entry["name"] = json!(SERVER);
        entry["transport"] = json!("stdio");
        let servers = json!([entry]).to_string();
        invocation
            .env
            .insert("VIBE_MCP_SERVERS".to_owned(), servers);
    }
    Ok(invocation)
}
