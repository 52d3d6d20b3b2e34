//! A record in a few words.

use quipu_formats::agentlog::{Kind, Record};
use quipu_model::json::{Kind as JsonKind, Node, RawStr};

use crate::redaction::secrets;
use crate::terminal::{bytes, duration, tokens};

/// How much of a text is shown, in characters.
const SHOWN: usize = 400;

/// How much of a text is looked at, in bytes: what is hidden must not be cut short before.
const LOOKED_AT: usize = 16 << 10;

/// What a record comes to.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// For a person; not cleaned.
    pub(super) text: String,
    pub(super) model: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

pub(super) fn of(record: &Record<'_>) -> Summary {
    let Some(payload) = record.payload() else {
        return Summary::default();
    };
    let word = |key: &str| payload.text(key).map(|text| head(&text));
    let number = |key: &str| payload.get(key).and_then(|it| it.as_u64());
    let mut summary = Summary {
        model: word("model"),
        tool: word("tool_name"),
        stop_reason: word("stop_reason"),
        ..Summary::default()
    };
    let mut parts: Vec<String> = Vec::new();
    let mut said = None;
    match record.kind() {
        Some(Kind::Metadata) => {
            let tag = |key: &str| Some(head(&payload.path(&["tags", key])?.as_str()?));
            let sdk = payload.path(&["sdk", "name"]).and_then(|it| it.as_str());
            parts.extend(tag("agent").or(sdk.map(|name| head(&name))));
            parts.extend(tag("project"));
            said = tag("title");
        }
        Some(Kind::ChatRequest) => {
            parts.extend(summary.model.clone());
            let messages = payload.get("messages").map_or(0, |it| it.items().count());
            parts.push(crate::terminal::count(messages as u64, "message"));
            said = payload
                .get("messages")
                .and_then(|it| it.items().last())
                .and_then(message);
        }
        Some(Kind::ChatResponse) => {
            let usage = |key: &str| payload.path(&["usage", key])?.as_u64();
            summary.input_tokens = usage("input_tokens");
            summary.output_tokens = usage("output_tokens");
            parts.extend(summary.model.clone());
            parts.extend(summary.stop_reason.clone());
            let prompt = [
                "input_tokens",
                "cache_read_input_tokens",
                "cache_creation_input_tokens",
            ];
            let prompt: u64 = prompt
                .iter()
                .filter_map(|key| usage(key))
                .fold(0, u64::saturating_add);
            if let Some(output) = summary.output_tokens {
                parts.push(format!("{} in, {} out", tokens(prompt), tokens(output)));
            }
            parts.extend(number("latency_ms").map(duration));
            said = payload.get("content").and_then(content);
        }
        Some(Kind::ToolCall) => {
            parts.extend(summary.tool.clone());
            said = payload.get("arguments").map(arguments);
        }
        Some(Kind::ToolResult) => {
            let failed = payload.get("is_error").and_then(|it| it.as_bool()) == Some(true);
            parts.push(if failed { "failed" } else { "ok" }.to_owned());
            parts.extend(number("latency_ms").map(duration));
            said = payload.get("output").map(value);
        }
        Some(Kind::Error) => {
            parts.extend([word("source"), word("code")].into_iter().flatten());
            said = word("message");
        }
        Some(Kind::HarnessEvent) => {
            parts.extend([word("category"), word("name")].into_iter().flatten());
            let attributes = payload.get("attributes");
            let about = |key: &str| attributes?.text(key).map(|text| head(&text));
            said = about("text")
                .or_else(|| about("error"))
                .or_else(|| about("path"));
        }
        Some(Kind::BlobRef) => {
            parts.extend(word("mime"));
            parts.extend(number("size_bytes").map(bytes));
        }
        Some(Kind::Chunk) => {
            parts.extend(number("chunk_index").map(|n| format!("#{n}")));
            said = payload.get("delta").map(value);
        }
        Some(Kind::ReplaySummary) => {
            let counted = |key: &str, what| Some(format!("{} {what}", number(key)?));
            parts.extend(counted("input_count", "in"));
            parts.extend(counted("output_count", "out"));
            parts.extend(counted("error_count", "failed"));
            parts.extend(number("duration_ms").map(duration));
        }
        None => said = Some(value(payload)),
    }
    parts.retain(|part| !part.is_empty());
    summary.text = parts.join(", ");
    if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
        let gap = if summary.text.is_empty() { "" } else { ": " };
        summary.text = format!("{}{gap}{}", summary.text, said.trim());
    }
    summary
}

