//! Lines that are the raw streams of other programs, with a time put in.
//!
//! The families of those agents read their streams in full. Here they are read for what a step said and did,
//! because its transcript may be one; what has no place is kept.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Money, NoteKind, Usage};

use super::{Content, Data, Line, Statement, Transcript, Who};

/// Whether a line is of Claude's command.
pub(super) fn is_claude(line: Node<'_>, kind: &str) -> bool {
    let has = |key: &str| line.get(key).is_some();
    let content = line.path(&["message", "content"]);
    match kind {
        "assistant" | "user" => content.is_some(),
        "system" => has("subtype"),
        "result" => has("total_cost_usd") || has("num_turns") || has("subtype"),
        "stream_event" | "rate_limit_event" => has("session_id"),
        _ => false,
    }
}

/// Whether a line is of Gemini's command, and cannot be anything else.
pub(super) fn is_gemini(line: Node<'_>, kind: &str) -> bool {
    let has = |key: &str| line.get(key).is_some();
    match kind {
        "init" => has("session_id") || has("model"),
        "message" => has("delta"),
        "tool_use" => has("tool_name") || has("tool_id"),
        "tool_result" => has("tool_id"),
        "result" => has("stats"),
        "error" => has("severity"),
        "text" => has("message"),
        _ => false,
    }
}

/// T7.
pub(super) fn claude<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    let kind = line.text("type").unwrap_or_default();
    let who = match &*kind {
        "assistant" => Who::Assistant,
        "user" => Who::User,
        "result" => {
            read.usage = line.get("usage").and_then(claude_usage);
            let cost = line.get("total_cost_usd");
            let cost = cost.filter(|cost| cost.kind() == Kind::Number);
            read.cost = cost.and_then(|cost| Money::parse(cost.raw().get()));
            read.keep = Some(NoteKind::Turn);
            return;
        }
        "system" => {
            read.model = line.text("model");
            read.keep = Some(NoteKind::Session);
            return;
        }
        _ => {
            read.keep = Some(NoteKind::UnknownRecord);
            return;
        }
    };
    let Some(message) = line.get("message") else {
        return;
    };
    read.model = message.text("model");
    let Some(content) = message.get("content") else {
        return;
    };
    if let Some(text) = content.as_str() {
        read.said.push(said(who, Content::Text(text)));
    }
    for block in content.items() {
        if !claude_block(of, who, block, read) {
            read.keep = Some(NoteKind::UnknownRecord);
        }
    }
}

fn said(who: Who, content: Content<'_>) -> Statement<'_> {
    Statement::Message {
        who,
        content,
        piece: false,
    }
}

/// Reads a block; `false` when it is not known.
fn claude_block<'a>(of: &mut Transcript, who: Who, block: Node<'a>, read: &mut Line<'a>) -> bool {
    let kind = block.text("type").unwrap_or_default();
    let text = |key: &str| block.text(key).unwrap_or_default();
    match &*kind {
        "text" => read.said.push(said(who, Content::Text(text("text")))),
        "thinking" => read
            .said
            .push(said(who, Content::Thinking(text("thinking")))),
        "tool_use" => {
            let name = text("name");
            let id = of.call(&name, block.text("id").as_deref());
            read.said.push(Statement::Call {
                name,
                id: Cow::Owned(id),
                input: block.get("input").map(Data::from),
            });
        }
        "tool_result" => {
            let given = text("tool_use_id");
            let name = of.answer("", Some(&given)).map(|(name, _)| name);
            let failed = block.get("is_error").and_then(|n| n.as_bool()) == Some(true);
            let content = block.get("content").filter(|content| !content.is_null());
            let error = failed.then(|| {
                let text = content.and_then(|content| content.as_str());
                text.unwrap_or(Cow::Borrowed("failed"))
            });
            // An error that is not one text stays whole.
            let is_text = content.is_some_and(|content| content.kind() == Kind::String);
            read.said.push(Statement::Result {
                name: Cow::Owned(name.unwrap_or_default()),
                id: given,
                output: content.filter(|_| !failed || !is_text).map(Data::from),
                error,
                status: None,
                at: None,
                duration_ms: None,
            });
        }
        _ => return false,
    }
    true
}

fn claude_usage(usage: Node<'_>) -> Option<Usage> {
    let count = |key: &str| usage.get(key).and_then(|n| n.as_u64());
    let made = Usage {
        input: count("input_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        cache_write_1h: usage
            .path(&["cache_creation", "ephemeral_1h_input_tokens"])
            .and_then(|n| n.as_u64()),
        output: count("output_tokens"),
        reasoning: None,
    };
    (!made.is_empty()).then_some(made)
}

/// T8.
pub(super) fn gemini<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    let kind = line.text("type").unwrap_or_default();
    match &*kind {
        "message" => {
            let who = match line.text("role").as_deref() {
                Some("user") => Who::User,
                Some("system") => Who::System,
                _ => Who::Assistant,
            };
            let Some(text) = line.text("content") else {
                read.keep = Some(NoteKind::UnknownRecord);
                return;
            };
            let piece = line.get("delta").and_then(|n| n.as_bool()) == Some(true);
            read.said.push(Statement::Message {
                who,
                content: Content::Text(text),
                piece,
            });
        }
        "tool_use" => {
            let name = line.text("tool_name").unwrap_or_default();
            let id = of.call(&name, line.text("tool_id").as_deref());
            read.said.push(Statement::Call {
                name,
                id: Cow::Owned(id),
                input: line.get("parameters").map(Data::from),
            });
        }
        "tool_result" => {
            let given = line.text("tool_id").unwrap_or_default();
            let name = of.answer("", Some(&given)).map(|(name, _)| name);
            let failed = line.get("status").is_some_and(|status| status.is("error"));
            let why = line.path(&["error", "message"]).and_then(|n| n.as_str());
            let output = line.get("output").filter(|output| !output.is_null());
            read.said.push(Statement::Result {
                name: Cow::Owned(name.unwrap_or_default()),
                id: given,
                output: output.map(Data::from),
                error: failed.then(|| why.unwrap_or(Cow::Borrowed("failed"))),
                status: None,
                at: None,
                duration_ms: None,
            });
        }
        "result" => {
            read.usage = line.get("stats").and_then(gemini_usage);
            read.keep = Some(NoteKind::Turn);
        }
        "init" => {
            read.model = line.text("model");
            read.keep = Some(NoteKind::Session);
        }
        "error" => read.said.push(Statement::Note {
            kind: NoteKind::Error,
            text: line.text("message").or(line.text("error")),
        }),
        // What the command printed that was no record.
        _ => read.said.push(Statement::Note {
            kind: NoteKind::Context,
            text: line.text("message"),
        }),
    }
}

fn gemini_usage(stats: Node<'_>) -> Option<Usage> {
    let count = |key: &str| stats.get(key).and_then(|n| n.as_u64());
    let cached = count("cached");
    let made = Usage {
        input: count("input_tokens").map(|all| all.saturating_sub(cached.unwrap_or(0))),
        cache_read: cached,
        output: count("output_tokens"),
        ..Usage::default()
    };
    (!made.is_empty()).then_some(made)
}
