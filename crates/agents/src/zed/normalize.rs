//! What the lines of a thread mean.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{self, DOCUMENT, MESSAGE, THREAD};
use crate::session::{learn, update};
use crate::{Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What};
use crate::{blocks, time};

/// Reads a thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Thread {
    session: Session,
    /// Whether the row of the thread was there: it comes first and, with all that changes, last.
    begun: bool,
}

impl Thread {
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        Self {
            session: Session {
                id: origin.part.map(str::to_owned),
                ..Session::default()
            },
            begun: false,
        }
    }

    /// The row of the thread.
    fn about(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        out.check("thread", row, wire::COLUMNS);
        let session = &mut self.session;
        update(&mut session.id, row.text("id"));
        update(&mut session.title, row.text("summary"));
        update(&mut session.parent, row.text("parent_id"));
        if session.started_at.is_none() {
            let created = time::field(row, "created_at");
            session.started_at = created.map(Timestamp::as_millisecond);
        }
        learn(&mut session.cwd, || folder(row).map(Cow::Owned));
        out.push(Entry {
            at: time::field(row, "updated_at").filter(|_| self.begun),
            ..Entry::keep(NoteKind::Session, row)
        });
        self.begun = true;
    }

    /// What the document says of the thread as a whole. The tokens are those of all its calls.
    fn whole(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        out.check("document", row, wire::FIELDS);
        update(&mut self.session.title, row.text("title"));
        let usage = row.get("cumulative_token_usage").and_then(blocks::usage);
        if let Some(usage) = usage {
            self.session.vendor_usage = Some(usage.into());
        }
        let context = row.path(&["subagent_context", "parent_thread_id"]);
        let parent = context.and_then(|id| id.as_str());
        learn(&mut self.session.parent, || parent);
        out.push(Entry {
            at: time::field(row, "updated_at"),
            usage,
            model: row.path(&["model", "model"]).and_then(|it| it.as_str()),
            model_call: usage.map(|_| Cow::Borrowed("thread")),
            ..Entry::keep(NoteKind::Session, row)
        });
    }
}

/// The first of the folders that are open.
fn folder(row: Node<'_>) -> Option<String> {
    let paths = row.text("folder_paths")?;
    let order = row.text("folder_paths_order").unwrap_or_default();
    let first = order
        .split(',')
        .next()
        .and_then(|at| at.trim().parse().ok());
    let mut paths = paths.lines().filter(|path| !path.is_empty());
    paths.nth(first.unwrap_or(0)).map(str::to_owned)
}

fn message(row: Node<'_>, out: &mut Out<'_>) {
    if row.is("Resume") {
        return out.push(Entry::keep(NoteKind::Resume, row));
    }
    if let Some(user) = row.get("User") {
        return said_by_user(user, out);
    }
    if let Some(agent) = row.get("Agent") {
        return said_by_agent(agent, out);
    }
    if row.get("role").is_some() && row.get("segments").is_some() {
        return old(row, out);
    }
    out.unknown_type("message", &variant(row));
    out.push(Entry::keep(NoteKind::UnknownRecord, row));
}

/// The name of a variant: a word, or the only field of an object.
fn variant(node: Node<'_>) -> Cow<'_, str> {
    let word = node.as_str();
    let field = || Some(node.fields().next()?.0.to_text_lossy());
    word.or_else(field).unwrap_or_default()
}

fn said_by_user(user: Node<'_>, out: &mut Out<'_>) {
    out.check("User", user, wire::USER);
    let id = user.text("id").filter(|id| !id.is_empty());
    if let Some(id) = &id
        && !out.unit(id)
    {
        return;
    }
    let mut any = false;
    for item in user.get("content").into_iter().flat_map(Node::items) {
        any = true;
        let entry = if let Some(text) = item.get("Text").and_then(Text::of) {
            Entry::new(What::User(text))
        } else if let Some(mention) = item.get("Mention") {
            Entry {
                synthetic: true,
                ..Entry::new(What::Note {
                    kind: NoteKind::Context,
                    text: mention.get("content").and_then(Text::of),
                    raw: Some(mention.into()),
                })
            }
        } else if let Some(image) = item.get("Image") {
            picture(image, out)
        } else {
            out.unknown_type("User.content", &variant(item));
            Entry::keep(NoteKind::UnknownRecord, item)
        };
        out.push(Entry {
            native_id: id.clone(),
            ..entry
        });
    }
    if !any {
        out.skip(Dropped::Empty);
    }
}

/// An image, which is always a PNG.
fn picture<'a>(image: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let source = image.text("source");
    match source.and_then(|source| out.detach("image/png", &source)) {
        Some(attachment) => Entry {
            attachments: vec![attachment],
            ..Entry::note(NoteKind::Attachment, "image/png")
        },
        None => Entry::keep(NoteKind::Attachment, image),
    }
}

