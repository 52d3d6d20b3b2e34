//! Lines of the SDK: as they were meant, as they came out, and with a session.

use std::borrow::Cow;

use quipu_model::json::Node;
use quipu_model::{NoteKind, Status, Usage};

use super::python::{self, Value};
use super::{Content, Data, Line, Statement, Transcript, Who, cut, has_more, is_cut};
use crate::flow::receipt::Receipt;

/// T4, and the tools of T9.
pub(super) fn legacy<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    const FIELDS: &[&str] = &[
        "timestamp",
        "type",
        "role",
        "content",
        "tool",
        "input",
        "success",
        "output",
        "usage",
        "error",
    ];
    if has_more(line, FIELDS) {
        read.keep = Some(NoteKind::UnknownRecord);
    }
    let kind = line.text("type").unwrap_or_default();
    match &*kind {
        "message" => {
            let who = match line.text("role").as_deref() {
                Some("user") => Who::User,
                Some("assistant") => Who::Assistant,
                _ => Who::System,
            };
            match line.text("content") {
                Some(text) => read.said.push(message(who, text)),
                None => read.keep = Some(NoteKind::UnknownRecord),
            }
        }
        "tool_use" => {
            let name = line.text("tool").unwrap_or_default();
            let id = of.call(&name, None);
            read.said.push(Statement::Call {
                name,
                id: Cow::Owned(id),
                input: line.get("input").map(Data::from),
            });
        }
        "tool_result" => {
            let name = line.text("tool").unwrap_or_default();
            let failed = line.get("success").and_then(|n| n.as_bool()) == Some(false);
            let output = line.get("output").filter(|output| !output.is_null());
            let text = output.and_then(|output| output.as_str());
            let is_cut = text.as_deref().is_some_and(is_cut);
            let error = failed.then(|| text.unwrap_or(Cow::Borrowed("failed")));
            let output = output.filter(|_| !failed).map(Data::from);
            result(of, name, output, error, None, read);
            if is_cut {
                read.said.push(cut());
            }
        }
        "result" => {
            read.usage = line.get("usage").and_then(usage);
            read.keep = Some(NoteKind::Turn);
        }
        _ => read.said.push(Statement::Note {
            kind: NoteKind::Error,
            text: line.text("error"),
        }),
    }
}

/// Tokens as receipts count them.
fn usage(tokens: Node<'_>) -> Option<Usage> {
    let made = format!("{{\"tokens\":{}}}", tokens.raw().get());
    let mut tape = quipu_model::json::Tape::new();
    let node = tape.read(&made, quipu_model::Json::MAX_DEPTH).ok()?;
    Receipt::of(node).tokens.usage()
}

fn message(who: Who, text: Cow<'_, str>) -> Statement<'_> {
    Statement::Message {
        who,
        content: Content::Text(text),
        piece: false,
    }
}

/// A result that names its tool only. One whose call was not told of gets one, so that it is not lost.
fn result<'a>(
    of: &mut Transcript,
    name: Cow<'a, str>,
    output: Option<Data<'a>>,
    error: Option<Cow<'a, str>>,
    status: Option<Status>,
    read: &mut Line<'a>,
) {
    let id = match of.answer(&name, None) {
        Some((_, id)) => id,
        None => of.make(),
    };
    read.said.push(Statement::Result {
        name,
        id: Cow::Owned(id),
        output,
        error,
        status,
        at: None,
        duration_ms: None,
    });
}

/// T6.
pub(super) fn session<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    const FIELDS: &[&str] = &[
        "timestamp",
        "phase",
        "type",
        "content",
        "tool",
        "success",
        "blocked",
        "block_reason",
    ];
    // The phase has no place of its own, but for the one that is always there.
    let other_phase = !line.get("phase").is_some_and(|phase| phase.is("work"));
    if has_more(line, FIELDS) || other_phase {
        read.keep = Some(NoteKind::UnknownRecord);
    }
    if let Some(name) = line.text("tool").filter(|name| !name.is_empty()) {
        return session_tool(of, line, name, read);
    }
    let kind = line.text("type").unwrap_or_default().to_ascii_lowercase();
    let text = line.text("content");
    let who = match kind.as_str() {
        "assistant" | "assistantmessage" | "assistant_message" | "text" | "message" => {
            Some(Who::Assistant)
        }
        "user" | "usermessage" | "user_message" => Some(Who::User),
        "system" | "systemmessage" | "system_message" => Some(Who::System),
        _ => None,
    };
    match (who, text) {
        (Some(who), Some(text)) => {
            let is_cut = is_cut(&text);
            read.said.push(message(who, text));
            if is_cut {
                read.said.push(cut());
            }
        }
        (_, text) if kind == "error" => read.said.push(Statement::Note {
            kind: NoteKind::Error,
            text,
        }),
        _ if kind.contains("result") => read.keep = Some(NoteKind::Turn),
        _ => read.keep = Some(NoteKind::UnknownRecord),
    }
}

