//! What a session and its messages mean.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::LINES;
use super::wire::{LEDGER_FIELDS, MESSAGE_FIELDS, SESSION_FIELDS, usage};
use crate::common::Common;
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::time;
use crate::{Dialect, Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, blocks};

/// Reads a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Goose {
    session: Session,
    model: Option<String>,
    /// Whether the session was there: as a row it comes first and, with all that changes, last.
    begun: bool,
    /// Whether calls to the model have rows of their own.
    has_calls: bool,
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, Default)]
struct Shown {
    is_user: bool,
    /// A person is not shown it.
    hidden: bool,
}

impl Goose {
    pub(super) fn new(dialect: &Dialect, origin: &Origin<'_>) -> Self {
        // A file is named after its session, and nothing in it is.
        let named = origin.stem().filter(|_| *dialect == LINES);
        Self {
            session: Session {
                id: origin.part.or(named).map(str::to_owned),
                ..Session::default()
            },
            model: None,
            begun: false,
            has_calls: false,
        }
    }

    /// The session itself: a row, the first line of a file, or what a document is beside its messages.
    fn about(&mut self, about: Node<'_>, out: &mut Out<'_>) {
        out.check("session", about, SESSION_FIELDS);
        let session = &mut self.session;
        update(&mut session.id, about.text("id"));
        learn(&mut session.cwd, || about.text("working_dir"));
        let title = about.text("name").filter(|name| !name.is_empty());
        update(&mut session.title, title.or(about.text("description")));
        update(&mut session.parent, about.text("parent_session_id"));
        session.started_at = time::field(about, "created_at")
            .map(Timestamp::as_millisecond)
            .or(session.started_at);
        if let Some(cost) = about.get("accumulated_cost").and_then(Cost::of) {
            session.vendor_cost = Some(cost.to_text());
        }
        let config = about.get("model_config_json").or(about.get("model_config"));
        update(
            &mut self.model,
            config.and_then(|config| config.text("model_name")),
        );
        let sum = usage(about, "accumulated_");
        if let Some(sum) = sum {
            session.vendor_usage = Some(sum.into());
        }
        let mut entry = Entry::new(What::Note {
            kind: NoteKind::Session,
            text: None,
            raw: Some(blocks::without(about, &["conversation"])),
        });
        // Where the calls are not there one by one, the sum is all there is.
        if !self.has_calls
            && let Some(sum) = sum
        {
            entry.usage = Some(sum);
            entry.model = self.model.as_deref().map(Cow::Borrowed);
            entry.model_call = Some(Cow::Borrowed("session"));
        }
        out.push(entry);
        self.begun = true;
    }

    /// A message: a row, a line, or an item of a document.
    fn message(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.check("message", record, MESSAGE_FIELDS);
        // The id of a row is a number that means nothing elsewhere.
        let id = record.text("message_id").or(record.text("id"));
        if id
            .as_deref()
            .is_some_and(|id| !id.is_empty() && !out.unit(id))
        {
            return;
        }
        let either = |row: &str, line: &str| record.get(row).or(record.get(line));
        let metadata = either("metadata_json", "metadata");
        let visible = metadata.and_then(|metadata| metadata.get("userVisible"));
        let common = Common {
            at: either("created_timestamp", "created").and_then(time::of),
            id: id.filter(|id| !id.is_empty()),
            model: self.model.as_deref().map(Cow::Borrowed),
            only_spoken: true,
            own: Shown {
                is_user: record.get("role").is_some_and(|role| role.is("user")),
                hidden: visible.and_then(|visible| visible.as_bool()) == Some(false),
            },
            ..Common::default()
        };
        let Some(content) = either("content_json", "content") else {
            return;
        };
        if let Some(text) = Text::of(content) {
            return common.put(said(text, common.own), out);
        }
        for item in content.items() {
            common.put(block(item, common.own, out), out);
        }
        if content.kind() == Kind::List && content.items().next().is_none() {
            out.skip(Dropped::Empty);
        }
    }

    /// A call to a model.
    fn call(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        out.check("usage_ledger", row, LEDGER_FIELDS);
        self.has_calls = true;
        let call = row.get("id").map(|id| format!("call-{}", id.raw().get()));
        out.push(Entry {
            at: time::field(row, "created_timestamp"),
            usage: usage(row, ""),
            model: row.text("model"),
            model_call: call.map(Cow::Owned),
            ..Entry::keep(NoteKind::ModelCall, row)
        });
    }

    fn row(&mut self, table: &str, row: Node<'_>, out: &mut Out<'_>) {
        match table {
            "sessions" if self.begun => self.about(row, out),
            "sessions" => {
                // What does not change of it; the rest comes last.
                update(&mut self.session.id, row.text("id"));
                learn(&mut self.session.cwd, || row.text("working_dir"));
                update(&mut self.session.parent, row.text("parent_session_id"));
                let config = row.get("model_config_json");
                update(
                    &mut self.model,
                    config.and_then(|config| config.text("model_name")),
                );
                self.begun = true;
                out.push(Entry::keep(NoteKind::Session, row));
            }
            "messages" => self.message(row, out),
            "usage_ledger" => self.call(row, out),
            other => out.unknown_type("table", other),
        }
    }
}

