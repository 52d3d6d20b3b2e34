//! What the documents of a task mean.

use std::borrow::Cow;

use quipu_model::json::{Kind, Node};
use quipu_model::{NoteKind, Status};
use serde::{Deserialize, Serialize};

use super::wire::{HISTORY_FILE, MESSAGE_FIELDS, META_FILE, SHOWN_FILE, TASK_FILE};
use super::xml::{self, Piece};
use super::{HISTORY, SHOWN};
use crate::blocks::{self, ResultFacts, Speaker};
use crate::common::Common;
use crate::cost::Cost;
use crate::session::{learn, update};
use crate::{Dialect, Dropped, Entry, Origin, Out, Reader, Session, Text, Value, What, time};

/// Reads a task, or one of its documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) session: Session,
    /// Whether the document at hand is what was shown.
    is_shown: bool,
    /// Whether the conversation with the model is there, so that what was shown repeats it.
    pub(super) has_history: bool,
    /// How many items of the document were read.
    count: u64,
    /// The call in a text that waits for its result.
    open: Option<(String, String)>,
    /// The command whose output was not shown yet.
    pub(super) command: Option<String>,
    /// Whether anything was shown.
    pub(super) begun: bool,
    pub(super) model: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) cost: Cost,
}

impl Task {
    pub(super) fn new(dialect: &Dialect, origin: &Origin<'_>) -> Self {
        // Alone, a document does not say which task it is of; the directory does.
        let is_id = |name: &&str| {
            let digits = name.len() >= 10 && name.bytes().all(|b| b.is_ascii_digit());
            let uuid = name.len() == 36 && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            digits || uuid
        };
        let id = origin.part.or(origin.above().next().filter(is_id));
        Self {
            session: Session {
                id: id.map(str::to_owned),
                ..Session::default()
            },
            is_shown: *dialect == SHOWN,
            has_history: *dialect == HISTORY,
            count: 0,
            open: None,
            command: None,
            begun: false,
            model: None,
            provider: None,
            cost: Cost::default(),
        }
    }

    /// A line of a task that was brought together.
    fn line(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let Some(row) = record.get("row") else {
            return;
        };
        let index = record.get("index").and_then(|n| n.as_u64()).unwrap_or(0);
        match record.text("file").as_deref() {
            Some(TASK_FILE) => self.facts(row, out),
            Some(HISTORY_FILE) => self.message(row, index, out),
            Some(SHOWN_FILE) => self.shown(row, out),
            Some(META_FILE) => self.used(row, out),
            other => out.unknown_type("file", other.unwrap_or_default()),
        }
    }

    fn facts(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        self.has_history = row.get("history").and_then(|n| n.as_bool()) == Some(true);
        let session = &mut self.session;
        update(&mut session.id, row.text("id"));
        learn(&mut session.title, || row.text("task"));
        learn(&mut session.cwd, || row.text("workspace"));
        learn(&mut session.parent, || row.text("parentTaskId"));
        out.push(Entry::keep(NoteKind::Session, row));
    }

    /// Which model was used from here on.
    fn used(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        update(&mut self.model, row.text("model_id"));
        update(&mut self.provider, row.text("model_provider_id"));
        out.push(Entry {
            at: time::field(row, "ts"),
            model: row.text("model_id"),
            ..Entry::keep(NoteKind::ModelChange, row)
        });
    }

    /// A message of the conversation.
    fn message(&mut self, message: Node<'_>, index: u64, out: &mut Out<'_>) {
        out.check("message", message, MESSAGE_FIELDS);
        let common = Common {
            at: time::field(message, "ts"),
            id: Some(index.to_string().into()),
            ..Common::default()
        };
        let is_true = |key: &str| message.get(key).and_then(|n| n.as_bool()) == Some(true);
        if is_true("isSummary") || is_true("isTruncationMarker") {
            let entry = blocks::kept(NoteKind::Compaction, message, out);
            return common.put(entry, out);
        }
        // Reasoning of some models stands between messages.
        if message.get("type").is_some_and(|kind| kind.is("reasoning")) {
            let text = message
                .get("summary")
                .and_then(|summary| summary.items().next())
                .and_then(|first| Text::of(first.get("text")?))
                .unwrap_or(Text::EMPTY);
            let entry = Entry {
                opaque: text.is_empty(),
                ..Entry::new(What::Reasoning(text))
            };
            return common.put(entry, out);
        }
        let role = message.text("role").unwrap_or_default();
        let Some(content) = message.get("content") else {
            return;
        };
        match &*role {
            "user" => self.told(content, &common, out),
            "assistant" => self.replied(message, content, &common, out),
            _ => {
                out.unknown_type("message", &role);
                let entry = blocks::kept(NoteKind::UnknownRecord, message, out);
                common.put(entry, out);
            }
        }
        if content.kind() == Kind::List {
            out.skip(Dropped::Empty);
        }
    }