/// The beginning of a text, without its secrets.
fn head(text: &str) -> String {
    let looked_at = text.char_indices().take_while(|(at, _)| *at < LOOKED_AT);
    let end = looked_at
        .last()
        .map_or(0, |(at, last)| at + last.len_utf8());
    let masked = secrets().mask(&text[..end], None);
    masked.chars().take(SHOWN).collect()
}

fn value(node: Node<'_>) -> String {
    if let Some(raw) = node.as_raw_str() {
        return head(&raw.to_text_lossy());
    }
    let mut text = String::new();
    write_masked(node, &mut text);
    head(&text)
}

/// Writes the beginning of a value as JSON. Each text is masked as it reads: a rule may not know it by its escapes.
fn write_masked(node: Node<'_>, text: &mut String) {
    let quoted = |said: &str| serde_json::Value::from(head(said)).to_string();
    match node.kind() {
        JsonKind::Object => {
            text.push('{');
            for (nth, (key, value)) in node.fields().enumerate() {
                if text.len() > LOOKED_AT {
                    break;
                }
                text.push_str(if nth > 0 { "," } else { "" });
                text.push_str(&quoted(&key.to_text_lossy()));
                text.push(':');
                write_masked(value, text);
            }
            text.push('}');
        }
        JsonKind::List => {
            text.push('[');
            for (nth, item) in node.items().enumerate() {
                if text.len() > LOOKED_AT {
                    break;
                }
                text.push_str(if nth > 0 { "," } else { "" });
                write_masked(item, text);
            }
            text.push(']');
        }
        JsonKind::String => {
            let said = node.as_raw_str().map(RawStr::to_text_lossy);
            text.push_str(&quoted(&said.unwrap_or_default()));
        }
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => text.push_str(node.raw().get()),
    }
}

/// What a message says: who, and its first words.
fn message(message: Node<'_>) -> Option<String> {
    let said = content(message.get("content")?)?;
    Some(match message.text("role") {
        Some(role) if role != "user" => format!("{}: {said}", head(&role)),
        _ => said,
    })
}

/// The first words of content, which is a text or a list of parts.
fn content(node: Node<'_>) -> Option<String> {
    if node.kind() != JsonKind::List {
        return Some(value(node));
    }
    let part = |part: Node<'_>| {
        let kind = part.text("type").unwrap_or_default();
        let named = |key: &str| head(&part.text(key).unwrap_or_default());
        match kind.as_ref() {
            "text" => part.get("text").map(value),
            "tool_use" => Some(format!("[{}]", named("name"))),
            "tool_result" => part
                .get("content")
                .map(|it| format!("[result] {}", value(it))),
            _ => None,
        }
    };
    // What was said comes before what was done, and that before what was thought.
    let mut parts: Vec<String> = node.items().filter_map(part).collect();
    parts.retain(|text| !text.trim().is_empty());
    if parts.is_empty() {
        let thought = node.items().find_map(|part| part.get("text").map(value));
        return thought.map(|thought| format!("(thinking) {thought}"));
    }
    parts.truncate(4);
    Some(parts.join(" "))
}

/// The arguments of a call: of a few, what they are.
fn arguments(node: Node<'_>) -> String {
    let mut fields = node.fields();
    match (fields.next(), fields.next()) {
        (Some((_, only)), None) => value(only),
        _ => value(node),
    }
}
