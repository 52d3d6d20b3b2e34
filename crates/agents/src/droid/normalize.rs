//! What a line means.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{self, FIELDS, MESSAGE_FIELDS, STREAM_FIELDS};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::Common;
use crate::session::{learn, update};
use crate::{Dropped, Entry, Mended, Out, Reader, Session, Text, What, time};

/// Reads a session, or a stream.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Droid {
    session: Session,
    /// The model of a stream, which only its beginning names.
    model: Option<String>,
}

impl Droid {
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let kind = record.text("type").unwrap_or_default();
        let stamp = record.get("timestamp");
        let at = stamp.and_then(time::of);
        if at.is_none() && stamp.is_some_and(|stamp| !stamp.is_null()) {
            out.ledger().mend(Mended::Timestamp);
        }
        let common = Common {
            at,
            id: record.text("id"),
            parent: record.text("parentId"),
            ..Common::default()
        };
        let printed = record
            .get("message")
            .is_none_or(|m| m.kind() != Kind::Object);
        match &*kind {
            "session_start" => self.beginning(record, &common, out),
            "message" if !printed => {
                if let Some(id) = &common.id
                    && !out.unit(id)
                {
                    return;
                }
                message(record, common, out);
            }
            "todo_state" => common.put(Entry::keep(NoteKind::Todo, record), out),
            "compaction_state" => {
                let text = record
                    .get("summaryText")
                    .or(record.path(&["summary", "body"]))
                    .or(record.get("summary"));
                let entry = Entry::new(What::Note {
                    kind: NoteKind::Compaction,
                    text: text.and_then(Text::of),
                    raw: Some(blocks::without(record, &["summaryText"])),
                });
                common.put(entry, out);
            }
            "agent_turn_outcome" => {
                let failed = record
                    .get("reason")
                    .is_some_and(|reason| reason.is("error"));
                let kind = if failed {
                    NoteKind::Error
                } else {
                    NoteKind::Turn
                };
                common.put(Entry::keep(kind, record), out);
            }
            "system" | "message" | "reasoning" | "tool_call" | "tool_result" | "completion"
            | "error" => return self.printed(&kind, record, &common, out),
            _ => {
                out.unknown_type("", &kind);
                let entry = blocks::kept(NoteKind::UnknownRecord, record, out);
                common.put(entry, out);
            }
        }
        out.check("line", record, FIELDS);
    }

    fn beginning<'a>(&mut self, record: Node<'a>, common: &Common<'a>, out: &mut Out<'_>) {
        let inner = record.get("session");
        let text = |key: &str| record.text(key).or_else(|| inner?.text(key));
        let session = &mut self.session;
        learn(&mut session.id, || text("id"));
        let title = text("sessionTitle").or(text("title"));
        // What a session is called until it has a name.
        update(
            &mut session.title,
            title.filter(|title| title != "New Session"),
        );
        learn(&mut session.cwd, || text("cwd").or(text("workspace_root")));
        // Newer ones give the version of the format, which is a number.
        update(&mut session.version, record.text("version"));
        learn(&mut session.parent, || {
            text("callingSessionId").or(text("parentSessionId"))
        });
        learn(&mut session.parent_call, || text("callingToolUseId"));
        let began = common.at.or_else(|| time::parse(&text("created_at")?));
        session.started_at = session.started_at.or(began.map(Timestamp::as_millisecond));
        common.put(Entry::keep(NoteKind::Session, record), out);
    }

    /// A line of a stream.
    fn printed<'a>(
        &mut self,
        kind: &str,
        record: Node<'a>,
        common: &Common<'a>,
        out: &mut Out<'_>,
    ) {
        learn(&mut self.session.id, || wire::session(record));
        learn(&mut self.session.cwd, || record.text("cwd"));
        if kind == "system" {
            update(&mut self.model, record.text("model"));
        }
        out.check("stream", record, STREAM_FIELDS);
        let text = record.get("text").and_then(Text::of);
        let call = record.text("toolCallId").or(record.text("id"));
        let entry = match kind {
            "message" => match (record.text("role").as_deref(), text) {
                (Some("user"), Some(text)) => return said(text, common, out),
                (Some("system"), Some(text)) => injected(text),
                (Some("assistant"), Some(text)) => Entry {
                    model: self.model.clone().map(Cow::Owned),
                    ..Entry::new(What::Assistant(text))
                },
                (role, _) => {
                    out.unknown_type("message", role.unwrap_or_default());
                    blocks::kept(NoteKind::UnknownRecord, record, out)
                }
            },
            "reasoning" => {
                let text = text.unwrap_or(Text::EMPTY);
                Entry {
                    opaque: text.is_empty(),
                    ..Entry::new(What::Reasoning(text))
                }
            }
            "tool_call" => {
                let mut attachments = Vec::new();
                let input = record
                    .get("parameters")
                    .map(|input| out.value(input, &mut attachments));
                Entry {
                    attachments,
                    ..Entry::new(What::Call {
                        name: record
                            .text("toolName")
                            .or(record.text("toolId"))
                            .unwrap_or_default(),
                        id: call.unwrap_or_default(),
                        input,
                    })
                }
            }
            "tool_result" => printed_result(record, call, out),
            "completion" => self.completion(record),
            "error" => Entry::new(What::Note {
                kind: NoteKind::Error,
                text: record.get("message").and_then(Text::of),
                raw: Some(record.into()),
            }),
            _ => Entry {
                model: self.model.clone().map(Cow::Owned),
                ..Entry::keep(NoteKind::Session, record)
            },
        };
        common.put(entry, out);
    }

    /// The end of a stream, which is all that tells of tokens.
    fn completion<'a>(&mut self, record: Node<'a>) -> Entry<'a> {
        let usage = record.get("usage").and_then(blocks::usage);
        if let Some(usage) = usage {
            let mut sum = self
                .session
                .vendor_usage
                .map(Into::into)
                .unwrap_or_default();
            quipu_model::Usage::add(&mut sum, &usage);
            self.session.vendor_usage = Some(sum.into());
        }
        Entry {
            usage,
            model: self.model.clone().map(Cow::Owned),
            duration_ms: record.get("durationMs").and_then(|n| n.as_u64()),
            ..Entry::new(What::Note {
                kind: NoteKind::Session,
                text: record.get("finalText").and_then(Text::of),
                raw: Some(blocks::without(record, &["finalText"])),
            })
        }
    }
}

