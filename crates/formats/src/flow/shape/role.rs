//! Lines with a role: as documented, of stubs, and of the other document.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{Json, NoteKind, Status};

use super::{Content, Data, Line, Shape, Statement, Transcript, Who, has_more};
use crate::flow::time;

/// What a line may have. The fields behind the first row are added by this program.
const FIELDS: &[&str] = &[
    "timestamp",
    "role",
    "content",
    "tool_name",
    "tool_input",
    "tool_output",
    "kind",
    "call_id",
    "completed_at",
    "duration_ms",
    "status",
    "success",
    "error",
    "input_is",
    "output_is",
];

pub(super) fn classify(line: Node<'_>, before: Option<Shape>) -> Option<Shape> {
    let role = line.text("role")?;
    if role == "tool" {
        return line.text("tool_name").map(|_| Shape::Documented);
    }
    if !matches!(&*role, "system" | "user" | "assistant") {
        return None;
    }
    let content = line.get("content")?.as_raw_str()?;
    Some(if content.starts_with("[STUB WORKER]") {
        Shape::StubWorker
    } else if content.starts_with("[STUB]") {
        let worker = before == Some(Shape::StubWorker);
        if worker {
            Shape::StubWorker
        } else {
            Shape::Stub
        }
    } else if before == Some(Shape::Contract) {
        Shape::Contract
    } else {
        Shape::Documented
    })
}

pub(super) fn read<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    if has_more(line, FIELDS) {
        read.keep = Some(NoteKind::UnknownRecord);
    }
    let role = line.text("role").unwrap_or_default();
    let who = match &*role {
        "tool" => return tool(of, line, read),
        "user" => Who::User,
        "assistant" => Who::Assistant,
        _ => Who::System,
    };
    let text = line.text("content").unwrap_or_default();
    let kind = line.text("kind");
    let id = || line.text("call_id").unwrap_or_default();
    let content = match kind.as_deref() {
        Some("thinking") => Content::Thinking(text),
        Some("command") => Content::Command(text),
        Some("stream") => Content::Stream(text),
        Some("tool_use") => Content::ToolUse {
            name: line.text("tool_name").unwrap_or_default(),
            id: id(),
            input: line.get("tool_input").map(Data::from),
        },
        Some("tool_result") => Content::ToolResult {
            id: id(),
            content: line.get("tool_output").map(Data::from),
        },
        _ => Content::Text(text),
    };
    read.said.push(Statement::Message {
        who,
        content,
        piece: false,
    });
}

/// A tool: call and result on one line.
fn tool<'a>(of: &mut Transcript, line: Node<'a>, read: &mut Line<'a>) {
    let name = line.text("tool_name").unwrap_or_default();
    let given = line.text("call_id");
    let input_is = line.text("input_is");
    let id = match &given {
        Some(given) => given.to_string(),
        None => of.make(),
    };
    if input_is.as_deref() != Some("missing") {
        read.said.push(Statement::Call {
            name: name.clone(),
            id: Cow::Owned(id.clone()),
            input: input(line, input_is.as_deref()),
        });
    }
    let ended = line
        .text("completed_at")
        .and_then(|text| time::parse(&text));
    let output = output(line);
    let error = line.text("error");
    let failed = line.get("success").and_then(|n| n.as_bool()) == Some(false);
    if ended.is_none() && output.is_none() && error.is_none() && !failed {
        return;
    }
    if line.get("content").is_some() && line.get("tool_output").is_some() {
        read.keep = Some(NoteKind::UnknownRecord);
    }
    let status = line.text("status");
    let error = error.or_else(|| failed.then_some(Cow::Borrowed("failed")));
    read.said.push(Statement::Result {
        name,
        id: Cow::Owned(id),
        output,
        error,
        status: status.and_then(|word| Status::from_word(&word)),
        at: ended.map(|time| time.at),
        duration_ms: line.get("duration_ms").and_then(|n| n.as_u64()),
    });
}

/// The arguments. The format wants an object; what was none is inside of one.
fn input<'a>(line: Node<'a>, is: Option<&str>) -> Option<Data<'a>> {
    let input = line.get("tool_input")?;
    match is {
        Some("none") => None,
        Some("value") => input.get("value").map(Data::from),
        _ => Some(input.into()),
    }
}

/// What the tool gave back. The format wants a text; what was none is in one.
fn output(line: Node<'_>) -> Option<Data<'_>> {
    let output = line.get("tool_output").or(line.get("content"))?;
    match line.text("output_is").as_deref() {
        Some("error" | "none") => None,
        Some("json") => {
            let text = output.as_str()?;
            Some(match Json::parse(&text) {
                Ok(json) => Data::Made(json),
                Err(_) => Data::Text(text),
            })
        }
        _ if output.kind() == Kind::Null => None,
        _ => Some(output.into()),
    }
}
