//! `cli`: any other program, by its arguments.

use serde_json::json;

use super::{Argv, Invocation, Stream, Turn, Which, file, fits, servers};

pub(super) const OPTIONS: &[&str] = &["argv", "resume_argv", "prompt_via", "stream", "answer"];

pub(super) fn build(turn: &Turn<'_>) -> Result<Invocation, String> {
    let options = turn.options;
    let key = if turn.session.is_some() && options.has("resume_argv") {
        "resume_argv"
    } else {
        "argv"
    };
    let template = options.list(key)?;
    if template.is_empty() {
        return Err(format!(
            "options.{key} is missing; give the program and its arguments, e.g. [my-agent, --prompt, \"{{prompt}}\"]"
        ));
    }
    let names = |name: &str| template.iter().any(|argument| has(argument, name));
    if turn.session.is_some() && !names("session") {
        return Err(format!(
            "the session cannot go on: no argument of options.{key} has {{session}} in it; give options.resume_argv"
        ));
    }
    let prompt = if names("system_prompt") {
        turn.prompt()
    } else {
        turn.prompt_with_system()
    };
    let via = options.word("prompt_via", &["argv", "stdin"])?;
    let by_stdin = match via.as_deref() {
        Some("argv") if !names("prompt") => {
            return Err(format!(
                "options.prompt_via is argv, but no argument of options.{key} has {{prompt}} in it"
            ));
        }
        Some(via) => via == "stdin",
        None => !names("prompt"),
    };
    let model = options.text("model")?.unwrap_or_default();
    let mut files = Vec::new();
    let mut config = String::new();
    if let Some(tools) = turn.tools().filter(|_| names("mcp_config")) {
        let (file, path) = file(
            ".json",
            &servers(tools, json!({"type": "stdio"})).to_string(),
        )?;
        files.push(file);
        config = path;
    }
    let values = [
        ("prompt", prompt.as_str()),
        ("system_prompt", turn.system().unwrap_or_default()),
        ("session", turn.session.as_deref().unwrap_or_default()),
        ("model", model.as_str()),
        ("mcp_config", config.as_str()),
    ];
    let mut argv = Argv(Vec::new());
    let mut after_dashes = false;
    for (index, part) in template.iter().enumerate() {
        let argument = fill(part, &values);
        if !fits(&argument) {
            return Err(format!(
                "argument {index} of options.{key} is too long for the system, or has a zero byte in it; \
                 give the prompt on standard input (prompt_via: stdin)"
            ));
        }
        if argument.starts_with('-') && !part.starts_with('-') && !after_dashes {
            return Err(format!(
                "argument {index} of options.{key} would begin with a dash, and be taken for an option; \
                 write --name={part}, put -- before it, or use prompt_via: stdin"
            ));
        }
        after_dashes |= part == "--";
        argv.push(argument);
    }
    // The program itself may be another one, as with every provider.
    if let (Some(first), false) = (argv.0.first_mut(), turn.program.is_empty()) {
        first.clone_from(&turn.program);
    }
    let answer = match options.word("answer", &["last", "all"])?.as_deref() {
        Some("all") => Which::All,
        _ => Which::Last,
    };
    let stdin = by_stdin.then(|| prompt.clone());
    let stream = stream(turn, answer)?;
    let mut invocation = turn.invocation(argv, stdin, prompt, stream);
    invocation.offers_tools = !files.is_empty();
    invocation.files = files;
    Ok(invocation)
}

fn stream(turn: &Turn<'_>, answer: Which) -> Result<Stream, String> {
    let dialect = turn.options.text("stream")?.filter(|name| name != "text");
    let Some(name) = dialect else {
        return Ok(Stream {
            dialect: None,
            answer,
        });
    };
    if quipu_agents::dialect(&name).is_none() {
        let dialects = quipu_agents::FAMILIES
            .iter()
            .flat_map(|family| family.dialects());
        let nearest = dialects
            .map(|dialect| (strsim::jaro_winkler(dialect.name, &name), dialect.name))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = nearest.map_or_else(String::new, |(_, name)| format!(", did you mean {name}?"));
        return Err(format!(
            "options.stream is {name:?}; it can be text, or a format that quipu reads{hint}"
        ));
    }
    Ok(Stream::of(&name, answer))
}

/// Whether a part of the template has a place for a value.
fn has(part: &str, name: &str) -> bool {
    part.contains(&format!("{{{name}}}"))
}

/// Fills the places of a part, both `{name}` and `{{name}}`. What is filled in is not looked at again.
fn fill(part: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = part;
    'next: while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        for (name, value) in values {
            for place in [format!("{{{{{name}}}}}"), format!("{{{name}}}")] {
                if let Some(behind) = rest.strip_prefix(place.as_str()) {
                    text.push_str(value);
                    rest = behind;
                    continue 'next;
                }
            }
        }
        text.push('{');
        rest = &rest[1..];
    }
    text.push_str(rest);
    text
}