fn injected(text: Text<'_>) -> Entry<'_> {
    Entry {
        synthetic: true,
        ..Entry::new(What::System(text))
    }
}

/// A text on the user's side. What a program says to the model stands before what a person says, in the
/// same text.
fn said<'a>(text: Text<'a>, common: &Common<'a>, out: &mut Out<'_>) {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    if !text.starts_with(OPEN) {
        return common.put(Entry::new(What::User(text)), out);
    }
    let whole = text.read();
    let mut rest: &str = &whole;
    while rest.starts_with(OPEN)
        && let Some(end) = rest.find(CLOSE)
    {
        rest = rest[end + CLOSE.len()..].trim_start();
    }
    let reminder = whole[..whole.len() - rest.len()].trim_end();
    if rest.is_empty() || reminder.is_empty() {
        return common.put(injected(text.clone()), out);
    }
    let (reminder, rest) = (reminder.to_owned(), rest.to_owned());
    common.put(injected(reminder.into()), out);
    common.put(Entry::new(What::User(rest.into())), out);
}

/// A message of a session.
fn message<'a>(record: Node<'a>, common: Common<'a>, out: &mut Out<'_>) {
    let Some(message) = record.get("message") else {
        return;
    };
    out.check("message", message, MESSAGE_FIELDS);
    let common = Common {
        model: message.text("model"),
        ..common
    };
    if message.get("hookEventName").is_some() {
        let entry = blocks::kept(NoteKind::Hook, record, out);
        return common.put(entry, out);
    }
    let role = message.text("role").unwrap_or_default();
    let seen_by = message.text("visibility");
    let speaker = match &*role {
        "assistant" => Speaker::Assistant,
        "user" | "system" | "developer" => Speaker::User,
        _ => {
            out.unknown_type("message", &role);
            let entry = blocks::kept(NoteKind::UnknownRecord, record, out);
            return common.put(entry, out);
        }
    };
    let put = |entry: Entry<'a>, out: &mut Out<'_>| match entry.what {
        // A notice of the program to the person, such as that the limit of tokens is reached. The model never sees it.
        What::User(text) | What::Assistant(text) if seen_by.as_deref() == Some("user_only") => {
            common.put(injected(text), out);
        }
        What::User(text) if role != "user" || seen_by.as_deref() == Some("llm_only") => {
            common.put(injected(text), out);
        }
        What::User(text) => said(text, &common, out),
        _ => common.put(entry, out),
    };
    let Some(content) = message.get("content") else {
        return;
    };
    if let Some(text) = Text::of(content) {
        let what = match speaker {
            Speaker::User => What::User(text),
            Speaker::Assistant => What::Assistant(text),
        };
        return put(Entry::new(what), out);
    }
    let mut is_empty = true;
    for block in content.items() {
        is_empty = false;
        let made = blocks::entry(block, speaker, ResultFacts::default(), out);
        let entry = made.unwrap_or_else(|| {
            let kind = block.text("type").unwrap_or_default();
            out.unknown_type("content", &kind);
            blocks::kept(NoteKind::UnknownRecord, block, out)
        });
        put(entry, out);
    }
    if is_empty && content.kind() == Kind::List {
        out.skip(Dropped::Empty);
    }
}

