//! The rows of a session, as [`super::gather`] writes them.

use quipu_model::NoteKind;
use quipu_model::json::Node;
use serde::{Deserialize, Serialize};

use super::normalize::{Core, Message};
use super::v2;
use super::wire::ROW_COLUMNS;
use crate::{Entry, Origin, Out, Reader, Session, Text, What, state};

/// Reads rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Rows {
    core: Core,
    /// The message whose parts come.
    message: Message,
    /// Whether the session was there: it comes first and, with all that changes, last.
    begun: bool,
}

impl Rows {
    /// What is left of a session whose own row or file is lost does not name it.
    pub(super) fn new(origin: &Origin<'_>) -> Self {
        let mut rows = Self::default();
        rows.core.session.id = origin.part.map(str::to_owned);
        rows
    }

    /// A session has a row of its own; in the old tree it is a document.
    fn session(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        let info = row.get("data").unwrap_or(row);
        self.core.session(info, out);
        if self.begun {
            self.core.end(out);
        }
        self.begun = true;
    }

    fn message(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        let Some(info) = row.get("data") else {
            return;
        };
        let id = row.text("id").or(info.text("id"));
        if id.as_deref().is_none_or(|id| out.unit(id)) {
            self.message = self.core.message(info, id, Message::default(), out);
        }
    }

    fn part(&mut self, row: Node<'_>, out: &mut Out<'_>) {
        let Some(part) = row.get("data") else {
            return;
        };
        let of = row.text("message_id").or(part.text("messageID"));
        if of.is_some() && self.message.id.as_deref() != of.as_deref() {
            self.message = Message::named(of);
        }
        let id = row.text("id").or(part.text("id"));
        if id.as_deref().is_none_or(|id| out.unit(id)) {
            self.core.part(part, id, &mut self.message, out);
        }
    }
}

/// A file of the old tree that is not what its place says, kept as it is.
fn file(row: Node<'_>) -> Entry<'_> {
    Entry::new(What::Note {
        kind: NoteKind::MalformedLine,
        text: row.get("path").and_then(Text::of),
        raw: Some(row.into()),
    })
}

impl Reader for Rows {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        let table = record.text("table").unwrap_or_default();
        let Some(row) = record.get("row") else {
            return out.unknown_type("row", &table);
        };
        if matches!(&*table, "message" | "part" | "session_message") {
            out.check(&table, row, ROW_COLUMNS);
        }
        match &*table {
            "session" => self.session(row, out),
            "message" => self.message(row, out),
            "part" => self.part(row, out),
            "session_message" => v2::message(&mut self.core, row, out),
            "todo" => out.push(Entry::keep(NoteKind::Todo, row)),
            "file" => out.push(file(row)),
            "project" => out.push(Entry::keep(NoteKind::Context, row)),
            other => out.unknown_type("table", other),
        }
    }

    fn session(&self) -> &Session {
        &self.core.session
    }

    fn save(&self) -> state::Saved {
        state::save(self)
    }
}
