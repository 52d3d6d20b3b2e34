//! What a tool was asked, in a word, and what it gave back, as text.

use std::borrow::Cow;

use quipu_model::Json;
use serde_json::Value;

/// The arguments that tell most, the most telling first.
const TELLING: [&str; 26] = [
    "command",
    "cmd",
    "file_path",
    "filePath",
    "notebook_path",
    "pattern",
    "query",
    "path",
    "target_file",
    "absolute_path",
    "url",
    "description",
    "prompt",
    "task",
    "skill",
    "message",
    "question",
    "text",
    "name",
    "title",
    "script",
    "code",
    "content",
    "input",
    "id",
    "todos",
];

/// The value of an input, which may be a text that holds JSON.
pub(super) fn value(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or(Value::Null)
}

/// The one argument that tells most.
pub(super) fn telling(input: &Value) -> String {
    match input {
        Value::Null => String::new(),
        Value::String(text) => {
            if text.contains("*** Begin Patch") {
                patched(text)
            } else {
                text.clone()
            }
        }
        Value::Object(fields) => {
            let told = TELLING
                .iter()
                .filter_map(|key| fields.get(*key))
                .find_map(|value| match value {
                    Value::String(text) if text.contains("*** Begin Patch") => Some(patched(text)),
                    Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
                    Value::Array(words) => command(words),
                    _ => None,
                });
            match told {
                Some(told) => told,
                None if fields.is_empty() => String::new(),
                None => input.to_string(),
            }
        }
        other => other.to_string(),
    }
}

/// The files that a patch is about.
fn patched(patch: &str) -> String {
    let files: Vec<&str> = patch
        .lines()
        .filter_map(|line| {
            ["*** Update File: ", "*** Add File: ", "*** Delete File: "]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
        })
        .collect();
    files.join(", ")
}

/// A command given as a list of words; of `bash -lc TEXT`, the text.
fn command(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words[..] {
        [] => None,
        [shell, flag, text] if shell.ends_with("sh") && flag.starts_with('-') => {
            Some(text.to_owned())
        }
        _ => Some(words.join(" ")),
    }
}

/// What a tool gave back, as text.
pub(super) fn text(output: &Json) -> Cow<'_, str> {
    if let Some(text) = output.as_str() {
        return text;
    }
    match serde_json::from_str::<Value>(output.get()) {
        Ok(value) => Cow::Owned(plain(&value, 0)),
        Err(_) => Cow::Borrowed(output.get()),
    }
}

/// What is behind the figures that some agents put before the output of a command.
pub(super) fn without_figures(text: &str) -> &str {
    const FIGURES: [&str; 4] = [
        "Chunk ID: ",
        "Exit code: ",
        "Wall time: ",
        "Script completed",
    ];
    match text.split_once("\nOutput:\n") {
        Some((head, body))
            if FIGURES.iter().any(|figure| head.starts_with(figure))
                && head.lines().count() <= 6 =>
        {
            body
        }
        _ => text,
    }
}

fn plain(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if depth < 4 => {
            let texts: Vec<String> = items.iter().map(|item| plain(item, depth + 1)).collect();
            texts.join("\n")
        }
        Value::Object(fields) if depth < 4 => {
            let streams: Vec<&str> = ["stdout", "stderr"]
                .iter()
                .filter_map(|key| fields.get(*key)?.as_str())
                .filter(|text| !text.is_empty())
                .collect();
            if !streams.is_empty() {
                return streams.join("\n");
            }
            ["text", "output", "content", "contents", "result", "message"]
                .iter()
                .find_map(|key| fields.get(*key))
                .map_or_else(|| value.to_string(), |inner| plain(inner, depth + 1))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_most_telling_argument() {
        for (input, told) in [
            (json!({"command": "ls -l", "description": "Lists"}), "ls -l"),
            (
                json!({"command": ["bash", "-lc", "cargo test"]}),
                "cargo test",
            ),
            (json!({"command": ["git", "status"]}), "git status"),
            (json!({"old_string": "a", "file_path": "/x.rs"}), "/x.rs"),
            (json!({"path": "src", "pattern": "fn main"}), "fn main"),
            (json!({"odd": 1}), r#"{"odd":1}"#),
            (json!({}), ""),
            (json!(null), ""),
            (
                json!("*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch"),
                "a.rs",
            ),
        ] {
            assert_eq!(telling(&input), told);
        }
    }

    #[test]
    fn what_came_back() {
        for (output, shown) in [
            (r#""plain""#, "plain"),
            (
                r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
                "a\nb",
            ),
            (r#"{"stdout":"out","stderr":"","interrupted":false}"#, "out"),
            (r#"{"output":{"content":[{"text":"deep"}]}}"#, "deep"),
            (r#"{"n":1}"#, r#"{"n":1}"#),
            ("null", ""),
        ] {
            assert_eq!(text(&Json::parse(output).unwrap()), shown);
        }
        let shown = without_figures("Exit code: 0\nWall time: 1 seconds\nOutput:\nok");
        assert_eq!(
            (shown, without_figures("x\nOutput:\ny")),
            ("ok", "x\nOutput:\ny")
        );
    }
}