/// A tool: that it is called, or how it ended. What it was given and gave back is not told.
fn session_tool<'a>(of: &mut Transcript, line: Node<'a>, name: Cow<'a, str>, read: &mut Line<'a>) {
    let flag = |key: &str| line.get(key).and_then(|n| n.as_bool());
    let blocked = flag("blocked") == Some(true);
    let success = flag("success");
    let is_result = line
        .text("type")
        .is_some_and(|kind| kind.contains("result"));
    let open = of.open.iter().any(|(tool, _)| **tool == *name);
    if !open && !is_result {
        let id = of.call(&name, None);
        read.said.push(Statement::Call {
            name: name.clone(),
            id: Cow::Owned(id),
            input: None,
        });
    }
    if success.is_none() && !blocked && !is_result {
        return;
    }
    let output = line.text("content").map(Data::Text);
    let error = if blocked {
        Some(
            line.text("block_reason")
                .unwrap_or(Cow::Borrowed("blocked")),
        )
    } else {
        (success == Some(false)).then_some(Cow::Borrowed("failed"))
    };
    let status = blocked.then_some(Status::Denied);
    result(of, name, output, error, status, read);
}

/// T5. The content is a list of blocks as Python prints it. What can be read of it is; the line is kept.
pub(super) fn classes<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    let kind = line.text("type").unwrap_or_default();
    read.model = line.text("model");
    read.keep = Some(if kind == "result" {
        NoteKind::Turn
    } else {
        NoteKind::Context
    });
    let who = match &*kind {
        "AssistantMessage" => Who::Assistant,
        "UserMessage" => Who::User,
        "SystemMessage" => Who::System,
        _ => return,
    };
    let Some(text) = line.text("content") else {
        return;
    };
    let Some(blocks) = python::list(&text) else {
        read.said.push(message(who, text));
        return;
    };
    for block in blocks {
        if let Some(said) = of_block(of, who, block) {
            read.said.push(said);
        }
    }
}

/// What a block says, by the name of its class.
fn of_block<'a>(of: &mut Transcript, who: Who, block: Value) -> Option<Statement<'a>> {
    let Value::Object(class, mut fields) = block else {
        // A list of texts, or of something that is not known.
        return block.into_text().map(|text| message(who, Cow::Owned(text)));
    };
    let mut field = |name: &str| {
        let at = fields.iter().position(|(key, _)| key == name)?;
        Some(fields.swap_remove(at).1).filter(|value| *value != Value::None)
    };
    let text = |value: Option<Value>| value.and_then(Value::into_text);
    match class.as_str() {
        "TextBlock" => text(field("text")).map(|text| message(who, Cow::Owned(text))),
        "ThinkingBlock" => text(field("thinking")).map(|text| Statement::Message {
            who,
            content: Content::Thinking(Cow::Owned(text)),
            piece: false,
        }),
        "ToolUseBlock" => {
            let name = text(field("name")).unwrap_or_default();
            let id = of.call(&name, text(field("id")).as_deref());
            Some(Statement::Call {
                name: Cow::Owned(name),
                id: Cow::Owned(id),
                input: field("input")
                    .and_then(|value| value.to_json())
                    .map(Data::Made),
            })
        }
        "ToolResultBlock" => {
            let given = text(field("tool_use_id"));
            let (name, id) = of
                .answer("", given.as_deref())
                .unwrap_or_else(|| (String::new(), given.unwrap_or_default()));
            let failed = field("is_error") == Some(Value::Bool(true));
            let content = field("content");
            let (output, error) = if failed {
                let error = text(content).unwrap_or_else(|| "failed".to_owned());
                (None, Some(Cow::Owned(error)))
            } else {
                (
                    content.and_then(|value| value.to_json()).map(Data::Made),
                    None,
                )
            };
            Some(Statement::Result {
                name: Cow::Owned(name),
                id: Cow::Owned(id),
                output,
                error,
                status: None,
                at: None,
                duration_ms: None,
            })
        }
        _ => None,
    }
}