    /// What was put to the model.
    fn told(&mut self, content: Node<'_>, common: &Common<'_>, out: &mut Out<'_>) {
        if let Some(text) = Text::of(content) {
            return self.told_text(text, None, common, out).map_or((), drop);
        }
        let mut items = content.items().peekable();
        while let Some(block) = items.next() {
            if let Some(text) = block.get("text").and_then(Text::of) {
                // A result may stand in the next block.
                let next = items
                    .peek()
                    .and_then(|next| next.get("text"))
                    .and_then(Text::of);
                if self.told_text(text, next, common, out).is_some() {
                    items.next();
                }
                continue;
            }
            let made = blocks::entry(block, Speaker::User, ResultFacts::default(), out);
            let entry = match made {
                Some(entry) => refused(entry),
                None => unknown("user.content", block, out),
            };
            common.put(entry, out);
        }
    }

    /// A text of what was put to the model: by a person, by a program, or what a tool gave back. Says
    /// whether the next text was a part of it.
    fn told_text<'a>(
        &mut self,
        text: Text<'a>,
        next: Option<Text<'a>>,
        common: &Common<'_>,
        out: &mut Out<'_>,
    ) -> Option<()> {
        const INJECTED: [&str; 12] = [
            "<environment_details>",
            "<explicit_instructions",
            "<file_content",
            "<hook_context",
            "<cline_",
            "[TASK RESUMPTION]",
            "[ERROR]",
            "[NOTE]",
            "[CONTEXT",
            "# TODO LIST",
            "# task_progress",
            "Note: the previous attempt completion was rejected",
        ];
        if text.starts_with("[")
            && let Some((name, id)) = self.answered(&text)
        {
            let read = text.read();
            let inside = xml::result(&read).map_or("", |(_, inside)| inside);
            let taken = inside.is_empty().then_some(next).flatten();
            let used = taken.as_ref().map(|_| ());
            let output = match taken {
                Some(next) => next,
                None => Text::from(inside.to_owned()),
            };
            let entry = refused(Entry::new(What::Result {
                name: Cow::Owned(name),
                id: Cow::Owned(id),
                output: Some(Value::Text(output)),
                error: None,
            }));
            common.put(entry, out);
            return used;
        }
        if INJECTED.iter().any(|mark| text.starts_with(mark)) {
            common.put(injected(text), out);
            return None;
        }
        for wrapper in ["task", "user_message", "feedback", "answer"] {
            if !text.starts_with(&format!("<{wrapper}>")) {
                continue;
            }
            let read = text.read();
            let inside = read.get(wrapper.len() + 2..).unwrap_or_default();
            let close = format!("</{wrapper}>");
            let (said, rest) = match inside.rsplit_once(&close) {
                Some((said, rest)) => (said.trim(), rest.trim()),
                None => (inside.trim(), ""),
            };
            common.put(Entry::new(What::User(said.to_owned().into())), out);
            if !rest.is_empty() {
                common.put(injected(rest.to_owned().into()), out);
            }
            return None;
        }
        common.put(Entry::new(What::User(text)), out);
        None
    }

    /// The call that a text is the result of.
    fn answered(&mut self, text: &Text<'_>) -> Option<(String, String)> {
        let read = text.read();
        let (name, _) = xml::result(&read)?;
        let id = match self.open.take() {
            Some((id, called)) if called == name => id,
            other => {
                self.open = other;
                String::new()
            }
        };
        Some((name.to_owned(), id))
    }

    /// What the model said.
    fn replied(
        &mut self,
        message: Node<'_>,
        content: Node<'_>,
        common: &Common<'_>,
        out: &mut Out<'_>,
    ) {
        let model = message
            .path(&["modelInfo", "modelId"])
            .and_then(|model| model.as_str())
            .map(Cow::into_owned)
            .or_else(|| self.model.clone());
        let put = |mut entry: Entry<'_>, out: &mut Out<'_>| {
            entry.model = model.clone().map(Cow::Owned);
            common.put(entry, out);
        };
        let is_native = content
            .items()
            .any(|block| block.get("type").is_some_and(|kind| kind.is("tool_use")));
        // The result of a call comes before the next reply, or not at all.
        self.open = None;
        let mut calls = 0;
        if let Some(text) = Text::of(content) {
            return self.spoken(&text, is_native, &mut calls, common, &put, out);
        }
        for block in content.items() {
            let is_text = block.get("type").is_some_and(|kind| kind.is("text"));
            if is_text && let Some(text) = block.get("text").and_then(Text::of) {
                self.spoken(&text, is_native, &mut calls, common, &put, out);
                continue;
            }
            let made = blocks::entry(block, Speaker::Assistant, ResultFacts::default(), out);
            let entry = match made {
                Some(entry) => entry,
                // What a model wants to be shown again.
                None if block
                    .get("type")
                    .is_some_and(|kind| kind.is("thoughtSignature")) =>
                {
                    Entry {
                        opaque: true,
                        ..Entry::new(What::Reasoning(Text::EMPTY))
                    }
                }
                None => unknown("assistant.content", block, out),
            };
            put(entry, out);
        }
    }

    /// A text that the model said, with the calls in it.
    fn spoken(
        &mut self,
        text: &Text<'_>,
        is_native: bool,
        calls: &mut u32,
        common: &Common<'_>,
        put: &dyn Fn(Entry<'_>, &mut Out<'_>),
        out: &mut Out<'_>,
    ) {
        let read = text.read();
        let pieces = if is_native || !read.contains('<') {
            Vec::new()
        } else {
            xml::pieces(&read)
        };
        if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
            drop(pieces);
            return put(Entry::new(What::Assistant(text.clone())), out);
        }
        for piece in pieces {
            let what = match piece {
                Piece::Text(text) => What::Assistant(text.into()),
                Piece::Thought(text) => What::Reasoning(text.into()),
                Piece::Call { name, input } => {
                    *calls += 1;
                    let id = format!("{}.{calls}", common.id.as_deref().unwrap_or_default());
                    self.open = Some((id.clone(), name.to_owned()));
                    What::Call {
                        name: name.into(),
                        id: id.into(),
                        input: Some(Value::Owned(input)),
                    }
                }
            };
            put(Entry::new(what), out);
        }
    }
}

