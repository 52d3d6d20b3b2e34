//! `gemini`: Gemini CLI.

use serde_json::json;

use super::{Delivery, Invocation, SERVER, Stream, Turn, Which, delivery, file, servers};

pub(super) const OPTIONS: &[&str] = &["approval_mode", "dangerously_skip_permissions"];

/// The variable that names a settings file which is read beside the user's own.
const SETTINGS: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let modes = ["default", "auto_edit", "yolo", "plan"];
    let mut approval = turn.options.word("approval_mode", &modes)?;
    if turn.skips_permissions()? {
        approval = Some("yolo".to_owned());
    }
    let is_model = |model: &str| model.starts_with("gemini-");
    let model = turn.model(is_model, "a name that begins with gemini-")?;
    let mut argv = turn.argv();
    argv.joined("--approval-mode", approval)
        .push("--output-format")
        .push("stream-json")
        .option("--model", model)
        .option("--resume", turn.session.as_ref());
    if turn.tools().is_some() {
        argv.push("--allowed-mcp-server-names").push(SERVER);
    }
    let prompt = turn.prompt_with_system();
    let mut stdin = None;
    match delivery(prompt.clone()) {
        Delivery::Argument(prompt) => argv.push("-p").push(prompt),
        Delivery::Joined(prompt) => argv.push(format!("--prompt={prompt}")),
        Delivery::Stdin(prompt) => {
            stdin = Some(prompt);
            &mut argv
        }
    };
    let stream = Stream::of("gemini-stream", Which::All);
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    if let Some(tools) = turn.tools() {
        let mut settings = servers(tools, json!({"trust": true}));
        if tools.intercept_builtins {
            settings["tools"] = json!({"core": []});
        }
        let (file, path) = file(".json", &settings.to_string())?;
        invocation.files.push(file);
        invocation.env.insert(SETTINGS.to_owned(), path);
    }
    Ok(invocation)
}
