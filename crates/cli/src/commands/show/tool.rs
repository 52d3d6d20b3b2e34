//! What a tool was asked, in a word, and what it gave back, as text.

use std::borrow::Cow;

use quipu_model::Json;
use serde_json::Value;

use crate::terminal::fit;

/// The arguments that tell most, the most telling first.
const TELLING: [&str; 25] = [
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
];

/// Those of them that name a file.
const PATHS: [&str; 6] = [
    "file_path",
    "filePath",
    "notebook_path",
    "path",
    "target_file",
    "absolute_path",
];

/// As much is shown of JSON that nobody has words for.
const RAW: usize = 100;

/// What a tool was asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// In a word.
    pub(super) text: String,
    /// Whether that is the path of a file.
    pub(super) is_path: bool,
    /// What belongs below it: things to do, a plan, a question.
    pub(super) below: Vec<String>,
}

impl Told {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// The value of an input, which may be a text that holds JSON.
pub(super) fn value(json: Option<&Json>) -> Value {
    json.and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or(Value::Null)
}

/// The one argument that tells most.
pub(super) fn telling(input: &Value) -> Told {
    match input {
        Value::Null => Told::default(),
        Value::String(text) => match patch(text) {
            Some(patch) => Told::new(patched(patch)),
            None => Told::new(text.clone()),
        },
        Value::Object(fields) => {
            if let Some(told) = todos(fields)
                .or_else(|| questions(fields))
                .or_else(|| plan(fields))
            {
                return told;
            }
            let told = TELLING.iter().find_map(|key| {
                let text = match fields.get(*key)? {
                    Value::String(text) if !text.trim().is_empty() => text.clone(),
                    Value::Array(words) => command(words)?,
                    _ => return None,
                };
                Some(match patch(&text) {
                    Some(patch) => Told::new(patched(patch)),
                    None => Told {
                        text,
                        is_path: PATHS.contains(key),
                        below: Vec::new(),
                    },
                })
            });
            let kind = ["subagent_type", "agent_type", "agentName"];
            let kind = kind.iter().find_map(|key| fields.get(*key)?.as_str());
            match (told, kind) {
                (Some(told), Some(kind)) if !told.is_path => {
                    Told::new(format!("{} ({kind})", told.text))
                }
                (Some(told), _) => told,
                (None, _) if fields.is_empty() => Told::default(),
                (None, _) => match fields.get("action").filter(|it| it.is_object()) {
                    Some(action) => telling(action),
                    None => Told::new(short(input)),
                },
            }
        }
        other => Told::new(short(other)),
    }
}

/// JSON that nobody has words for, in short.
pub(super) fn short(value: &Value) -> String {
    fit(&value.to_string(), RAW)
}

/// A list of things to do: `TodoWrite`, `update_plan` and the like.
fn todos(fields: &serde_json::Map<String, Value>) -> Option<Told> {
    let list = ["todos", "plan", "todoList", "items"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_array())?;
    let mut done = 0;
    let mut below = Vec::with_capacity(list.len());
    for item in list {
        let text = ["content", "step", "title", "text", "description"]
            .iter()
            .find_map(|key| item.get(*key)?.as_str())?;
        let mark = match item.get("status")?.as_str()? {
            "completed" | "complete" | "done" => 'x',
            "in_progress" | "in-progress" | "active" => '>',
            "cancelled" | "canceled" => '-',
            _ => ' ',
        };
        done += usize::from(mark == 'x');
        below.push(format!("[{mark}] {text}"));
    }
    Some(Told {
        text: format!("{done} of {} done", list.len()),
        is_path: false,
        below,
    })
}

/// A plan that is to be agreed to: `ExitPlanMode`.
fn plan(fields: &serde_json::Map<String, Value>) -> Option<Told> {
    let plan = fields.get("plan")?.as_str()?;
    Some(Told {
        text: String::new(),
        is_path: false,
        below: plan.trim().lines().map(str::to_owned).collect(),
    })
}

/// Questions with answers to choose from: `AskUserQuestion`.
fn questions(fields: &serde_json::Map<String, Value>) -> Option<Told> {
    let mut texts = Vec::new();
    let mut below = Vec::new();
    for question in fields.get("questions")?.as_array()? {
        let text = question.get("question")?.as_str()?;
        texts.push(text);
        if texts.len() > 1 {
            below.push(text.to_owned());
        }
        let options = question.get("options").and_then(Value::as_array);
        for option in options.into_iter().flatten() {
            let label = option.get("label").unwrap_or(option).as_str()?;
            below.push(format!("- {label}"));
        }
    }
    Some(Told {
        text: (*texts.first()?).to_owned(),
        is_path: false,
        below,
    })
}

/// The patch in a text: all of it, or what a command passes on to `apply_patch`.
pub(super) fn patch(text: &str) -> Option<&str> {
    const END: &str = "*** End Patch";
    let begin = text.find("*** Begin Patch")?;
    let patch = &text[begin..];
    let end = patch.find(END).map_or(patch.len(), |at| at + END.len());
    Some(&patch[..end])
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
pub(super) fn command(words: &[Value]) -> Option<String> {
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
        return match wrapped(&text) {
            Some(inner) => Cow::Owned(inner),
            None => text,
        };
    }
    match serde_json::from_str::<Value>(output.get()) {
        Ok(value) => Cow::Owned(plain(&value, 0)),
        Err(_) => Cow::Borrowed(output.get()),
    }
}

/// The output in a text that holds it as JSON, beside its figures: `{"output":…,"metadata":{…}}`.
fn wrapped(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let output = value.get("output")?.as_str()?;
    value.get("metadata").filter(|it| it.is_object())?;
    Some(output.to_owned())
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
    use crate::terminal::width_of;

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
            assert_eq!(telling(&input).text, told);
        }
        let long = telling(&json!({"odd": "x".repeat(500)})).text;
        assert_eq!(width_of(&long), RAW);
        assert!(telling(&json!({"file_path": "/x.rs"})).is_path);
    }

    #[test]
    fn tools_that_have_words_of_their_own() {
        for (input, told, below) in [
            (
                json!({"todos": [{"content": "Look", "status": "completed"}, {"content": "Do", "status": "in_progress"}, {"content": "Test", "status": "pending"}]}),
                "1 of 3 done",
                &["[x] Look", "[>] Do", "[ ] Test"][..],
            ),
            (
                json!({"explanation": "why", "plan": [{"step": "Look", "status": "completed"}]}),
                "1 of 1 done",
                &["[x] Look"],
            ),
            (json!({"plan": "1. Look\n2. Do"}), "", &["1. Look", "2. Do"]),
            (
                json!({"questions": [{"question": "Which?", "options": [{"label": "A", "description": "a"}, {"label": "B"}]}]}),
                "Which?",
                &["- A", "- B"],
            ),
            (
                json!({"description": "Look around", "prompt": "…", "subagent_type": "Explore"}),
                "Look around (Explore)",
                &[],
            ),
            (
                json!({"url": "https://example.org", "prompt": "sum up"}),
                "https://example.org",
                &[],
            ),
            (
                json!({"type": "web_search", "action": {"type": "search", "query": "jiff"}}),
                "jiff",
                &[],
            ),
            (
                json!({"command": ["bash", "-lc", "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a.rs\n+x\n*** End Patch\nE"]}),
                "a.rs",
                &[],
            ),
        ] {
            let found = telling(&input);
            assert_eq!(
                (found.text.as_str(), &found.below[..]),
                (
                    told,
                    &below.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]
                )
            );
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
            (
                r#""{\"output\":\"ok\\n\",\"metadata\":{\"exit_code\":0}}""#,
                "ok\n",
            ),
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