fn injected(text: Text<'_>) -> Entry<'_> {
    Entry {
        synthetic: true,
        ..Entry::new(What::System(text))
    }
}

fn unknown<'a>(scope: &str, block: Node<'a>, out: &mut Out<'_>) -> Entry<'a> {
    let kind = block.text("type").unwrap_or_default();
    out.unknown_type(scope, &kind);
    blocks::kept(NoteKind::UnknownRecord, block, out)
}

/// A result, whose text is all that says that it is none.
fn refused(mut entry: Entry<'_>) -> Entry<'_> {
    let What::Result { output, error, .. } = &mut entry.what else {
        return entry;
    };
    let Some(Value::Text(text)) = output else {
        return entry;
    };
    let status = if text.starts_with("The user denied this operation") {
        Status::Denied
    } else if text.starts_with("The tool execution failed") || text.starts_with("[ERROR]") {
        Status::Error
    } else {
        return entry;
    };
    *error = Some(text.clone());
    *output = None;
    entry.status = Some(status);
    entry
}

impl Reader for Task {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if out.in_record() {
            return self.line(record, out);
        }
        for item in record.items() {
            out.within(item, |out, item| {
                if self.is_shown {
                    self.shown(item, out);
                } else {
                    let index = self.count;
                    self.message(item, index, out);
                }
                self.count += 1;
            });
        }
    }

    crate::state::keeps_session!();
}