fn said_by_agent(agent: Node<'_>, out: &mut Out<'_>) {
    out.check("Agent", agent, wire::AGENT);
    let mut any = false;
    for item in agent.get("content").into_iter().flat_map(Node::items) {
        any = true;
        let entry = if let Some(text) = item.get("Text").and_then(Text::of) {
            Entry::new(What::Assistant(text))
        } else if let Some(thinking) = item.get("Thinking") {
            reasoning(thinking.get("text").and_then(Text::of))
        } else if item.get("RedactedThinking").is_some() {
            reasoning(None)
        } else if let Some(call) = item.get("ToolUse") {
            out.check("ToolUse", call, wire::CALL);
            called(call, out)
        } else {
            out.unknown_type("Agent.content", &variant(item));
            Entry::keep(NoteKind::UnknownRecord, item)
        };
        out.push(entry);
    }
    let results = agent.get("tool_results");
    for (id, result) in results.into_iter().flat_map(Node::fields) {
        any = true;
        let entry = answered(result, Some(id.to_text_lossy()), out);
        out.push(entry);
    }
    if let Some(details) = agent.get("reasoning_details").filter(|it| !it.is_null()) {
        any = true;
        out.push(Entry::keep(NoteKind::ModelCall, details));
    }
    if !any {
        out.skip(Dropped::Empty);
    }
}

fn reasoning(text: Option<Text<'_>>) -> Entry<'_> {
    let text = text.unwrap_or(Text::EMPTY);
    Entry {
        opaque: text.is_empty(),
        ..Entry::new(What::Reasoning(text))
    }
}

fn called<'a>(call: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let mut attachments = Vec::new();
    let given = call.get("input").filter(|input| !input.is_null());
    let input = match given {
        Some(input) => Some(out.value(input, &mut attachments)),
        None => call.get("raw_input").and_then(Text::of).map(Value::Text),
    };
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: call.text("name").unwrap_or_default(),
            id: call.text("id").unwrap_or_default(),
            input,
        })
    }
}

fn answered<'a>(result: Node<'a>, id: Option<Cow<'a, str>>, out: &mut Out<'_>) -> Entry<'a> {
    out.check("tool_result", result, wire::RESULT);
    let failed = result.get("is_error").and_then(|it| it.as_bool()) == Some(true);
    let content = result.get("content").filter(|content| !content.is_null());
    let text = content.and_then(|content| {
        let inner = content.get("Text").or(content.get("text"));
        Text::of(inner.unwrap_or(content))
    });
    let mut attachments = Vec::new();
    // What the program makes of the result, beside what the model is told.
    let more = result.get("output").filter(|output| !output.is_null());
    let (output, error) = match (failed, text, content) {
        (true, Some(text), _) => (None, Some(text)),
        (false, Some(text), _) => (Some(Value::Text(text)), None),
        (failed, None, content) => {
            let output = content.map(|content| out.value(content, &mut attachments));
            (output, failed.then(|| Text::from("failed")))
        }
    };
    let output = output.or_else(|| more.map(|more| out.value(more, &mut attachments)));
    Entry {
        status: Some(if failed { Status::Error } else { Status::Ok }),
        attachments,
        ..Entry::new(What::Result {
            name: result.text("tool_name").unwrap_or_default(),
            id: result.text("tool_use_id").or(id).unwrap_or_default(),
            output,
            error,
        })
    }
}

/// A message as it was written before.
fn old(row: Node<'_>, out: &mut Out<'_>) {
    out.check("message", row, wire::OLD);
    let role = row.text("role").unwrap_or_default();
    let mut any = false;
    if let Some(context) = row.get("context").and_then(Text::of)
        && !context.is_empty()
    {
        any = true;
        out.push(Entry {
            synthetic: true,
            ..Entry::new(What::System(context))
        });
    }
    for segment in row.get("segments").into_iter().flat_map(Node::items) {
        any = true;
        let text = segment.get("text").and_then(Text::of);
        let kind = segment.text("type").unwrap_or_default();
        let entry = match (&*kind, text) {
            ("thinking" | "redacted_thinking", text) => reasoning(text),
            ("text", Some(text)) => Entry::new(match &*role {
                "user" => What::User(text),
                "system" => What::System(text),
                _ => What::Assistant(text),
            }),
            _ => {
                out.unknown_type("segment", &kind);
                Entry::keep(NoteKind::UnknownRecord, segment)
            }
        };
        out.push(entry);
    }
    for call in row.get("tool_uses").into_iter().flat_map(Node::items) {
        any = true;
        let entry = called(call, out);
        out.push(entry);
    }
    let results = row.get("tool_results");
    for result in results.into_iter().flat_map(Node::items) {
        any = true;
        let entry = answered(result, None, out);
        out.push(entry);
    }
    if !any {
        out.skip(Dropped::Empty);
    }
}

impl Reader for Thread {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let table = record.text("table").unwrap_or_default();
        let row = record.get("row");
        match (&*table, row) {
            (THREAD, Some(row)) if row.kind() == Kind::Object => self.about(row, out),
            (DOCUMENT, Some(row)) if row.kind() == Kind::Object => self.whole(row, out),
            (MESSAGE, Some(row)) => message(row, out),
            _ => {
                out.unknown_type("table", &table);
                out.push(Entry::keep(NoteKind::UnknownRecord, record));
            }
        }
    }

    crate::state::keeps_session!();
}