fn printed_result<'a>(
    record: Node<'a>,
    call: Option<Cow<'a, str>>,
    out: &mut Out<'_>,
) -> Entry<'a> {
    let value = record.get("value");
    let failed = record.get("isError").and_then(|n| n.as_bool()) == Some(true);
    let code = value
        .and_then(|value| value.get("exitCode"))
        .and_then(|code| code.as_i64())
        .filter(|code| *code != 0);
    let mut attachments = Vec::new();
    let (output, error) = match (value, value.and_then(Text::of)) {
        (_, Some(text)) if failed => (None, Some(text)),
        (value, _) => {
            let said = record.path(&["error", "message"]).or(record.get("error"));
            let error = match (said.and_then(Text::of), code) {
                (Some(text), _) => Some(text),
                (None, Some(code)) => Some(Text::from(format!("exit code {code}"))),
                (None, None) => failed.then(|| Text::from("failed")),
            };
            (value.map(|value| out.value(value, &mut attachments)), error)
        }
    };
    let bad = failed || error.is_some();
    Entry {
        status: bad.then_some(Status::Error),
        attachments,
        ..Entry::new(What::Result {
            name: record.text("toolName").unwrap_or_default(),
            id: call.unwrap_or_default(),
            output,
            error,
        })
    }
}

impl Reader for Droid {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        self.line(record, out);
    }

    /// The settings of the session. They are handed over anew on every import, with sums that grow: as
    /// the tokens of one call they are counted once.
    fn sidecar(&mut self, _name: &str, document: Node<'_>, out: &mut Out<'_>) {
        let usage = document.get("tokenUsage").and_then(wire::usage);
        let Some(usage) = usage.filter(|usage| usage.total() > 0) else {
            return;
        };
        self.session.vendor_usage = Some(usage.into());
        out.push(Entry {
            usage: Some(usage),
            model: document.text("model"),
            model_call: Some(Cow::Borrowed("settings")),
            ..Entry::keep(NoteKind::Usage, document)
        });
    }

    crate::state::keeps_session!();
}
