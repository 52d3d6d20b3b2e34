//! Documents: an export, what the server answers, a file of the old tree.

use quipu_model::NoteKind;
use quipu_model::json::{Kind, Node};
use serde::{Deserialize, Serialize};

use super::events::Events;
use super::normalize::{Core, Message, error_text};
use super::wire::{is_error, is_event, is_message, is_part, is_session};
use crate::{Entry, Out, Reader, Session, state};

/// Reads a document.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Document {
    events: Events,
}

impl Document {
    fn core(&mut self) -> &mut Core {
        &mut self.events.core
    }

    fn session(&mut self, info: Node<'_>, out: &mut Out<'_>) {
        out.within(info, |out, info| self.core().session(info, out));
    }

    /// A message with its parts; each of them is a record.
    fn message(&mut self, item: Node<'_>, out: &mut Out<'_>) {
        let Some(info) = item.get("info") else {
            return out.within(item, |_, _| {});
        };
        out.check("item", item, &["info", "parts"]);
        let mut message = Message::default();
        out.within(info, |out, info| {
            if info.text("id").is_none_or(|id| out.unit(&id)) {
                message = self
                    .core()
                    .message(info, info.text("id"), Message::default(), out);
            } else {
                message = self.core().known(info, info.text("id"), Message::default());
            }
        });
        for part in item.get("parts").into_iter().flat_map(Node::items) {
            out.within(part, |out, part| self.part(part, &mut message, out));
        }
    }

    fn part(&mut self, part: Node<'_>, message: &mut Message, out: &mut Out<'_>) {
        let id = part.text("id");
        if id.as_deref().is_none_or(|id| out.unit(id)) {
            self.core().part(part, id, message, out);
        }
    }
}

impl Reader for Document {
    fn record(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if record.kind() == Kind::List {
            for item in record.items() {
                if is_session(item) {
                    self.session(item, out);
                } else {
                    self.message(item, out);
                }
            }
        } else if let Some(messages) = record.get("messages") {
            out.check("export", record, &["info", "messages"]);
            if let Some(info) = record.get("info") {
                self.session(info, out);
            }
            for item in messages.items() {
                self.message(item, out);
            }
        } else if record.get("parts").is_some() {
            self.message(record, out);
        } else if is_session(record) {
            self.session(record, out);
        } else if is_event(record) {
            out.within(record, |out, record| self.events.record(record, out));
            self.events.finish(out);
        } else {
            out.within(record, |out, record| self.lone(record, out));
        }
        self.core().end(out);
    }

    fn session(&self) -> &Session {
        &self.events.core.session
    }

    fn save(&self) -> state::Saved {
        state::save(self)
    }
}

impl Document {
    /// A message or a part that has a document of its own.
    fn lone(&mut self, record: Node<'_>, out: &mut Out<'_>) {
        if is_message(record) {
            let id = record.text("id");
            self.core().message(record, id, Message::default(), out);
        } else if is_part(record).is_some() {
            crate::session::learn(&mut self.core().session.id, || record.text("sessionID"));
            let mut message = Message::named(record.text("messageID"));
            self.part(record, &mut message, out);
        } else if is_error(record) {
            out.push(Entry::note(NoteKind::Error, error_text(record)));
        }
    }
}
