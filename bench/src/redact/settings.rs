//! The places in a session where a text may stand.

use serde_json::{Value, json};

/// A name, and a line of a session with a text in it.
pub(super) type Setting = (&'static str, fn(&str, usize) -> String);

pub(super) const SETTINGS: &[Setting] = &[
    ("tool result", plain),
    ("assistant", assistant),
    ("user", user),
    ("command", command),
    ("JSON in a string", nested),
    ("arguments", arguments),
    ("diff", diff),
    ("HTML", html),
    ("tool output in blocks", blocks),
    ("after a newline escape", newline),
];

fn claude(kind: &str, content: &Value, number: usize) -> String {
    let role = if kind == "assistant" {
        "assistant"
    } else {
        "user"
    };
    json!({
        "parentUuid": null,
        "isSidechain": false,
        "sessionId": format!("00000000-0000-4000-8000-{number:012}"),
        "type": kind,
        "message": {"role": role, "content": content},
        "timestamp": "2026-06-22T10:00:03.000Z",
    })
    .to_string()
}

/// What a tool gave back.
pub(super) fn plain(text: &str, number: usize) -> String {
    let content = format!("$ cat notes.txt\nfirst line of the output\n{text}\nlast line\n");
    let result = json!([{"type": "tool_result", "tool_use_id": format!("toolu_{number}"), "content": content}]);
    claude("user", &result, number)
}

fn assistant(text: &str, number: usize) -> String {
    let said = format!("I found this in the configuration:\n\n```\n{text}\n```\n\nShall I go on?");
    claude(
        "assistant",
        &json!([{"type": "text", "text": said}]),
        number,
    )
}

fn user(text: &str, number: usize) -> String {
    claude("user", &json!(format!("here it is: {text}")), number)
}

fn command(text: &str, number: usize) -> String {
    let command = format!("cd /code/app && cat > settings.txt <<'END'\n{text}\nEND");
    let call = json!([{"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {"command": command}}]);
    claude("assistant", &call, number)
}

/// As one agent writes what a command gave: an object as a text.
fn nested(text: &str, number: usize) -> String {
    let inner = json!({"output": format!("{text}\n"), "metadata": {"exit_code": 0}}).to_string();
    json!({
        "timestamp": "2026-06-22T10:00:03.000Z",
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": format!("call_{number}"), "output": inner},
    })
    .to_string()
}

fn arguments(text: &str, number: usize) -> String {
    let inner = json!({"command": ["bash", "-lc", text], "workdir": "/code/app"}).to_string();
    json!({
        "timestamp": "2026-06-22T10:00:03.000Z",
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "call_id": format!("call_{number}"), "arguments": inner},
    })
    .to_string()
}

fn diff(text: &str, number: usize) -> String {
    // Several lines that belong together do not, with a sign before each.
    let body = if text.contains('\n') {
        format!("+\n{text}\n")
    } else {
        format!("+{text}\n")
    };
    plain(
        &format!("@@ -1,2 +1,3 @@\n unchanged\n{body} unchanged"),
        number,
    )
}

fn html(text: &str, number: usize) -> String {
    plain(
        &format!("<html><body><pre>{text}</pre></body></html>"),
        number,
    )
}

fn blocks(text: &str, number: usize) -> String {
    let content = json!([{"type": "text", "text": format!("output:\n{text}")}, {"type": "text", "text": "done"}]);
    let result = json!([{"type": "tool_result", "tool_use_id": format!("toolu_{number}"), "content": content}]);
    claude("user", &result, number)
}

/// In the raw line, an `n` stands right before it.
fn newline(text: &str, number: usize) -> String {
    claude("user", &json!(format!("\n{text}\n")), number)
}
