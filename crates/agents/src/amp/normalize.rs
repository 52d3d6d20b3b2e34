//! What a thread means.

use std::borrow::Cow;
use std::cell::Cell;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::wire::{self, FIELDS, MESSAGE_FIELDS, USAGE_FIELDS};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::Common;
use crate::session::learn;
use crate::{Dropped, Entry, Out, Reader, Session, Text, What, time};

/// Reads a thread.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Amp {
    session: Session,
}

impl Amp {
    /// All of a thread but its messages.
    fn thread(&mut self, thread: Node<'_>, out: &mut Out<'_>) {
        out.check("thread", thread, FIELDS);
        let session = &mut self.session;
        learn(&mut session.id, || thread.text("id"));
        learn(&mut session.title, || thread.text("title"));
        let first = thread.path(&["env", "initial"]);
        let tree = first
            .and_then(|env| env.get("trees"))
            .and_then(|trees| trees.items().next());
        learn(&mut session.cwd, || Some(path_of(tree?.text("uri")?)));
        let platform = first.and_then(|env| env.get("platform"));
        learn(&mut session.version, || platform?.text("clientVersion"));
        learn(&mut session.forked_from, || {
            thread
                .text("forkedFromThreadID")
                .or(thread.text("originThreadID"))
        });
        learn(&mut session.parent, || {
            thread
                .text("parentThreadID")
                .or(thread.text("mainThreadID"))
        });
        let created = time::field(thread, "created");
        session.started_at = session
            .started_at
            .or(created.map(Timestamp::as_millisecond));
        out.push(Entry {
            at: created,
            native_id: thread.text("id"),
            ..Entry::new(What::Note {
                kind: NoteKind::Session,
                text: thread.get("title").and_then(Text::of),
                raw: Some(blocks::without(thread, &["messages"])),
            })
        });
    }
}

/// The path in a `file:` address.
fn path_of(uri: Cow<'_, str>) -> Cow<'_, str> {
    match uri.strip_prefix("file://") {
        Some(path) => Cow::Owned(unescape(path)),
        None => uri,
    }
}

/// An address without its percent signs.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first == b'%'
            && let [high, low, behind @ ..] = behind
            && let (Some(high), Some(low)) = (
                char::from(*high).to_digit(16),
                char::from(*low).to_digit(16),
            )
            && let Ok(byte) = u8::try_from(high * 16 + low)
        {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        bytes.push(*first);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn message<'a>(message: Node<'a>, out: &mut Out<'_>) {
    out.check("message", message, MESSAGE_FIELDS);
    let id = message.text("protocolMessageID").or_else(|| {
        let number = message.get("messageId")?;
        Some(number.as_str().unwrap_or(Cow::Borrowed(number.raw().get())))
    });
    let usage = message.get("usage").filter(|usage| !usage.is_null());
    let at = time_of(message);
    let common: Common<'_> = Common {
        at,
        id,
        subagent: message
            .text("parentToolUseId")
            .or(message.text("parentToolUseID")),
        ..Common::default()
    };
    let role = message.text("role").unwrap_or_default();
    let speaker = match &*role {
        "user" => Speaker::User,
        "assistant" => Speaker::Assistant,
        _ => {
            if role != "info" {
                out.unknown_type("message", &role);
            }
            let entry = blocks::kept(NoteKind::Session, message, out);
            return common.put(entry, out);
        }
    };
    let model = usage.and_then(|usage| usage.text("model"));
    let tokens = usage.and_then(|usage| {
        out.check("usage", usage, USAGE_FIELDS);
        wire::usage(usage)
    });
    let first = Cell::new(speaker == Speaker::Assistant);
    let put = |mut entry: Entry<'a>, out: &mut Out<'_>| {
        if speaker == Speaker::Assistant {
            entry.model.clone_from(&model);
            entry.model_call.clone_from(&common.id);
        }
        if first.take() {
            entry.usage = tokens;
        }
        common.put(entry, out);
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
    for block in content.items() {
        let entry = if block.get("run").is_some() {
            run(block, out)
        } else if let Some(entry) = blocks::entry(block, speaker, ResultFacts::default(), out) {
            entry
        } else {
            let kind = block.text("type").unwrap_or_default();
            out.unknown_type("content", &kind);
            blocks::kept(NoteKind::UnknownRecord, block, out)
        };
        let entry = Entry {
            at: time::field(block, "startTime"),
            ..entry
        };
        put(entry, out);
    }
    if first.get() {
        put(Entry::keep(NoteKind::ModelCall, message), out);
    }
    if content.kind() == Kind::List {
        out.skip(Dropped::Empty);
    }
}

/// When a message was written. There is no one field for it.
fn time_of(message: Node<'_>) -> Option<Timestamp> {
    [&["usage", "timestamp"][..], &["meta", "sentAt"]]
        .iter()
        .find_map(|path| message.path(path))
        .and_then(time::of)
}

/// The result of a call. That it is done says only that it ended.
fn run<'a>(block: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let run = block.get("run");
    let field = |key: &str| run.and_then(|run| run.get(key)).filter(|n| !n.is_null());
    let state = run.and_then(|run| run.text("status")).unwrap_or_default();
    let result = field("result");
    let inside = |key: &str| result.and_then(|result| result.get(key));
    let status = match &*state {
        "done" => {
            let code = inside("exitCode").and_then(|n| n.as_i64()).unwrap_or(0);
            let no_success = inside("success").and_then(|n| n.as_bool()) == Some(false);
            (code != 0 || no_success).then_some(Status::Error)
        }
        "error" => Some(Status::Error),
        "cancelled" | "rejected-by-user" | "rejected" => Some(Status::Denied),
        // Still at work.
        "in-progress" | "queued" | "blocked-on-user" => {
            return blocks::kept(NoteKind::Progress, block, out);
        }
        other => {
            out.unknown_type("run", other);
            None
        }
    };
    let said = field("error")
        .and_then(|error| Text::of(error).or_else(|| Text::of(error.get("message")?)))
        .or_else(|| field("reason").and_then(Text::of));
    let error = status.map(|_| match (said, inside("exitCode")) {
        (Some(text), _) => text,
        (None, Some(code)) => Text::from(format!("exit code {}", code.raw().get())),
        (None, None) => Text::from(if state == "done" {
            Cow::Borrowed("failed")
        } else {
            state
        }),
    });
    let mut attachments = Vec::new();
    let output = result.map(|result| out.value(result, &mut attachments));
    Entry {
        status,
        attachments,
        ..Entry::new(What::Result {
            name: Cow::Borrowed(""),
            id: block
                .text("toolUseID")
                .or(block.text("tool_use_id"))
                .unwrap_or_default(),
            output,
            error,
        })
    }
}

impl Reader for Amp {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        out.within(record, |out, record| self.thread(record, out));
        for item in record.get("messages").into_iter().flat_map(Node::items) {
            out.within(item, |out, item| message(item, out));
        }
    }

    crate::state::keeps_session!();
}