/// A text: a person's, a model's, or one that a program put there.
fn said(text: Text<'_>, shown: Shown) -> Entry<'_> {
    let injected = shown.is_user && (shown.hidden || text.starts_with("<info-msg>"));
    let what = match (shown.is_user, injected) {
        (true, true) => What::System(text),
        (true, false) => What::User(text),
        (false, _) => What::Assistant(text),
    };
    Entry {
        synthetic: injected,
        ..Entry::new(what)
    }
}

fn block<'a>(item: Node<'a>, shown: Shown, out: &mut Out<'_>) -> Entry<'a> {
    let kind = item.text("type").unwrap_or_default();
    let field = |key: &str| item.get(key).and_then(Text::of);
    match &*kind {
        "text" => said(field("text").unwrap_or(Text::EMPTY), shown),
        "thinking" | "reasoning" => {
            let text = field("thinking").or(field("text")).unwrap_or(Text::EMPTY);
            Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            }
        }
        "redactedThinking" => Entry {
            opaque: true,
            ..Entry::new(What::Reasoning(Text::EMPTY))
        },
        "toolRequest" | "frontendToolRequest" => request(item, out),
        "toolResponse" => response(item, out),
        "image" => blocks::attachment(item, out),
        "toolConfirmationRequest" | "actionRequired" => Entry::keep(NoteKind::Permission, item),
        "systemNotification" => Entry::new(What::Note {
            kind: NoteKind::Progress,
            text: field("msg"),
            raw: Some(item.into()),
        }),
        "conversationCompacted" | "contextLengthExceeded" | "summarizationRequested" => {
            Entry::new(What::Note {
                kind: NoteKind::Compaction,
                text: field("msg"),
                raw: Some(item.into()),
            })
        }
        other => {
            out.unknown_type("content", other);
            Entry::keep(NoteKind::UnknownRecord, item)
        }
    }
}

/// A tool call. One that could not be understood is told as an error.
fn request<'a>(item: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let call = item.get("toolCall");
    let value = call.and_then(|call| call.get("value")).or(call);
    let mut attachments = Vec::new();
    let input = match value.and_then(|value| value.get("arguments")) {
        Some(arguments) => Some(out.value(arguments, &mut attachments)),
        None => call.map(Into::into),
    };
    Entry {
        attachments,
        ..Entry::new(What::Call {
            name: value
                .and_then(|value| value.text("name"))
                .unwrap_or_default(),
            id: item.text("id").unwrap_or_default(),
            input,
        })
    }
}

fn response<'a>(item: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let result = item.get("toolResult");
    let value = result.and_then(|result| result.get("value"));
    // The content is the value itself, or in newer versions inside of it.
    let content = value.map(|value| value.get("content").unwrap_or(value));
    let mut attachments = Vec::new();
    let text = content.and_then(only_text);
    let failed = value
        .and_then(|value| value.get("isError"))
        .and_then(|n| n.as_bool())
        == Some(true);
    let told = result
        .and_then(|result| result.get("error"))
        .and_then(Text::of);
    let (output, error) = match (told, text, content) {
        (Some(error), _, _) => (None, Some(error)),
        (None, Some(text), _) if failed => (None, Some(text)),
        (None, Some(text), _) => (Some(Value::Text(text)), None),
        (None, None, Some(content)) => {
            let output = out.value(content, &mut attachments);
            (Some(output), failed.then(|| Text::from("failed")))
        }
        (None, None, None) => (None, failed.then(|| Text::from("failed"))),
    };
    let refused = |text: &Text<'_>| text.starts_with("The user has declined to run this tool");
    let declined = match (&error, &output) {
        (Some(text), _) | (None, Some(Value::Text(text))) => refused(text),
        _ => false,
    };
    let status = match &error {
        _ if declined => Some(Status::Denied),
        Some(error) if error.read().contains("timed out") => Some(Status::Timeout),
        Some(_) => Some(Status::Error),
        None => Some(Status::Ok),
    };
    // What was refused is told as what the tool gave back.
    let (output, error) = match (declined, output, error) {
        (true, Some(Value::Text(text)), None) => (None, Some(text)),
        (_, output, error) => (output, error),
    };
    Entry {
        status,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: item.text("id").unwrap_or_default(),
            output,
            error,
        })
    }
}

/// The text of a list, when it is all there is. The same text is there twice when it is meant for the
/// model as well as for a person.
fn only_text(content: Node<'_>) -> Option<Text<'_>> {
    if let Some(text) = Text::of(content) {
        return Some(text);
    }
    let mut items = content.items();
    let text = items.next()?.get("text")?;
    let same = items.all(|item| {
        item.get("text")
            .is_some_and(|other| other.raw().get() == text.raw().get())
    });
    if same { Text::of(text) } else { None }
}

impl Reader for Goose {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if !out.in_record() {
            let conversation = record.get("conversation");
            out.within(record, |out, record| self.about(record, out));
            let messages = conversation.map(|c| c.get("messages").unwrap_or(c));
            for message in messages.into_iter().flat_map(Node::items) {
                out.within(message, |out, message| self.message(message, out));
            }
        } else if let (Some(table), Some(row)) = (record.text("table"), record.get("row")) {
            self.row(&table, row, out);
        } else if record.get("role").is_some() {
            self.message(record, out);
        } else if record.get("working_dir").is_some() || record.get("message_count").is_some() {
            self.about(record, out);
        } else {
            out.unknown_type("", "line");
        }
    }

    crate::state::keeps_session!();
}
